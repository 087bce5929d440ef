//! Why no token is issued.

use thiserror::Error;

use super::{callback::CallbackError, permissions::ScopeError};

/// What the caller did wrong, or how the user decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Rejection {
    /// The callback is not accepted.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The scope is not accepted.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// No such request token, or it is void.
    #[error("unknown token")]
    TokenUnknown,
    /// The request token is expired.
    #[error("expired token")]
    TokenExpired,
    /// The request token was exchanged before.
    #[error("used token")]
    TokenUsed,
    /// The user has not decided about the request token.
    #[error("undecided token")]
    TokenUndecided,
    /// The user denied the request token.
    #[error("denied token")]
    TokenDenied,
    /// The verifier is wrong.
    #[error("wrong verifier")]
    VerifierWrong,
}
