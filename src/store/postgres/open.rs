//! Opening the database: reachable, ours, of a schema that we know, and sealed with our key.

use std::{error::Error, io, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::timeout;
use tokio_postgres::Client;

use super::{
    PostgresFault, PostgresStore, Url,
    lookup::{self, Lookup, LookupError},
    pool::PostgresPool,
    schema::{MIGRATIONS, VERSION},
    tx::{LOCK, PostgresTx},
};
use crate::{
    store::{
        Opening, StoreError,
        remote::Remote,
        seal::{Mismatch, Seal, SealKey},
        sql::sealing::mismatch,
    },
    tls::TlsFileError,
};

/// Where the store is and how it keeps secrets.
#[derive(Debug)]
pub struct Params {
    /// The servers and the database.
    pub url: Url,
    /// The keys that open secrets, the first of which seals; none: secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// What the store is opened for.
    pub opening: Opening,
    /// Finds credentials of an existing system.
    pub lookup: Lookup,
}

/// Why a store cannot be opened. Each names the database and the fix; nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A file of the connection's TLS.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// No server of the URL answers, lets us in and accepts writes.
    #[error("{place}: cannot be reached; see the cause, and correct store.url or start the server")]
    Unreachable {
        /// The database.
        place: String,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A newer version of countersign has migrated the database.
    #[error(
        "{place}: has schema {found} and this version knows schema {VERSION}; run the newer version"
    )]
    NewerSchema {
        /// The database.
        place: String,
        /// The schema of the database.
        found: i32,
    },
    /// The database is to be migrated, which other processes on it must expect.
    #[error(
        "{place}: has schema {found} and this version needs schema {VERSION}; start countersign serve of this version, which migrates it"
    )]
    OlderSchema {
        /// The database.
        place: String,
        /// The schema of the database.
        found: i32,
    },
    /// There is no store in the database.
    #[error("{0}: has no store in it yet; countersign serve makes it")]
    Missing(String),
    /// A query for credentials of an existing system.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The secrets are sealed.
    #[error("{0}: is encrypted; name its key in store.encryption_key_file")]
    KeyMissing(String),
    /// The secrets are in clear, and there is a key.
    #[error("{0}: has secrets that are not encrypted; encrypt them with countersign rekey")]
    InClear(String),
    /// The secrets are sealed with another key.
    #[error("{0}: is encrypted with another key; correct store.encryption_key_file")]
    WrongKey(String),
    /// Something else.
    #[error("{place}: cannot be opened; see the cause")]
    Failed {
        /// The database.
        place: String,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system gives no more threads.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// How long the servers are tried.
const REACH: Duration = Duration::from_secs(5);
/// How long a migration waits for those who write.
const MIGRATION_WAIT: Duration = Duration::from_secs(30);

impl PostgresStore {
    /// Connects, and makes or migrates the tables if `params` allow it. Blocks, for at most half a minute, while
    /// others write.
    ///
    /// # Errors
    /// [`OpenError`] tells why; the database is as it was before then.
    pub fn open(params: Params) -> Result<Self, OpenError> {
        let (config, tls) = params.url.connector()?;
        let remote = Remote::start("store-postgres").map_err(OpenError::Thread)?;
        let pool = Arc::new(PostgresPool::new(config, tls));
        let (place, lookup) = (params.url.place(), params.lookup);
        let preparing = prepare(Arc::clone(&pool), params);
        let prepared = remote.wait_for(preparing).unwrap_or_else(|| {
            Err(Cause::Failed(
                io::Error::other("the thread of the store has ended").into(),
            ))
        });
        let seal = prepared.map_err(|cause| cause.at(place))?;
        let listener = Arc::clone(&pool);
        remote.spawn(async move { listener.listen().await });
        Ok(Self {
            remote,
            pool,
            seal,
            lookup,
        })
    }
}

/// An [`OpenError`] without the database's name.
enum Cause {
    Unreachable(Box<dyn Error + Send + Sync>),
    Newer(i32),
    Older(i32),
    Missing,
    /// Whether there is no key is told with it.
    Key(Mismatch, bool),
    Lookup(LookupError),
    Failed(Box<dyn Error + Send + Sync>),
}

impl<E: Into<StoreError>> From<E> for Cause {
    fn from(error: E) -> Self {
        let error: StoreError = error.into();
        Self::Failed(error.into())
    }
}

impl Cause {
    fn at(self, place: String) -> OpenError {
        match self {
            Self::Unreachable(source) => OpenError::Unreachable { place, source },
            Self::Newer(found) => OpenError::NewerSchema { place, found },
            Self::Older(found) => OpenError::OlderSchema { place, found },
            Self::Lookup(error) => error.into(),
            Self::Missing => OpenError::Missing(place),
            Self::Key(Mismatch::InClear, _) => OpenError::InClear(place),
            Self::Key(Mismatch::KeyMissing(_), true) => OpenError::KeyMissing(place),
            Self::Key(Mismatch::KeyMissing(_), false) => OpenError::WrongKey(place),
            Self::Failed(source) => OpenError::Failed { place, source },
        }
    }
}

async fn prepare(pool: Arc<PostgresPool>, params: Params) -> Result<Arc<Seal>, Cause> {
    let mut conn = match timeout(REACH, pool.connect()).await {
        Ok(Ok(conn)) => conn,
        Ok(Err(error)) => return Err(Cause::Unreachable(error.into())),
        Err(_) => return Err(Cause::Unreachable(PostgresFault::TimedOut.into())),
    };
    // Looked at before anything is locked or written.
    if matches!(params.opening, Opening::Serve | Opening::Check) {
        let checked = lookup::check(&mut conn, &params.lookup).await;
        checked.map_err(Cause::Lookup)?;
    }
    let client = conn.client();
    let found = version(client).await?;
    match (params.opening, found) {
        (_, found) if found > VERSION => return Err(Cause::Newer(found)),
        (Opening::Check | Opening::Existing | Opening::Reseal, 0) => return Err(Cause::Missing),
        (opening, found) if opening != Opening::Serve && (1..VERSION).contains(&found) => {
            return Err(Cause::Older(found));
        }
        _ => {}
    }
    if found < VERSION {
        migrate(client).await?;
    }
    let seal = Seal::sealed(&params.keys, params.opening.accepts_clear())?;
    let mut tx = PostgresTx::new(conn, Arc::new(seal), params.lookup);
    if let Some(mismatch) = mismatch(&mut tx).await? {
        return Err(Cause::Key(mismatch, tx.seal.has_no_key()));
    }
    pool.put_back(tx.conn);
    Ok(tx.seal)
}

/// Migrates, all or nothing, and alone on the database. After an error the transaction ends with the connection.
async fn migrate(client: &Client) -> Result<(), Cause> {
    let wait = MIGRATION_WAIT.as_millis();
    let begin = format!(
        "BEGIN; SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = 0;
         SELECT pg_advisory_xact_lock({LOCK})"
    );
    client.batch_execute(&begin).await?;
    // Another process may have migrated while this one waited.
    let found = version(client).await?;
    if found > VERSION {
        return Err(Cause::Newer(found));
    }
    if found == 0 {
        // To create it takes a right that is not needed if it is there.
        let missing =
            "SELECT count(*) = 0 FROM pg_catalog.pg_namespace WHERE nspname = 'countersign'";
        if client.query_one(missing, &[]).await?.try_get(0)? {
            client.batch_execute("CREATE SCHEMA countersign").await?;
        }
    }
    for step in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        client.batch_execute(step).await?;
    }
    client
        .execute("UPDATE meta SET version = $1", &[&VERSION])
        .await?;
    Ok(client.batch_execute("COMMIT").await?)
}

/// The schema of the database; 0: there is none.
async fn version(client: &Client) -> Result<i32, tokio_postgres::Error> {
    // The tables are asked, for `to_regclass` may answer from before the lock was had.
    let exists = "SELECT count(*) > 0 FROM pg_catalog.pg_tables
        WHERE schemaname = 'countersign' AND tablename = 'meta'";
    if !client.query_one(exists, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    client
        .query_one("SELECT version FROM countersign.meta", &[])
        .await?
        .try_get(0)
}
