//! Writes a file whole or not at all, for its owner alone.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tempfile::NamedTempFile;

use crate::{cli::context::CommandError, run::app::paths::directory};

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

/// Makes a file: a temporary file beside `path` with mode 0600, which takes its name once `content` has written it and it
/// is on the disk. Another file of that name is replaced only with `force`, even one that has appeared since [`check`].
pub(super) fn create(
    path: &Path,
    force: bool,
    content: impl FnOnce(&mut BufWriter<NamedTempFile>) -> io::Result<()>,
) -> Result<(), CommandError> {
    let created = || {
        let file = tempfile::Builder::new()
            .prefix(".countersign-export-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(directory(path))?;
        let mut file = BufWriter::with_capacity(1 << 16, file);
        content(&mut file)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        match force {
            true => file.persist(path)?,
            false => file.persist_noclobber(path)?,
        };
        // The name is on the disk once the directory is.
        File::open(directory(path))?.sync_all()
    };
    created().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists if !force => exists(path),
        _ => CommandError::from(error).about(format!("{}: cannot be written", path.display())),
    })
}

fn exists(path: &Path) -> CommandError {
    CommandError::failed(format!(
        "{}: exists; give another name, or --force to replace it",
        path.display()
    ))
}
