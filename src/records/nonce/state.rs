//! The file of `nonce.path`: locked while its window is in use, with the facts other than nonces that a start needs.

use std::{
    fs::{self, File, TryLockError},
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use thiserror::Error;

use super::key::Key;
use crate::base::file::new_file::{create_or_open, open_kept};

/// The beginning of the file; a checksum and JSON follow, filled up to [`BYTES`]. Another layout counts as damaged.
const MAGIC: &str = "countersignonce\n";
/// One write of this many bytes is never half done when the process is killed.
const BYTES: usize = 512;

/// Why a window cannot be opened.
#[derive(Debug, Error)]
pub enum WindowOpenError {
    /// Another process has it open.
    #[error(
        "the nonce window {} is in use by another process; stop that one, or set nonce.path to a file of its own",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else. It is left as it is.
    #[error("{} is not a nonce window; set nonce.path to another file", path.display())]
    NotAWindow {
        /// The file.
        path: PathBuf,
    },
    /// The operating system reports an error.
    #[error("cannot {action} the nonce window {}; check nonce.path, its directory, and the room there", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The system gives no random key.
    #[error("the system's random generator fails")]
    Random,
}

/// The facts about earlier runs that a start needs.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) key: Key,
    /// The boot of the machine in which the file was written last: data that a killed process wrote survives as long as
    /// the kernel. Empty if the boot is not known.
    pub(super) boot: String,
    /// The last run has ended, and all files are on the disk.
    pub(super) is_closed: bool,
    /// A file of the log could not be read: its nonces were in memory alone.
    #[serde(default)]
    pub(super) is_damaged: bool,
    /// The most seconds that a timestamp may be from the clock.
    pub(super) window: u64,
    /// Timestamps up to this one were dropped, or had left a window that became wider.
    pub(super) dropped_until: u64,
    /// Timestamps up to this one may have been accepted with nonces that are not here.
    pub(super) lost_until: u64,
    /// All timestamps are rejected until this time, when those of a lost run have left the window.
    #[serde(default)]
    pub(super) closed_until: u64,
    /// The highest high-water mark that the runs with this file have written into the store, or have accounted for.
    pub(super) high_water_mark: u64,
    /// Raised at least at each start, at each clean stop, and with each high-water mark; the store has the same number.
    #[serde(default)]
    pub(super) version: u64,
    /// The numbers of the log's files.
    pub(super) logs: Range<u64>,
}

impl State {
    /// The state of a window that has no nonces, with a new key.
    ///
    /// # Errors
    ///
    /// [`WindowOpenError::Random`]
    pub(super) fn new() -> Result<Self, WindowOpenError> {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| WindowOpenError::Random)?;
        let (words, _) = bytes.as_chunks();
        Ok(Self {
            key: Key([u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]),
            boot: String::new(),
            is_closed: false,
            is_damaged: false,
            window: 0,
            dropped_until: 0,
            lost_until: 0,
            closed_until: 0,
            high_water_mark: 0,
            version: 0,
            logs: 1..1,
        })
    }

    /// Why nonces of the last run may be missing in the files, on this boot.
    pub(super) fn missing(&self, boot: &str) -> Option<&'static str> {
        if self.is_damaged {
            Some("a file of its log was damaged")
        } else if self.is_closed || self.boot == boot && !boot.is_empty() {
            None
        } else {
            Some("the machine stopped without a clean stop")
        }
    }

    /// Writes it over the one in the file. It needs no new room on the disk.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let json = serde_json::to_string(self)?;
        let text = format!("{MAGIC}{:016x} {json}", checksum(&json));
        file.write_all_at(format!("{text:<BYTES$}").as_bytes(), 0)
    }

    fn parse(text: &str) -> Option<Self> {
        let (check, json) = text.split_at_checked(16)?;
        let json = json.trim();
        let is_whole = u64::from_str_radix(check, 16) == Ok(checksum(json));
        is_whole.then(|| serde_json::from_str(json).ok())?
    }
}

fn checksum(json: &str) -> u64 {
    SipHasher13::new().hash(json.as_bytes())
}

