//! A file that is there whole or not at all, and that nobody but its owner reads.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{cli::context::CommandError, issue::random};

/// Checks that `path` may be written, before the work is done for nothing. Only a file is ever replaced.
pub(super) fn check(path: &Path, force: bool) -> Result<(), CommandError> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(there) if !there.is_file() => Err(CommandError::Refused(format!(
            "{}: is not a file; give the name of a file, or - for standard output",
            path.display()
        ))),
        Ok(_) if force => Ok(()),
        Ok(_) => Err(is_there(path)),
    }
}

/// Writes `path` with mode 0600: a temporary file beside it takes its name once it is on the disk. Another file of
/// that name is replaced only with `force`, even one that has appeared since [`check`].
pub(super) fn write(path: &Path, contents: &[u8], force: bool) -> Result<(), CommandError> {
    let failed = |source| CommandError::File {
        what: format!("{}: cannot be written", path.display()),
        source,
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = Temporary::make(directory).map_err(failed)?;
    temporary.file.write_all(contents).map_err(failed)?;
    temporary.file.sync_all().map_err(failed)?;
    let renamed = if force {
        fs::rename(&temporary.path, path)
    } else {
        rename_to_nothing(&temporary.path, path)
    };
    match renamed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(is_there(path)),
        Err(error) => return Err(failed(error)),
    }
    temporary.is_kept = true;
    // The name is on the disk once the directory is.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed)
}

fn is_there(path: &Path) -> CommandError {
    CommandError::Refused(format!(
        "{}: is there already; give another name, or --force to replace it",
        path.display()
    ))
}

/// Renames only if there is nothing of the new name.
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot do it in one step. There a file that appears just now is lost.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

/// A file under a name of its own, removed unless it is kept.
struct Temporary {
    path: PathBuf,
    file: File,
    is_kept: bool,
}

impl Temporary {
    fn make(directory: &Path) -> io::Result<Self> {
        let drawn = random::identifier().map_err(io::Error::other)?;
        let path = directory.join(format!(".countersign-export-{drawn}"));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            path,
            file,
            is_kept: false,
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing more can be done about a file that stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn makes_a_file_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export");
        check(&path, false).unwrap();
        write(&path, b"text", false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(names(directory.path()), ["export"]);
    }

    #[test]
    fn replaces_a_file_only_when_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export");
        fs::write(&path, "old").unwrap();
        assert!(check(&path, false).is_err());
        // It may have appeared after the check.
        assert!(write(&path, b"new", false).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["export"]);
        check(&path, true).unwrap();
        write(&path, b"new", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "not the mode of the file before");
    }

    #[test]
    fn replaces_nothing_but_files() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [directory.path(), &link, Path::new("/dev/null")] {
            assert!(check(path, true).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn leaves_nothing_behind_when_it_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sub");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), "x").unwrap();
        assert!(write(&path, b"text", true).is_err());
        assert_eq!(names(directory.path()), ["sub"]);
        assert!(write(&directory.path().join("none/export"), b"text", false).is_err());
    }
}
