//! Responses of this program itself: every rejection and fault of the steps becomes one here, in one `match` without a
//! catch-all.
//!
//! Codes are those of the OAuth ProblemDocument Reporting extension. No text of an internal error reaches a caller.

mod advice;
pub mod colour;
mod format;
pub mod html;
pub mod look;
mod own;

use std::{borrow::Cow, time::Duration};

use thiserror::Error;

pub use self::{format::Format, own::OwnResponse};
use self::{format::render, look::Frame};
use crate::{
    forward,
    issue::{self, random::NoRandomness},
    oauth::{ParameterNames, ShapeError, SignatureMethod},
    parse::{self, origin::OriginError},
    policy, route,
    server::{caller::UploadError, rejection::BodyRejection},
    store::StoreError,
    telemetry::metrics::Verdict,
    verify,
};

/// Why a request is not served: what each step has against it.
#[derive(Debug, Error)]
pub enum Failure {
    /// A rejection: it breaks the rules of HTTP.
    #[error(transparent)]
    Parse(#[from] parse::Rejection),
    /// A rejection: its body is not taken.
    #[error(transparent)]
    Body(#[from] BodyRejection),
    /// A rejection: it goes nowhere.
    #[error(transparent)]
    Route(#[from] route::Rejection),
    /// A rejection: the `oauth_` parameters are malformed, missing, repeated or of an unknown kind.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A rejection: its signature or its credentials are not accepted.
    #[error(transparent)]
    Verify(#[from] verify::Rejection),
    /// A rejection: it is not permitted.
    #[error(transparent)]
    Policy(#[from] policy::Rejection),
    /// A rejection: nothing is given out for it.
    #[error(transparent)]
    Issue(#[from] issue::Rejection),
    /// A rejection: it cannot be forwarded.
    #[error(transparent)]
    Forward(#[from] forward::Rejection),
    /// A rejection: as many requests as `limits.concurrent_requests` are being served.
    #[error("too many requests at once")]
    Busy,
    /// A fault: it cannot be verified.
    #[error(transparent)]
    Unverifiable(#[from] verify::Fault),
    /// A fault: it cannot be forwarded, or the API has no response.
    #[error(transparent)]
    Upstream(#[from] forward::Fault),
    /// A fault: the store fails.
    #[error("store unavailable")]
    Store(#[from] StoreError),
    /// A fault: nothing can be given out.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl Failure {
    /// Whether it is a fault, ours or the API's, rather than a rejection.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        match self {
            Self::Parse(_)
            | Self::Body(_)
            | Self::Route(_)
            | Self::Shape(_)
            | Self::Verify(_)
            | Self::Policy(_)
            | Self::Issue(_)
            | Self::Forward(_)
            | Self::Busy => false,
            Self::Unverifiable(_) | Self::Upstream(_) | Self::Store(_) | Self::NoRandomness(_) => {
                true
            }
        }
    }

    /// Whether nobody is left who could take a response.
    #[must_use]
    pub const fn is_caller_gone(&self) -> bool {
        matches!(
            self,
            Self::Body(BodyRejection::Upload(UploadError::Truncated))
        )
    }
}

impl From<verify::Error> for Failure {
    fn from(error: verify::Error) -> Self {
        match error {
            verify::Error::Rejection(rejection) => Self::Verify(rejection),
            verify::Error::Fault(fault) => Self::Unverifiable(fault),
        }
    }
}

impl From<forward::ExchangeError> for Failure {
    fn from(error: forward::ExchangeError) -> Self {
        match error {
            forward::ExchangeError::Fault(fault) => Self::Upstream(fault),
            forward::ExchangeError::Body(rejection) => Self::Body(rejection),
        }
    }
}

/// What a response to a failure has in it.
struct ProblemDocument {
    status: u16,
    verdict: Verdict,
    /// The code of ProblemDocument Reporting, where the row of the contract carries one.
    code: Option<&'static str>,
    advice: Option<Cow<'static, str>>,
    /// A further member, such as the names of missing parameters.
    detail: Option<(&'static str, String)>,
    field: Option<(&'static str, String)>,
}

/// A problem without a code.
const fn plain(status: u16, verdict: Verdict) -> ProblemDocument {
    ProblemDocument {
        status,
        verdict,
        code: None,
        advice: None,
        detail: None,
        field: None,
    }
}

/// A problem whose code is the word of its verdict.
const fn coded(status: u16, verdict: Verdict) -> ProblemDocument {
    let mut problem = plain(status, verdict);
    problem.code = Some(verdict.as_str());
    problem
}

/// HTTP that two recipients could read differently: a caller who sends it may have sent more of it, so the connection
/// is closed.
fn malformed(what: impl ToString) -> ProblemDocument {
    ProblemDocument {
        code: Some(Verdict::ParameterRejected.as_str()),
        ..plain(400, Verdict::BadRequest)
    }
    .advise(what.to_string())
    .field("Connection", "close")
}

/// Parameters that are not acceptable, joined by `&`.
fn rejected(names: impl Into<String>, why: impl Into<Cow<'static, str>>) -> ProblemDocument {
    coded(400, Verdict::ParameterRejected)
        .advise(why)
        .detail("oauth_parameters_rejected", names)
}

fn method_not_allowed(allow: &str) -> ProblemDocument {
    plain(405, Verdict::MethodNotAllowed).field("Allow", allow)
}

impl ProblemDocument {
    fn advise(mut self, advice: impl Into<Cow<'static, str>>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn detail(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.detail = Some((name, value.into()));
        self
    }

    fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.field = Some((name, value.into()));
        self
    }

    fn retry_after(self, after: Duration) -> Self {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.field("Retry-After", seconds.max(1).to_string())
    }
}

/// When to try again while other requests are being served.
const SOON: Duration = Duration::from_secs(1);
/// When to try again after a fault that passes by itself.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The response to a failure. Every rejection has advice; `request_id` may be empty.
#[must_use]
pub fn failure(
    failure: &Failure,
    frame: Frame<'_>,
    format: Format,
    request_id: &str,
) -> OwnResponse {
    let mut problem = problem(failure);
    let usual = || advice::usual(problem.verdict).map(Cow::Borrowed);
    problem.advice = problem.advice.take().or_else(usual);
    render(problem, frame, format, request_id)
}

/// The word of a failure in metrics and logs.
#[must_use]
pub fn verdict(failure: &Failure) -> Verdict {
    problem(failure).verdict
}

fn problem(failure: &Failure) -> ProblemDocument {
    use forward::Fault as Upstream;
    use issue::Rejection as Issue;
    use parse::Rejection as Parse;
    use policy::Rejection as Policy;
    use route::Rejection as Route;
    use verify::{Fault as Unverifiable, Rejection as Verify};
    match failure {
        Failure::Parse(Parse::Malformed(what)) => malformed(what),
        Failure::Parse(Parse::Target(error)) => malformed(error),
        Failure::Parse(Parse::Connection(error)) => malformed(error),
        Failure::Parse(Parse::Origin(OriginError::Misdirected)) => plain(421, Verdict::Misdirected),
        Failure::Parse(Parse::Origin(
            error @ (OriginError::Host | OriginError::Disagree | OriginError::Forwarded),
        )) => malformed(error),
        Failure::Route(error @ Route::Misdirected { .. }) => {
            plain(421, Verdict::Misdirected).advise(error.to_string())
        }
        Failure::Parse(Parse::MethodNotAllowed { allow })
        | Failure::Route(Route::MethodNotAllowed { allow }) => method_not_allowed(allow),
        Failure::Parse(Parse::TargetTooLong) => {
            plain(414, Verdict::UriTooLong).field("Connection", "close")
        }
        Failure::Parse(Parse::HeadTooLarge) => plain(431, Verdict::HeadersTooLarge),
        Failure::Parse(Parse::Body(body)) | Failure::Body(body) => match body {
            BodyRejection::TooLarge => plain(413, Verdict::PayloadTooLarge),
            BodyRejection::Busy => plain(503, Verdict::Unavailable).retry_after(SOON),
            BodyRejection::TooSlow => plain(408, Verdict::RequestTimeout),
            BodyRejection::Upload(error @ UploadError::Malformed) => malformed(error),
            BodyRejection::Upload(UploadError::Truncated) => plain(400, Verdict::Aborted),
        },
        Failure::Busy => plain(503, Verdict::Unavailable).retry_after(SOON),

        Failure::Route(Route::NotFound) => plain(404, Verdict::NotFound),
        Failure::Route(error @ Route::PathAbovePrefix) => malformed(error),
        Failure::Route(error @ (Route::ModeNotOnce | Route::ModeUnknown)) => {
            rejected("mode", error.to_string())
        }

        Failure::Shape(ShapeError::Malformed { place, fault }) => {
            coded(400, Verdict::ParameterRejected).advise(format!("malformed {place}: {fault}"))
        }
        Failure::Shape(ShapeError::Absent(names)) => {
            coded(400, Verdict::ParameterAbsent).detail("oauth_parameters_absent", joined(names))
        }
        Failure::Shape(ShapeError::Rejected { names, reason }) => {
            rejected(joined(names), reason.to_string())
        }
        Failure::Shape(ShapeError::MethodRejected { accepted }) => {
            let accepted: Vec<&str> = accepted.iter().map(SignatureMethod::as_str).collect();
            let advice = format!("this service accepts {}", accepted.join(", "));
            coded(400, Verdict::SignatureMethodRejected).advise(advice)
        }
        Failure::Verify(Verify::SignatureMethodRejected) => {
            coded(400, Verdict::SignatureMethodRejected)
        }
        Failure::Shape(ShapeError::VersionRejected) => {
            coded(400, Verdict::VersionRejected).detail("oauth_acceptable_versions", "1.0-1.0")
        }

        Failure::Verify(Verify::TimestampOutsideWindow {
            earliest,
            latest,
            advice,
            ..
        }) => coded(401, Verdict::TimestampRefused)
            .advise(advice.clone())
            .detail(
                "oauth_acceptable_timestamps",
                format!("{earliest}-{latest}"),
            ),
        Failure::Verify(Verify::ConsumerUnknown) => coded(401, Verdict::ConsumerKeyUnknown),
        Failure::Verify(Verify::ConsumerDisabled) => coded(401, Verdict::ConsumerKeyRefused),
        Failure::Verify(Verify::TokenUnknown)
        | Failure::Policy(Policy::TokenMissing)
        | Failure::Issue(Issue::TokenUnknown) => coded(401, Verdict::TokenRejected),
        Failure::Verify(Verify::TokenExpired) | Failure::Issue(Issue::TokenExpired) => {
            coded(401, Verdict::TokenExpired)
        }
        Failure::Verify(Verify::TokenRevoked) => coded(401, Verdict::TokenRevoked),
        Failure::Verify(Verify::SignatureWrong { advice, .. }) => ProblemDocument {
            advice: advice.clone().map(Cow::Owned),
            ..coded(401, Verdict::SignatureInvalid)
        },
        Failure::Verify(Verify::BodyHashWrong) => coded(401, Verdict::SignatureInvalid)
            .advise("oauth_body_hash is not the hash of the body that arrived"),
        Failure::Verify(Verify::NonceUsed) => coded(401, Verdict::NonceUsed),

        Failure::Policy(Policy::Path(what)) => malformed(what),
        Failure::Policy(Policy::Convention(rule)) => rejected("", *rule),
        Failure::Policy(Policy::NoCredentials) => coded(401, Verdict::ParameterAbsent)
            .advise("this needs a request signed with OAuth 1.0a"),
        Failure::Policy(Policy::LoginNeeded { location }) => {
            plain(303, Verdict::LoginNeeded).field("Location", location)
        }
        Failure::Policy(Policy::NotPermitted { hide: true, .. }) => {
            coded(404, Verdict::PermissionDenied)
        }
        Failure::Policy(Policy::NotPermitted { hide: false, .. } | Policy::CrossSite) => {
            coded(403, Verdict::PermissionDenied)
        }
        Failure::Policy(Policy::MethodNotAllowed { allow }) => method_not_allowed(allow),
        Failure::Policy(Policy::TooManyRequests { retry_after }) => {
            plain(429, Verdict::RateLimited).retry_after(*retry_after)
        }

        Failure::Issue(Issue::Callback(_)) => rejected(
            "oauth_callback",
            "oauth_callback is not one that is registered for this consumer",
        ),
        Failure::Issue(Issue::Scope(_)) => rejected(
            "scope",
            "scope has a permission that is not registered for this consumer",
        ),
        Failure::Issue(Issue::TokenUsed) => coded(401, Verdict::TokenUsed),
        Failure::Issue(Issue::TokenUndecided) => coded(401, Verdict::PermissionUnknown),
        Failure::Issue(Issue::TokenDenied) => {
            coded(401, Verdict::PermissionDenied).advise("the user has denied the request")
        }
        Failure::Issue(Issue::VerifierWrong) => coded(401, Verdict::VerifierInvalid),

        Failure::Forward(error @ forward::Rejection::Handshake(_)) => malformed(error),
        Failure::Forward(forward::Rejection::LoopDetected) => plain(508, Verdict::LoopDetected),

        Failure::Store(_)
        | Failure::Unverifiable(
            Unverifiable::Store(_) | Unverifiable::NonceMarkStale | Unverifiable::SharedNonces(_),
        ) => plain(503, Verdict::Unavailable).retry_after(RETRY_AFTER),
        Failure::Unverifiable(
            Unverifiable::NoncesLost { retry_after }
            | Unverifiable::NonceWindowFull { retry_after },
        ) => plain(503, Verdict::Unavailable).retry_after(*retry_after),
        Failure::Upstream(Upstream::Unreachable(_) | Upstream::BrokenResponse(_)) => {
            plain(502, Verdict::BadGateway)
        }
        Failure::Upstream(Upstream::ApiTooSlow) => plain(504, Verdict::GatewayTimeout),
        Failure::Upstream(Upstream::Internal(_)) | Failure::NoRandomness(_) => {
            plain(500, Verdict::InternalError)
        }
    }
}

fn joined(names: &ParameterNames) -> String {
    names.iter().collect::<Vec<_>>().join("&")
}
