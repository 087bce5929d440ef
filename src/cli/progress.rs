//! The progress of long work, for the person at a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

/// The shortest time between two lines: work that is quick shows none.
const EVERY: Duration = Duration::from_millis(200);

/// A line on standard error that is written again and again, where that is a terminal. Dropping it clears the line.
pub(super) struct Progress {
    what: &'static str,
    /// `None` without a terminal.
    shown: Option<Instant>,
    is_dirty: bool,
}

impl Progress {
    /// Shows how many of `what` are done.
    pub(super) fn of(what: &'static str) -> Self {
        Self {
            what,
            shown: io::stderr().is_terminal().then(Instant::now),
            is_dirty: false,
        }
    }

    /// Shows how many are done.
    pub(super) fn at(&mut self, done: u64) {
        if let Some(shown) = &mut self.shown
            && shown.elapsed() >= EVERY
        {
            *shown = Instant::now();
            self.is_dirty = true;
            let _ = write!(io::stderr(), "\r{done} {}", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_dirty {
            // Spaces in place of an escape sequence: every terminal knows them.
            let _ = write!(io::stderr(), "\r{:40}\r", "");
        }
    }
}
