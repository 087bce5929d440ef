//! The faults of a store.

use std::sync::Arc;

use thiserror::Error;

use super::seal::Unopened;
use crate::base::clock::UnixTime;

/// A fault of the store: nothing is known about the record asked for, and nothing was changed, unless the
/// store was just making the change durable when the caller stopped waiting for it.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The backend cannot be reached, is full, or is too slow.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The application with external records, or an issuer of tokens, has not answered, or not well.
    #[error("{}", .0.0)]
    External(#[source] Arc<ExternalFault>),
    /// The backend returned something that is not a record of ours.
    #[error("the store holds a broken record: {0}")]
    Broken(&'static str),
    /// A secret is sealed with a key that this process does not have.
    #[error(transparent)]
    Unopened(Arc<Unopened>),
}

/// The result of a use case.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of an engine, or on the way to it, by which the store is unavailable.
pub(in crate::records) trait EngineFault:
    std::error::Error + Send + Sync + 'static
{
}

impl<E: EngineFault> From<E> for StoreError {
    fn from(fault: E) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

impl EngineFault for StillDown {}
impl EngineFault for Locked {}

impl From<Unopened> for StoreError {
    fn from(error: Unopened) -> Self {
        Self::Unopened(error.into())
    }
}

/// The engine did not answer before, and has not been reached since.
#[derive(Debug, Error)]
#[error("{engine} cannot be reached since {since}: {cause}")]
pub(in crate::records) struct StillDown {
    pub(in crate::records) engine: &'static str,
    pub(in crate::records) since: UnixTime,
    pub(in crate::records) cause: Arc<str>,
}

/// The application with external records, or an issuer of tokens, has not answered, or not well; its condition or its response is
/// logged. The first field is the key that names it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ExternalFault(
    pub &'static str,
    #[source] pub Box<dyn std::error::Error + Send + Sync>,
);

/// Whether this is one of many errors of an outage, whose beginning and end are logged: to be logged at most for
/// debugging.
#[must_use]
pub fn is_logged_outage(error: &(dyn std::error::Error + 'static)) -> bool {
    has_cause::<StillDown>(error) || has_cause::<Arc<ExternalFault>>(error)
}

/// The engine's disk is full.
#[derive(Debug, Error)]
#[error("the disk of the store is full, or fails")]
pub(in crate::records) struct DiskFull(
    #[source] pub(in crate::records) Box<dyn std::error::Error + Send + Sync>,
);

/// The engine does not let our role do something.
#[derive(Debug, Error)]
#[error("a right is missing")]
pub(in crate::records) struct RightMissing(
    #[source] pub(in crate::records) Box<dyn std::error::Error + Send + Sync>,
);

/// Another process writes to the store for longer than the caller waits.
#[derive(Debug, Error)]
#[error("{} writes to it; try again when that has ended, or end it", .0.as_deref().unwrap_or("another process"))]
pub(in crate::records) struct Locked(pub(in crate::records) Option<String>);

/// Whether the engine does not let our role do something.
pub(in crate::records) fn is_denied(error: &(dyn std::error::Error + 'static)) -> bool {
    has_cause::<RightMissing>(error)
}

/// Whether the engine's disk is full.
#[must_use]
pub fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    has_cause::<DiskFull>(error)
}

fn has_cause<E: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<E>())
}
