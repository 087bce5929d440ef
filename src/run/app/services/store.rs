//! The store and the look-up of an existing system, as the configuration names them.

use std::{path::PathBuf, sync::Arc};

use thiserror::Error;

use crate::{
    records::store::{
        self, OpenProblem, Opening, Store, StoreOpenError,
        postgres::{Lookup, LookupError},
        settings::StoreSettingError,
    },
    run::config::Config,
};

/// Why the store or the look-up cannot be opened.
#[derive(Debug, Error)]
pub enum StoreServiceError {
    /// The store cannot be opened.
    #[error("store.url: {0}")]
    Open(#[from] StoreOpenError),
    /// A URL of PostgreSQL or a key of the store cannot be used.
    #[error(transparent)]
    Setting(#[from] StoreSettingError),
    /// The credentials of an existing system cannot be looked up.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// There is no store.
    #[error(
        "store.url: {}: no such file; correct store.url, or create a store with countersign serve, consumer add, user add or import",
        .0.display()
    )]
    Missing(PathBuf),
}

/// Opens the store that the configuration names.
///
/// # Errors
/// [`StoreServiceError`] names key and file.
pub fn open_store(config: &Config, opening: Opening) -> Result<Arc<Store>, StoreServiceError> {
    let lookup = open_lookup(config, opening)?;
    if opening == Opening::Existing && is_store_missing(config) {
        return Err(StoreServiceError::Missing(config.store.url.sqlite_path()));
    }
    Ok(store::open_store(config.store.params(opening, lookup)?)?)
}

/// Whether the store is a file that does not exist.
#[must_use]
pub fn is_store_missing(config: &Config) -> bool {
    // If the path cannot be inspected, opening the store reports why.
    let file = config.store.file();
    file.is_some_and(|file| matches!(file.try_exists(), Ok(false)))
}

/// Opens the store for a command, and creates it if there is none; then it also returns the location of the new store.
///
/// # Errors
/// [`StoreServiceError`] names key and file.
pub fn open_or_create_store(
    config: &Config,
) -> Result<(Arc<Store>, Option<String>), StoreServiceError> {
    let location = match open_store(config, Opening::Existing) {
        Err(StoreServiceError::Missing(path)) => path.display().to_string(),
        Err(StoreServiceError::Open(StoreOpenError {
            location,
            problem: OpenProblem::Missing,
        })) => location,
        opened => return Ok((opened?, None)),
    };
    Ok((open_store(config, Opening::Command)?, Some(location)))
}

/// The look-up of credentials of an existing system, if there is one. No server is reached yet.
///
/// # Errors
/// [`StoreServiceError::Setting`] and [`StoreServiceError::Lookup`], if a setting or a file of TLS is wrong.
pub fn open_lookup(
    config: &Config,
    opening: Opening,
) -> Result<Option<Arc<Lookup>>, StoreServiceError> {
    let params = config.lookup.params()?;
    let lookup = params.map(|params| Lookup::open(params, opening));
    Ok(lookup.transpose()?.map(Arc::new))
}
