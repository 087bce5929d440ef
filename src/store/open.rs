//! Opens the store of the configuration: the one place that knows every backend.

use std::{path::PathBuf, sync::Arc};

use thiserror::Error;

use super::{
    Store,
    postgres::{self, PostgresStore},
    seal::SealKey,
    sqlite::{self, SqliteStore},
};

/// Where the store is and how it keeps secrets.
#[derive(Debug)]
pub struct Params {
    /// The engine and the place.
    pub backend: Backend,
    /// The keys that open secrets, the first of which seals; none: secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// What the store is opened for.
    pub opening: Opening,
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// To serve from it: it is created or migrated.
    Serve,
    /// For a command beside processes that may serve from it: it is created. A store of a server, which other machines
    /// use, is not migrated.
    Command,
    /// For a command that only reads or changes what is there: as above, but a store of a server is not created.
    Existing,
    /// To seal all secrets with the first key: as above, and secrets in clear are read.
    Reseal,
    /// To look at it: as above, and secrets in clear are read.
    Check,
}

impl Opening {
    /// Whether secrets in clear may be read although there is a key.
    pub(super) fn accepts_clear(self) -> bool {
        matches!(self, Self::Reseal | Self::Check)
    }
}

/// An engine and where it is.
#[derive(Debug)]
pub enum Backend {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// PostgreSQL.
    Postgres(Box<postgres::Url>, postgres::Lookup),
}

/// Why a store cannot be opened. Each names the place and the fix; nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The SQLite file.
    #[error(transparent)]
    Sqlite(#[from] sqlite::OpenError),
    /// The database in PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] postgres::OpenError),
}

impl OpenError {
    /// Whether all is well but that the store has not been created yet.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Postgres(postgres::OpenError::Missing(_)))
    }
}

/// Opens a store, creates it if it is not there, and migrates it. Blocks the thread for at most some seconds; the
/// store that it returns serves callers on any runtime, and on none.
///
/// # Errors
/// [`OpenError`]
pub fn open_store(params: Params) -> Result<Arc<dyn Store>, OpenError> {
    let Params {
        backend,
        keys,
        opening,
    } = params;
    Ok(match backend {
        Backend::Sqlite(path) => Arc::new(SqliteStore::open(sqlite::Params {
            path,
            keys,
            accepts_clear: opening.accepts_clear(),
        })?),
        Backend::Postgres(url, lookup) => Arc::new(PostgresStore::open(postgres::Params {
            url: *url,
            keys,
            opening,
            lookup,
        })?),
    })
}
