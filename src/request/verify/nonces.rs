//! Records nonces for verification: in this process and, if replicas share theirs, with the other replicas.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use super::error::{VerifyError, VerifyFault, VerifyRejection};
use crate::{
    base::clock::UnixTime,
    records::nonce::{self, Insertion, LocalWindow, NonceUse, OnLost, Outage, SharedWindow},
    request::rejections::SenderProof,
};

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
    pub async fn record(self) -> Result<(), VerifyError> {
        let (nonces, now) = (self.nonces, self.now);
        let inserted = self
            .shared
            .insert(now, nonces.length(), nonces.on_lost(), self.nonce);
        let insertion = inserted.await.map_err(VerifyFault::SharedNonces)?;
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
        let mark = nonce::next_high_water_mark(now, self.length().max(self.wanted()));
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
    /// [`VerifyRejection::NonceUsed`], [`VerifyRejection::TimestampOutsideWindow`] for a timestamp whose nonces have been dropped, and
    /// the faults of nonces. The nonce may be recorded all the same: the same request is rejected as used then.
    pub fn record_here<'n>(
        &'n self,
        now: UnixTime,
        nonce: NonceUse<'n>,
    ) -> Result<Option<Elsewhere<'n>>, VerifyError> {
        // Compares the timestamp itself: the length and `now` may have changed since the timestamp was checked.
        if nonce.timestamp > self.high_water_mark.load(Ordering::Relaxed) {
            return Err(VerifyFault::NonceMarkStale.into());
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

    fn check(&self, now: UnixTime, insertion: Insertion) -> Result<(), VerifyError> {
        match insertion {
            Insertion::Fresh => Ok(()),
            Insertion::Used => Err(VerifyRejection::NonceUsed.into()),
            Insertion::Closed => Err(VerifyFault::WindowClosed.into()),
            Insertion::Full => {
                let retry_after = self.window.frees_after(now);
                Err(VerifyFault::NonceWindowFull { retry_after }.into())
            }
            Insertion::Lost => {
                let shared = self.shared.as_ref().map(|shared| shared.lost_until());
                let lost = self.lost_until().max(shared.unwrap_or_default());
                let retry_after = Duration::from_secs(lost.0.saturating_sub(now.0) + 1);
                Err(VerifyFault::NoncesLost { retry_after }.into())
            }
            Insertion::Forgotten => {
                let latest = now.after(self.length()).0;
                let dropped_until = self.window.dropped_until().0;
                Err(VerifyRejection::TimestampOutsideWindow {
                    earliest: dropped_until.saturating_add(1).min(latest),
                    latest,
                    advice:
                        "the request is older than what this service still records: sign it again"
                            .to_owned(),
                    skew: None,
                    proof: Some(SenderProof::Verified),
                }
                .into())
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
mod tests {
    use std::{
        pin::pin,
        sync::{Arc, Mutex},
        task::{Context, Waker},
    };

    use super::*;
    use crate::records::nonce::Unavailable;

    const NOW: UnixTime = UnixTime(1_800_000_000);
    const WINDOW: Duration = Duration::from_secs(10);
    const WIDE: Duration = Duration::from_secs(1_000);

    fn window(known: Option<UnixTime>) -> LocalWindow {
        let params = nonce::WindowParams {
            path: None,
            window: WINDOW,
            max_entries: 1_000,
        };
        let opened = LocalWindow::open(&params).unwrap();
        opened.start(NOW, known, OnLost::Refuse).unwrap()
    }

    fn nonces() -> Nonces {
        Nonces::new(window(None), None)
    }

    /// Writes the next high-water mark.
    fn mark(nonces: &Nonces, now: UnixTime) {
        let mark = nonces.next_high_water_mark(now).unwrap();
        nonces.note_written_mark(mark, now).unwrap();
    }

    /// Records a nonce where there is no shared window.
    fn record(nonces: &Nonces, now: UnixTime, timestamp: u64) -> Result<(), VerifyError> {
        let elsewhere = nonces.record_here(now, nonce(timestamp))?;
        assert!(elsewhere.is_none());
        Ok(())
    }

    /// Records a nonce here and in the shared window.
    async fn record_in_both(
        nonces: &Nonces,
        now: UnixTime,
        nonce: NonceUse<'static>,
    ) -> Result<(), VerifyError> {
        let elsewhere = nonces.record_here(now, nonce)?;
        elsewhere.expect("a shared window").record().await
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
        let nonces = nonces();
        let first = nonces.next_high_water_mark(NOW).unwrap();
        nonces.note_written_mark(first, NOW).unwrap();
        assert!(nonces.is_recovered(NOW));
        nonces.ask_for_length(NOW, WIDE).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        assert!(!nonces.is_recovered(NOW));
        // A high-water mark for the old length, which was being written meanwhile, is not enough.
        nonces.note_written_mark(first, NOW).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        let wide = nonces.next_high_water_mark(NOW).unwrap();
        assert_eq!(wide, nonce::next_high_water_mark(NOW, WIDE));
        // Nor is one that came too late to cover the wider length.
        let late = NOW.after(nonce::MARK_AHEAD + Duration::from_secs(1));
        nonces.note_written_mark(wide, late).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        mark(&nonces, late);
        assert_eq!(nonces.length(), WIDE);
        assert!(nonces.is_recovered(late));
        nonces.ask_for_length(late, WINDOW).unwrap();
        assert_eq!(nonces.length(), WINDOW);
        // A narrower length is asked for while a wider high-water mark is being written: the last request counts.
        nonces.ask_for_length(late, 2 * WIDE).unwrap();
        let wide = nonces.next_high_water_mark(late).unwrap();
        nonces.ask_for_length(late, WINDOW / 2).unwrap();
        nonces.note_written_mark(wide, late).unwrap();
        assert_eq!(nonces.length(), WINDOW / 2);
    }

    #[test]
    fn no_timestamp_above_the_mark_is_accepted_whatever_the_length() {
        let nonces = nonces();
        let is_unmarked = |timestamp| {
            let recorded = record(&nonces, NOW, timestamp);
            matches!(
                recorded,
                Err(VerifyError::Fault(VerifyFault::NonceMarkStale))
            )
        };
        assert!(is_unmarked(NOW.0));
        let mark = nonces.next_high_water_mark(NOW).unwrap();
        nonces.note_written_mark(mark, NOW).unwrap();
        record(&nonces, NOW, mark.0).unwrap();
        assert!(is_unmarked(mark.0 + 1));
        // Checked under a length that a reload has made narrower since.
        nonces.ask_for_length(NOW, WINDOW / 2).unwrap();
        assert!(is_unmarked(mark.0 + 1));
    }

    #[test]
    fn tells_what_is_accepted_when_a_timestamp_has_left_for_good() {
        let nonces = nonces();
        let later = NOW.after(Duration::from_secs(100));
        nonces.ask_for_length(later, WIDE).unwrap();
        mark(&nonces, later);
        let left = later.before(WINDOW).0;
        let Err(VerifyError::Rejection(VerifyRejection::TimestampOutsideWindow {
            earliest,
            latest,
            ..
        })) = record(&nonces, later, NOW.0)
        else {
            panic!("accepted");
        };
        assert_eq!((earliest, latest), (left, later.after(WIDE).0));
        record(&nonces, later, left).unwrap();
    }

    #[test]
    fn tells_each_outage_until_it_is_over() {
        let until = NOW.after(Duration::from_secs(100));
        let nonces = Nonces::new(window(Some(until)), None);
        mark(&nonces, NOW);
        let closed = until.after(WINDOW);
        assert_eq!(nonces.outage(NOW), Some(Outage::Lost { until: closed }));
        let Err(VerifyError::Fault(VerifyFault::NoncesLost { retry_after })) =
            record(&nonces, NOW, NOW.0)
        else {
            panic!("accepted");
        };
        assert_eq!(retry_after, Duration::from_secs(111));
        // Later timestamps too, while one of that run is in the window.
        mark(&nonces, closed);
        assert!(record(&nonces, closed, closed.0).is_err());
        // An import from a store that has accepted later ones rejects these alone.
        let imported = UnixTime(closed.0 + 5);
        nonces.note_imported(imported).unwrap();
        nonces.note_imported(NOW).unwrap();
        assert_eq!(
            nonces.outage(closed),
            Some(Outage::Lost { until: imported })
        );
        let next = UnixTime(closed.0 + 1);
        assert!(record(&nonces, next, imported.0).is_err());
        record(&nonces, next, imported.0 + 1).unwrap();
        let after = UnixTime(imported.0 + 1);
        assert_eq!(nonces.outage(after), None);
        let late = after.after(Duration::from_secs(100));
        assert_eq!(nonces.outage(late), Some(Outage::Unmarked));
        // A wider window does not bring back what was lost.
        nonces.ask_for_length(after, WIDE).unwrap();
        mark(&nonces, after);
        assert_eq!(nonces.length(), WIDE);
        assert!(record(&nonces, after, imported.0).is_err());
        let dropped = nonces.window().dropped_until();
        nonces.set_on_lost(OnLost::Accept).unwrap();
        nonces.note_imported(imported).unwrap();
        let back = NOW.before(WIDE);
        let set_back = Outage::ClockSetBack { until: dropped };
        assert_eq!(nonces.outage(back), Some(set_back));
    }

    /// The timestamps that a shared window is asked for, and its results, the last first.
    #[derive(Clone, Default)]
    struct Shared {
        asked: Arc<Mutex<Vec<u64>>>,
        results: Arc<Mutex<Vec<Result<Insertion, Unavailable>>>>,
    }

    #[async_trait::async_trait]
    impl SharedWindow for Shared {
        async fn insert(
            &self,
            _: UnixTime,
            length: Duration,
            _: OnLost,
            nonce: NonceUse<'_>,
        ) -> Result<Insertion, Unavailable> {
            assert_eq!(length, WINDOW);
            self.asked.lock().unwrap().push(nonce.timestamp);
            tokio::task::yield_now().await;
            self.results.lock().unwrap().pop().unwrap()
        }

        fn lost_until(&self) -> UnixTime {
            UnixTime(NOW.0 + 5)
        }

        fn outage(&self, _: UnixTime) -> Option<Outage> {
            None
        }

        async fn maintain(&self, _: UnixTime, _: Duration, _: OnLost) {}
    }

    fn shared(
        results: impl IntoIterator<Item = Result<Insertion, Unavailable>>,
    ) -> (Nonces, Shared) {
        let shared = Shared::default();
        shared.results.lock().unwrap().extend(results);
        let nonces = Nonces::new(window(None), Some(Box::new(shared.clone())));
        (nonces, shared)
    }

    #[tokio::test]
    async fn accepts_nothing_that_the_shared_window_does_not_call_fresh() {
        let down = Unavailable("connection refused".into());
        let (nonces, shared) = shared([
            Err(down),
            Ok(Insertion::Lost),
            Ok(Insertion::Full),
            Ok(Insertion::Forgotten),
            Ok(Insertion::Used),
            Ok(Insertion::Fresh),
        ]);
        record_in_both(&nonces, NOW, nonce(NOW.0 - 1))
            .await
            .unwrap();
        let mut failures = Vec::new();
        for number in 0..5 {
            failures.push(
                record_in_both(&nonces, NOW, nonce(NOW.0 + number))
                    .await
                    .unwrap_err(),
            );
        }
        assert!(matches!(
            failures[..],
            [
                VerifyError::Rejection(VerifyRejection::NonceUsed),
                VerifyError::Rejection(VerifyRejection::TimestampOutsideWindow { .. }),
                VerifyError::Fault(VerifyFault::NonceWindowFull { .. }),
                VerifyError::Fault(VerifyFault::NoncesLost { retry_after }),
                VerifyError::Fault(VerifyFault::SharedNonces(_)),
            ] if retry_after == Duration::from_secs(6)
        ));
        // A nonce that this process has seen is rejected without asking, even if it is not known to be recorded.
        for timestamp in [NOW.0 - 1, NOW.0 + 4] {
            let again = record_in_both(&nonces, NOW, nonce(timestamp)).await;
            assert!(matches!(
                again,
                Err(VerifyError::Rejection(VerifyRejection::NonceUsed))
            ));
        }
        assert_eq!(shared.asked.lock().unwrap().len(), 6);
        assert!(nonces.is_recovered(NOW) && nonces.outage(NOW).is_none());
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_while_it_waits_uses_the_nonce_up() {
        let (nonces, shared) = shared([Ok(Insertion::Fresh)]);
        {
            let call = pin!(record_in_both(&nonces, NOW, nonce(NOW.0)));
            let polled = call.poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
        let again = record_in_both(&nonces, NOW, nonce(NOW.0)).await;
        assert!(matches!(
            again,
            Err(VerifyError::Rejection(VerifyRejection::NonceUsed))
        ));
        assert_eq!(shared.asked.lock().unwrap().len(), 1);
    }
}
