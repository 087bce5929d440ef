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
