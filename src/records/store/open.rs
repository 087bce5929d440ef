//! Opens the store of the configuration: the one location that knows every engine.

use std::{io, path::PathBuf, sync::Arc, thread};

use tokio::runtime::Builder;

use super::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::SqliteStore,
};
use crate::records::values::{
    ExternalRecords,
    opening::{OpenProblem, Opening, StoreOpenError},
    seal::{Seal, SealKey},
};

/// The location of a store, the keys for its secrets, and the purpose of opening it.
pub struct StoreParams {
    /// The engine and the location.
    pub backend: Backend,
    /// The keys that open secrets. The first one seals. Without a key, secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// The purpose of opening it.
    pub opening: Opening,
    /// Records that an application keeps, for those that are not in the store.
    pub external: Option<Arc<dyn ExternalRecords>>,
}

/// An engine and where it is.
#[derive(Debug)]
pub enum Backend {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// PostgreSQL.
    Postgres(Box<postgres::PostgresUrl>),
}

/// Opens a store, creates it if it is not there, and migrates it. Blocks the thread, for at most half a minute, while
/// others write. The store serves callers on any runtime that has timers.
///
/// # Errors
/// [`StoreOpenError`]
pub fn open_store(params: StoreParams) -> Result<Arc<Store>, StoreOpenError> {
    let location = match &params.backend {
        Backend::Sqlite(path) => path.display().to_string(),
        Backend::Postgres(url) => url.location(),
    };
    open(params).map_err(|problem| StoreOpenError { location, problem })
}

fn open(params: StoreParams) -> Result<Arc<Store>, OpenProblem> {
    let StoreParams {
        backend,
        keys,
        opening,
        external,
    } = params;
    // Any other opening rejects clear secrets in an encrypted store: their writer did not have the key.
    let accepts_clear = matches!(opening, Opening::Reseal | Opening::Check);
    let seal = Seal::sealed(&keys, accepts_clear)?;
    let is_server = matches!(backend, Backend::Postgres(_));
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
    block_on(store.prepare(opening))?.map_err(|problem| match problem {
        // No file of ours can be damaged there.
        OpenProblem::Failed(cause) if is_server => OpenProblem::ServerFails(cause),
        problem => problem,
    })?;
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
