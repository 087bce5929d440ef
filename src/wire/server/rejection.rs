//! Why a request's body is not taken.

use thiserror::Error;

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

/// Why a request's body did not arrive whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UploadError {
    /// The chunked coding is broken.
    #[error("the chunked coding of the body is malformed")]
    Malformed,
    /// A form that goes on unsigned, because it is too large to be verified, has protocol parameters after all.
    #[error(
        "the form has oauth_ parameters, and is too large to be verified; send them in the Authorization field"
    )]
    Signed,
    /// A body that is not verified has protocol parameters, and the API may read them.
    #[error(
        "the body is not a form and has oauth_ parameters; send them in the Authorization field"
    )]
    Credentials,
    /// The caller ended the connection or the stream first.
    #[error("the connection ended before the body did")]
    Truncated,
    /// It was dropped for others: it has waited longest.
    #[error("too many requests at once")]
    Dropped,
}
