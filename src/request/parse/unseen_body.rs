//! The bodies of described requests that cannot be verified.

use thiserror::Error;

/// Why the body of a request that another proxy describes cannot be verified here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnseenBody {
    /// The description has no body. Whether the request has one is not known.
    #[error("this gateway checks signatures without the body")]
    Absent,
    /// The gateway says that it sent only the beginning.
    #[error("this gateway checks signatures with a part of the body alone")]
    Cut,
    /// The length of the described body is not known, so that it may have been cut.
    #[error("the request has a body without a Content-Length")]
    NoLength,
    /// It is larger than the bodies that are held back until they are verified, or may have been cut.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// The largest that is verified, in bytes.
        limit: usize,
    },
}
