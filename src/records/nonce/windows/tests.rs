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
    let params = crate::records::nonce::WindowParams {
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
fn record(nonces: &Nonces, now: UnixTime, timestamp: u64) -> Result<(), NonceError> {
    let elsewhere = nonces.record_here(now, nonce(timestamp))?;
    assert!(elsewhere.is_none());
    Ok(())
}

/// Records a nonce here and in the shared window.
async fn record_in_both(
    nonces: &Nonces,
    now: UnixTime,
    nonce: NonceUse<'static>,
) -> Result<(), NonceError> {
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
fn wider_length_counts_once_written_and_a_narrower_one_at_once() {
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
    assert_eq!(wide, crate::records::nonce::next_high_water_mark(NOW, WIDE));
    // Nor is one that came too late to cover the wider length.
    let late = NOW.after(crate::records::nonce::MARK_AHEAD + Duration::from_secs(1));
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
        matches!(recorded, Err(NonceError::Fault(NonceFault::MarkStale)))
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
    let Err(NonceError::Forgotten { earliest, latest }) = record(&nonces, later, NOW.0) else {
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
    let Err(NonceError::Fault(NonceFault::Lost { retry_after })) = record(&nonces, NOW, NOW.0)
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

fn shared(results: impl IntoIterator<Item = Result<Insertion, Unavailable>>) -> (Nonces, Shared) {
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
            NonceError::Used,
            NonceError::Forgotten { .. },
            NonceError::Fault(NonceFault::Full { .. }),
            NonceError::Fault(NonceFault::Lost { retry_after }),
            NonceError::Fault(NonceFault::Shared(_)),
        ] if retry_after == Duration::from_secs(6)
    ));
    // A nonce that this process has seen is rejected without asking, even if it is not known to be recorded.
    for timestamp in [NOW.0 - 1, NOW.0 + 4] {
        let again = record_in_both(&nonces, NOW, nonce(timestamp)).await;
        assert!(matches!(again, Err(NonceError::Used)));
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
    assert!(matches!(again, Err(NonceError::Used)));
    assert_eq!(shared.asked.lock().unwrap().len(), 1);
}
