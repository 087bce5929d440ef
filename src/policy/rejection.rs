//! Why a request is not permitted.

use std::time::Duration;

use thiserror::Error;

use crate::names::Permission;

/// What the caller may not do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    /// The API could read the path as another operation's.
    #[error("{0}")]
    Path(&'static str),
    /// The path breaks a convention of the service: the rule.
    #[error("{0}")]
    Convention(&'static str),
    /// No credentials, or those of another scheme.
    #[error("no credentials")]
    NoCredentials,
    /// A browser without a session opens what a user may open: it is sent to the login.
    #[error("not logged in")]
    LoginNeeded {
        /// The login page, which leads back.
        location: String,
    },
    /// The call is signed without a token where one is needed, or with credentials that are not for the API.
    #[error("no access token")]
    TokenMissing,
    /// The operation is not permitted.
    #[error("not permitted")]
    NotPermitted {
        /// `operations.forbidden_status` hides that it exists: 404 rather than 403.
        hide: bool,
        /// The permission that the token or the consumer does not have, for the log alone.
        missing: Option<Permission>,
    },
    /// A session's request does not come from the service's own pages.
    #[error("cross-site request of a session")]
    CrossSite,
    /// The path is known, the method is not.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: String,
    },
    /// The consumer is over its rate.
    #[error("too many requests")]
    TooManyRequests {
        /// When to try again.
        retry_after: Duration,
    },
}
