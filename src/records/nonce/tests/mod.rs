//! Tests of the window as a whole.

mod crash;
mod expiry;
mod file;
mod model;
mod window;

use std::{
    fs, iter,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    Insertion, LocalWindow, NonceUse, OnLost, Opened, WindowOpenError, WindowParams,
    journal::Continuity,
};
use crate::base::clock::UnixTime;

const WINDOW: Duration = Duration::from_secs(300);
const NOW: UnixTime = UnixTime(1_700_000_000);

/// A machine with the files of a window, and its boot.
struct Machine {
    directory: TempDir,
    params: WindowParams,
    boot: &'static str,
}

impl Machine {
    fn new() -> Self {
        // In memory where possible: these tests sync often, and they do not test the disk.
        let shared_memory = Path::new("/dev/shm");
        let directory = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory)
        } else {
            tempfile::tempdir()
        };
        let directory = directory.unwrap();
        Self {
            params: WindowParams {
                path: Some(directory.path().join("window.nonces")),
                window: WINDOW,
                max_entries: 1_000_000,
            },
            directory,
            boot: "first",
        }
    }

    fn path(&self) -> PathBuf {
        self.params.path.clone().unwrap()
    }

    /// The files of the log.
    fn logs(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.directory.path()).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let mut logs: Vec<_> = paths.filter(|path| *path != self.path()).collect();
        logs.sort_unstable();
        logs
    }

    fn open(&self) -> Result<Opened, WindowOpenError> {
        patiently(|| LocalWindow::open_on(&self.params, self.boot.to_owned()))
    }

    fn start(&self) -> LocalWindow {
        self.start_after(None)
    }

    fn start_after(&self, mark: Option<UnixTime>) -> LocalWindow {
        let opened = self.open().unwrap();
        opened.start(NOW, mark, OnLost::Refuse).unwrap()
    }

    fn continuity(&self) -> Continuity {
        self.open().unwrap().continuity
    }

    fn is_lost(&self) -> bool {
        matches!(self.continuity(), Continuity::Lost { .. })
    }

    /// The same machine as it is in the files at this moment, as if the process had been killed.
    fn killed(&self) -> Self {
        let mut copy = Self::new();
        // The state first: a file that is made meanwhile is not in it, as if it had not been made.
        for path in iter::once(self.path()).chain(self.logs()) {
            let to = copy.directory.path().join(path.file_name().unwrap());
            fs::copy(path, to).unwrap();
        }
        copy.params = WindowParams {
            path: copy.params.path.clone(),
            ..self.params.clone()
        };
        copy.boot = self.boot;
        copy
    }
}

/// Opens a window that has just been dropped.
///
/// A process that another test is spawning holds copies of all descriptors, and with them the locks, for a moment.
fn patiently(
    open: impl Fn() -> Result<Opened, WindowOpenError>,
) -> Result<Opened, WindowOpenError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match open() {
            Err(WindowOpenError::Locked { .. }) if Instant::now() < deadline => thread::yield_now(),
            result => return result,
        }
    }
}

fn anonymous(max_entries: u64) -> LocalWindow {
    let params = WindowParams {
        path: None,
        window: WINDOW,
        max_entries,
    };
    let opened = LocalWindow::open(&params).unwrap();
    opened.start(NOW, None, OnLost::Refuse).unwrap()
}

/// Inserts the nonce of this number at a timestamp.
fn insert(window: &LocalWindow, timestamp: u64, number: u64) -> Insertion {
    window.insert(&NonceUse {
        timestamp,
        consumer: b"consumer",
        token: b"token",
        nonce: &number.to_be_bytes(),
    })
}

/// Calls `maintain` at this time, this many seconds after the open.
fn maintain(window: &LocalWindow, now: u64, since_open: u64) {
    let since_open = Duration::from_secs(since_open);
    window.maintain_at(UnixTime(now), since_open).unwrap();
}
