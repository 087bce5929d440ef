//! The input of an import, which is read more than once.

use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
    os::fd::AsFd as _,
    path::Path,
};

use crate::cli::context::{About as _, CommandError};

/// A file that can be read again from its beginning.
pub(super) struct Input {
    /// Its name in messages.
    pub(super) name: String,
    file: File,
    /// The place at which the input begins.
    start: u64,
    /// The number of its bytes.
    pub(super) length: u64,
}

impl Input {
    /// Opens a file; `-` is standard input. What can be read only once, such as a pipe, is copied to a file in `beside` that
    /// has no name and that only this process can read.
    pub(super) fn open(path: &Path, beside: &Path) -> Result<Self, CommandError> {
        let is_stdin = path == Path::new("-");
        let name = match is_stdin {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let unreadable = || format!("{name}: cannot be read");
        let opened = match is_stdin {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        };
        let mut file = opened.about(unreadable())?;
        let metadata = file.metadata().about(unreadable())?;
        let start = match metadata.is_file() {
            true => file.stream_position().about(unreadable())?,
            false => {
                file = copied(&mut file, beside).about(unreadable())?;
                0
            }
        };
        let length = file.metadata().about(unreadable())?.len();
        Ok(Self {
            length: length.saturating_sub(start),
            name,
            file,
            start,
        })
    }

    /// An input with these bytes.
    #[cfg(any(test, fuzzing))]
    pub(super) fn from_bytes(text: &[u8]) -> io::Result<Self> {
        let file = copied(&mut &*text, &std::env::temp_dir())?;
        Ok(Self {
            name: "text".to_owned(),
            file,
            start: 0,
            length: text.len() as u64,
        })
    }

    /// Reads the input from its beginning. Only one reader at a time is of use: all have one place in the file.
    pub(super) fn reader(&self) -> io::Result<impl Read + '_> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start))?;
        Ok(file)
    }
}

fn copied(from: &mut impl Read, directory: &Path) -> io::Result<File> {
    let directory = match directory.is_dir() {
        true => directory.to_owned(),
        false => std::env::temp_dir(),
    };
    let failed = |error: io::Error| {
        let directory = directory.display();
        io::Error::new(
            error.kind(),
            format!("a pipe is copied to {directory} first, and that fails: {error}"),
        )
    };
    let mut file = tempfile::tempfile_in(&directory).map_err(failed)?;
    io::copy(from, &mut file).map_err(failed)?;
    Ok(file)
}
