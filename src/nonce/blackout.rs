//! The *blackout*: the time for which a start rejects signed requests because nonces of an earlier run are missing.
//!
//! The window's file says what became of it ([`Continuity`]). The store keeps a *high-water mark*: a timestamp later
//! than any that a run may have accepted, written ahead of time and never lowered. Only with both can a first start be
//! told from one whose file was deleted, moved, or replaced by an old copy.
//!
//! A request with timestamp `t` is acceptable from `t - window` to `t + window`. So once `mark + window` has passed,
//! with the window as it is *now*, nothing that an earlier run accepted can be accepted again, whatever window that run
//! had.

use std::time::Duration;

use crate::clock::UnixTime;

/// How far ahead [`next_high_water_mark`] reaches.
pub const MARK_AHEAD: Duration = Duration::from_secs(60);
/// How often to write it: twice before it is reached, so that one failed write does no harm.
pub const MARK_EVERY: Duration = Duration::from_secs(30);

/// How much higher than the highest high-water mark of its own runs a file explains a high-water mark: another process
/// on the same store, with a file of its own, may have written one since.
pub(super) const MARK_SLACK: Duration = Duration::from_secs(60);

/// What an open found of earlier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// There was no file (or nothing in it), or the window is in anonymous memory.
    New,
    /// All nonces of the file's earlier runs are there.
    Continued {
        /// How many.
        entries: u64,
        /// The highest high-water mark that these runs account for: a higher one is of a run that this file knows
        /// nothing of.
        mark: UnixTime,
        /// An earlier run found nonces lost, with timestamps up to this one.
        lost_until: Option<UnixTime>,
    },
    /// The file was there and cannot be relied on: the machine went down without a clean stop, or it is damaged. It has
    /// been emptied.
    Untrusted {
        /// The highest timestamp that the file records (1970 if it cannot be read), at least.
        held_until: UnixTime,
        /// The highest timestamp that can have been accepted before the open, at most.
        possible_until: UnixTime,
    },
}

/// What to do if nonces are lost (`nonce.on_lost`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLost {
    /// Reject signed requests until nothing can be replayed.
    #[default]
    Refuse,
    /// Serve at once: requests of the last minutes may be replayed.
    Accept,
}

/// How long nothing may be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blackout {
    /// Nothing is lost.
    None,
    /// Signed requests are rejected with 503 up to and including this second.
    Until(UnixTime),
}

impl Blackout {
    /// Decides what a start has to do.
    ///
    /// `mark` is what [`next_high_water_mark`] returned to the run that wrote it last, `window` the window of this run.
    #[must_use]
    pub fn after(
        continuity: &Continuity,
        mark: Option<UnixTime>,
        window: Duration,
        on_lost: OnLost,
    ) -> Self {
        if on_lost == OnLost::Accept {
            return Self::None;
        }
        let lost_until = match *continuity {
            Continuity::New => mark,
            Continuity::Continued {
                mark: known,
                lost_until,
                ..
            } => mark.filter(|mark| *mark > known).max(lost_until),
            // The high-water mark is exact and the file's own bound is not; but a store restored from a backup may be
            // behind.
            Continuity::Untrusted {
                held_until,
                possible_until,
            } => Some(mark.map_or(possible_until, |mark| mark.max(held_until))),
        };
        lost_until.map_or(Self::None, |lost| Self::Until(lost.after(window)))
    }

    /// Whether signed requests are rejected at `now`.
    #[must_use]
    pub fn rejects(self, now: UnixTime) -> bool {
        match self {
            Self::None => false,
            Self::Until(until) => now <= until,
        }
    }
}

/// The high-water mark to write into the store at `now`: a timestamp above any that is accepted within [`MARK_AHEAD`].
///
/// Write it before the first request is accepted and then every [`MARK_EVERY`], but not while a [`Blackout`] rejects
/// requests: nothing is accepted then, and the high-water mark would only make the blackout longer after a restart.
#[must_use]
pub fn next_high_water_mark(now: UnixTime, window: Duration) -> UnixTime {
    now.after(window).after(MARK_AHEAD)
}

/// Whether a written high-water mark covers what is accepted at `now`; if it does not, because the store has been away
/// for too long, requests have to be rejected.
#[must_use]
pub fn high_water_mark_covers(mark: UnixTime, now: UnixTime, window: Duration) -> bool {
    now.after(window) <= mark
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(300);
    const NOW: UnixTime = UnixTime(1_000_000);

    fn continued(mark: u64, lost_until: Option<u64>) -> Continuity {
        Continuity::Continued {
            entries: 0,
            mark: UnixTime(mark),
            lost_until: lost_until.map(UnixTime),
        }
    }

    fn untrusted(held_until: u64, possible_until: u64) -> Continuity {
        Continuity::Untrusted {
            held_until: UnixTime(held_until),
            possible_until: UnixTime(possible_until),
        }
    }

    #[test]
    fn decides_each_case() {
        let cases = [
            ("first start", Continuity::New, None, None),
            ("file deleted", Continuity::New, Some(5_000), Some(5_300)),
            (
                "ordinary restart",
                continued(5_000, None),
                Some(5_000),
                None,
            ),
            ("store replaced", continued(5_000, None), None, None),
            (
                "old copy of the file",
                continued(5_000, None),
                Some(5_001),
                Some(5_301),
            ),
            (
                "restart in a blackout",
                continued(9_000, Some(7_000)),
                Some(7_000),
                Some(7_300),
            ),
            (
                "old copy with a blackout",
                continued(5_000, Some(4_000)),
                Some(6_000),
                Some(6_300),
            ),
            (
                "power loss",
                untrusted(4_000, 9_000),
                Some(5_000),
                Some(5_300),
            ),
            (
                "power loss, old store",
                untrusted(4_000, 9_000),
                Some(3_000),
                Some(4_300),
            ),
            (
                "power loss, no mark",
                untrusted(4_000, 9_000),
                None,
                Some(9_300),
            ),
        ];
        for (name, continuity, mark, until) in cases {
            let mark = mark.map(UnixTime);
            let expected = until.map_or(Blackout::None, |until| Blackout::Until(UnixTime(until)));
            let blackout = Blackout::after(&continuity, mark, WINDOW, OnLost::Refuse);
            assert_eq!(blackout, expected, "{name}");
            let waived = Blackout::after(&continuity, mark, WINDOW, OnLost::Accept);
            assert_eq!(waived, Blackout::None, "{name}, accepted");
        }
    }

    #[test]
    fn nothing_accepted_before_is_acceptable_after_the_blackout() {
        // Whatever window either run has: at the end of the blackout the newest timestamp of the earlier run has left.
        for (earlier, later) in [(300, 300), (600, 60), (60, 600)] {
            let (earlier, later) = (Duration::from_secs(earlier), Duration::from_secs(later));
            let mark = next_high_water_mark(NOW, earlier);
            let last_accepting = NOW.after(MARK_AHEAD);
            assert!(high_water_mark_covers(mark, last_accepting, earlier));
            assert!(!high_water_mark_covers(
                mark,
                UnixTime(last_accepting.0 + 1),
                earlier
            ));
            let newest_timestamp = last_accepting.after(earlier);
            let blackout = Blackout::after(&Continuity::New, Some(mark), later, OnLost::Refuse);
            let mut now = last_accepting;
            while blackout.rejects(now) {
                now.0 += 1;
            }
            assert!(now.0 > newest_timestamp.0 + later.as_secs());
        }
    }
}
