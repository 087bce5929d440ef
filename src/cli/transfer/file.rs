//! Writes a file whole or not at all, for its owner alone.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tempfile::NamedTempFile;

use crate::{
    cli::context::CommandError, records::values::transfer::TransferError,
    run::app::files::paths::directory,
};

/// Checks that `path` may be written, before the work is done for nothing. Only a file is ever replaced.
fn check(path: &Path, force: bool) -> Result<(), CommandError> {
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

/// A file that is being made: a temporary file beside its path with mode 0600, which takes its name once it is on the disk.
/// Another file of that name is replaced only with `force`, even one that has appeared meanwhile.
pub(super) struct Pending<'p> {
    path: &'p Path,
    force: bool,
    file: BufWriter<NamedTempFile>,
}

impl<'p> Pending<'p> {
    /// Begins the file.
    pub(super) fn new(path: &'p Path, force: bool) -> Result<Self, CommandError> {
        check(path, force)?;
        let file = tempfile::Builder::new()
            .prefix(".countersign-export-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(directory(path));
        let file = file.map_err(|error| failed(path, force, error))?;
        Ok(Self {
            path,
            force,
            file: BufWriter::with_capacity(1 << 16, file),
        })
    }

    /// Takes the content.
    pub(super) fn writer(&mut self) -> &mut impl Write {
        &mut self.file
    }

    /// Gives the file its name, if its content was written.
    pub(super) fn finish<T>(self, written: Result<T, TransferError>) -> Result<T, CommandError> {
        let Self { path, force, file } = self;
        let finished = match written {
            Err(TransferError::File(error)) => Err(error),
            Err(TransferError::Store(error)) => return Err(error.into()),
            Ok(written) => persist(file, path, force).map(|()| written),
        };
        finished.map_err(|error| failed(path, force, error))
    }
}

fn persist(file: BufWriter<NamedTempFile>, path: &Path, force: bool) -> io::Result<()> {
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    match force {
        true => file.persist(path)?,
        false => file.persist_noclobber(path)?,
    };
    // The name is on the disk once the directory is.
    File::open(directory(path))?.sync_all()
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
