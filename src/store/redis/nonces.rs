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
    META, RedisStore,
    link::{Link, Request},
    step::{self, Script},
};
use crate::{
    clock::UnixTime,
    nonce::{Insertion, NonceUse, OnLost, SharedInsertion, SharedWindow, Unavailable},
    store::StoreError,
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
    lost_until: AtomicU64,
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
        let waived = self.on_lost == OnLost::Accept;
        let numbers = [
            nonce.timestamp,
            now.0,
            length.as_secs(),
            SKEW,
            u64::from(waived),
        ];
        let insert = Insert {
            key: [NONCE.as_bytes(), &nonce.digest()].concat(),
            arguments: numbers.map(|number| number.to_string().into_bytes()),
        };
        Box::pin(async move {
            let inserted = self.link.call(insert).await.and_then(step::read);
            let (word, lost): (String, u64) =
                inserted.map_err(|error: StoreError| Unavailable(error.into()))?;
            self.lost_until.fetch_max(lost, Ordering::Relaxed);
            match &*word {
                "fresh" => Ok(Insertion::Fresh),
                "used" => Ok(Insertion::Used),
                "lost" => Ok(Insertion::Lost),
                "forgotten" => Ok(Insertion::Forgotten),
                _ => Err(Unavailable(ClocksApart.into())),
            }
        })
    }

    fn lost_until(&self) -> UnixTime {
        UnixTime(self.lost_until.load(Ordering::Relaxed))
    }
}

impl RedisStore {
    /// Whether a nonce is in the shared window.
    pub(super) async fn has_nonce(&self, nonce: NonceUse<'_>) -> Result<bool, StoreError> {
        let look = Look([NONCE.as_bytes(), &nonce.digest()].concat());
        step::read(self.link.call(look).await?)
    }
}

struct Look(Vec<u8>);

impl Request for Look {
    async fn send(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        cmd("EXISTS").arg(&self.0).query_async(connection).await
    }
}

struct Insert {
    key: Vec<u8>,
    arguments: [Vec<u8>; 5],
}

impl Request for Insert {
    async fn send(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        let keys = [META.as_bytes(), STATE.as_bytes(), &self.key];
        SCRIPT.run(&keys, &self.arguments, connection).await
    }
}
