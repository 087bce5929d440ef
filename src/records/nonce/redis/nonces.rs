//! Nonces that all replicas share: pending nonces are inserted in batches, each by one run of `nonces.lua`.

use std::{pin::Pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use redis::cmd;
use tokio::time::Sleep;

use super::{
    RedisOpenError,
    keys::{STATE, nonce_key},
    link::{Link, RedisFault},
    probe,
    script::{Insert, read},
    url::RedisUrl,
};
use crate::{
    base::{clock::UnixTime, secret::random},
    records::{
        nonce::{
            Insertion, NonceUse, OnLost, SharedWindow, Unavailable,
            shared::{self, CLOCK_SKEW, ClocksApart, QueuedNonce, Writer, Written},
        },
        values::{Result, StoreError, use_cases::NonceLocation},
    },
};

/// Inserts by the script.
struct RedisInserter {
    link: Arc<Link>,
    /// The server of the last reply, and the number of runs of the script. They identify a restart that lost nothing.
    known: Mutex<(String, u64)>,
}

impl Writer for RedisInserter {
    fn check(&self) -> Result<()> {
        self.link.check()
    }

    async fn write(&self, nonces: &[QueuedNonce], deadline: Pin<&mut Sleep>) -> Result<Written> {
        let Some(last) = nonces.last() else {
            return Ok(Written::default());
        };
        let (server, runs) = self.known.lock().clone();
        let waived = u8::from(last.on_lost == OnLost::Accept);
        let insert = Insert {
            keys: std::iter::once(STATE.as_bytes().to_vec())
                .chain(nonces.iter().map(|nonce| nonce_key(nonce.digest)))
                .collect(),
            arguments: [
                last.now.0.to_string(),
                last.length.as_secs().to_string(),
                CLOCK_SKEW.to_string(),
                waived.to_string(),
                server,
                runs.to_string(),
            ],
            timestamps: nonces.iter().map(|nonce| nonce.timestamp).collect(),
        };
        let reply = self.link.call_here(&insert, deadline).await?;
        let (lost, server, runs, words): (i64, String, u64, Vec<String>) = read(reply)?;
        if words.len() != nonces.len() {
            return Err(StoreError::Unavailable(ClocksApart.into()));
        }
        {
            let mut known = self.known.lock();
            let runs = if known.0 == server {
                runs.max(known.1)
            } else {
                runs
            };
            *known = (server, runs);
        }
        let insertions = words.iter().map(|word| match &**word {
            "fresh" => Insertion::Fresh,
            "lost" => Insertion::Lost,
            "forgotten" => Insertion::Forgotten,
            _ => Insertion::Used,
        });
        Ok(Written {
            insertions: insertions.collect(),
            lost: u64::try_from(lost).unwrap_or(0),
        })
    }
}

/// Opens the shared window, and returns it with its id. `previous` is the store's note of the window that kept the nonces
/// before.
///
/// # Errors
/// [`RedisOpenError`]
pub async fn open_nonces(
    url: RedisUrl,
    previous: &NonceLocation,
    now: UnixTime,
    length: Duration,
) -> Result<(Box<dyn SharedWindow>, String), RedisOpenError> {
    let location = url.to_string();
    let link = open_link(url).await?;
    let inserter = RedisInserter {
        link: Arc::clone(&link),
        known: Mutex::default(),
    };
    let window = shared::open(inserter, link.thread());
    let begun = begin(&link, &*window, previous, now, length).await;
    let id = begun.map_err(|source| RedisOpenError::Failed { location, source })?;
    Ok((window, id))
}

/// Begins to use a window, and returns its id.
async fn begin(
    link: &Link,
    window: &dyn SharedWindow,
    previous: &NonceLocation,
    now: UnixTime,
    length: Duration,
) -> Result<String> {
    let (id, is_new) = window_id(link).await?;
    match previous {
        // What a state lacks that was made or made again since then is lost anyway.
        NonceLocation::Elsewhere(known) if is_new || *known == id => {}
        // Older nonces may be here, but the last ones are not: the same case as another server that has recorded them.
        NonceLocation::Here | NonceLocation::Elsewhere(_) => {
            let mut note = cmd("HSET");
            note.arg(STATE).arg("server").arg("another window");
            link.call(note).await?;
        }
        // Nothing was recorded anywhere, so nothing is lost.
        NonceLocation::Nowhere => {
            let first = NonceUse {
                timestamp: now.0,
                consumer: b"",
                token: b"",
                nonce: b"first",
            };
            let begun = window.insert(now, length, OnLost::Accept, first).await;
            let begun = begun.map(drop);
            begun.map_err(|Unavailable(error)| StoreError::Unavailable(error))?;
        }
    }
    Ok(id)
}

/// The id of the window, and whether it was made now. It tells this Redis from another one that kept nonces meanwhile.
async fn window_id(link: &Link) -> Result<(String, bool)> {
    const ID: &str = "window";

    let find = || {
        let mut find = cmd("HGET");
        find.arg(STATE).arg(ID);
        link.call(find)
    };
    if let Some(id) = read(find().await?)? {
        return Ok((id, false));
    }
    let id = random::identifier().map_err(|error| StoreError::Unavailable(error.into()))?;
    let mut make = cmd("HSETNX");
    make.arg(STATE).arg(ID).arg(id);
    link.call(make).await?;
    Ok((read(find().await?)?, true))
}

/// Connects, and reports the settings by which Redis loses nonces.
///
/// # Errors
/// [`RedisOpenError`]
pub async fn check_nonces(url: RedisUrl) -> Result<Vec<String>, RedisOpenError> {
    let location = url.to_string();
    let link = open_link(url).await?;
    let findings = probe::findings(&link).await;
    findings.map_err(|source| RedisOpenError::Failed { location, source })
}

async fn open_link(url: RedisUrl) -> Result<Arc<Link>, RedisOpenError> {
    let location = url.to_string();
    let tls = url.client_config()?;
    let link = Link::new(url, tls).map_err(RedisOpenError::Thread)?;
    let connected = link.connect().await;
    connected.map_err(|error| {
        let source = match error {
            StoreError::Unavailable(source) => source,
            error => error.into(),
        };
        match source.downcast_ref() {
            Some(RedisFault::Evicts(policy)) => RedisOpenError::Evicts {
                location,
                policy: policy.clone(),
            },
            _ => RedisOpenError::Unreachable { location, source },
        }
    })?;
    Ok(Arc::new(link))
}

/// Whether a nonce is in the shared window.
///
/// # Errors
/// [`RedisOpenError`]
pub async fn nonce_used(url: RedisUrl, nonce: NonceUse<'_>) -> Result<bool, RedisOpenError> {
    let location = url.to_string();
    let found = has_nonce(&*open_link(url).await?, nonce).await;
    found.map_err(|source| RedisOpenError::Failed { location, source })
}

async fn has_nonce(link: &Link, nonce: NonceUse<'_>) -> Result<bool> {
    let mut exists = cmd("EXISTS");
    exists.arg(nonce_key(nonce.digest()));
    read(link.call(exists).await?)
}
