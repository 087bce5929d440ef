//! Responses of this program itself: each step turns its rejections and faults into a [`Problem`], and this module writes it in
//! the format that the caller prefers. No text of an internal error reaches a caller.

mod challenge;
pub mod duration;
pub mod facts;
mod faults;
mod format;
mod launch;
pub mod mistake;
mod next_step;
mod own_response;

use std::borrow::Cow;

use thiserror::Error;

use self::format::render;
pub use self::{
    challenge::Schemes,
    format::{Format, is_navigation, is_posted_by_person},
    launch::failed_launch,
    own_response::OwnResponse,
};
use crate::{
    base::{cold::cold_from, secret::random::NoRandomness},
    oauth::{ProtocolParameter, ShapeError},
    provider::{issue, theme::frame::Frame},
    records::values::StoreError,
    request::{
        bearer::BearerRejection,
        forward::{ForwardError, ForwardFault, ForwardRejection},
        identity, parse,
        policy::{self, PolicyRejection},
        problem::{self, Problem},
        route,
        verify::{VerifyError, VerifyFault, VerifyRejection},
    },
    telemetry::metrics::Verdict,
    wire::server::rejection::{BodyRejection, UploadError},
};

/// Why a request is not served: a rejection or a fault of one step.
#[derive(Debug, Error)]
pub enum Failure {
    /// A rejection: it breaks the rules of HTTP.
    #[error(transparent)]
    Parse(parse::ParseRejection),
    /// A rejection: its body is not taken.
    #[error(transparent)]
    Body(BodyRejection),
    /// A rejection: it goes nowhere.
    #[error(transparent)]
    Route(route::RouteRejection),
    /// A rejection: the `oauth_` parameters are malformed, missing, repeated or of an unknown kind.
    #[error(transparent)]
    Shape(ShapeError),
    /// A rejection: its signature or its credentials are not accepted.
    #[error(transparent)]
    Verify(VerifyRejection),
    /// A rejection: it is not permitted.
    #[error(transparent)]
    Policy(PolicyRejection),
    /// A rejection: nothing is given out for it.
    #[error(transparent)]
    Issue(issue::IssueRejection),
    /// A rejection: it cannot be forwarded.
    #[error(transparent)]
    Forward(ForwardRejection),
    /// A rejection by a page.
    #[error("page rejected")]
    Page(Box<Problem>),
    /// A rejection: as many requests as `limits.concurrent_requests` are being served.
    #[error("too many requests at once")]
    Busy,
    /// A rejection: this process is ending, and no longer takes requests.
    #[error("this process is ending")]
    Ending,
    /// A fault: it cannot be verified.
    #[error(transparent)]
    Unverifiable(VerifyFault),
    /// A fault: it cannot be forwarded, or the API has no response.
    #[error(transparent)]
    Upstream(ForwardFault),
    /// A fault: the store fails.
    #[error(transparent)]
    Store(StoreError),
    /// A fault: nothing can be given out.
    #[error(transparent)]
    NoRandomness(NoRandomness),
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
            | Self::Page(_)
            | Self::Busy
            | Self::Ending => false,
            Self::Unverifiable(_) | Self::Upstream(_) | Self::Store(_) | Self::NoRandomness(_) => {
                true
            }
        }
    }

    /// Whether the caller has gone.
    #[must_use]
    pub const fn is_caller_gone(&self) -> bool {
        matches!(
            self,
            Self::Body(BodyRejection::Upload(UploadError::Truncated))
        )
    }
}

cold_from!(Failure {
    parse::ParseRejection as it => Self::Parse(it),
    BodyRejection as it => Self::Body(it),
    route::RouteRejection as it => Self::Route(it),
    ShapeError as it => Self::Shape(it),
    VerifyRejection as it => Self::Verify(it),
    PolicyRejection as it => Self::Policy(it),
    issue::IssueRejection as it => Self::Issue(it),
    ForwardRejection as it => Self::Forward(it),
    VerifyFault as it => Self::Unverifiable(it),
    ForwardFault as it => Self::Upstream(it),
    StoreError as it => Self::Store(it),
    NoRandomness as it => Self::NoRandomness(it),
    identity::Fault as it => Self::Upstream(it.into()),
    VerifyError as it => match it {
        VerifyError::Rejection(rejection) => Self::Verify(rejection),
        VerifyError::Fault(fault) => Self::Unverifiable(fault),
    },
    ForwardError as it => match it {
        ForwardError::Fault(fault) => Self::Upstream(fault),
        ForwardError::Body(rejection) => Self::Body(rejection),
    },
});

/// The response to a failure. Every rejection has advice; `request_id` may be empty.
pub fn failure(
    failure: &Failure,
    frame: Frame<'_>,
    format: Format,
    request_id: &str,
    schemes: Schemes,
) -> OwnResponse {
    render(advised(failure), frame, format, request_id, schemes)
}

