//! The store and the lookup of records in an application, as the configuration names them.

use std::{path::PathBuf, sync::Arc};

use thiserror::Error;

use crate::{
    operator::lookup::{Lookup, LookupError},
    records::{
        store::{self, Store, settings::StoreSettingError},
        values::{ExternalRecords, OpenProblem, Opening, StoreOpenError},
    },
    run::config::Config,
};

/// Why the store or the lookup cannot be opened.
#[derive(Debug, Error)]
pub enum StoreServiceError {
    /// The store cannot be opened.
    #[error("store.url: {0}")]
    Open(#[from] StoreOpenError),
    /// A URL of PostgreSQL or a key of the store cannot be used.
    #[error(transparent)]
    Setting(#[from] StoreSettingError),
    /// The records of an application cannot be looked up.
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
    let lookup = open_lookup(config)?;
    if opening == Opening::Existing && is_store_missing(config) {
        return Err(StoreServiceError::Missing(config.store.url.sqlite_path()));
    }
    Ok(store::open_store(
        config.store.params(opening, external(lookup.as_ref()))?,
    )?)
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

/// The lookup of records in an application, if there is one. It is not reached yet.
///
/// # Errors
/// [`StoreServiceError::Lookup`], if a file of the secret or of TLS cannot be used.
pub fn open_lookup(config: &Config) -> Result<Option<Arc<Lookup>>, StoreServiceError> {
    Ok(Lookup::new(&config.lookup)?.map(Arc::new))
}

/// The records that a lookup finds.
pub(super) fn external(lookup: Option<&Arc<Lookup>>) -> Option<Arc<dyn ExternalRecords>> {
    lookup.map(|lookup| Arc::clone(lookup) as _)
}
