//! Records nonces for verification, and rejects them while nonces of an earlier run may be missing.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use thiserror::Error;

use super::error::{Error, Fault};
use crate::{
    clock::UnixTime,
    nonce::{self, Blackout, Insertion, LocalWindow, NonceUse, OnLost, SharedWindow, Unavailable},
    store::port::{causes, is_of_logged_outage},
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
    Full {
        /// When the oldest nonces leave the window.
        retry_after: Duration,
    },
    /// The store could not be told for too long that requests are being accepted.
    Unmarked,
    /// Nonces of an earlier run are lost.
    Lost {
        /// When requests are accepted again.
        retry_after: Duration,
    },
}

/// Why every signed request, or every one whose clock is right, is rejected at present.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Outage {
    /// Nonces of an earlier run are lost, and it is waited until none of its requests could be replayed.
    #[error(
        "nonces of an earlier run are lost: signed requests get 503 until {until}; nonce.on_lost = \"accept\" \
         waives this"
    )]
    Lost {
        /// The last second of the wait.
        until: UnixTime,
    },
    /// The engine that keeps the nonces of all replicas is not the one that recorded them, or was restarted.
    #[error(
        "the engine that keeps nonces was restarted, restored or has failed over, and nonces may be lost: signed \
         requests get 503 until {until}; nonce.on_lost = \"accept\" waives this"
    )]
    LostShared {
        /// The last second of the wait.
        until: UnixTime,
    },
    /// The window of all replicas records nothing.
    #[error("nonces cannot be recorded since {since}, so signed requests get 503: {cause}")]
    Unavailable {
        /// When that was noticed.
        since: UnixTime,
        /// The causes.
        cause: String,
    },
    /// Records were imported from a store whose nonces are not known here.
    #[error(
        "records were imported from a store that may have accepted requests up to {until}, and its nonces are not \
         known here: signed requests get 503 until then; nonce.on_lost = \"accept\" waives this"
    )]
    Imported {
        /// The last timestamp that is rejected.
        until: UnixTime,
    },
    /// The high-water mark in the store does not cover what would be accepted now.
    #[error(
        "the store has not been told how far nonces are accepted: signed requests get 503 until it can be written"
    )]
    Unmarked,
    /// What has left the window for good lies ahead of the clock.
    #[error(
        "timestamps up to {until} have left the nonce window for good, and the clock is not there yet: requests are \
         refused until then; if it is the clock that was wrong, stop, remove the file of nonce.path, and start with \
         nonce.on_lost = \"accept\""
    )]
    ClockSetBack {
        /// The last second that is rejected.
        until: UnixTime,
    },
}

/// Where nonces are recorded: in this process and, if there is a shared window, with the other replicas.
pub struct Nonces {
    window: LocalWindow,
    shared: Option<Box<dyn SharedWindow>>,
    /// The length in seconds that the configuration asks for; the window's own becomes as long once a high-water mark
    /// covers it.
    wanted: AtomicU64,
    /// The shared window records nothing.
    unavailable: Mutex<Option<Unrecorded>>,
    /// Nonces that may be lost are taken for fresh.
    waives: AtomicBool,
    /// The high-water mark in the store: no timestamp above it may be accepted, since a later start would not know of
    /// it.
    mark: AtomicU64,
    /// Another store, whose records were imported, may have accepted timestamps up to this one.
    imported_until: AtomicU64,
}

/// An outage of the shared window.
#[derive(Clone)]
struct Unrecorded {
    since: UnixTime,
    cause: String,
    /// Its beginning was logged here, and not by the store.
    is_logged: bool,
}

impl Nonces {
    /// Records in this window, and then in the shared one if there is one.
    #[must_use]
    pub fn new(window: LocalWindow, shared: Option<Box<dyn SharedWindow>>) -> Self {
        // The high-water mark is for a start that finds the nonces of this process lost. What is shared is not lost
        // with a process.
        let mark = if shared.is_some() { u64::MAX } else { 0 };
        Self {
            wanted: AtomicU64::new(window.length().as_secs()),
            window,
            shared,
            unavailable: Mutex::default(),
            waives: AtomicBool::new(false),
            mark: AtomicU64::new(mark),
            imported_until: AtomicU64::new(0),
        }
    }

