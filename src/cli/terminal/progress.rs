//! The progress of long work, for the person at a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

/// The shortest time between two lines: work that is quick shows none.
const EVERY: Duration = Duration::from_millis(200);
/// The width of a line, and of the bar in it.
const WIDTH: usize = 79;
const BAR: usize = 20;

/// A line on standard error that is written again and again, where that is a terminal. Dropping it clears the line.
pub(in crate::cli) struct Progress {
    what: &'static str,
    /// The size of the whole work; 0 if it is not known.
    whole: u64,
    begun: Instant,
    /// The time of the last line; `None` without a terminal.
    last_line: Option<Instant>,
    is_dirty: bool,
}

impl Progress {
    /// Shows how many of `what` are done, and how much of the `whole` work; 0 if that is not known.
    pub(in crate::cli) fn new(what: &'static str, whole: u64) -> Self {
        let begun = Instant::now();
        Self {
            what,
            whole,
            begun,
            last_line: io::stderr().is_terminal().then_some(begun),
            is_dirty: false,
        }
    }

    /// Shows how many are done, which is this `part` of the whole.
    pub(in crate::cli) fn at(&mut self, done: u64, part: u64) {
        if let Some(last_line) = &mut self.last_line
            && last_line.elapsed() >= EVERY
        {
            *last_line = Instant::now();
            self.is_dirty = true;
            let text = text(self.what, done, (part, self.whole), self.begun.elapsed());
            let _ = write!(io::stderr(), "\r{text:WIDTH$}");
        }
    }
}

/// The line: the number, the rate, and if the whole is known, the time left and a bar.
fn text(what: &str, done: u64, (part, whole): (u64, u64), elapsed: Duration) -> String {
    let milliseconds = elapsed.as_millis().max(1);
    let rate = u128::from(done) * 1000 / milliseconds;
    let mut text = format!("{done} {what}, {rate} a second");
    let part = part.min(whole);
    if part > 0 {
        let left = milliseconds * u128::from(whole - part) / u128::from(part) / 1000;
        let left = in_words(left);
        let full = (u128::from(part) * BAR as u128 / u128::from(whole)) as usize;
        text += &format!(", {left} left [{:-<BAR$}]", "#".repeat(full));
    }
    text
}

fn in_words(seconds: u128) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// How long work took, for the sentence at its end.
pub(in crate::cli) fn took(begun: Instant) -> String {
    match begun.elapsed().as_millis() {
        milliseconds @ 0..10_000 => {
            format!("{}.{} s", milliseconds / 1000, milliseconds / 100 % 10)
        }
        milliseconds => in_words(milliseconds / 1000),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_dirty {
            // Spaces instead of an escape sequence: every terminal knows them.
            let _ = write!(io::stderr(), "\r{:WIDTH$}\r", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_rate_and_the_time_left() {
        let at = |done, part, whole, seconds| {
            let part = (part, whole);
            text("records checked", done, part, Duration::from_secs(seconds))
        };
        assert_eq!(at(0, 0, 0, 0), "0 records checked, 0 a second");
        assert_eq!(at(500, 500, 0, 2), "500 records checked, 250 a second");
        assert_eq!(
            at(500, 50, 200, 10),
            "500 records checked, 50 a second, 30 s left [#####---------------]"
        );
        assert_eq!(
            at(10, 10, 1000, 60),
            "10 records checked, 0 a second, 99 min left [--------------------]"
        );
        assert!(at(10, 10, 1000, 600).contains("16 h 30 min left"));
        // A file that has grown meanwhile.
        assert!(at(10, 300, 200, 10).ends_with("0 s left [####################]"));
        let most = at(u64::MAX / 2000, 1, u64::MAX, 1);
        assert!(most.contains("left"), "{most}");
    }
}
