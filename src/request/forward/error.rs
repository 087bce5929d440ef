//! Why a permitted request gets no response of the API.

use std::{borrow::Cow, time::Duration};

use thiserror::Error;

use crate::{
    base::cold::cold_from,
    request::{identity, problem::Problem},
    telemetry::metrics::Verdict,
    wire::server::rejection::{BodyRejection, UploadError},
};

/// The caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ForwardRejection {
    /// A WebSocket handshake that no server could accept.
    #[error("{0}")]
    Handshake(&'static str),
    /// The request passed this process before: `upstream.api_url` leads back to it.
    #[error("request loop")]
    LoopDetected,
}

impl ForwardRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Handshake(_) => Verdict::BadRequest,
            Self::LoopDetected => Verdict::LoopDetected,
        }
    }

    /// The problem that the response describes.
    pub fn problem(&self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Handshake(_) => Problem::malformed(verdict, self),
            Self::LoopDetected => Problem::plain(508, verdict),
        }
    }
}

/// A fault of this program or of the API.
#[derive(Debug, Error)]
pub enum ForwardFault {
    /// The API cannot be reached.
    #[error("API unreachable")]
    Unreachable(#[source] std::io::Error),
    /// The API did not take the connection or did not respond in time.
    #[error("API too slow")]
    ApiTooSlow,
    /// The API sent nothing of a response for this long.
    #[error("the API was silent for {} s (upstream.silence_timeout)", .0.as_secs_f64())]
    Silent(Duration),
    /// The API's response is not HTTP, broken off, or ambiguous.
    #[error("broken response of the API: {0}")]
    BrokenResponse(Cow<'static, str>),
    /// A fault of this program.
    #[error("internal fault: {0}")]
    Internal(&'static str),
}

impl ForwardFault {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Unreachable(_) | Self::BrokenResponse(_) => Verdict::BadGateway,
            Self::ApiTooSlow | Self::Silent(_) => Verdict::GatewayTimeout,
            Self::Internal(_) => Verdict::InternalError,
        }
    }

    /// The problem that the response describes.
    pub fn problem(&self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Unreachable(_) | Self::BrokenResponse(_) => Problem::plain(502, verdict),
            Self::ApiTooSlow | Self::Silent(_) => Problem::plain(504, verdict),
            Self::Internal(_) => Problem::plain(500, verdict),
        }
    }
}

impl From<identity::Fault> for ForwardFault {
    fn from(identity::Fault(what): identity::Fault) -> Self {
        Self::Internal(what)
    }
}

/// Why an exchange with the API failed.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum ForwardError {
    /// A fault here or at the API.
    Fault(ForwardFault),
    /// The caller's body did not arrive.
    Body(BodyRejection),
}

cold_from!(ForwardError {
    ForwardFault as it => Self::Fault(it),
    BodyRejection as it => Self::Body(it),
    UploadError as it => Self::Body(it.into()),
});
