//! The files of a window as the state names them.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use crate::records::nonce::{segment::Segment, state::State};

/// The state, its file, and the files of the log.
pub(super) struct Files {
    pub(super) state: State,
    /// The locked file of the state.
    pub(super) file: Option<File>,
    /// The log before the current file.
    pub(super) sealed: VecDeque<SealedFile>,
    /// Sealed files that an insertion may still look at: none of them is unmapped by an insertion.
    pub(super) mapped: Vec<Arc<Segment>>,
    /// The time from which the current file counts as used, in seconds since the open.
    pub(super) begun: u64,
    /// The time when the current file was made.
    pub(super) made: Instant,
    /// The records of the current file at the last [`super::Journal::maintain`].
    pub(super) seen: usize,
}

/// A file of the log that is no longer appended to.
pub(super) struct SealedFile {
    pub(super) number: u64,
    /// Its highest timestamp.
    pub(super) highest: u64,
}

impl Files {
    pub(super) fn update(&mut self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut state = self.state.clone();
        change(&mut state);
        if let Some(file) = &self.file {
            state.write(file)?;
        }
        self.state = state;
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_all)
    }
}

/// The file of this number of the log.
pub(super) fn log_path(path: &Path, number: u64) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(format!(".{number}.log"));
    path.into()
}
