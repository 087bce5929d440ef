//! Opens the store of the configuration: the one place that knows every backend.

use std::{path::PathBuf, sync::Arc};

use thiserror::Error;

use super::{
    Store,
    seal::SealKey,
    sqlite::{self, SqliteStore},
};

/// Where the store is and how it keeps secrets.
#[derive(Debug)]
pub struct Params {
    /// The engine and the place.
    pub backend: Backend,
    /// Seals secrets.
    pub key: Option<SealKey>,
    /// Whether a plain store that has secrets in it is sealed when it is opened with a key. Otherwise it stays as it
    /// is: a process that serves from it without the key could not go on.
    pub seals_plain: bool,
}

/// An engine and where it is.
#[derive(Debug)]
pub enum Backend {
    /// One SQLite file.
    Sqlite(PathBuf),
}

/// Why a store cannot be opened. Each names the place and the fix; nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The SQLite file.
    #[error(transparent)]
    Sqlite(#[from] sqlite::OpenError),
}

/// Opens a store, creates it if it is not there, and migrates it. Blocks the thread, for some seconds at worst; the
/// store that it returns serves callers on any runtime, and on none.
///
/// # Errors
/// [`OpenError`]
pub fn open_store(params: Params) -> Result<Arc<dyn Store>, OpenError> {
    let Params {
        backend,
        key,
        seals_plain,
    } = params;
    Ok(match backend {
        Backend::Sqlite(path) => Arc::new(SqliteStore::open(sqlite::Params {
            path,
            key,
            seals_plain,
        })?),
    })
}
