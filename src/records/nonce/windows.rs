//! Records nonces for verification: in this process and, if replicas share theirs, with the other replicas.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use thiserror::Error;

use super::{Insertion, LocalWindow, NonceUse, OnLost, Outage, SharedWindow, Unavailable};
use crate::base::clock::UnixTime;

/// Why a nonce is not accepted.
#[derive(Debug, Error)]
pub enum NonceError {
    /// It was used before.
    #[error("used nonce")]
    Used,
    /// The nonces of its timestamp have been dropped.
    #[error("timestamp outside {earliest}-{latest}")]
    Forgotten {
        /// The earliest timestamp that is accepted.
        earliest: u64,
        /// The latest one.
        latest: u64,
    },
    /// It cannot be recorded.
    #[error(transparent)]
    Fault(#[from] NonceFault),
}

/// Why nonces cannot be recorded: a fault on this side.
#[derive(Debug, Error)]
pub enum NonceFault {
    /// The window is full.
    #[error("nonce window full")]
    Full {
        /// The time until the oldest nonces leave the window.
        retry_after: Duration,
    },
    /// This process ends and has closed its window: another one records nonces now.
    #[error("this process is ending and no longer records nonces")]
    Closed,
    /// The store has failed for too long: a restart would not know the nonces recorded now.
    #[error("the mark of the nonce window could not be written to the store for too long")]
    MarkStale,
    /// Nonces of an earlier run are lost, and requests it may have accepted are still within their time.
    #[error("nonces of an earlier run are lost")]
    Lost {
        /// The time until signed requests are accepted again.
        retry_after: Duration,
    },
    /// The window that replicas share is unavailable.
    #[error(transparent)]
    Shared(Unavailable),
}

/// A nonce that is fresh here and has to be recorded in the shared window too.
#[must_use = "it is accepted only once it is recorded there"]
pub struct Elsewhere<'n> {
    nonces: &'n Nonces,
    shared: &'n dyn SharedWindow,
    now: UnixTime,
    nonce: NonceUse<'n>,
}

impl Elsewhere<'_> {
    /// Records the nonce in the shared window.
    ///
    /// # Errors
    /// As [`Nonces::record_here`].
    ///
    /// # Cancel safety
    /// A call that is dropped may have recorded the nonce.
    pub async fn record(self) -> Result<(), NonceError> {
        let (nonces, now) = (self.nonces, self.now);
        let inserted = self
            .shared
            .insert(now, nonces.length(), nonces.on_lost(), self.nonce);
        let insertion = inserted.await.map_err(NonceFault::Shared)?;
        nonces.check(now, insertion)
    }
}

/// The windows in which a nonce has to be fresh.
pub struct Nonces {
    window: LocalWindow,
    shared: Option<Box<dyn SharedWindow>>,
    /// The length in seconds that the configuration asks for; the window gets it once a high-water mark covers it.
    wanted: AtomicU64,
    /// Nonces that may be lost are taken for fresh.
    waives: AtomicBool,
    /// The high-water mark in the store. No timestamp above it may be accepted, since a later start would not know of
    /// it.
    high_water_mark: AtomicU64,
}

impl Nonces {
    /// Records in this window, and then in the shared one if there is one.
    pub fn new(window: LocalWindow, shared: Option<Box<dyn SharedWindow>>) -> Self {
        // The high-water mark is for a start that finds the nonces of this process lost. Shared nonces are not lost with
        // a process.
        let high_water_mark = if shared.is_some() { u64::MAX } else { 0 };
        Self {
            wanted: AtomicU64::new(window.length().as_secs()),
            window,
            shared,
            waives: AtomicBool::new(false),
            high_water_mark: AtomicU64::new(high_water_mark),
        }
    }

    /// Sets whether timestamps are rejected whose nonces may be lost.
    ///
    /// # Errors
    /// The file cannot be written; a restart rejects them again.
    pub fn set_on_lost(&self, on_lost: OnLost) -> io::Result<()> {
        let waives = on_lost == OnLost::Accept;
        self.waives.store(waives, Ordering::Relaxed);
        if waives { self.window.waive() } else { Ok(()) }
    }

    fn on_lost(&self) -> OnLost {
        match self.waives.load(Ordering::Relaxed) {
            true => OnLost::Accept,
            false => OnLost::Refuse,
        }
    }

    /// Whether a shared window knows the nonces, so that no high-water mark need be written.
    #[must_use]
    pub const fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The most that a timestamp may be from now, either way.
    pub fn length(&self) -> Duration {
        self.window.length()
    }

    /// Asks for another length. A shorter one counts at once, a longer one when a high-water mark covers it; until then
    /// the old one does. Two threads must not call this at once.
    ///
    /// # Errors
    /// The file cannot be written; the old length stays until the next call of [`Nonces::note_written_mark`].
    pub fn ask_for_length(&self, now: UnixTime, length: Duration) -> io::Result<()> {
        self.wanted.store(length.as_secs(), Ordering::Relaxed);
        self.resize_window(now)
    }

    fn wanted(&self) -> Duration {
        Duration::from_secs(self.wanted.load(Ordering::Relaxed))
    }

    fn resize_window(&self, now: UnixTime) -> io::Result<()> {
        let (wanted, length) = (self.wanted(), self.length());
        if wanted < length || wanted > length && self.is_marked(now, wanted) {
            self.window.set_length(now, wanted)?;
            tracing::info!(
                key = "signature.timestamp_window",
                seconds = wanted.as_secs(),
                "takes effect"
            );
        }
        Ok(())
    }