impl Failure {
    /// The schemes by which the caller may try again, where Bearer tokens are accepted. `is_bearer`: it has sent one.
    #[must_use]
    pub fn schemes(&self, is_bearer: bool) -> Schemes {
        match self {
            Self::Verify(VerifyRejection::Bearer(BearerRejection::Request(_))) => {
                Schemes::Bearer(Some("invalid_request"))
            }
            Self::Policy(PolicyRejection::NotPermitted {
                unmet: Some(policy::UnmetRule::Permission(_)),
                hide: false,
            }) if is_bearer => Schemes::Bearer(Some("insufficient_scope")),
            Self::Verify(_) if is_bearer => Schemes::Bearer(Some("invalid_token")),
            _ if is_bearer => Schemes::Bearer(None),
            Self::Policy(
                PolicyRejection::NoCredentials
                | PolicyRejection::CredentialsNotSeen(_)
                | PolicyRejection::CredentialsNotRead { .. },
            ) => Schemes::Both,
            _ => Schemes::OAuth,
        }
    }
}

/// The content of the response to a failure, with its advice.
fn advised(failure: &Failure) -> Problem {
    let mut problem = failure.problem();
    let usual = || next_step::usual(problem.verdict).map(Cow::Borrowed);
    problem.advice = problem.advice.take().or_else(usual);
    problem
}

/// The names of the parameters that a failure is about, percent-encoded and joined by `&`, and what the response says is
/// wrong with them, the method, the consumer, the token, the body, or the description of a request by another proxy.
/// Neither has anything of a value.
pub fn parameters(failure: &Failure) -> (Option<String>, Option<Cow<'static, str>>) {
    let problem = failure.problem();
    let is_list = |name: &str| name.starts_with("oauth_parameters_");
    let names = problem.detail.filter(|(name, _)| is_list(name));
    let names = names.map(|(_, names)| names).filter(|it| !it.is_empty());
    let names = match problem.verdict {
        Verdict::TimestampRefused => Some(ProtocolParameter::Timestamp.as_str().to_owned()),
        _ => names,
    };
    // The advice about a wrong signature may have values in it; its mistake has a word.
    let is_wrong_signature = matches!(failure, Failure::Verify(VerifyRejection::SignatureWrong(_)));
    let is_about_credentials = matches!(
        problem.verdict,
        Verdict::ParameterAbsent
            | Verdict::ParameterRejected
            | Verdict::TimestampRefused
            | Verdict::SignatureMethodRejected
            | Verdict::SignatureInvalid
            | Verdict::ConsumerKeyRefused
            | Verdict::TokenRejected
    );
    let is_about_description = matches!(
        failure,
        Failure::Parse(parse::ParseRejection::Description { .. })
            | Failure::Route(route::RouteRejection::NoDescription { .. })
    );
    let is_shown = is_about_credentials && !is_wrong_signature || is_about_description;
    (names, problem.advice.filter(|_| is_shown))
}

impl Failure {
    /// The verdict in logs and metrics.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Parse(rejection) => rejection.verdict(),
            Self::Body(rejection) => parse::rejection::body_verdict(*rejection),
            Self::Route(rejection) => rejection.verdict(),
            Self::Shape(error) => parse::rejection::shape_verdict(error),
            Self::Verify(rejection) => rejection.verdict(),
            Self::Policy(rejection) => rejection.verdict(),
            Self::Issue(rejection) => rejection.verdict(),
            Self::Forward(rejection) => rejection.verdict(),
            Self::Page(problem) => problem.verdict,
            Self::Unverifiable(_) => VerifyFault::VERDICT,
            Self::Upstream(fault) => fault.verdict(),
            Self::Store(StoreError::Broken(_)) | Self::NoRandomness(_) => Verdict::InternalError,
            Self::Busy | Self::Ending | Self::Store(_) => Verdict::Unavailable,
        }
    }

    /// The content of the response.
    fn problem(&self) -> Problem {
        match self {
            Self::Parse(rejection) => rejection.problem(),
            Self::Body(rejection) => parse::rejection::body_problem(*rejection),
            Self::Route(rejection) => rejection.problem(),
            Self::Shape(error) => parse::rejection::shape_problem(error),
            Self::Verify(rejection) => rejection.problem(),
            Self::Policy(rejection) => rejection.problem(),
            Self::Issue(rejection) => rejection.problem(),
            Self::Forward(rejection) => rejection.problem(),
            Self::Page(problem) => Problem::clone(problem),
            Self::Busy | Self::Ending => Problem::unavailable(self.verdict(), problem::SOON),
            Self::Unverifiable(fault) => fault.problem(),
            Self::Upstream(fault) => fault.problem(),
            Self::Store(StoreError::Broken(_)) | Self::NoRandomness(_) => {
                Problem::plain(500, self.verdict())
            }
            Self::Store(_) => Problem::unavailable(self.verdict(), problem::OUTAGE),
        }
    }
}
