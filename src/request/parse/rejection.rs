//! The errors of a request that are found before anything about it is proved.

use thiserror::Error;

use crate::{
    base::{cold::cold_from, network::http_fields::ConnectionError},
    oauth::{ShapeError, SignatureMethod},
    request::problem::{self, Problem},
    telemetry::metrics::Verdict,
    wire::server::rejection::{BodyRejection, UploadError},
};

/// Why a request is rejected: the caller's mistake.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseRejection {
    /// A field is malformed, or two recipients could read it differently.
    #[error("{0}")]
    Malformed(&'static str),
    /// A field by which another proxy describes a request is not there once, with a value.
    #[error(
        "{field} is {wrong}; the proxy in front has to describe each request by one such field"
    )]
    Description {
        /// Its name.
        field: &'static str,
        /// "missing", "empty" or "repeated".
        wrong: &'static str,
    },
    /// The listener does not have the host.
    #[error("this listener does not have the host")]
    Misdirected,
    /// `Connection` is malformed.
    #[error(transparent)]
    Connection(ConnectionError),
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
    /// The body or the parameters are not accepted.
    #[error(transparent)]
    Body(BodyRejection),
}

cold_from!(ParseRejection {
    ConnectionError as it => Self::Connection(it),
    BodyRejection as it => Self::Body(it),
});

impl ParseRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Malformed(_) | Self::Description { .. } | Self::Connection(_) => {
                Verdict::BadRequest
            }
            Self::Misdirected => Verdict::Misdirected,
            Self::MethodNotAllowed { .. } => Verdict::MethodNotAllowed,
            Self::TargetTooLong => Verdict::UriTooLong,
            Self::HeadTooLarge => Verdict::HeadersTooLarge,
            Self::Body(rejection) => body_verdict(*rejection),
        }
    }

    /// The content of the response.
    pub fn problem(&self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Malformed(what) => Problem::malformed(verdict, what),
            Self::Description { .. } => Problem::malformed(verdict, self),
            Self::Connection(error) => Problem::malformed(verdict, error),
            Self::Misdirected => Problem::plain(421, verdict),
            Self::MethodNotAllowed { allow } => Problem::method_not_allowed(verdict, allow),
            Self::TargetTooLong => Problem::plain(414, verdict).field("Connection", "close"),
            Self::HeadTooLarge => Problem::plain(431, verdict),
            Self::Body(rejection) => body_problem(*rejection),
        }
    }
}

/// The verdict on a body that is not taken.
pub const fn body_verdict(rejection: BodyRejection) -> Verdict {
    match rejection {
        BodyRejection::TooLarge | BodyRejection::Upload(UploadError::Signed) => {
            Verdict::PayloadTooLarge
        }
        BodyRejection::Busy | BodyRejection::Upload(UploadError::Dropped) => Verdict::Unavailable,
        BodyRejection::TooSlow => Verdict::RequestTimeout,
        BodyRejection::Upload(UploadError::Malformed | UploadError::Credentials) => {
            Verdict::BadRequest
        }
        BodyRejection::Upload(UploadError::Truncated) => Verdict::Aborted,
    }
}

/// The response to a body that is not taken.
pub fn body_problem(rejection: BodyRejection) -> Problem {
    let verdict = body_verdict(rejection);
    match rejection {
        BodyRejection::TooLarge => Problem::plain(413, verdict),
        BodyRejection::Upload(error @ UploadError::Signed) => {
            Problem::plain(413, verdict).advise(error.to_string())
        }
        BodyRejection::Busy | BodyRejection::Upload(UploadError::Dropped) => {
            Problem::unavailable(verdict, problem::SOON)
        }
        BodyRejection::TooSlow => Problem::plain(408, verdict),
        BodyRejection::Upload(error @ (UploadError::Malformed | UploadError::Credentials)) => {
            Problem::malformed(verdict, error)
        }
        BodyRejection::Upload(UploadError::Truncated) => Problem::plain(400, verdict),
    }
}

/// The verdict on protocol parameters of a wrong shape.
pub const fn shape_verdict(error: &ShapeError) -> Verdict {
    match error {
        ShapeError::Malformed { .. } | ShapeError::Rejected { .. } => Verdict::ParameterRejected,
        ShapeError::Absent(_) => Verdict::ParameterAbsent,
        ShapeError::MethodRejected { .. } => Verdict::SignatureMethodRejected,
        ShapeError::VersionRejected => Verdict::VersionRejected,
    }
}

/// The response to protocol parameters of a wrong shape.
pub fn shape_problem(error: &ShapeError) -> Problem {
    let verdict = shape_verdict(error);
    match error {
        ShapeError::Malformed { location, reason } => {
            Problem::coded(400, verdict).advise(format!("malformed {location}: {reason}"))
        }
        ShapeError::Absent(names) => {
            Problem::coded(400, verdict).detail("oauth_parameters_absent", names.to_string())
        }
        ShapeError::Rejected { names, reason } => {
            Problem::rejected(verdict, names.to_string(), *reason)
        }
        ShapeError::MethodRejected { accepted } => {
            let accepted: Vec<&str> = accepted.iter().map(SignatureMethod::as_str).collect();
            let advice = format!("this service accepts {}", accepted.join(", "));
            Problem::coded(400, verdict).advise(advice)
        }
        ShapeError::VersionRejected => {
            Problem::coded(400, verdict).detail("oauth_acceptable_versions", "1.0-1.0")
        }
    }
}
