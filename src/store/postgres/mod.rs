//! The store in PostgreSQL: for several replicas, on an engine that operators run already.
//!
//! Every use case is one transaction on one connection. Nothing is retried: the locks of `Mode` leave no serialization
//! failures and no deadlocks.

use std::{pin::Pin, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::timeout;

use crate::{
    clock::UnixTime,
    nonce::{NonceUse, SharedWindow},
    store::{
        Store, StoreError, StoreFuture,
        port::{Change, NoncesKept},
        remote::Remote,
        rows::seconds,
        seal::Seal,
        sql::{Engine, Mode, Tx as _, Work},
    },
};

mod findings;
mod lookup;
mod nonces;
mod open;
mod pool;
mod schema;
mod tokens;
mod tx;
mod url;

pub use lookup::{Lookup, LookupError};
pub use open::{OpenError, Params};
pub use url::{Url, UrlError};

use pool::PostgresPool;
use tx::PostgresTx;

/// A store in PostgreSQL.
pub struct PostgresStore {
    remote: Remote,
    pool: Arc<PostgresPool>,
    seal: Arc<Seal>,
    lookup: Lookup,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

/// Why the store did not answer, other than PostgreSQL's own reasons.
#[derive(Debug, Error)]
enum PostgresFault {
    #[error("PostgreSQL did not answer in time")]
    TimedOut,
    #[error("too many callers wait for PostgreSQL")]
    Overloaded,
    #[error("another process has migrated the store since it was opened; restart")]
    Replaced,
    #[error(transparent)]
    Connect(#[from] tokio_postgres::Error),
}

impl From<PostgresFault> for StoreError {
    fn from(fault: PostgresFault) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

/// How long a step of an export or an import may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(600);

impl Engine for PostgresStore {
    type Tx = PostgresTx;
    /// With the wait for a connection, less than a second.
    const TIMEOUT: Duration = Duration::from_millis(700);
    const ADMIN_TIMEOUT: Duration = Duration::from_secs(5);

    /// Runs a use case. If the future is dropped or its time is up, the connection is closed and the transaction with it.
    fn ask<T: Send + 'static>(
        &self,
        mode: Mode,
        timeout_after: Duration,
        work: impl for<'t> FnOnce(&'t mut PostgresTx) -> Work<'t, T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let (pool, seal, lookup) = (Arc::clone(&self.pool), Arc::clone(&self.seal), self.lookup);
        self.remote.run(async move {
            let attempt = async {
                let _permit = pool.permit().await?;
                let done = async {
                    let mut tx = PostgresTx::new(pool.take().await?, seal, lookup);
                    tx.begin(mode, timeout_after).await?;
                    let value = work(&mut tx).await?;
                    tx.commit(mode).await?;
                    // After an error the transaction ends with its connection, which is then not used again.
                    pool.put_back(tx.conn);
                    Ok(value)
                };
                timeout(timeout_after, done)
                    .await
                    .unwrap_or_else(|_| Err(PostgresFault::TimedOut.into()))
            };
            attempt.await.map_err(|error| pool.failed(error))
        })
    }

    fn revoke_outside<'a>(&'a self, token: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let is_found =
                self.lookup.token_sql.is_some() && self.access_token(token).await?.is_some();
            if is_found {
                let token = token.to_owned();
                self.ask(Mode::Shared, Self::TIMEOUT, |tx| {
                    Box::pin(async move { tx.revoke_outside(token).await })
                })
                .await?;
            }
            Ok(is_found)
        })
    }

    fn findings(&self) -> StoreFuture<'_, Vec<String>> {
        self.ask(Mode::Single, Self::TIMEOUT, |tx| Box::pin(tx.findings()))
    }

    fn notified(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.pool.changed.notified())
    }

    fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
        Some(self.open_window())
    }

    fn nonce_used<'a>(&'a self, nonce: NonceUse<'a>) -> StoreFuture<'a, Option<bool>> {
        let (second, digest) = (seconds(UnixTime(nonce.timestamp)), nonce.digest());
        self.ask(Mode::Single, Self::TIMEOUT, move |tx| {
            Box::pin(tx.nonce_used(second, digest))
        })
    }

    fn nonces_kept(&self) -> StoreFuture<'_, NoncesKept> {
        self.ask(Mode::Single, Self::TIMEOUT, |tx| Box::pin(tx.nonces_kept()))
    }

    fn keep_nonces_elsewhere(&self) -> StoreFuture<'_, ()> {
        self.ask(Mode::Shared, Self::TIMEOUT, |tx| {
            Box::pin(tx.keep_nonces_elsewhere())
        })
    }

    fn record_failed_login(&self, report: String) -> StoreFuture<'_, ()> {
        let report = Change::FailedLogin(report);
        self.ask(Mode::Shared, Self::TIMEOUT, |tx| {
            Box::pin(async { tx.changed(report) })
        })
    }
}
