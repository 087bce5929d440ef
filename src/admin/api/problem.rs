//! The responses of the API to what it does not do: `application/problem+json` (RFC 9457).

use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use super::Denied;
use crate::{
    respond::OwnResponse,
    telemetry::metrics::Verdict,
};

/// One reason why the input is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(super) struct InputError {
    /// The place in the body as a JSON Pointer (RFC 6901), or the name of a query parameter.
    pointer: String,
    /// What is wrong and what to do.
    detail: String,
}

/// Why a request is not done.
#[derive(Debug, Error)]
pub(super) enum ApiError {
    /// The token is missing, wrong or not looked at.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The token can only read.
    #[error("this token can only read; use the token of admin.token_file")]
    ReadOnly,
    /// The API has no such path.
    #[error("the API has no such path; /v1/openapi.json lists all")]
    NotFound,
    /// The path does not have the method.
    #[error("the path has only the methods {0}")]
    Method(String),
}

impl ApiError {
    /// The response.
    pub(super) fn response(self) -> OwnResponse {
        let detail = self.to_string();
        match self {
            Self::Denied(Denied::Throttled(after)) => {
                let seconds = after.as_secs().max(1).to_string();
                written(429, detail, &[]).field("Retry-After", seconds)
            }
            Self::Denied(denied) => {
                let error = if denied == Denied::Wrong { ", error=\"invalid_token\"" } else { "" };
                let challenge = format!("Bearer realm=\"countersign admin\"{error}");
                written(401, detail, &[]).field("WWW-Authenticate", challenge)
            }
            Self::ReadOnly => written(403, detail, &[]),
            Self::NotFound => written(404, detail, &[]),
            Self::Method(allow) => written(405, detail, &[]).field("Allow", allow),
        }
    }
}

fn written(status: u16, detail: String, errors: &[InputError]) -> OwnResponse {
    let title = StatusCode::from_u16(status).ok();
    let title = title.and_then(|status| status.canonical_reason());
    let mut body = json!({ "title": title, "status": status, "detail": detail });
    if !errors.is_empty() {
        body["errors"] = json!(errors);
    }
    let kind = "application/problem+json";
    OwnResponse::new(status, kind, body.to_string(), Verdict::Page).never_stored()
}
