//! The files of a window: its state, and next to it the log of nonces, one file for some minutes. A file of the log is
//! deleted whole once all its timestamps have been dropped.
//!
//! The state says which files belong to the log. A new file is in it before the first nonce is in the file, and a file
//! is out of it before it is deleted, so that a process can be killed between any two steps.

mod files;
mod rotation;

use std::{
    collections::VecDeque,
    error::Error,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use self::files::{Files, SealedFile, log_path};
#[cfg(test)]
pub(super) use self::rotation::FEW_RECORDS;
use super::{
    NonceFiles, NonceUse,
    key::Key,
    segment::{self, Segment},
    state::{self, State, WindowOpenError},
};
use crate::base::file::new_file::open_kept;

/// The most files that one call of [`Journal::maintain`] deletes: more than are filled in the second between two calls.
const MAX_DELETED: usize = 256;

/// The state of earlier runs, as an open found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuity {
    /// There was no file, or nothing in it, or the window has no file.
    New,
    /// All nonces of the earlier runs are there.
    Continued,
    /// Nonces are missing: the machine went down without a clean stop, or the files are damaged or of another version.
    Lost {
        /// The highest timestamp that may have been accepted, as far as the file knows; else 0.
        accepted_until: u64,
    },
}

/// The files of a window, or none for a window that ends with its process.
pub(super) struct Journal {
    path: Option<PathBuf>,
    pub(super) key: Key,
    /// The file that is appended to; `None` until there is one.
    current: ArcSwapOption<Segment>,
    /// A file could not be made. It is tried again once a second, and not by every request.
    is_stuck: AtomicBool,
    files: Mutex<Files>,
}

impl Journal {
    /// Locks the file at `path` and reads the state in it, or makes a new one. Nothing is written before
    /// [`Self::start`].
    pub(super) fn open(
        path: Option<&Path>,
        boot: &str,
    ) -> Result<(Self, Continuity), WindowOpenError> {
        let file = path.map(state::open).transpose()?;
        let found = path.map(state::read).transpose()?.flatten();
        let state = match &found {
            Some(Ok(state)) => state.clone(),
            _ => State::new()?,
        };
        let missing = state.missing(boot);
        let journal = Self {
            path: path.map(Into::into),
            key: state.key,
            current: ArcSwapOption::empty(),
            is_stuck: AtomicBool::new(false),
            files: Mutex::new(Files {
                state,
                file,
                sealed: VecDeque::new(),
                mapped: Vec::new(),
                begun: 0,
                made: Instant::now(),
                seen: 0,
            }),
        };
        let continuity = match found {
            None => Continuity::New,
            Some(Ok(_)) => match missing {
                None => Continuity::Continued,
                Some(cause) => journal.lost(&io::Error::other(cause)),
            },
            Some(Err(error)) => journal.lost(&error),
        };
        Ok((journal, continuity))
    }

    /// Notes that the log cannot be used.
    pub(super) fn lost(&self, error: &io::Error) -> Continuity {
        let path = self.path.as_deref().map(Path::display);
        let path = path.map(tracing::field::display);
        let error = error as &dyn Error;
        tracing::warn!(
            path,
            error,
            "the nonce window cannot be read: its nonces are lost"
        );
        self.state(|state| Continuity::Lost {
            accepted_until: state.high_water_mark.max(state.lost_until),
        })
    }

    /// Calls `each` with the timestamp and fingerprint of every nonce in the log, some of them twice.
    ///
    /// # Errors
    ///
    /// A file is missing or damaged.
    pub(super) fn replay(&self, mut each: impl FnMut(u64, u64)) -> io::Result<()> {
        let mut files = self.files.lock();
        for number in files.state.logs.clone() {
            let mut highest = 0;
            segment::replay(
                &self.log(number),
                number,
                self.key,
                |second, fingerprint| {
                    highest = highest.max(second);
                    each(second, fingerprint);
                },
            )?;
            files.sealed.push_back(SealedFile { number, highest });
        }
        Ok(())
    }

    /// Begins a run, with the log of the run before or without; `change` is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// [`WindowOpenError::Io`]
    pub(super) fn start(
        &self,
        keeps_log: bool,
        change: impl FnOnce(&mut State),
    ) -> Result<(), WindowOpenError> {
        let mut files = self.files.lock();
        // The file before the log may be there still: a killed process may not have deleted it.
        let all = files.state.logs.start - 1..files.state.logs.end;
        let mut kept = if keeps_log {
            all.start + 1..all.end
        } else {
            files.sealed.clear();
            all.end..all.end
        };
        // The last files have no nonces if they were made and not used.
        while files.sealed.pop_back_if(|file| file.highest == 0).is_some() {
            kept.end -= 1;
        }
        let updated = files.update(|state| {
            state.is_closed = false;
            state.is_damaged &= keeps_log;
            state.logs = kept.clone();
            change(state);
        });
        updated
            .and_then(|()| files.sync())
            .map_err(state::failed(self.state_path(), "write"))?;
        if self.path.is_some() {
            let gone = (all.start..kept.start).chain(kept.end..all.end);
            gone.for_each(|number| _ = fs::remove_file(self.log(number)));
        }
        drop(files);
        self.replace_if_due(0);
        Ok(())
    }

