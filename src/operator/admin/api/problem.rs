//! The responses of the API to requests that it rejects: `application/problem+json` (RFC 9457).

use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use crate::{
    operator::{
        admin::tokens::Denied,
        manage::{InvalidInput, ManageError},
    },
    provider::{login::pool::PoolError, respond::OwnResponse},
    records::values::{StoreError, is_logged_outage},
    request::parse::rejection::body_problem,
    telemetry::{log::causes::causes, metrics::Verdict},
    wire::server::rejection::BodyRejection,
};

/// A problem, as a client reads it.
#[derive(Debug, Serialize)]
pub(super) struct ProblemBody {
    /// The phrase of the status.
    title: String,
    /// The status code.
    status: u16,
    /// The error and the fix.
    detail: String,
    /// Each invalid part of the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<InvalidInput>,
}

/// Why a request is not done.
#[derive(Debug, Error)]
pub(super) enum ApiError {
    /// The token is missing, wrong or not checked.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The token can only read.
    #[error("this token can only read; use the token of admin.token_file")]
    ReadOnly,
    /// The token can only report changes.
    #[error(
        "this token can only call POST /v1/lookup/forget; use one whose line in admin.token_file does not end with lookup"
    )]
    LookupOnly,
    /// The API has no such path.
    #[error("the API has no such path; /v1/openapi.json lists all")]
    NotFound,
    /// The path does not have the method.
    #[error("this path has the methods {0}")]
    Method(String),
    /// The body is not JSON.
    #[error(
        "the body is application/json or application/merge-patch+json, and Content-Type says so"
    )]
    MediaType,
    /// The body is not accepted.
    #[error(transparent)]
    Body(#[from] BodyRejection),
    /// A use case failed.
    #[error(transparent)]
    Manage(ManageError),
    /// A password cannot be hashed.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl<E: Into<ManageError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self::Manage(error.into())
    }
}

impl ApiError {
    /// The response.
    pub(super) fn response(self) -> OwnResponse {
        let detail = self.to_string();
        match self {
            Self::Denied(Denied::Throttled(after)) => {
                let seconds = after.as_secs().max(1).to_string();
                problem_response(429, detail).field("Retry-After", seconds)
            }
            Self::Denied(denied) => {
                let error = match denied {
                    Denied::Wrong => ", error=\"invalid_token\"",
                    _ => "",
                };
                let challenge = format!("Bearer realm=\"countersign admin\"{error}");
                problem_response(401, detail).field("WWW-Authenticate", challenge)
            }
            Self::ReadOnly | Self::LookupOnly => problem_response(403, detail),
            Self::NotFound => problem_response(404, detail),
            Self::Method(allow) => problem_response(405, detail).field("Allow", allow),
            Self::MediaType => problem_response(415, detail),
            Self::Body(rejection) => problem_response(body_problem(rejection).status, detail),
            Self::Pool(PoolError::Busy) => unavailable(detail),
            Self::Pool(PoolError::Failed) => failed(&detail),
            Self::Manage(error) => manage_response(error, detail),
        }
    }
}

/// The response to an error of a use case.
fn manage_response(error: ManageError, detail: String) -> OwnResponse {
    let status = error.status();
    let member = match error {
        ManageError::Store(StoreError::Broken(_)) | ManageError::Randomness(_) => {
            return failed(&causes(&error));
        }
        ManageError::Store(error) => {
            if !is_logged_outage(&error) {
                tracing::error!(error = causes(&error), "the admin API cannot use the store");
            }
            return unavailable("the store is unavailable".to_owned());
        }
        ManageError::Invalid(error) => return with_errors(status, detail, vec![error]),
        ManageError::EmptySecret | ManageError::LongSecret => "secret",
        ManageError::PermissionMissing { .. } => "permissions",
        _ => return problem_response(status, detail),
    };
    let error = InvalidInput::member(member, &detail);
    with_errors(status, detail, vec![error])
}

/// 500; only the log has the cause.
fn failed(cause: &str) -> OwnResponse {
    tracing::error!(cause, "a request to the admin API failed");
    problem_response(500, "the log says why".to_owned())
}

fn unavailable(detail: String) -> OwnResponse {
    problem_response(503, detail).field("Retry-After", "5")
}

fn problem_response(status: u16, detail: String) -> OwnResponse {
    with_errors(status, detail, Vec::new())
}

fn with_errors(status: u16, detail: String, errors: Vec<InvalidInput>) -> OwnResponse {
    let title = StatusCode::from_u16(status).ok();
    let title = title.and_then(|status| status.canonical_reason());
    let problem = ProblemBody {
        title: title.unwrap_or_default().to_owned(),
        status,
        detail,
        errors,
    };
    let body = json!(problem).to_string();
    OwnResponse::new(status, "application/problem+json", body, Verdict::Page).never_stored()
}
