//! What is wrong with a request before anything about it is proved.

use thiserror::Error;

use super::{origin::OriginError, target::TargetError};
use crate::{fields::ConnectionError, server::rejection::BodyRejection};

/// What the caller did wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    /// A field is malformed, or two recipients could read it differently.
    #[error("{0}")]
    Malformed(&'static str),
    /// The request target is malformed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The public URL of the request cannot be determined.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// `Connection` is malformed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// No path has this method.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: &'static str,
    },
    /// The request target is longer than `limits.target_bytes`.
    #[error("target too long")]
    TargetTooLong,
    /// The head has more fields than `limits.head_fields`.
    #[error("head too large")]
    HeadTooLarge,
    /// The body or the parameters are not taken.
    #[error(transparent)]
    Body(#[from] BodyRejection),
}
