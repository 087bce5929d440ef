//! Nonces that all replicas share: those that wait at the same time are inserted by one run of `nonces.lua`, over the
//! store's connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{RedisError, Value, aio::MultiplexedConnection, cmd};
use thiserror::Error;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use super::{
    META, OpenError, RedisStore,
    link::{Caller, Link, Request, Trouble},
    probe,
    step::{self, Script},
    target::Target,
};
use crate::{
    clock::UnixTime,
    nonce::{Insertion, NonceUse, OnLost, SharedInsertion, SharedWindow, Unavailable},
    store::{StoreError, port::NoncesKept},
};

static SCRIPT: Script = Script::new(include_str!("nonces.lua"));
/// What is known of the server and of the window.
const STATE: &str = "cs:1:{store}:nonces";
/// Before the digest of a nonce.
const NONCE: &str = "cs:1:{store}:n:";
/// How many nonces wait at most; more are unavailable at once.
const QUEUE: usize = 8_192;
/// How many nonces one run of the script inserts at most.
const BATCH: usize = 500;
/// How many runs are under way at most.
const FLIGHTS: usize = 2;
/// How long one run may take, with a new connection.
const FLIGHT: Duration = Duration::from_millis(600);
/// How long a caller waits.
const PATIENCE: Duration = Duration::from_millis(850);
/// How far the clocks of Redis and of a replica may be apart, in seconds.
const SKEW: u64 = 60;

/// The window in Redis. What it records by ends with it.
struct Window {
    queue: mpsc::Sender<Waiting>,
    link: Arc<Link>,
    lost_until: Arc<AtomicU64>,
}

/// A nonce whose caller waits.
struct Waiting {
    key: Vec<u8>,
    timestamp: u64,
    now: UnixTime,
    length: Duration,
    reply: oneshot::Sender<Result<Insertion, Unavailable>>,
}

/// What every run of the script is told.
#[derive(Clone, Copy)]
struct Settings {
    on_lost: OnLost,
    /// Redis has nonces alone.
    is_alone: bool,
}

impl Window {
    fn open(link: Arc<Link>, settings: Settings) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let lost_until = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&lost_until);
        link.spawn(|caller| insert_all(caller, settings, waiting, lost));
        Self {
            queue,
            link,
            lost_until,
        }
    }
}

/// Inserts what waits until the window is dropped. While [`FLIGHTS`] runs are under way, callers gather for the next one.
async fn insert_all(
    caller: Caller,
    settings: Settings,
    mut waiting: mpsc::Receiver<Waiting>,
    lost_until: Arc<AtomicU64>,
) {
    let flights = Arc::new(Semaphore::new(FLIGHTS));
    while let Ok(flight) = Arc::clone(&flights).acquire_owned().await {
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        let (caller, lost_until) = (caller.clone(), Arc::clone(&lost_until));
        tokio::spawn(async move {
            // Callers that have given up get no nonce recorded, for the sake of those that wait.
            batch.retain(|waiting| !waiting.reply.is_closed());
            if batch.is_empty() {
                return;
            }
            match insert(&caller, settings, &batch).await {
                Ok((insertions, lost)) => {
                    lost_until.fetch_max(lost, Ordering::Relaxed);
                    for (waiting, insertion) in batch.into_iter().zip(insertions) {
                        let _ = waiting.reply.send(Ok(insertion));
                    }
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for waiting in batch {
                        let error = Unavailable(Arc::clone(&error).into());
                        let _ = waiting.reply.send(Err(error));
                    }
                }
            }
            drop(flight);
        });
    }
}

/// Inserts nonces by one run of the script; returns what became of each, and up to which timestamp nonces may be lost.
async fn insert(
    caller: &Caller,
    settings: Settings,
    batch: &[Waiting],
) -> Result<(Vec<Insertion>, u64), StoreError> {
    let (now, length) = batch
        .last()
        .map_or_else(Default::default, |last| (last.now.0, last.length.as_secs()));
    let first = [
        now,
        length,
        SKEW,
        u64::from(settings.on_lost == OnLost::Accept),
        u64::from(settings.is_alone),
    ];
    let timestamps = batch.iter().map(|waiting| waiting.timestamp);
    let insert = Insert {
        keys: batch.iter().map(|waiting| waiting.key.clone()).collect(),
        arguments: first
            .into_iter()
            .chain(timestamps)
            .map(|number| number.to_string().into_bytes())
            .collect(),
    };
    let (lost, words): (u64, Vec<String>) = step::read(caller.call(&insert, FLIGHT).await?)?;
    if words.len() != batch.len() {
        return Err(StoreError::Unavailable(ClocksApart.into()));
    }
    let insertions = words.iter().map(|word| match &**word {
        "fresh" => Insertion::Fresh,
        "lost" => Insertion::Lost,
        "forgotten" => Insertion::Forgotten,
        _ => Insertion::Used,
    });
    Ok((insertions.collect(), lost))
}