    /// What to do about nonces that may be lost; [`OnLost::Accept`] ends a wait at once.
    ///
    /// # Errors
    /// The disk does not take it; a restart waits again.
    pub fn set_on_lost(&self, on_lost: OnLost) -> io::Result<()> {
        let waives = on_lost == OnLost::Accept;
        self.waives.store(waives, Ordering::Relaxed);
        if waives { self.window.waive() } else { Ok(()) }
    }

    fn on_lost(&self) -> OnLost {
        if self.waives.load(Ordering::Relaxed) {
            OnLost::Accept
        } else {
            OnLost::Refuse
        }
    }

    /// Whether a shared window knows the nonces, so that no high-water mark need be written.
    #[must_use]
    pub const fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// How far a timestamp may be from now, either way.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.window.length()
    }

    /// Asks for another length. A shorter one counts at once, a longer one when a high-water mark covers it; until then
    /// the old one does.
    ///
    /// # Errors
    /// The disk does not take it; the old length stays until the next call of [`Nonces::marked`].
    pub fn ask_for_length(&self, now: UnixTime, length: Duration) -> io::Result<()> {
        self.wanted.store(length.as_secs(), Ordering::Relaxed);
        self.resize_window(now)
    }

    fn wanted(&self) -> Duration {
        Duration::from_secs(self.wanted.load(Ordering::Relaxed))
    }

    /// Not for two threads at once: upkeep and reloads have one.
    fn resize_window(&self, now: UnixTime) -> io::Result<()> {
        let (wanted, length) = (self.wanted(), self.length());
        let mark = UnixTime(self.mark.load(Ordering::Relaxed));
        if wanted < length || wanted > length && nonce::high_water_mark_covers(mark, now, wanted) {
            self.window.set_length(now, wanted)?;
            tracing::info!(
                key = "signature.timestamp_window",
                seconds = wanted.as_secs(),
                "takes effect"
            );
        }
        Ok(())
    }

    /// The window itself, for upkeep and metrics.
    #[must_use]
    pub const fn window(&self) -> &LocalWindow {
        &self.window
    }

    /// The high-water mark to write into the store at `now`, for the length that counts and the one that is asked for.
    /// It is noted in the window's file; [`Nonces::marked`] follows once the store has it.
    #[must_use]
    pub fn next_high_water_mark(&self, now: UnixTime) -> UnixTime {
        let mark = nonce::next_high_water_mark(now, self.length().max(self.wanted()));
        self.window.note_high_water_mark(mark);
        mark
    }

    /// Notes at `now` the high-water mark that has been written into the store; a length that it covers counts from
    /// then on.
    ///
    /// # Errors
    /// As [`Nonces::ask_for_length`].
    pub fn marked(&self, mark: UnixTime, now: UnixTime) -> io::Result<()> {
        self.mark.fetch_max(mark.0, Ordering::Relaxed);
        self.resize_window(now)
    }

    /// Notes that timestamps up to `until` may have been accepted by another store whose records were imported: they
    /// are rejected from now on.
    pub fn note_imported(&self, until: UnixTime) {
        self.imported_until.fetch_max(until.0, Ordering::Relaxed);
    }

    /// Timestamps up to this one are rejected because of an import, unless that is waived.
    fn imported_until(&self) -> UnixTime {
        match self.on_lost() {
            OnLost::Refuse => UnixTime(self.imported_until.load(Ordering::Relaxed)),
            OnLost::Accept => UnixTime(0),
        }
    }

    /// Whether the length asked for counts, and the high-water mark covers what is accepted at `now`; after the clock
    /// has jumped ahead it does not.
    #[must_use]
    pub fn is_recovered(&self, now: UnixTime) -> bool {
        self.wanted() == self.length() && self.is_marked(now)
    }

    fn is_marked(&self, now: UnixTime) -> bool {
        let mark = UnixTime(self.mark.load(Ordering::Relaxed));
        nonce::high_water_mark_covers(mark, now, self.length())
    }

    /// Why all signed requests are rejected at `now`, if they are.
    #[must_use]
    pub fn outage(&self, now: UnixTime) -> Option<Outage> {
        let floor = self.window.floor();
        let lost = self.shared_lost_until();
        let imported = self.imported_until();
        match self.window.blackout() {
            Blackout::Until(until) if now <= until => Some(Outage::Lost { until }),
            _ if let Some(Unrecorded { since, cause, .. }) = self.unavailable().clone() => {
                Some(Outage::Unavailable { since, cause })
            }
            _ if now <= lost => Some(Outage::LostShared { until: lost }),
            _ if now <= imported => Some(Outage::Imported { until: imported }),
            _ if !self.is_marked(now) => Some(Outage::Unmarked),
            _ if now <= floor => Some(Outage::ClockSetBack { until: floor }),
            _ => None,
        }
    }

    /// Records a nonce that was not used before. Without a shared window this never waits.
    ///
    /// # Errors
    /// [`NotRecorded`] as a rejection or a fault, and [`Fault::SharedNonces`]. The nonce may be recorded all the same:
    /// the same request is rejected as used then.
    ///
    /// # Cancel safety
    /// A call that is dropped may have recorded the nonce.
    pub async fn record(&self, now: UnixTime, nonce: NonceUse<'_>) -> Result<(), Error> {
        self.record_here(now, nonce)?;
        if let Some(shared) = &self.shared {
            let insertion = shared
                .insert(now, self.length(), self.on_lost(), nonce)
                .await;
            let insertion = insertion.map_err(|error| {
                self.note_unavailable(now, &error, false);
                Fault::SharedNonces(error)
            });
            self.result(now, insertion?)?;
        }
        Ok(())
    }

    /// Records a nonce that no request has in the shared window, so that an outage is known and its end is noticed
    /// whether or not there are requests.
    pub async fn probe(&self, now: UnixTime) {
        let Some(shared) = &self.shared else { return };
        let random = RandomState::new().hash_one(()).to_be_bytes();
        let nonce = NonceUse {
            timestamp: now.0,
            consumer: b"",
            token: b"",
            nonce: &random,
        };
        match shared
            .insert(now, self.length(), self.on_lost(), nonce)
            .await
        {
            Err(error) => self.note_unavailable(now, &error, true),
            Ok(_) => {
                let ended = self.unavailable().take();
                if let Some(Unrecorded { since, .. }) = ended.filter(|ended| ended.is_logged) {
                    tracing::info!(%since, "nonces are recorded again");
                }
            }
        }
    }

    /// Notes that the shared window records nothing. A connection that was cut fails some requests and is replaced, so
    /// it is logged only if a probe fails too.
    fn note_unavailable(&self, now: UnixTime, error: &Unavailable, logs: bool) {
        let cause = causes(error);
        let logs = logs && !is_of_logged_outage(error);
        let mut unavailable = self.unavailable();
        let unrecorded = unavailable.get_or_insert_with(|| Unrecorded {
            since: now,
            cause: String::new(),
            is_logged: false,
        });
        if logs && !unrecorded.is_logged {
            tracing::error!(cause, "nonces cannot be recorded: signed requests get 503");
            unrecorded.is_logged = true;
        }
        unrecorded.cause = cause;
    }

    fn unavailable(&self) -> MutexGuard<'_, Option<Unrecorded>> {
        self.unavailable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn shared_lost_until(&self) -> UnixTime {
        let shared = self.shared.as_ref();
        shared.map_or(UnixTime(0), |shared| shared.lost_until())
    }

    /// Records a nonce in the window of this process: one atomic step.
    fn record_here(&self, now: UnixTime, nonce: NonceUse<'_>) -> Result<(), NotRecorded> {
        if let Blackout::Until(until) = self.window.blackout()
            && now <= until
        {
            return Err(lost(until, now));
        }
        let imported = self.imported_until();
        if nonce.timestamp <= imported.0 {
            return Err(lost(imported.max(now), now));
        }
        // The timestamp itself, and not what the length makes of `now`: either may have changed since it was checked.
        if nonce.timestamp > self.mark.load(Ordering::Relaxed) {
            return Err(NotRecorded::Unmarked);
        }
        let NonceUse {
            timestamp,
            consumer,
            token,
            nonce,
        } = nonce;
        let insertion = self.window.insert(now, timestamp, consumer, token, nonce);
        self.result(now, insertion)
    }

    fn result(&self, now: UnixTime, insertion: Insertion) -> Result<(), NotRecorded> {
        match insertion {
            Insertion::Fresh => Ok(()),
            Insertion::Used => Err(NotRecorded::Used),
            Insertion::Full => Err(NotRecorded::Full {
                retry_after: self.window.frees_after(now),
            }),
            Insertion::Lost => Err(lost(self.shared_lost_until().max(now), now)),
            Insertion::Forgotten => {
                let latest = now.after(self.length()).0;
                Err(NotRecorded::Forgotten {
                    earliest: self.window.earliest().min(latest),
                    latest,
                })
            }
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
            .field("length", &self.length())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{
        nonce::{SharedInsertion, Unavailable},
        verify::Rejection,
    };

    const NOW: UnixTime = UnixTime(1_800_000_000);
    const WINDOW: Duration = Duration::from_secs(10);
    const WIDE: Duration = Duration::from_secs(1_000);

    fn nonces(blackout: Blackout) -> Nonces {
        let params = nonce::Params {
            path: None,
            window: WINDOW,
            max_entries: 1_000,
        };
        let window = LocalWindow::open(&params, NOW).unwrap();
        Nonces::new(window.start(blackout).unwrap(), None)
    }

    fn record(nonces: &Nonces, now: UnixTime, timestamp: u64) -> Result<(), NotRecorded> {
        nonces.record_here(now, nonce(timestamp))
    }

    fn nonce(timestamp: u64) -> NonceUse<'static> {
        NonceUse {
            timestamp,
            consumer: b"consumer",
            token: b"token",
            nonce: b"nonce",
        }
    }

    #[test]
    fn a_wider_length_counts_when_its_mark_is_written_and_a_narrower_one_at_once() {
        let nonces = nonces(Blackout::None);
        let first = nonces.next_high_water_mark(NOW);
        nonces.marked(first, NOW).unwrap();
        assert!(nonces.is_recovered(NOW));
        nonces.ask_for_length(NOW, WIDE).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        assert!(!nonces.is_recovered(NOW));
        // A high-water mark for the old length, which was being written meanwhile, does not do.
        nonces.marked(first, NOW).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        let wide = nonces.next_high_water_mark(NOW);
        assert_eq!(wide, nonce::next_high_water_mark(NOW, WIDE));
        // Nor does one that came so late that it no longer covers the wider length.
        let late = NOW.after(nonce::MARK_AHEAD + Duration::from_secs(1));
        nonces.marked(wide, late).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        nonces
            .marked(nonces.next_high_water_mark(late), late)
            .unwrap();
        assert_eq!(nonces.length(), WIDE);
        assert!(nonces.is_recovered(late));
        nonces.ask_for_length(late, WINDOW).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        // Asked for narrower while a wider high-water mark was being written: the last word counts.
        nonces.ask_for_length(late, 2 * WIDE).unwrap();
        let wide = nonces.next_high_water_mark(late);
        nonces.ask_for_length(late, WINDOW / 2).unwrap();
        nonces.marked(wide, late).unwrap();
        assert_eq!(nonces.length(), WINDOW / 2);
    }

    #[test]
    fn no_timestamp_above_the_mark_is_accepted_whatever_the_length() {
        let nonces = nonces(Blackout::None);
        assert_eq!(record(&nonces, NOW, NOW.0), Err(NotRecorded::Unmarked));
        let mark = nonces.next_high_water_mark(NOW);
        nonces.marked(mark, NOW).unwrap();
        assert_eq!(record(&nonces, NOW, mark.0), Ok(()));
        assert_eq!(record(&nonces, NOW, mark.0 + 1), Err(NotRecorded::Unmarked));
        // Checked under a length that a reload has made narrower since.
        nonces.ask_for_length(NOW, WINDOW / 2).unwrap();
        assert_eq!(record(&nonces, NOW, mark.0 + 1), Err(NotRecorded::Unmarked));
    }

    #[test]
    fn tells_what_is_accepted_when_a_timestamp_has_left_for_good() {
        let nonces = nonces(Blackout::None);
        let later = NOW.after(Duration::from_secs(100));
        nonces.ask_for_length(later, WIDE).unwrap();
        nonces
            .marked(nonces.next_high_water_mark(later), later)
            .unwrap();
        let floor = later.before(WINDOW).0;
        let forgotten = NotRecorded::Forgotten {
            earliest: floor,
            latest: later.after(WIDE).0,
        };
        assert_eq!(record(&nonces, later, NOW.0), Err(forgotten));
        assert_eq!(record(&nonces, later, floor), Ok(()));
    }

    #[test]
    fn tells_each_outage_until_it_is_over() {
        let until = NOW.after(Duration::from_secs(100));
        let nonces = nonces(Blackout::Until(until));
        nonces.ask_for_length(NOW, WIDE).unwrap();
        assert_eq!(nonces.outage(NOW), Some(Outage::Lost { until }));
        assert_eq!(nonces.outage(until), Some(Outage::Lost { until }));
        let after = UnixTime(until.0 + 1);
        assert_eq!(nonces.outage(after), Some(Outage::Unmarked));
        nonces
            .marked(nonces.next_high_water_mark(after), after)
            .unwrap();
        assert_eq!(nonces.outage(after), None);
        assert_eq!(nonces.length(), WIDE);
        // What was lost stays out under the wider window.
        let lost = until.before(WINDOW).0;
        assert!(matches!(
            record(&nonces, after, lost),
            Err(NotRecorded::Forgotten { .. })
        ));
        let back = NOW.before(WIDE);
        let floor = nonces.window().floor();
        assert!(floor > back);
        assert_eq!(nonces.outage(back), Some(Outage::Lost { until }));
    }

    const LOST_UNTIL: UnixTime = UnixTime(NOW.0 - 1);

    /// What a shared window is asked, and what it returns, the last first.
    #[derive(Clone, Default)]
    struct Shared {
        asked: Arc<Mutex<Vec<u64>>>,
        results: Arc<Mutex<Vec<Result<Insertion, Unavailable>>>>,
    }

    impl SharedWindow for Shared {
        fn insert<'a>(
            &'a self,
            _: UnixTime,
            length: Duration,
            _: OnLost,
            nonce: NonceUse<'a>,
        ) -> SharedInsertion<'a> {
            assert_eq!(length, WINDOW);
            self.asked.lock().unwrap().push(nonce.timestamp);
            Box::pin(async move {
                tokio::task::yield_now().await;
                self.results.lock().unwrap().pop().unwrap()
            })
        }

        fn lost_until(&self) -> UnixTime {
            LOST_UNTIL
        }
    }

    fn shared(
        results: impl IntoIterator<Item = Result<Insertion, Unavailable>>,
    ) -> (Nonces, Shared) {
        let shared = Shared::default();
        shared.results.lock().unwrap().extend(results);
        let Nonces { window, .. } = nonces(Blackout::None);
        let nonces = Nonces::new(window, Some(Box::new(shared.clone())));
        (nonces, shared)
    }

    #[tokio::test]
    async fn rejects_what_this_process_has_seen_without_asking_the_shared_window() {
        let (nonces, shared) = shared([Ok(Insertion::Fresh)]);
        nonces.record(NOW, nonce(NOW.0)).await.unwrap();
        let again = nonces.record(NOW, nonce(NOW.0)).await;
        assert!(matches!(again, Err(Error::Rejection(Rejection::NonceUsed))));
        assert_eq!(*shared.asked.lock().unwrap(), [NOW.0]);
        assert!(nonces.is_recovered(NOW) && nonces.outage(NOW).is_none());
    }

    #[tokio::test]
    async fn accepts_nothing_that_the_shared_window_does_not_call_fresh() {
        let down = Unavailable("connection refused".into());
        let (nonces, _) = shared([
            Err(down),
            Ok(Insertion::Lost),
            Ok(Insertion::Full),
            Ok(Insertion::Forgotten),
            Ok(Insertion::Used),
        ]);
        let mut failures = Vec::new();
        for number in 0..5 {
            failures.push(nonces.record(NOW, nonce(NOW.0 + number)).await.unwrap_err());
        }
        assert!(matches!(
            failures[..],
            [
                Error::Rejection(Rejection::NonceUsed),
                Error::Rejection(Rejection::TimestampOutsideWindow { .. }),
                Error::Fault(Fault::NonceWindowFull { .. }),
                Error::Fault(Fault::NoncesLost { .. }),
                Error::Fault(Fault::SharedNonces(_)),
            ]
        ));
        // Not even when the shared window is back: nobody knows what it recorded.
        let again = nonces.record(NOW, nonce(NOW.0 + 4)).await;
        assert!(matches!(again, Err(Error::Rejection(Rejection::NonceUsed))));
    }

    #[tokio::test]
    async fn tells_an_outage_of_the_shared_window_until_a_probe_is_recorded() {
        let down = || Err(Unavailable("connection refused".into()));
        let (nonces, shared) = shared([Ok(Insertion::Fresh), down(), down()]);
        let failed = nonces.record(NOW, nonce(NOW.0)).await;
        assert!(matches!(failed, Err(Error::Fault(Fault::SharedNonces(_)))));
        let later = UnixTime(NOW.0 + 1);
        nonces.probe(later).await;
        let outage = Outage::Unavailable {
            since: NOW,
            cause: "the shared nonce window is unavailable: connection refused".to_owned(),
        };
        assert_eq!(nonces.outage(later), Some(outage));
        nonces.probe(later).await;
        assert_eq!(nonces.outage(later), None);
        assert_eq!(*shared.asked.lock().unwrap(), [NOW.0, later.0, later.0]);
        // What may be lost is told until then, and to callers too.
        let until = LOST_UNTIL;
        assert_eq!(nonces.outage(until), Some(Outage::LostShared { until }));
        let early = UnixTime(until.0 - 5);
        shared.results.lock().unwrap().push(Ok(Insertion::Lost));
        let lost = nonces.record(early, nonce(early.0)).await;
        let Err(Error::Fault(Fault::NoncesLost { retry_after })) = lost else {
            panic!("{lost:?}");
        };
        assert_eq!(retry_after, Duration::from_secs(6));
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_while_it_waits_uses_the_nonce_up() {
        let (nonces, shared) = shared([Ok(Insertion::Fresh)]);
        let mut call = Box::pin(nonces.record(NOW, nonce(NOW.0)));
        assert!(poll_once(&mut call).await.is_none());
        drop(call);
        let again = nonces.record(NOW, nonce(NOW.0)).await;
        assert!(matches!(again, Err(Error::Rejection(Rejection::NonceUsed))));
        assert_eq!(shared.asked.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn never_waits_without_a_shared_window() {
        let nonces = nonces(Blackout::None);
        nonces
            .marked(nonces.next_high_water_mark(NOW), NOW)
            .unwrap();
        let mut call = Box::pin(nonces.record(NOW, nonce(NOW.0)));
        assert!(poll_once(&mut call).await.unwrap().is_ok());
    }

    /// Polls once.
    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
