//! The queue in front of an engine, on a clock that moves only while everything waits.

use tokio::{
    sync::{Notify, Semaphore},
    task::JoinSet,
};

use super::*;

/// An engine that can be paused, remembers its writes, and fails at nonces of certain timestamps.
#[derive(Default)]
struct Engine {
    batches: StdMutex<Vec<Vec<u64>>>,
    arrived: Notify,
    is_down: bool,
}

const FAILS: u64 = 1;
const PANICS: u64 = 2;
const LOST: u64 = 3;

struct Gated(Arc<Engine>, Arc<Semaphore>);

#[derive(Debug, Error)]
#[error("the engine is down")]
struct Down;

impl Writer for Gated {
    fn check(&self) -> Result<(), StoreError> {
        if self.0.is_down {
            return Err(StoreError::Unavailable(Down.into()));
        }
        Ok(())
    }

    async fn write(
        &self,
        nonces: &[QueuedNonce],
        _: Pin<&mut Sleep>,
    ) -> Result<Written, StoreError> {
        let batch: Vec<u64> = nonces.iter().map(|nonce| nonce.timestamp).collect();
        self.0.batches.lock().push(batch.clone());
        self.0.arrived.notify_one();
        self.1.acquire().await.unwrap().forget();
        assert!(!batch.contains(&PANICS), "as told");
        if batch.contains(&FAILS) {
            return Err(StoreError::Unavailable(Down.into()));
        }
        // Even timestamps were used before.
        let became = batch.iter().map(|timestamp| match timestamp {
            &LOST => Insertion::Lost,
            timestamp if timestamp % 2 == 0 => Insertion::Used,
            _ => Insertion::Fresh,
        });
        Ok(Written {
            insertions: became.collect(),
            lost: if batch.contains(&LOST) { LOST } else { 0 },
        })
    }
}

struct Setup {
    engine: Arc<Engine>,
    gate: Arc<Semaphore>,
    window: Arc<dyn SharedWindow>,
}

/// A window whose engine lets this many writes pass.
fn setup(passes: usize, is_down: bool) -> Setup {
    let engine = Arc::new(Engine {
        is_down,
        ..Engine::default()
    });
    let gate = Arc::new(Semaphore::new(passes));
    let window = open(
        Gated(Arc::clone(&engine), Arc::clone(&gate)),
        &IoThread::here(),
    );
    Setup {
        engine,
        gate,
        window: window.into(),
    }
}

impl Setup {
    fn insert(
        &self,
        timestamp: u64,
    ) -> impl Future<Output = Result<Insertion, Unavailable>> + use<> {
        let window = Arc::clone(&self.window);
        async move {
            let nonce = NonceUse {
                timestamp,
                consumer: b"c",
                token: b"t",
                nonce: b"n",
            };
            let length = Duration::from_secs(300);
            window
                .insert(UnixTime(timestamp), length, OnLost::Refuse, nonce)
                .await
        }
    }

    /// Starts as many writes as may be under way, each of one nonce; they wait at the gate.
    async fn busy(&self) -> JoinSet<Result<Insertion, Unavailable>> {
        let mut calls = JoinSet::new();
        for number in 0..WRITES as u64 {
            calls.spawn(self.insert(101 + 2 * number));
            self.engine.arrived.notified().await;
        }
        calls
    }

    fn batches(&self) -> Vec<Vec<u64>> {
        self.engine.batches.lock().clone()
    }
}

