//! Nonces that all replicas share: pending nonces are inserted in batches, each by one run of `nonces.lua`.

use std::{pin::Pin, sync::Arc, time::Duration};

use redis::cmd;
use thiserror::Error;
use tokio::time::Sleep;

use super::{
    OpenError,
    link::Link,
    probe,
    script::{Insert, read},
    target::Target,
};
use crate::{
    clock::UnixTime,
    nonce::{Insertion, NonceUse, OnLost, SharedWindow, Unavailable},
    store::{
        StoreError,
        nonces::{self, QueuedNonce, Writer, Written},
        port::NoncesKept,
    },
};

/// The key of what is known of the server and of the window. All keys have its hash tag, so that one node of a Cluster
/// has them all.
pub(super) const STATE: &str = "cs:1:{store}:nonces";
/// Before the digest of a nonce.
const NONCE: &str = "cs:1:{store}:n:";
/// How far the clocks of Redis and of a replica may be apart, in seconds.
const SKEW: u64 = 60;

/// Inserts by the script.
struct RedisInserter {
    link: Arc<Link>,
    on_lost: OnLost,
}

impl RedisInserter {
    fn open(self) -> Box<dyn SharedWindow> {
        let link = Arc::clone(&self.link);
        nonces::open(self, link.remote())
    }
}

impl Writer for RedisInserter {
    fn check(&self) -> Result<(), StoreError> {
        self.link.check()
    }

    async fn write(
        &self,
        nonces: &[QueuedNonce],
        deadline: Pin<&mut Sleep>,
    ) -> Result<Written, StoreError> {
        let (now, length) = nonces
            .last()
            .map_or_else(Default::default, |last| (last.now.0, last.length.as_secs()));
        let first = [now, length, SKEW, u64::from(self.on_lost == OnLost::Accept)];
        let timestamps = nonces.iter().map(|nonce| nonce.timestamp);
        let insert = Insert {
            keys: std::iter::once(STATE.as_bytes().to_vec())
                .chain(nonces.iter().map(|nonce| key(nonce.digest)))
                .collect(),
            arguments: first
                .into_iter()
                .chain(timestamps)
                .map(|number| number.to_string().into_bytes())
                .collect(),
        };
        let reply = self.link.call_here(&insert, deadline).await?;
        let (lost, words): (u64, Vec<String>) = read(reply)?;
        if words.len() != nonces.len() {
            return Err(StoreError::Unavailable(ClocksApart.into()));
        }
        let insertions = words.iter().map(|word| match &**word {
            "fresh" => Insertion::Fresh,
            "lost" => Insertion::Lost,
            "forgotten" => Insertion::Forgotten,
            _ => Insertion::Used,
        });
        Ok(Written {
            insertions: insertions.collect(),
            lost,
        })
    }
}

fn key(digest: [u8; 16]) -> Vec<u8> {
    [NONCE.as_bytes(), &digest].concat()
}

/// Opens the shared window, with what the store knows of where nonces were kept before. Blocks the thread, for a second at
/// most.
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
    let window = |on_lost| {
        let inserter = RedisInserter {
            link: Arc::clone(&link),
            on_lost,
        };
        inserter.open()
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
            let begun = window(OnLost::Accept).insert(now, length, first).await;
            begun
                .map(drop)
                .map_err(|Unavailable(error)| StoreError::Unavailable(error))
        }
    };
    begun.map_err(|source| OpenError::Failed { place, source })?;
    Ok(window(on_lost))
}

/// Connects, and reports the settings by which Redis loses nonces.
///
/// # Errors
/// [`OpenError`]
pub async fn check_nonces(target: Target) -> Result<Vec<String>, OpenError> {
    let place = target.to_string();
    let link = open_link(target)?;
    let findings = probe::findings(&link).await;
    findings.map_err(|source| OpenError::Failed { place, source })
}

fn open_link(target: Target) -> Result<Arc<Link>, OpenError> {
    let place = target.to_string();
    let tls = target.client_config()?;
    let link = Link::new(target, tls).map_err(OpenError::Thread)?;
    link.connect().map_err(|fault| OpenError::Unreachable {
        place,
        source: fault.into(),
    })?;
    Ok(Arc::new(link))
}

#[derive(Debug, Error)]
#[error("the clocks of Redis and of this machine are more than {SKEW} seconds apart")]
struct ClocksApart;

/// Whether a nonce is in the shared window.
///
/// # Errors
/// [`OpenError`]
pub async fn nonce_used(target: Target, nonce: NonceUse<'_>) -> Result<bool, OpenError> {
    let place = target.to_string();
    let found = has_nonce(&*open_link(target)?, nonce).await;
    found.map_err(|source| OpenError::Failed { place, source })
}

async fn has_nonce(link: &Link, nonce: NonceUse<'_>) -> Result<bool, StoreError> {
    let mut look = cmd("EXISTS");
    look.arg(key(nonce.digest()));
    read(link.call(look).await?)
}
