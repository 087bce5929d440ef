//! The nonce window that replicas share: pending nonces are written to the engine in batches.
//!
//! # What must hold
//!
//! - [`Insertion::Fresh`], after which the request is forwarded, comes from one place: a [`Writer::write`] that has
//!   returned, so that the engine has recorded the nonce before. In every other case the nonce is [`Unavailable`].
//! - A nonce is in one batch, and the caller of [`SharedWindow::insert`] gets the engine's reply for that very nonce. A
//!   batch is not written again when the reply is lost or late, since the engine may have recorded it.
//! - [`SharedWindow::lost_until`] is raised before a caller gets [`Insertion::Lost`].
//!
//! # Bounds
//!
//! [`QUEUE`] nonces wait; one more is unavailable at once. [`WRITES`] writes are under way, each of at most [`BATCH`]
//! nonces and for at most [`WRITE_TIMEOUT`]; nonces that arrive meanwhile wait for the next one. A caller waits for
//! [`TIMEOUT`].
//!
//! # Failures
//!
//! - The caller is dropped or its deadline passes before its batch is written: the nonce is not recorded.
//! - The same happens later: the nonce is recorded, and the result is lost.
//! - The write fails, takes too long or panics: the whole batch is unavailable. The nonces may be recorded.
//! - The store's thread ends: all waiting nonces are unavailable.

#[cfg(test)]
mod tests;

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex as StdMutex;
use thiserror::Error;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    base::clock::UnixTime,
    records::{
        connection::io_thread::IoThread,
        nonce::{Insertion, NonceUse, OnLost, Outage, SharedWindow, Unavailable},
        values::{Result, StoreError, is_logged_outage},
    },
    telemetry::log::causes::causes,
};

/// The most nonces that wait.
const QUEUE: usize = 8_192;
/// The most nonces in one write: it keeps a Redis busy for a few milliseconds.
const BATCH: usize = 500;
/// The most writes that are under way.
const WRITES: usize = 2;
/// The time that a write may take, with a new connection and the partitions or scripts that the engine lacks.
const WRITE_TIMEOUT: Duration = Duration::from_millis(600);
/// The most seconds that the clocks of the engine and of a replica may be apart: a clock that is ahead drops nonces too
/// early.
pub(in crate::records) const CLOCK_SKEW: u64 = 60;
/// The time that a caller waits.
const TIMEOUT: Duration = Duration::from_millis(850);

/// The engine that records nonces.
pub(in crate::records) trait Writer: Send + Sync + 'static {
    /// Succeeds unless the engine is known to be out of reach.
    fn check(&self) -> Result<()>;

    /// Records those nonces that are not recorded yet, one atomic step for each. Fails when `deadline` is over, and
    /// tries again only what the engine has certainly not done.
    fn write(
        &self,
        nonces: &[QueuedNonce],
        deadline: Pin<&mut Sleep>,
    ) -> impl Future<Output = Result<Written>> + Send;
}

/// A nonce to be written.
pub(in crate::records) struct QueuedNonce {
    pub(in crate::records) timestamp: u64,
    pub(in crate::records) digest: [u8; 16],
    /// The time of the caller.
    pub(in crate::records) now: UnixTime,
    /// The most that a timestamp may differ from that.
    pub(in crate::records) length: Duration,
    /// Whether nonces that may be lost are taken for fresh.
    pub(in crate::records) on_lost: OnLost,
}

/// The clocks of the engine and of this machine are too far apart.
#[derive(Debug, Error)]
#[error(
    "the clocks of the engine that keeps nonces and of this machine are more than {CLOCK_SKEW} seconds apart"
)]
pub(in crate::records) struct ClocksApart;

/// The result of a write.
#[derive(Default)]
pub(in crate::records) struct Written {
    /// The result for each nonce, in their order.
    pub(in crate::records) insertions: Vec<Insertion>,
    /// Nonces up to this timestamp may have been lost.
    pub(in crate::records) lost: u64,
}

type Waiting = (QueuedNonce, oneshot::Sender<Result<Insertion, Unavailable>>);

struct Window<W> {
    queue: mpsc::Sender<Waiting>,
    shared: Arc<Batcher<W>>,
    /// Set while the window records nothing.
    failing: StdMutex<Option<Failing>>,
}

/// An outage of the window.
#[derive(Clone)]
struct Failing {
    since: UnixTime,
    cause: String,
    /// Its beginning was logged here, and not by the store.
    is_logged: bool,
}

struct Batcher<W> {
    writer: W,
    lost_until: AtomicU64,
}

/// Why a nonce was not written, other than the engine's reasons.
#[derive(Debug, Error)]
enum NotWritten {
    #[error("too many nonces wait")]
    Overloaded,
    #[error("the nonce was not recorded in time")]
    TimedOut,
}

