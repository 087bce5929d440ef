//! Paths of files that the configuration names.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// The path with links and dots resolved, as far as it exists.
pub(in crate::run::app) fn resolved(path: &Path) -> PathBuf {
    let whole = path.canonicalize();
    let in_directory = || Some(directory(path).canonicalize().ok()?.join(path.file_name()?));
    let found = whole.ok().or_else(in_directory);
    found.unwrap_or_else(|| path.to_owned())
}

/// The directory of a file.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Whether a file can be created there.
///
/// # Errors
/// The system's, about the directory.
pub fn can_create(path: &Path) -> io::Result<()> {
    let directory = directory(path);
    if !directory.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_compared_behind_links_and_dots() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("inner")).unwrap();
        std::os::unix::fs::symlink(directory.path(), at("link")).unwrap();
        let plain = resolved(&at("a.sock"));
        assert_eq!(resolved(&at("inner/../a.sock")), plain);
        assert_eq!(resolved(&at("link/./a.sock")), plain);
        std::fs::write(at("a.sock"), "").unwrap();
        std::os::unix::fs::symlink(at("a.sock"), at("b.sock")).unwrap();
        assert_eq!(resolved(&at("b.sock")), plain);
        assert_ne!(resolved(&at("c.sock")), plain);
    }
}
