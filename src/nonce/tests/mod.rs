//! Tests of the window as a whole.

mod crash;
mod expiry;
mod file;
pub(super) mod journal;
mod model;
mod window;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    Blackout, Continuity, Insertion, LocalWindow, OpenError, Opened, Params,
    boot::{Boot, BootId},
    open,
};
use crate::clock::UnixTime;

const WINDOW: Duration = Duration::from_secs(300);
const NOW: UnixTime = UnixTime(1_700_000_000);

/// A file of its own for a window, on a boot of its own.
struct Place {
    directory: TempDir,
    params: Params,
    boot: Boot,
}

impl Place {
    fn new() -> Self {
        // In memory where possible: these tests sync often, and what a disk does is not theirs to show.
        let shared_memory = Path::new("/dev/shm");
        let directory = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory)
        } else {
            tempfile::tempdir()
        };
        let directory = directory.unwrap();
        Self {
            params: Params {
                path: Some(directory.path().join("window.nonces")),
                window: WINDOW,
                max_entries: 1_000_000,
            },
            directory,
            boot: boot(1),
        }
    }

    fn path(&self) -> PathBuf {
        self.params.path.clone().unwrap()
    }

    fn open(&self) -> Result<Opened, OpenError> {
        patiently(|| open::open(&self.params, NOW, self.boot))
    }

    fn start(&self) -> LocalWindow {
        self.open().unwrap().start(Blackout::None).unwrap()
    }

    fn continuity(&self) -> Continuity {
        *self.open().unwrap().continuity()
    }

    /// The same place as it is in the file at this moment, as if the process had been killed.
    fn killed(&self) -> Self {
        let mut copy = Self::new();
        fs::copy(self.path(), copy.path()).unwrap();
        copy.params = Params {
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
fn patiently(open: impl Fn() -> Result<Opened, OpenError>) -> Result<Opened, OpenError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match open() {
            Err(OpenError::Locked { .. }) if Instant::now() < deadline => thread::yield_now(),
            result => return result,
        }
    }
}

fn boot(number: u64) -> Boot {
    Boot {
        id: BootId::from_words([number, 7]),
        uptime: Some(1_000),
    }
}

fn anonymous(max_entries: u64) -> LocalWindow {
    let params = Params {
        path: None,
        window: WINDOW,
        max_entries,
    };
    LocalWindow::open(&params, NOW)
        .unwrap()
        .start(Blackout::None)
        .unwrap()
}

/// Inserts the nonce of this number at a timestamp.
fn insert(window: &LocalWindow, timestamp: u64, number: u64) -> Insertion {
    window.insert(NOW, timestamp, b"consumer", b"token", &number.to_be_bytes())
}

/// Time since the open, in whole seconds.
fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
