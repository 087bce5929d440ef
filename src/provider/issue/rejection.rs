//! Why no token is issued.

use std::time::Duration;

use thiserror::Error;

use super::callback::CallbackError;
use crate::{request::problem::Problem, telemetry::metrics::Verdict};

/// The fault of the caller, or the decision of the user.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IssueRejection {
    /// The callback is not accepted.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The permissions that it asks for are not accepted.
    #[error("{name} {problem}")]
    Scope {
        /// The name of the parameter.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The consumer has too many open request tokens.
    #[error("too many open request tokens")]
    TooManyRequestTokens {
        /// The lifetime of those that are open.
        retry_after: Duration,
    },
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
    /// A user has the id that is the key of the consumer: a token of the consumer could be taken for one of the user.
    #[error("a consumer with the id of a user as its key")]
    KeyOfUser,
}

impl IssueRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Callback(_) | Self::Scope { .. } => Verdict::ParameterRejected,
            Self::TooManyRequestTokens { .. } => Verdict::RateLimited,
            Self::TokenUnknown => Verdict::TokenRejected,
            Self::TokenExpired => Verdict::TokenExpired,
            Self::TokenUsed => Verdict::TokenUsed,
            Self::TokenUndecided => Verdict::PermissionUnknown,
            Self::TokenDenied => Verdict::PermissionDenied,
            Self::VerifierWrong => Verdict::VerifierInvalid,
            Self::KeyOfUser => Verdict::ConsumerKeyRefused,
        }
    }

    /// The content of the response.
    pub fn problem(&self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Callback(_) => Problem::rejected(
                verdict,
                "oauth_callback",
                "oauth_callback is not one that is registered for this consumer",
            ),
            Self::Scope { name, .. } => Problem::rejected(verdict, name, self.to_string()),
            Self::TooManyRequestTokens { retry_after } => Problem::plain(429, verdict)
                .retry_after(*retry_after)
                .advise("too many request tokens wait for a decision: exchange them, or wait until they expire"),
            Self::TokenDenied => {
                Problem::coded(401, verdict).advise("the user has denied the request")
            }
            Self::KeyOfUser => Problem::coded(401, verdict).advise(
                "a user has the same id as this consumer, so a token without a user could be taken for one of the user: ask the \
                 operator of the service for another key",
            ),
            Self::TokenUnknown
            | Self::TokenExpired
            | Self::TokenUsed
            | Self::TokenUndecided
            | Self::VerifierWrong => Problem::coded(401, verdict),
        }
    }
}