    /// The path of the state; empty without files.
    pub(super) fn state_path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// Appends a nonce, so that it survives the process; `false` if the disk is full.
    #[inline]
    pub(super) fn append(&self, second: u64, fingerprint: u64) -> bool {
        if self.path.is_none() {
            return true;
        }
        let record = self.key.seal(second, fingerprint);
        loop {
            let current = self.current.load();
            if let Some(current) = &*current
                && current.append(second, record)
            {
                return true;
            }
            if self.is_stuck.load(Ordering::Relaxed) {
                return false;
            }
            self.replace_full(current.as_deref());
        }
    }

    /// Replaces the current file if it is old or will be full soon; deletes files whose timestamps are all at or below
    /// `dropped_until`. To be called once a second. `now`: seconds since the open.
    ///
    /// # Errors
    ///
    /// The system's; the next call tries again.
    pub(super) fn maintain(&self, now: u64, dropped_until: u64) -> io::Result<()> {
        self.replace_if_due(now);
        self.move_front(dropped_until)?;
        for _ in 0..MAX_DELETED {
            let mut files = self.files.lock();
            let front = files.sealed.front();
            let Some(front) = front.filter(|front| front.highest <= dropped_until) else {
                break;
            };
            let number = front.number;
            files.update(|state| state.logs.start = number + 1)?;
            files.sealed.pop_front();
            drop(files);
            match fs::remove_file(self.log(number)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    /// Files leave in their order. If the first one has nonces of a clock that was ahead, and a later one could leave,
    /// these nonces move to the current file. If the first one cannot be read, its nonces are in memory alone from then
    /// on, and the next start takes the log for damaged.
    fn move_front(&self, dropped_until: u64) -> io::Result<()> {
        let files = self.files.lock();
        let can_leave = |file: &SealedFile| file.highest <= dropped_until;
        // One without nonces can wait, and is not worth a move.
        let could_leave = |file: &SealedFile| file.highest > 0 && can_leave(file);
        let number = match files.sealed.front() {
            Some(front) if !can_leave(front) && files.sealed.iter().any(could_leave) => {
                front.number
            }
            _ => return Ok(()),
        };
        drop(files);
        let (path, mut is_moved) = (self.log(number), true);
        let read = segment::replay(&path, number, self.key, |second, fingerprint| {
            if second > dropped_until {
                is_moved &= self.append(second, fingerprint);
            }
        });
        if let Err(error) = read {
            self.update(|state| state.is_damaged = true)?;
            let (path, error) = (
                tracing::field::display(path.display()),
                &error as &dyn Error,
            );
            tracing::error!(
                path,
                error,
                "a file of the nonce log cannot be read: the next start takes the log for lost"
            );
        } else if !is_moved {
            return Ok(());
        }
        if let Some(front) = self.files.lock().sealed.front_mut() {
            front.highest = 0;
        }
        Ok(())
    }

    /// Changes the state, and writes it.
    ///
    /// # Errors
    ///
    /// The system's; nothing has changed then.
    pub(super) fn update(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        self.files.lock().update(change)
    }

    /// Changes the state, and writes it with a new version, unless there is no file or it has been closed.
    ///
    /// # Errors
    ///
    /// As [`Self::update`].
    pub(super) fn advance(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut files = self.files.lock();
        let has_file = files.file.is_some();
        files.update(|state| {
            state.version += u64::from(has_file);
            change(state);
        })
    }

    /// The version of the files; `None`: there are none.
    pub(super) fn files(&self) -> Option<NonceFiles> {
        self.path.as_ref()?;
        Some(NonceFiles {
            id: self.key.id(),
            version: self.state(|state| state.version),
        })
    }

    /// A part of the state.
    pub(super) fn state<T>(&self, part: impl FnOnce(&State) -> T) -> T {
        part(&self.files.lock().state)
    }

    /// Writes everything to the disk, so that it survives a power loss as well, and releases the lock, also if the
    /// write fails. No nonce may be appended from then on, and changes of the state stay in memory.
    pub(super) fn close(&self) -> io::Result<()> {
        let mut files = self.files.lock();
        let logs = files.state.logs.clone();
        let synced =
            logs.map(|number| open_kept(&self.log(number), File::options().read(true))?.sync_all());
        let closed = synced.collect::<io::Result<()>>().and_then(|()| {
            files.update(|state| {
                state.is_closed = true;
                state.version += 1;
            })?;
            files.sync()
        });
        files.file = None;
        closed
    }

    fn log(&self, number: u64) -> PathBuf {
        log_path(self.state_path(), number)
    }
}

/// Whether a nonce was used, by the files of a local window; `None` if they cannot be read. It takes no lock and reads
/// all files, so it is for questions about single requests. A nonce that is inserted meanwhile may be missed.
pub fn was_used(path: &Path, nonce: NonceUse<'_>) -> Option<bool> {
    let state = state::read(path).ok()??.ok()?;
    let wanted = (nonce.timestamp, state.key.fingerprint(&nonce));
    let mut is_found = false;
    for number in state.logs {
        let log = log_path(path, number);
        match segment::replay(&log, number, state.key, |second, fingerprint| {
            is_found |= (second, fingerprint) == wanted;
        }) {
            // It was deleted since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.ok()?,
        }
    }
    Some(is_found)
}
