//! The nonce window as verification sees it, closed while nonces of an earlier run may be missing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    clock::UnixTime,
    nonce::{self, Gap, Insertion, LocalWindow},
};

/// Why a nonce was not recorded; the request must not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRecorded {
    /// It was used before.
    Used,
    /// Its second has left the window for good; the timestamps that are still accepted.
    Forgotten {
        /// The earliest.
        earliest: u64,
        /// The latest.
        latest: u64,
    },
    /// There is no room, and none is made by forgetting.
    Full,
    /// The store could not be told for too long that requests are being accepted.
    Unmarked,
    /// Nonces of an earlier run are lost.
    Lost {
        /// When requests are accepted again.
        retry_after: Duration,
    },
}

/// Where nonces are recorded.
pub struct Nonces {
    window: LocalWindow,
    length: Duration,
    /// The mark in the store: no timestamp above it may be accepted, since a later start would not know of it.
    mark: AtomicU64,
}

impl Nonces {
    /// A window of the given length either way.
    #[must_use]
    pub const fn new(window: LocalWindow, length: Duration) -> Self {
        Self {
            window,
            length,
            mark: AtomicU64::new(0),
        }
    }

    /// The window itself, for upkeep and metrics.
    #[must_use]
    pub const fn window(&self) -> &LocalWindow {
        &self.window
    }

    /// Notes the mark that has been written into the store.
    pub fn marked(&self, mark: UnixTime) {
        self.mark.fetch_max(mark.0, Ordering::Relaxed);
    }

    /// Whether the mark covers what is accepted at `now`; after the clock has jumped ahead it does not.
    #[must_use]
    pub fn is_marked(&self, now: UnixTime) -> bool {
        let mark = UnixTime(self.mark.load(Ordering::Relaxed));
        nonce::mark_covers(mark, now, self.length)
    }

    /// Records a nonce that was not used before: one atomic step.
    ///
    /// # Errors
    /// [`NotRecorded`]
    pub fn record(
        &self,
        now: UnixTime,
        timestamp: u64,
        consumer: &[u8],
        token: &[u8],
        nonce: &[u8],
    ) -> Result<(), NotRecorded> {
        if let Gap::Until(until) = self.window.gap()
            && now <= until
        {
            return Err(lost(until, now));
        }
        if !self.is_marked(now) {
            return Err(NotRecorded::Unmarked);
        }
        match self.window.insert(now, timestamp, consumer, token, nonce) {
            Insertion::Fresh => Ok(()),
            Insertion::Used => Err(NotRecorded::Used),
            Insertion::Full => Err(NotRecorded::Full),
            Insertion::Lost => Err(lost(now, now)),
            Insertion::Forgotten => Err(NotRecorded::Forgotten {
                earliest: timestamp.saturating_add(1),
                latest: now.after(self.length).0,
            }),
        }
    }
}

fn lost(until: UnixTime, now: UnixTime) -> NotRecorded {
    let retry_after = Duration::from_secs(until.0.saturating_sub(now.0) + 1);
    NotRecorded::Lost { retry_after }
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nonces")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