/// The boot of the machine that is running; empty if it is not known.
pub(super) fn current_boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Opens the file and locks it; it is made with mode 0600 if it is missing.
///
/// # Errors
///
/// [`WindowOpenError::Locked`], [`WindowOpenError::Io`]
pub(super) fn open(path: &Path) -> Result<File, WindowOpenError> {
    let file = create_or_open(path).map_err(failed(path, "open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(WindowOpenError::Locked { path: path.into() }),
        Err(TryLockError::Error(source)) => Err(failed(path, "lock")(source)),
    }
}

/// The state in the file at `path`; `None` if the file is empty, [`Err`] in it if it is damaged or of another version.
///
/// # Errors
///
/// [`WindowOpenError::NotAWindow`], [`WindowOpenError::Io`]
pub(super) fn read(path: &Path) -> Result<Option<Result<State, io::Error>>, WindowOpenError> {
    let mut page = [0; BYTES];
    let file = open_kept(path, File::options().read(true)).map_err(failed(path, "open"))?;
    let metadata = file.metadata().map_err(failed(path, "read"))?;
    if !metadata.is_file() {
        return Err(WindowOpenError::NotAWindow { path: path.into() });
    }
    let length = usize::try_from(metadata.len()).map_or(BYTES, |length| length.min(BYTES));
    if length == 0 {
        return Ok(None);
    }
    let read = file.read_exact_at(&mut page[..length], 0);
    read.map_err(failed(path, "read"))?;
    let Some(rest) = page[..length].strip_prefix(MAGIC.as_bytes()) else {
        return Err(WindowOpenError::NotAWindow { path: path.into() });
    };
    let state = std::str::from_utf8(rest).ok().and_then(State::parse);
    Ok(Some(state.ok_or_else(|| {
        let cause = "it is damaged, or of another version of countersign";
        io::Error::new(io::ErrorKind::InvalidData, cause)
    })))
}

/// Checks whether the file can be a window, also while another process has it open; changes nothing.
///
/// # Errors
///
/// [`WindowOpenError`], except the errors that only opening can find.
pub fn check_file(path: &Path) -> Result<(), WindowOpenError> {
    open_kept(path, File::options().write(true)).map_err(failed(path, "open"))?;
    read(path).map(drop)
}

/// The error of an operation on the file.
pub(super) fn failed(
    path: &Path,
    action: &'static str,
) -> impl FnOnce(io::Error) -> WindowOpenError {
    move |source| WindowOpenError::Io {
        path: path.into(),
        action,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_every_flipped_bit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let mut state = State::new().unwrap();
        state.dropped_until = 1_700_000_000;
        state.window = 300;
        state.write(&open(&path).unwrap()).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), BYTES);
        let read_back = read(&path).unwrap().unwrap().unwrap();
        assert_eq!(read_back.dropped_until, 1_700_000_000);
        assert!(read_back.key == state.key && read_back.logs == (1..1));
        let text = str::from_utf8(&bytes).unwrap().trim_end().len();
        for bit in 0..text * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            let found = read(&path);
            let is_noticed = matches!(
                found,
                Ok(Some(Err(_))) | Err(WindowOpenError::NotAWindow { .. })
            );
            // The checksum's digits may be large or small letters.
            let is_case = bit % 8 == 5 && (16..32).contains(&(bit / 8));
            assert!(is_noticed || is_case, "bit {bit}");
        }
    }

    #[test]
    fn fits_with_the_largest_numbers() {
        let state = State {
            key: Key([u64::MAX; 2]),
            boot: "01234567-89ab-cdef-0011-223344556677".to_owned(),
            is_closed: false,
            is_damaged: false,
            window: u64::MAX,
            dropped_until: u64::MAX,
            lost_until: u64::MAX,
            closed_until: u64::MAX,
            high_water_mark: u64::MAX,
            version: u64::MAX,
            logs: u64::MAX..u64::MAX,
        };
        let json = serde_json::to_string(&state).unwrap();
        assert!(MAGIC.len() + 17 + json.len() <= BYTES, "{}", json.len());
    }
}
