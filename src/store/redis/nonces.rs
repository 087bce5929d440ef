//! Nonces that all replicas share: one run of `nonces.lua` each, pipelined over the store's connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{RedisError, Value, aio::MultiplexedConnection, cmd};
use thiserror::Error;

use super::{
    META, OpenError, RedisStore,
    link::{Link, Request},
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
/// How far the clocks of Redis and of a replica may be apart, in seconds.
const SKEW: u64 = 60;

struct Window {
    link: Arc<Link>,
    on_lost: OnLost,
    /// Redis has nonces alone.
    is_alone: bool,
    lost_until: AtomicU64,
}

impl Window {
    async fn ask(
        &self,
        now: UnixTime,
        length: Duration,
        nonce: NonceUse<'_>,
        on_lost: OnLost,
    ) -> Result<Insertion, StoreError> {
        let numbers = [
            nonce.timestamp,
            now.0,
            length.as_secs(),
            SKEW,
            u64::from(on_lost == OnLost::Accept),
            u64::from(self.is_alone),
        ];
        let insert = Insert {
            key: [NONCE.as_bytes(), &nonce.digest()].concat(),
            arguments: numbers.map(|number| number.to_string().into_bytes()),
        };
        let (word, lost): (String, u64) = step::read(self.link.call(insert).await?)?;
        self.lost_until.fetch_max(lost, Ordering::Relaxed);
        match &*word {
            "fresh" => Ok(Insertion::Fresh),
            "used" => Ok(Insertion::Used),
            "lost" => Ok(Insertion::Lost),
            "forgotten" => Ok(Insertion::Forgotten),
            _ => Err(StoreError::Unavailable(ClocksApart.into())),
        }
    }
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
    let window = Window {
        link: open_link(target)?,
        on_lost,
        is_alone: true,
        lost_until: AtomicU64::new(0),
    };
    let begun = match kept {
        NoncesKept::Elsewhere => Ok(()),
        // What the store has is not here. It is as if another server had recorded it.
        NoncesKept::Here => {
            let mut note = cmd("HSET");
            note.arg(STATE).arg("server").arg("another window");
            window.link.call(note).await.map(drop)
        }
        // Nothing was recorded anywhere, so nothing is lost.
        NoncesKept::Nowhere => {
            let first = NonceUse {
                timestamp: now.0,
                consumer: b"",
                token: b"",
                nonce: b"first",
            };
            let begun = window.ask(now, length, first, OnLost::Accept).await;
            begun.map(drop)
        }
    };
    begun.map_err(|source| OpenError::Failed { place, source })?;
    Ok(Box::new(window))
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
        Box::new(Window {
            link: Arc::clone(&self.link),
            on_lost,
            is_alone: false,
            lost_until: AtomicU64::new(0),
        })
    }
}

impl SharedWindow for Window {
    fn insert<'a>(
        &'a self,
        now: UnixTime,
        length: Duration,
        nonce: NonceUse<'a>,
    ) -> SharedInsertion<'a> {
        Box::pin(async move {
            let inserted = self.ask(now, length, nonce, self.on_lost).await;
            inserted.map_err(|error| Unavailable(error.into()))
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
    key: Vec<u8>,
    arguments: [Vec<u8>; 6],
}

impl Request for Insert {
    async fn send(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        let keys = [META.as_bytes(), STATE.as_bytes(), &self.key];
        SCRIPT.run(&keys, &self.arguments, connection).await
    }
}
