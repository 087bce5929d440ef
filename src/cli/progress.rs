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
    /// The time of the last line; `None` without a terminal.
    last_line: Option<Instant>,
    is_dirty: bool,
}

impl Progress {
    /// Shows how many of `what` are done.
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            last_line: io::stderr().is_terminal().then(Instant::now),
            is_dirty: false,
        }
    }

    /// Shows how many are done.
    pub(super) fn at(&mut self, done: u64) {
        if let Some(last_line) = &mut self.last_line
            && last_line.elapsed() >= EVERY
        {
            *last_line = Instant::now();
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
