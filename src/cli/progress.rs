//! The progress of a long command, on a terminal.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    time::{Duration, Instant},
};

/// One line on standard error that is overwritten; nothing if standard error is not a terminal.
pub(super) struct ProgressLine {
    what: &'static str,
    last: Instant,
    is_shown: bool,
}

/// How often the line is written.
const EVERY: Duration = Duration::from_millis(200);

impl ProgressLine {
    /// The line begins with `what`, and ends when this is dropped.
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            last: Instant::now(),
            is_shown: false,
        }
    }

    /// Shows how many are done.
    pub(super) fn show(&mut self, count: u64) {
        if self.last.elapsed() >= EVERY && stderr().is_terminal() {
            self.last = Instant::now();
            self.is_shown = true;
            let _ = write!(stderr(), "\r\x1b[K{}: {count}", self.what);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
