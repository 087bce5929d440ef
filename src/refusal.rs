//! Why a request is not served: a *refusal* is the caller's act and named after it, a *fault* is ours or the API's.
//!
//! `respond` turns either into an answer, in one `match` without a catch-all.

use std::{borrow::Cow, time::Duration};

use thiserror::Error;

use crate::{issue::random::NoRandomness, oauth::ShapeError, store::StoreError};

/// What the caller did.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// HTTP, a path or an escape that is malformed.
    #[error("malformed request: {0}")]
    Malformed(Cow<'static, str>),
    /// The `oauth_` parameters are malformed, missing, repeated or of an unknown kind.
    #[error("malformed OAuth parameters: {0}")]
    Shape(#[from] ShapeError),
    /// Other parameters that are not acceptable, by name, and why.
    #[error("parameters rejected: {1}")]
    ParameterRejected(Vec<String>, &'static str),
    /// `oauth_signature_method` is known but not accepted here, with the accepted ones.
    #[error("signature method not accepted")]
    SignatureMethodRejected,
    /// No credentials, or those of another scheme.
    #[error("no credentials")]
    NoCredentials,
    /// `oauth_timestamp` is outside the accepted range, given in seconds since 1970.
    #[error("timestamp outside {earliest}-{latest}")]
    TimestampOutsideWindow {
        /// The earliest acceptable one.
        earliest: u64,
        /// The latest acceptable one.
        latest: u64,
    },
    /// No consumer has that key.
    #[error("unknown consumer")]
    ConsumerUnknown,
    /// The consumer is disabled.
    #[error("disabled consumer")]
    ConsumerDisabled,
    /// No such token, or not this consumer's, or none where one is needed.
    #[error("unknown token")]
    TokenUnknown,
    /// The token is expired.
    #[error("expired token")]
    TokenExpired,
    /// The request token was exchanged before.
    #[error("used token")]
    TokenUsed,
    /// The access token was revoked.
    #[error("revoked token")]
    TokenRevoked,
    /// The user has not decided about the request token.
    #[error("undecided token")]
    TokenUndecided,
    /// The user refused.
    #[error("denied token")]
    TokenDenied,
    /// The verifier is wrong.
    #[error("wrong verifier")]
    VerifierWrong,
    /// The signature is wrong; what the caller is told about the reason.
    #[error("wrong signature")]
    SignatureWrong {
        /// Advice, as far as `signature.advice` allows it.
        advice: Option<String>,
    },
    /// `oauth_body_hash` is another body's.
    #[error("wrong body hash")]
    BodyHashWrong,
    /// The nonce was used before.
    #[error("used nonce")]
    NonceUsed,
    /// The operation is not permitted; whether it may be told is `operations.forbidden_status`'s.
    #[error("not permitted")]
    NotPermitted {
        /// 404 rather than 403.
        hide: bool,
    },
    /// A session's request does not come from the service's own pages.
    #[error("cross-site request of a session")]
    CrossSite,
    /// The path is known, the method is not; the methods it has.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: String,
    },
    /// The body is larger than a signed form or a hashed body may be.
    #[error("body too large")]
    BodyTooLarge,
    /// The request target is too long.
    #[error("target too long")]
    TargetTooLong,
    /// The head is too large.
    #[error("head too large")]
    HeadTooLarge,
    /// The request did not arrive in time.
    #[error("request too slow")]
    TooSlow,
    /// Host is none of the service's.
    #[error("misdirected request")]
    Misdirected,
    /// The request passed this process before: `upstream.api_url` leads back to it.
    #[error("request loop")]
    LoopDetected,
    /// As many requests as may be are being served.
    #[error("too many requests at once")]
    Busy,
    /// The consumer is over its rate.
    #[error("too many requests")]
    TooManyRequests {
        /// When to try again.
        retry_after: Duration,
    },
}

/// What went wrong here or behind.
#[derive(Debug, Error)]
pub enum Fault {
    /// The store does not answer and nothing is cached.
    #[error("store unavailable")]
    Store(#[from] StoreError),
    /// The nonce window is full.
    #[error("nonce window full")]
    NonceWindowFull,
    /// The store has been away for so long that a restart would not know of nonces recorded now.
    #[error("the store could not be told of this run for too long")]
    NonceMarkStale,
    /// Nonces of an earlier run are lost, and requests it may have accepted are still within their time.
    #[error("nonces of an earlier run are lost")]
    NoncesLost {
        /// When signed requests are accepted again.
        retry_after: Duration,
    },
    /// The API cannot be reached.
    #[error("API unreachable")]
    Unreachable(#[source] std::io::Error),
    /// The API did not take the connection or did not answer in time.
    #[error("API too slow")]
    ApiTooSlow,
    /// The API's answer is no HTTP, broken off, or ambiguous.
    #[error("broken answer of the API: {0}")]
    BrokenAnswer(Cow<'static, str>),
    /// A fault of this program.
    #[error("internal fault: {0}")]
    Internal(&'static str),
}

/// Either.
#[derive(Debug, Error)]
pub enum Failure {
    /// The caller's.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// Ours or the API's.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The caller has gone, or its connection is beyond an answer.
    #[error("caller gone")]
    CallerGone,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Fault(Fault::Store(error))
    }
}

impl From<NoRandomness> for Failure {
    fn from(_: NoRandomness) -> Self {
        Self::Fault(Fault::Internal("the system gives no random bytes"))
    }
}

impl From<ShapeError> for Failure {
    fn from(error: ShapeError) -> Self {
        Self::Refusal(Refusal::Shape(error))
    }
}