#[track_caller]
fn fails_with(result: Result<Insertion, Unavailable>, expected: &str) {
    let error = causes(&result.unwrap_err());
    assert!(error.contains(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn waiting_writes_go_in_bounded_batches_and_excess_unavailable() {
    let setup = setup(0, false);
    let mut calls = setup.busy().await;
    for number in 0..QUEUE as u64 {
        calls.spawn(setup.insert(1_001 + 2 * number));
    }
    let begun = Instant::now();
    // Tasks begin in their order.
    let more = tokio::spawn(setup.insert(5));
    fails_with(more.await.unwrap(), "too many nonces wait");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(setup.batches(), [[101], [103]]);
    setup.gate.add_permits(QUEUE);
    for result in calls.join_all().await {
        assert_eq!(result.unwrap(), Insertion::Fresh);
    }
    let batches = setup.batches();
    assert_eq!(batches.iter().map(Vec::len).max(), Some(BATCH));
    assert_eq!(batches.len(), WRITES + QUEUE.div_ceil(BATCH));
    let mut written = batches.concat();
    written.sort_unstable();
    written.dedup();
    assert_eq!(written.len(), WRITES + QUEUE);
}

#[tokio::test(start_paused = true)]
async fn everyone_gets_what_became_of_its_own_nonce() {
    let setup = setup(0, false);
    let busy = setup.busy().await;
    let (used, fresh) = (setup.insert(8), setup.insert(7));
    let (lost, _) = (setup.insert(LOST), setup.gate.add_permits(9));
    let (used, fresh, lost) = tokio::join!(used, fresh, lost);
    let found = [used, fresh, lost].map(Result::unwrap);
    assert_eq!(found, [Insertion::Used, Insertion::Fresh, Insertion::Lost]);
    assert_eq!(setup.window.lost_until(), UnixTime(LOST));
    assert_eq!(busy.join_all().await.len(), WRITES);
    assert_eq!(setup.batches(), [vec![101], vec![103], vec![8, 7, LOST]]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_for_a_caller_that_has_given_up() {
    let setup = setup(0, false);
    let mut busy = setup.busy().await;
    let cancelled = tokio::spawn(setup.insert(7));
    tokio::task::yield_now().await;
    cancelled.abort();
    let begun = Instant::now();
    fails_with(setup.insert(9).await, "not recorded in time");
    assert_eq!(begun.elapsed(), TIMEOUT);
    // The callers give up those that are being written as well, though they may be recorded.
    while let Some(result) = busy.join_next().await {
        fails_with(result.unwrap(), "not recorded in time");
    }
    setup.gate.add_permits(9);
    assert_eq!(setup.insert(11).await.unwrap(), Insertion::Fresh);
    assert_eq!(setup.batches(), [[101], [103], [11]]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_the_cause_of_what_waits_too_long() {
    let setup = setup(0, true);
    fails_with(setup.insert(7).await, "the engine is down");
}

#[tokio::test(start_paused = true)]
async fn failed_or_panicked_write_fails_its_batch_and_nothing_else() {
    let setup = setup(0, false);
    for (culprit, cause) in [(FAILS, "the engine is down"), (PANICS, "channel closed")] {
        for _ in 0..2 * WRITES {
            let busy = setup.busy().await;
            let (culprit, other) = (setup.insert(culprit), setup.insert(7));
            setup.gate.add_permits(WRITES + 1);
            let (culprit, other) = tokio::join!(culprit, other);
            fails_with(culprit, cause);
            fails_with(other, cause);
            for result in busy.join_all().await {
                assert_eq!(result.unwrap(), Insertion::Fresh);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_lasts_until_maintenance_records_a_nonce() {
    let setup = setup(9, false);
    let now = UnixTime(99);
    let maintain = || {
        let length = Duration::from_secs(300);
        setup.window.maintain(now, length, OnLost::Refuse)
    };
    fails_with(setup.insert(FAILS).await, "the engine is down");
    let cause =
        "the shared nonce window is unavailable: the store is unavailable: the engine is down";
    let outage = Outage::Unavailable {
        since: UnixTime(FAILS),
        cause: cause.to_owned(),
    };
    assert_eq!(setup.window.outage(now), Some(outage));
    maintain().await;
    assert_eq!(setup.window.outage(now), None);
    assert_eq!(setup.batches(), [[FAILS], [99]]);
    assert_eq!(setup.insert(LOST).await.unwrap(), Insertion::Lost);
    let until = UnixTime(LOST);
    assert_eq!(
        setup.window.outage(until),
        Some(Outage::LostShared { until })
    );
    assert_eq!(setup.window.outage(now), None);
}
