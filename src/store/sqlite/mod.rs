//! The store in one SQLite file: for one machine, with nothing else to run.
//!
//! `serve` and the commands open the same file at the same time. Every use case is one transaction, run on the threads of
//! `threads`.

use std::{path::PathBuf, sync::Arc, thread, time::Duration};

use thiserror::Error;
use tokio::sync::oneshot;

use crate::store::{
    StoreError, StoreFuture,
    seal::SealKey,
    sql::{Engine, Mode, Work},
};

mod answer;
mod open;
mod schema;
mod threads;
mod tx;

pub use open::OpenError;

use threads::{TIMEOUT, Threads, block_on};
use tx::SqliteTx;

/// Where the store is and how it keeps secrets.
#[derive(Debug)]
pub struct Params {
    /// The file.
    pub path: PathBuf,
    /// The keys that open secrets, the first of which seals; none: secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// Whether secrets in clear may be read although there is a key.
    pub accepts_clear: bool,
}

/// A store in an SQLite file.
pub struct SqliteStore {
    threads: Threads,
    path: PathBuf,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, makes it if it is not there, and migrates it. Blocks, for at most some seconds, while
    /// another process holds the file.
    ///
    /// # Errors
    /// [`OpenError`] tells why; the file is as it was before then.
    pub fn open(params: Params) -> Result<Self, OpenError> {
        let connections = open::open(&params)?;
        let threads =
            Threads::start(connections).map_err(|error| open::failed(&params.path, error))?;
        Ok(Self {
            threads,
            path: params.path,
        })
    }
}

/// Why the store did not answer, other than SQLite's own reasons.
#[derive(Debug, Error)]
enum SqliteFault {
    #[error("the store did not answer in time")]
    TimedOut,
    #[error("too many callers wait for the store")]
    Overloaded,
    #[error("the store's thread gave no answer")]
    Stopped,
    #[error("another process has migrated the store since it was opened; restart")]
    Replaced,
    #[error("the transaction failed")]
    Group(#[source] Arc<StoreError>),
}

impl From<SqliteFault> for StoreError {
    fn from(fault: SqliteFault) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

impl Engine for SqliteStore {
    type Tx = SqliteTx;
    const TIMEOUT: Duration = TIMEOUT;
    const ADMIN_TIMEOUT: Duration = TIMEOUT;

    fn ask<T: Send + 'static>(
        &self,
        mode: Mode,
        timeout: Duration,
        work: impl for<'t> FnOnce(&'t mut SqliteTx) -> Work<'t, T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let work = move |tx: &mut SqliteTx| block_on(work(tx));
        match mode {
            Mode::Single | Mode::Snapshot => self.threads.read(timeout, work),
            Mode::Shared | Mode::Alone => self.threads.write(timeout, work),
        }
    }

    fn wipe(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (sender, wiped) = oneshot::channel();
            let path = self.path.clone();
            // Not on the writer's thread: its connection is always in a transaction while it works.
            thread::spawn(move || sender.send(open::wipe(&path)));
            Ok(wiped.await.map_err(|_| SqliteFault::Stopped)??)
        })
    }
}