/// Opens a window that is written on the `thread`, until the window is dropped or the thread ends.
pub(in crate::records) fn open(writer: impl Writer, thread: &IoThread) -> Box<dyn SharedWindow> {
    let (queue, waiting) = mpsc::channel(QUEUE);
    let waiting = Arc::new(Mutex::new(waiting));
    let shared = Arc::new(Batcher {
        writer,
        lost_until: AtomicU64::new(0),
    });
    for _ in 0..WRITES {
        let (shared, waiting) = (Arc::clone(&shared), Arc::clone(&waiting));
        thread.spawn(async move {
            let write = || write_all(Arc::clone(&shared), Arc::clone(&waiting));
            // A panic must not end the window.
            while tokio::spawn(write()).await.is_err() {}
        });
    }
    Box::new(Window {
        queue,
        shared,
        failing: StdMutex::default(),
    })
}

/// Writes the waiting nonces, until the window is dropped.
async fn write_all(
    shared: Arc<Batcher<impl Writer>>,
    waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>,
) {
    let mut batch = Vec::new();
    let mut deadline = pin!(sleep(WRITE_TIMEOUT));
    while waiting.lock().await.recv_many(&mut batch, BATCH).await > 0 {
        // Nonces of callers that no longer wait are left out: the batch is for those that wait.
        let wanted = batch.drain(..).filter(|(_, reply)| !reply.is_closed());
        let (nonces, replies): (Vec<_>, Vec<_>) = wanted.unzip();
        if nonces.is_empty() {
            continue;
        }
        deadline.as_mut().reset(Instant::now() + WRITE_TIMEOUT);
        match shared.writer.write(&nonces, deadline.as_mut()).await {
            Ok(Written { insertions, lost }) => {
                let waived = nonces.iter().all(|nonce| nonce.on_lost == OnLost::Accept);
                if waived {
                    shared.lost_until.store(lost, Ordering::Relaxed);
                } else {
                    shared.lost_until.fetch_max(lost, Ordering::Relaxed);
                }
                for (reply, insertion) in replies.into_iter().zip(insertions) {
                    let _ = reply.send(Ok(insertion));
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for reply in replies {
                    let _ = reply.send(Err(Unavailable(Arc::clone(&error).into())));
                }
            }
        }
    }
}

#[async_trait]
impl<W: Writer> SharedWindow for Window<W> {
    async fn insert(
        &self,
        now: UnixTime,
        length: Duration,
        on_lost: OnLost,
        nonce: NonceUse<'_>,
    ) -> Result<Insertion, Unavailable> {
        let (reply, inserted) = oneshot::channel();
        let nonce = QueuedNonce {
            timestamp: nonce.timestamp,
            digest: nonce.digest(),
            now,
            length,
            on_lost,
        };
        let inserted = if self.queue.try_send((nonce, reply)).is_err() {
            Err(self.unavailable(NotWritten::Overloaded))
        } else {
            match timeout(TIMEOUT, inserted).await {
                Ok(Ok(result)) => result,
                // Its reply was dropped: the write has panicked, or the thread has ended.
                Ok(Err(ended)) => Err(Unavailable(ended.into())),
                Err(_) => Err(self.unavailable(NotWritten::TimedOut)),
            }
        };
        inserted.inspect_err(|error| self.note(now, error))
    }

    fn lost_until(&self) -> UnixTime {
        UnixTime(self.shared.lost_until.load(Ordering::Relaxed))
    }

    fn outage(&self, now: UnixTime) -> Option<Outage> {
        if let Some(Failing { since, cause, .. }) = self.failing.lock().clone() {
            return Some(Outage::Unavailable { since, cause });
        }
        let until = self.lost_until();
        (now <= until).then_some(Outage::LostShared { until })
    }

    async fn maintain(&self, now: UnixTime, length: Duration, on_lost: OnLost) {
        let random = RandomState::new().hash_one(()).to_be_bytes();
        let nonce = NonceUse {
            timestamp: now.0,
            consumer: b"",
            token: b"",
            nonce: &random,
        };
        let failed = self.insert(now, length, on_lost, nonce).await.err();
        let mut failing = self.failing.lock();
        match (failed, &mut *failing) {
            (None, ended) => {
                let ended = ended.take().filter(|ended| ended.is_logged);
                if let Some(Failing { since, .. }) = ended {
                    tracing::info!(%since, "nonces are recorded again");
                }
            }
            // A connection that was cut fails some requests and is replaced: only a longer failure is logged.
            (Some(error), Some(failing)) if !failing.is_logged && !is_logged_outage(&error) => {
                let cause = &failing.cause;
                tracing::error!(cause, "nonces cannot be recorded: signed requests get 503");
                failing.is_logged = true;
            }
            (Some(_), _) => {}
        }
    }
}

impl<W: Writer> Window<W> {
    /// The fault of a nonce that was not written. During an outage of the engine, that is the cause.
    fn unavailable(&self, fault: NotWritten) -> Unavailable {
        let outage = self.shared.writer.check().err();
        let error = outage.unwrap_or_else(|| StoreError::Unavailable(fault.into()));
        Unavailable(error.into())
    }

    /// Notes at `now` that a nonce was not recorded.
    fn note(&self, now: UnixTime, error: &Unavailable) {
        let mut failing = self.failing.lock();
        let failing = failing.get_or_insert_with(|| Failing {
            since: now,
            cause: String::new(),
            is_logged: false,
        });
        failing.cause = causes(error);
    }
}