/// Opens the window of a Redis that has nonces alone, with what the store knows of where they were before. Blocks the
/// thread, for a second at worst.
///
/// # Errors
/// [`OpenError`]
pub async fn open_nonces(
    target: Target,
    on_lost: OnLost,
    kept: NoncesKept,
    now: UnixTime,
    length: Duration,
) -> Result<Box<dyn SharedWindow>, OpenError> {
    let place = target.to_string();
    let link = open_link(target)?;
    let settings = |on_lost| Settings {
        on_lost,
        is_alone: true,
    };
    let begun = match kept {
        NoncesKept::Elsewhere => Ok(()),
        // What the store has is not here. It is as if another server had recorded it.
        NoncesKept::Here => {
            let mut note = cmd("HSET");
            note.arg(STATE).arg("server").arg("another window");
            link.call(note).await.map(drop)
        }
        // Nothing was recorded anywhere, so nothing is lost.
        NoncesKept::Nowhere => {
            let first = NonceUse {
                timestamp: now.0,
                consumer: b"",
                token: b"",
                nonce: b"first",
            };
            let waived = Window::open(Arc::clone(&link), settings(OnLost::Accept));
            let begun = waived.insert(now, length, first).await;
            begun
                .map(drop)
                .map_err(|Unavailable(error)| StoreError::Unavailable(error))
        }
    };
    begun.map_err(|source| OpenError::Failed { place, source })?;
    Ok(Box::new(Window::open(link, settings(on_lost))))
}

/// Connects to a Redis for nonces alone, and reports the settings by which it loses them.
///
/// # Errors
/// [`OpenError`]
pub async fn check_nonces(target: Target) -> Result<Vec<String>, OpenError> {
    let place = target.to_string();
    let link = open_link(target)?;
    let findings = probe::findings(&link, &probe::NONCES).await;
    findings.map_err(|source| OpenError::Failed { place, source })
}

fn open_link(target: Target) -> Result<Arc<Link>, OpenError> {
    let place = target.to_string();
    let tls = target.client_config()?;
    let link = Link::new("redis of nonce.url", target, tls).map_err(OpenError::Thread)?;
    link.connect().map_err(|trouble| OpenError::Unreachable {
        place,
        source: trouble.into(),
    })?;
    Ok(Arc::new(link))
}

#[derive(Debug, Error)]
#[error("the clocks of Redis and of this machine are more than {SKEW} seconds apart")]
struct ClocksApart;

impl RedisStore {
    /// Opens the shared window.
    pub(super) fn open_window(&self, on_lost: OnLost) -> Box<dyn SharedWindow> {
        let settings = Settings {
            on_lost,
            is_alone: false,
        };
        Box::new(Window::open(Arc::clone(&self.link), settings))
    }
}

impl SharedWindow for Window {
    fn insert<'a>(
        &'a self,
        now: UnixTime,
        length: Duration,
        nonce: NonceUse<'a>,
    ) -> SharedInsertion<'a> {
        let (reply, inserted) = oneshot::channel();
        let waiting = Waiting {
            key: [NONCE.as_bytes(), &nonce.digest()].concat(),
            timestamp: nonce.timestamp,
            now,
            length,
            reply,
        };
        Box::pin(async move {
            // An outage is the cause of what waits too long, if there is one.
            let unavailable = |trouble: Trouble| {
                let outage = self.link.check().err();
                Unavailable(outage.unwrap_or_else(|| trouble.into()).into())
            };
            if self.queue.try_send(waiting).is_err() {
                return Err(unavailable(Trouble::Overloaded));
            }
            match timeout(PATIENCE, inserted).await {
                Ok(Ok(result)) => result,
                // Its reply was dropped: the thread of the connection has ended.
                Ok(Err(ended)) => Err(Unavailable(ended.into())),
                Err(_) => Err(unavailable(Trouble::TimedOut)),
            }
        })
    }

    fn lost_until(&self) -> UnixTime {
        UnixTime(self.lost_until.load(Ordering::Relaxed))
    }
}

/// Whether a nonce is in a Redis for nonces alone.
///
/// # Errors
/// [`OpenError`]
pub async fn nonce_used(target: Target, nonce: NonceUse<'_>) -> Result<bool, OpenError> {
    let place = target.to_string();
    let found = has_nonce(&*open_link(target)?, nonce).await;
    found.map_err(|source| OpenError::Failed { place, source })
}

/// Whether a nonce is in the shared window.
pub(super) async fn has_nonce(link: &Link, nonce: NonceUse<'_>) -> Result<bool, StoreError> {
    let look = Look([NONCE.as_bytes(), &nonce.digest()].concat());
    step::read(link.call(look).await?)
}

struct Look(Vec<u8>);

impl Request for Look {
    async fn send(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        cmd("EXISTS").arg(&self.0).query_async(connection).await
    }
}

struct Insert {
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Request for Insert {
    async fn send(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        let first = [META.as_bytes(), STATE.as_bytes()];
        let keys: Vec<&[u8]> = first
            .into_iter()
            .chain(self.keys.iter().map(Vec::as_slice))
            .collect();
        SCRIPT.run(&keys, &self.arguments, connection).await
    }
}
