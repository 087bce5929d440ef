//! Why a request's body is not taken.

use thiserror::Error;

use crate::{
    telemetry::metrics::Verdict,
    wire::problem::{self, Problem},
};

/// The caller's fault with a body, or a lack of memory for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyRejection {
    /// It is larger than a form or a hashed body may be, or takes more memory than one caller may have.
    #[error("body too large")]
    TooLarge,
    /// The memory is taken now.
    #[error("too many requests at once")]
    Busy,
    /// It did not arrive in time.
    #[error("request too slow")]
    TooSlow,
    /// It did not arrive whole.
    #[error(transparent)]
    Upload(#[from] UploadError),
}

impl BodyRejection {
    /// The problem that the response describes.
    pub fn problem(&self) -> Problem {
        match self {
            Self::TooLarge => Problem::plain(413, Verdict::PayloadTooLarge),
            Self::Busy => Problem::unavailable(problem::SOON),
            Self::TooSlow => Problem::plain(408, Verdict::RequestTimeout),
            Self::Upload(error @ UploadError::Malformed) => Problem::malformed(error),
            Self::Upload(UploadError::Truncated) => Problem::plain(400, Verdict::Aborted),
        }
    }
}

/// Why a request's body did not arrive whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UploadError {
    /// The chunked coding is broken.
    #[error("the chunked coding of the body is malformed")]
    Malformed,
    /// The caller ended the connection or the stream first.
    #[error("the connection ended before the body did")]
    Truncated,
}
