//! Writes a file whole or not at all, for its owner alone.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{app::own::directory, cli::context::CommandError};

/// Checks that `path` may be written, before the work is done for nothing. Only a file is ever replaced.
pub(super) fn check(path: &Path, force: bool) -> Result<(), CommandError> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(there) if !there.is_file() => Err(CommandError::failed(format!(
            "{}: is not a file; give the name of a file, or - for standard output",
            path.display()
        ))),
        Ok(_) if force => Ok(()),
        Ok(_) => Err(exists(path)),
    }
}

/// A file that is being written: a temporary file beside `path` with mode 0600, which takes its name once it is whole and
/// on the disk. Another file of that name is replaced only with `force`, even one that has appeared since [`check`].
pub(super) struct NewFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
    force: bool,
}

impl NewFile {
    pub(super) fn create(path: &Path, force: bool) -> Result<Self, CommandError> {
        let file = tempfile::Builder::new()
            .prefix(".countersign-export-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(directory(path))
            .map_err(|error| failed(path, force, error))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 16, file),
            path: path.to_owned(),
            force,
        })
    }

    /// Why the file could not be written.
    pub(super) fn failed(&self, error: io::Error) -> CommandError {
        failed(&self.path, self.force, error)
    }

    /// Makes the file what `path` names.
    pub(super) fn finish(self) -> Result<(), CommandError> {
        let Self { file, path, force } = self;
        let finished = || {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            match force {
                true => file.persist(&path)?,
                false => file.persist_noclobber(&path)?,
            };
            // The name is on the disk once the directory is.
            File::open(directory(&path))?.sync_all()
        };
        finished().map_err(|error| failed(&path, force, error))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn failed(path: &Path, force: bool, error: io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::AlreadyExists if !force => exists(path),
        _ => CommandError::from(error).about(format!("{}: cannot be written", path.display())),
    }
}

fn exists(path: &Path) -> CommandError {
    CommandError::failed(format!(
        "{}: exists; give another name, or --force to replace it",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, text: &[u8], force: bool) -> Result<(), CommandError> {
        let mut file = NewFile::create(path, force)?;
        file.write_all(text).map_err(|error| file.failed(error))?;
        file.finish()
    }

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
