//! Why a Bearer token is not accepted.

use thiserror::Error;

use crate::{request::problem::Problem, telemetry::metrics::Verdict};

/// Why a call with a Bearer token is rejected before its consumer is known: the caller's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BearerRejection {
    /// The request is not one that RFC 6750 allows: `invalid_request`.
    #[error("{0}")]
    Request(&'static str),
    /// The token is not valid: `invalid_token`.
    #[error("{0}")]
    Token(&'static str),
    /// Its consumer is not registered.
    #[error("a token of an unknown consumer")]
    ConsumerUnknown,
}

impl BearerRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Request(_) => Verdict::ParameterRejected,
            Self::Token(_) => Verdict::TokenRejected,
            Self::ConsumerUnknown => Verdict::ConsumerKeyUnknown,
        }
    }

    /// The content of the response.
    pub fn problem(self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Request(wrong) => Problem::coded(400, verdict).advise(wrong),
            Self::Token(wrong) => Problem::coded(401, verdict).advise(wrong),
            Self::ConsumerUnknown => Problem::coded(401, verdict)
                .advise("the client of this Bearer token is not a consumer of this service"),
        }
    }
}