    /// The window of this process, for upkeep and metrics.
    pub const fn window(&self) -> &LocalWindow {
        &self.window
    }

    /// The high-water mark to write into the store at `now`, for the length that counts and the one that is asked for;
    /// [`Nonces::note_written_mark`] follows once the store has it.
    ///
    /// # Errors
    /// The file of the window cannot be written.
    pub fn next_high_water_mark(&self, now: UnixTime) -> io::Result<UnixTime> {
        let mark = super::next_high_water_mark(now, self.length().max(self.wanted()));
        self.window.note_high_water_mark(mark)?;
        Ok(mark)
    }

    /// The high-water mark that the store has.
    pub fn high_water_mark(&self) -> UnixTime {
        UnixTime(self.high_water_mark.load(Ordering::Relaxed))
    }

    /// Notes at `now` the high-water mark that has been written into the store; a length that it covers counts from
    /// then on.
    ///
    /// # Errors
    /// As [`Nonces::ask_for_length`].
    pub fn note_written_mark(&self, mark: UnixTime, now: UnixTime) -> io::Result<()> {
        self.high_water_mark.fetch_max(mark.0, Ordering::Relaxed);
        self.resize_window(now)
    }

    /// Notes that timestamps up to `until` may have been accepted by another store whose records were imported: they
    /// are rejected from now on, unless that is waived.
    ///
    /// # Errors
    /// As [`LocalWindow::note_lost`].
    pub fn note_imported(&self, until: UnixTime) -> io::Result<()> {
        match self.on_lost() {
            OnLost::Refuse => self.window.note_lost(until),
            OnLost::Accept => Ok(()),
        }
    }

    /// Whether the length asked for counts, and the high-water mark covers what is accepted at `now`; after the clock
    /// has jumped ahead it does not.
    #[must_use]
    pub fn is_recovered(&self, now: UnixTime) -> bool {
        self.wanted() == self.length() && self.is_marked(now, self.length())
    }

    fn is_marked(&self, now: UnixTime, length: Duration) -> bool {
        now.after(length).0 <= self.high_water_mark.load(Ordering::Relaxed)
    }

    /// Why all signed requests are rejected at `now`, if they are.
    pub fn outage(&self, now: UnixTime) -> Option<Outage> {
        let (lost, dropped) = (self.lost_until(), self.window.dropped_until());
        if now <= lost {
            return Some(Outage::Lost { until: lost });
        }
        let shared = self.shared.as_ref();
        shared.and_then(|shared| shared.outage(now)).or_else(|| {
            if !self.is_marked(now, self.length()) {
                Some(Outage::Unmarked)
            } else if now <= dropped {
                Some(Outage::ClockSetBack { until: dropped })
            } else {
                None
            }
        })
    }

    /// Signed requests are rejected until then, because nonces of an earlier run, or of an imported store, may be lost.
    fn lost_until(&self) -> UnixTime {
        self.window.lost_until().max(self.window.closed_until())
    }

    /// Records a nonce that was not used before in the window of this process, which never waits. With a shared window it is
    /// accepted only after [`Elsewhere::record`].
    ///
    /// # Errors
    /// [`NonceError`] says why the nonce is not accepted. It may be recorded all the same: the same request is rejected as
    /// used then.
    pub fn record_here<'n>(
        &'n self,
        now: UnixTime,
        nonce: NonceUse<'n>,
    ) -> Result<Option<Elsewhere<'n>>, NonceError> {
        // Compares the timestamp itself: the length and `now` may have changed since the timestamp was checked.
        if nonce.timestamp > self.high_water_mark.load(Ordering::Relaxed) {
            return Err(NonceFault::MarkStale.into());
        }
        let insertion = match now <= self.window.closed_until() {
            true => Insertion::Lost,
            false => self.window.insert(&nonce),
        };
        self.check(now, insertion)?;
        Ok(self.shared.as_deref().map(|shared| Elsewhere {
            nonces: self,
            shared,
            now,
            nonce,
        }))
    }

    fn check(&self, now: UnixTime, insertion: Insertion) -> Result<(), NonceError> {
        match insertion {
            Insertion::Fresh => Ok(()),
            Insertion::Used => Err(NonceError::Used),
            Insertion::Closed => Err(NonceFault::Closed.into()),
            Insertion::Full => {
                let retry_after = self.window.frees_after(now);
                Err(NonceFault::Full { retry_after }.into())
            }
            Insertion::Lost => {
                let shared = self.shared.as_ref().map(|shared| shared.lost_until());
                let lost = self.lost_until().max(shared.unwrap_or_default());
                let retry_after = Duration::from_secs(lost.0.saturating_sub(now.0) + 1);
                Err(NonceFault::Lost { retry_after }.into())
            }
            Insertion::Forgotten => {
                let latest = now.after(self.length()).0;
                let dropped_until = self.window.dropped_until().0;
                Err(NonceError::Forgotten {
                    earliest: dropped_until.saturating_add(1).min(latest),
                    latest,
                })
            }
        }
    }

    /// Checks whether the shared window, if there is one, records nonces. To be called once a second, as
    /// [`LocalWindow::maintain`] is.
    pub async fn maintain_shared(&self, now: UnixTime) {
        if let Some(shared) = &self.shared {
            shared.maintain(now, self.length(), self.on_lost()).await;
        }
    }
}

#[cfg(test)]
mod tests;
