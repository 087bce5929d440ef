//! The start of a window: whether nonces of earlier runs are missing.

use std::{sync::atomic::Ordering, time::Duration};

use super::{LocalWindow, last_to_leave};
use crate::{
    base::clock::UnixTime,
    records::nonce::{NonceFiles, OnLost, WindowOpenError, journal::Continuity},
};

/// The store's high-water mark may be this many seconds above the highest one that the file knows, and the file still counts
/// as complete: another process on the same store, with files of its own, may have written the mark a little later.
const MARK_SLACK: u64 = 60;

/// A window that is open and does not serve yet: it first needs the high-water mark of the store.
pub struct Opened {
    pub(super) window: LocalWindow,
    /// The latest version of the files that the store knows.
    pub(super) known_version: u64,
    pub(in crate::records::nonce) continuity: Continuity,
    pub(super) boot: String,
}

impl Opened {
    /// The files as they were found; `None`: the window is in memory.
    pub fn files(&self) -> Option<NonceFiles> {
        self.window.journal.files()
    }

    /// Notes the latest version of the files that the store knows; older files are an old copy.
    #[must_use]
    pub fn after_version(mut self, known: Option<u64>) -> Self {
        self.known_version = known.unwrap_or(0);
        self
    }

    /// Starts to serve at `now`. `high_water_mark` is the one in the store: it shows whether an earlier run has accepted
    /// nonces that are not here.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn start(
        self,
        now: UnixTime,
        high_water_mark: Option<UnixTime>,
        on_lost: OnLost,
    ) -> Result<LocalWindow, WindowOpenError> {
        let (window, mark) = (self.window, high_water_mark.unwrap_or_default().0);
        let length = window.length();
        let is_continued = self.continuity == Continuity::Continued;
        window.journal.start(is_continued, |state| {
            let is_old = state.version < self.known_version;
            let lost_until = match self.continuity {
                Continuity::New => mark,
                Continuity::Continued => {
                    if is_old {
                        tracing::warn!(
                            "the files of the nonce window are an old copy: later nonces are lost"
                        );
                    }
                    let known = state.high_water_mark.saturating_add(MARK_SLACK);
                    mark * u64::from(is_old || mark > known)
                }
                Continuity::Lost { accepted_until: 0 } if mark == 0 => now.after(length).0,
                Continuity::Lost { accepted_until } => mark.max(accepted_until),
            };
            if on_lost == OnLost::Accept {
                (state.lost_until, state.closed_until) = (0, 0);
            } else if lost_until > 0 {
                state.lost_until = state.lost_until.max(lost_until);
                state.closed_until = UnixTime(lost_until).after(length).0;
            }
            state.version = state.version.max(self.known_version) + 1;
            // The mark is accounted for: it does not make a later start wait again.
            state.high_water_mark = state.high_water_mark.max(mark);
            let earlier = Duration::from_secs(state.window);
            if !is_continued {
                state.dropped_until = 0;
            } else if earlier < length {
                state.dropped_until = state.dropped_until.max(last_to_leave(now, earlier));
            }
            state.window = length.as_secs();
            state.boot = self.boot;
        })?;
        window.not_before.store(0, Ordering::Relaxed);
        window.raise_not_before();
        let closed_until = window.journal.state(|state| state.closed_until);
        window.closed_until.store(closed_until, Ordering::Relaxed);
        Ok(window)
    }
}
