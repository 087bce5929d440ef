//! Opens the store of the configuration: the one place that knows every engine.

use std::{io, path::PathBuf, sync::Arc, thread};

use tokio::runtime::Builder;

use super::{
    Store,
    opening::{OpenError, OpenProblem, Opening},
    postgres::{self, Lookup, PostgresStore},
    seal::{Seal, SealKey},
    sqlite::SqliteStore,
};

/// The place of a store, the keys for its secrets, and the purpose of opening it.
#[derive(Debug)]
pub struct Params {
    /// The engine and the place.
    pub backend: Backend,
    /// The keys that open secrets. The first one seals. Without a key, secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// The purpose of opening it.
    pub opening: Opening,
    /// Credentials that an existing system keeps, for those that are not in the store.
    pub external: Option<Arc<Lookup>>,
}

/// An engine and where it is.
#[derive(Debug)]
pub enum Backend {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// PostgreSQL.
    Postgres(Box<postgres::Url>),
}

/// Opens a store, creates it if it is not there, and migrates it. Blocks the thread, for at most half a minute, while
/// others write. The store serves callers on any runtime that has timers.
///
/// # Errors
/// [`OpenError`]
pub fn open_store(params: Params) -> Result<Arc<Store>, OpenError> {
    let place = match &params.backend {
        Backend::Sqlite(path) => path.display().to_string(),
        Backend::Postgres(url) => url.place(),
    };
    open(params).map_err(|problem| OpenError { place, problem })
}

fn open(params: Params) -> Result<Arc<Store>, OpenProblem> {
    let Params {
        backend,
        keys,
        opening,
        external,
    } = params;
    // Any other opening rejects clear secrets in an encrypted store: their writer did not have the key.
    let accepts_clear = matches!(opening, Opening::Reseal | Opening::Check);
    let seal = Seal::sealed(&keys, accepts_clear)?;
    let store = match backend {
        Backend::Sqlite(path) => {
            let engine = SqliteStore::open(&path, !seal.has_no_key())?;
            Store::new(engine, seal, external)
        }
        Backend::Postgres(url) => {
            let engine = PostgresStore::open(&url, opening)?;
            block_on(engine.reach())??;
            Store::new(engine, seal, external)
        }
    };
    block_on(store.prepare(opening))??;
    Ok(Arc::new(store))
}

/// Runs `work` to its end on another thread, since this one may be one of a runtime.
fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> io::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::scope(|scope| {
        let working = scope.spawn(move || runtime.block_on(work));
        let ended = |_| io::Error::other("the thread that opens the store has ended");
        working.join().map_err(ended)
    })
}
