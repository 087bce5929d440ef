//! The responses of the API to what it does not do: `application/problem+json` (RFC 9457).

use http::StatusCode;
use serde_json::json;
use thiserror::Error;

use super::Denied;
use crate::{respond::OwnResponse, telemetry::metrics::Verdict};

/// Why a request is not done.
#[derive(Debug, Error)]
pub(super) enum ApiError {
    /// The token is missing, wrong or not looked at.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The API has no such path.
    #[error("the API has no such path; /v1/openapi.json lists all")]
    NotFound,
}

impl ApiError {
    /// The response.
    pub(super) fn response(self) -> OwnResponse {
        let detail = self.to_string();
        match self {
            Self::Denied(Denied::Throttled(after)) => {
                let seconds = after.as_secs().max(1).to_string();
                written(429, detail).field("Retry-After", seconds)
            }
            Self::Denied(denied) => {
                let error = if denied == Denied::Wrong {
                    ", error=\"invalid_token\""
                } else {
                    ""
                };
                let challenge = format!("Bearer realm=\"countersign admin\"{error}");
                written(401, detail).field("WWW-Authenticate", challenge)
            }
            Self::NotFound => written(404, detail),
        }
    }
}

fn written(status: u16, detail: String) -> OwnResponse {
    let title = StatusCode::from_u16(status).ok();
    let title = title.and_then(|status| status.canonical_reason());
    let body = json!({ "title": title, "status": status, "detail": detail });
    let kind = "application/problem+json";
    OwnResponse::new(status, kind, body.to_string(), Verdict::Page).never_stored()
}
