//! Answers of this program itself: every refusal and fault becomes one here, in one `match` without a catch-all.
//!
//! Codes are those of the OAuth Problem Reporting extension. No text of an internal error reaches a caller.

use std::{borrow::Cow, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Map, Value};

use crate::{
    fields::{all, list, trim},
    oauth::{ShapeError, percent},
    refusal::{Failure, Fault, Refusal},
    server::response::ResponseBody,
    telemetry::metrics::Verdict,
};

/// An answer of this program itself.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Field lines besides those of the body and the connection.
    pub fields: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// How metrics and logs call it.
    pub verdict: Verdict,
}

impl Answer {
    /// An answer with a body of the given type.
    #[must_use]
    pub fn new(
        status: u16,
        content_type: &str,
        body: impl Into<Vec<u8>>,
        verdict: Verdict,
    ) -> Self {
        Self {
            status,
            fields: vec![("Content-Type", content_type.to_owned())],
            body: body.into(),
            verdict,
        }
    }

    /// A token response (RFC 5849 §2.1, §2.3): form-encoded, never stored.
    #[must_use]
    pub fn form(pairs: &[(&str, &str)], verdict: Verdict) -> Self {
        let mut answer = Self::new(200, FORM, form(pairs.iter().copied()), verdict);
        answer.fields.push(("Cache-Control", "no-store".to_owned()));
        answer
    }

    /// The response that says this; to HEAD without the body.
    #[must_use]
    pub fn into_response(self, method: &Method) -> Response<ResponseBody> {
        let body = if *method == Method::HEAD {
            ResponseBody::announced(self.body.len() as u64)
        } else {
            ResponseBody::whole(self.body)
        };
        let mut response = Response::new(body);
        // Whatever were no status or field would be a fault of ours.
        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.fields {
            match HeaderValue::try_from(value) {
                Ok(value) => {
                    let name = HeaderName::from_bytes(name.as_bytes());
                    name.map(|name| response.headers_mut().append(name, value))
                        .ok();
                }
                Err(error) => {
                    tracing::error!(name, %error, "a field of a response cannot be sent");
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    *response.body_mut() = ResponseBody::none();
                }
            }
        }
        response
    }
}

/// How an error body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/x-www-form-urlencoded`, as consumers' libraries read it.
    Form,
    /// `application/problem+json` (RFC 9457).
    Json,
}

impl Format {
    /// What a request's Accept prefers: JSON where it is named and the form is not named with a greater weight.
    #[must_use]
    pub fn preferred_by(headers: &HeaderMap) -> Self {
        let mut json = None;
        let mut form = None;
        for element in all(headers, &header::ACCEPT).flat_map(list) {
            let mut parts = element.split(|&byte| byte == b';').map(trim);
            let media_type = parts.next().unwrap_or_default();
            let weight = parts.find_map(weight).unwrap_or(1000);
            if media_type.eq_ignore_ascii_case(b"application/json")
                || media_type.eq_ignore_ascii_case(b"application/problem+json")
            {
                json = json.max(Some(weight));
            } else if media_type.eq_ignore_ascii_case(FORM.as_bytes()) {
                form = form.max(Some(weight));
            }
        }
        match (json, form) {
            (Some(json), None) if json > 0 => Self::Json,
            (Some(json), Some(form)) if json > form => Self::Json,
            _ => Self::Form,
        }
    }
}

/// A weight in thousandths (RFC 9110 §12.4.2).
fn weight(parameter: &[u8]) -> Option<u32> {
    let value = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))?;
    let value: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1000"
    )]
    Some((value.clamp(0.0, 1.0) * 1000.0) as u32)
}

const FORM: &str = "application/x-www-form-urlencoded";

/// What an error answer tells beside its status.
struct Problem {
    status: u16,
    verdict: Verdict,
    /// The code of Problem Reporting, where the row of the contract carries one.
    code: Option<&'static str>,
    advice: Option<Cow<'static, str>>,
    /// A further member, such as the names of missing parameters.
    detail: Option<(&'static str, String)>,
    field: Option<(&'static str, String)>,
}

impl Problem {
    const fn coded(status: u16, verdict: Verdict, code: &'static str) -> Self {
        Self {
            status,
            verdict,
            code: Some(code),
            advice: None,
            detail: None,
            field: None,
        }
    }

    const fn plain(status: u16, verdict: Verdict) -> Self {
        Self {
            status,
            verdict,
            code: None,
            advice: None,
            detail: None,
            field: None,
        }
    }

    fn advise(mut self, advice: impl Into<Cow<'static, str>>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn detail(mut self, name: &'static str, value: String) -> Self {
        self.detail = Some((name, value));
        self
    }

    fn retry_after(mut self, after: Duration) -> Self {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.field = Some(("Retry-After", seconds.max(1).to_string()));
        self
    }
}

/// When to try again where others are being served.
const SOON: Duration = Duration::from_secs(1);
/// When to try again after a fault that passes by itself.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The answer to a failure, but for a caller who has gone.
#[must_use]
pub fn failure(failure: &Failure, realm: &str, format: Format, request_id: &str) -> Answer {
    let problem = match failure {
        Failure::Refusal(refusal) => of_refusal(refusal),
        Failure::Fault(fault) => of_fault(fault),
        Failure::CallerGone => Problem::plain(400, Verdict::Aborted),
    };
    render(problem, realm, format, request_id)
}

fn of_refusal(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Malformed(what) => {
            Problem::coded(400, Verdict::BadRequest, "parameter_rejected").advise(what.clone())
        }
        Refusal::Shape(shape) => of_shape(shape),
        Refusal::ParameterRejected(names, why) => {
            Problem::coded(400, Verdict::ParameterRejected, "parameter_rejected")
                .advise(*why)
                .detail("oauth_parameters_rejected", names.join("&"))
        }
        Refusal::SignatureMethodRejected => method_rejected(),
        Refusal::NoCredentials => Problem::coded(401, Verdict::ParameterAbsent, "parameter_absent")
            .advise("this needs a request signed with OAuth 1.0a"),
        Refusal::TimestampOutsideWindow { earliest, latest } => {
            Problem::coded(401, Verdict::TimestampRefused, "timestamp_refused")
                .advise(
                    "the clock of the consumer or of this service is wrong, or the request is old",
                )
                .detail(
                    "oauth_acceptable_timestamps",
                    format!("{earliest}-{latest}"),
                )
        }
        Refusal::ConsumerUnknown => {
            Problem::coded(401, Verdict::ConsumerKeyUnknown, "consumer_key_unknown")
        }
        Refusal::ConsumerDisabled => {
            Problem::coded(401, Verdict::ConsumerKeyRefused, "consumer_key_refused")
        }
        Refusal::TokenUnknown => Problem::coded(401, Verdict::TokenRejected, "token_rejected"),
        Refusal::TokenExpired => Problem::coded(401, Verdict::TokenExpired, "token_expired"),
        Refusal::TokenUsed => Problem::coded(401, Verdict::TokenUsed, "token_used"),
        Refusal::TokenRevoked => Problem::coded(401, Verdict::TokenRevoked, "token_revoked"),
        Refusal::TokenUndecided => {
            Problem::coded(401, Verdict::PermissionUnknown, "permission_unknown")
                .advise("the user has not decided yet")
        }
        Refusal::TokenDenied => Problem::coded(401, Verdict::PermissionDenied, "permission_denied"),
        Refusal::VerifierWrong => Problem::coded(401, Verdict::VerifierInvalid, "verifier_invalid"),
        Refusal::SignatureWrong { advice } => {
            let problem = Problem::coded(401, Verdict::SignatureInvalid, "signature_invalid");
            match advice {
                Some(advice) => problem.advise(advice.clone()),
                None => problem,
            }
        }
        Refusal::BodyHashWrong => {
            Problem::coded(401, Verdict::SignatureInvalid, "signature_invalid")
                .advise("oauth_body_hash is not the hash of the body that arrived")
        }
        Refusal::NonceUsed => Problem::coded(401, Verdict::NonceUsed, "nonce_used"),
        Refusal::NotPermitted { hide: true } => {
            Problem::coded(404, Verdict::PermissionDenied, "permission_denied")
        }
        Refusal::NotPermitted { hide: false } | Refusal::CrossSite => {
            Problem::coded(403, Verdict::PermissionDenied, "permission_denied")
        }
        Refusal::MethodNotAllowed { allow } => {
            let mut problem = Problem::plain(405, Verdict::MethodNotAllowed);
            problem.field = Some(("Allow", allow.clone()));
            problem
        }
        Refusal::BodyTooLarge => Problem::plain(413, Verdict::PayloadTooLarge),
        Refusal::TargetTooLong => Problem::plain(414, Verdict::UriTooLong),
        Refusal::HeadTooLarge => Problem::plain(431, Verdict::HeadersTooLarge),
        Refusal::TooSlow => Problem::plain(408, Verdict::RequestTimeout),
        Refusal::Misdirected => Problem::plain(421, Verdict::Misdirected)
            .advise("Host names no public URL of this service"),
        Refusal::LoopDetected => Problem::plain(508, Verdict::LoopDetected)
            .advise("this request has passed through this service before"),
        Refusal::Busy => Problem::plain(503, Verdict::Unavailable).retry_after(SOON),
        Refusal::TooManyRequests { retry_after } => {
            Problem::plain(429, Verdict::RateLimited).retry_after(*retry_after)
        }
    }
}

fn of_shape(shape: &ShapeError) -> Problem {
    match shape {
        ShapeError::Malformed { place, fault } => {
            Problem::coded(400, Verdict::ParameterRejected, "parameter_rejected")
                .advise(format!("malformed {place}: {fault}"))
        }
        ShapeError::Absent(names) => {
            Problem::coded(400, Verdict::ParameterAbsent, "parameter_absent").detail(
                "oauth_parameters_absent",
                names.iter().collect::<Vec<_>>().join("&"),
            )
        }
        ShapeError::Rejected { names, reason } => {
            Problem::coded(400, Verdict::ParameterRejected, "parameter_rejected")
                .advise(reason.to_string())
                .detail(
                    "oauth_parameters_rejected",
                    names.iter().collect::<Vec<_>>().join("&"),
                )
        }
        ShapeError::MethodRejected => method_rejected(),
        ShapeError::VersionRejected => {
            Problem::coded(400, Verdict::VersionRejected, "version_rejected")
                .detail("oauth_acceptable_versions", "1.0-1.0".to_owned())
        }
    }
}

const fn method_rejected() -> Problem {
    Problem::coded(
        400,
        Verdict::SignatureMethodRejected,
        "signature_method_rejected",
    )
}

fn of_fault(fault: &Fault) -> Problem {
    match fault {
        Fault::Store(_) | Fault::NonceWindowFull | Fault::NonceMarkStale => {
            Problem::plain(503, Verdict::Unavailable).retry_after(RETRY_AFTER)
        }
        Fault::NoncesLost { retry_after } => {
            Problem::plain(503, Verdict::Unavailable).retry_after(*retry_after)
        }
        Fault::Unreachable(_) | Fault::BrokenAnswer(_) => Problem::plain(502, Verdict::BadGateway),
        Fault::ApiTooSlow => Problem::plain(504, Verdict::GatewayTimeout),
        Fault::Internal(_) => Problem::plain(500, Verdict::InternalError),
    }
}

fn render(problem: Problem, realm: &str, format: Format, request_id: &str) -> Answer {
    let Problem {
        status,
        verdict,
        code,
        advice,
        detail,
        field,
    } = problem;
    let members = || {
        code.map(|code| ("oauth_problem", code))
            .into_iter()
            .chain(
                advice
                    .as_deref()
                    .map(|advice| ("oauth_problem_advice", advice)),
            )
            .chain(detail.as_ref().map(|(name, value)| (*name, value.as_str())))
    };
    let (content_type, body) = match (format, code) {
        (Format::Json, _) => {
            let mut object = Map::new();
            object.insert("title".to_owned(), reason(status).into());
            object.insert("status".to_owned(), status.into());
            if code.is_some() {
                object.extend(members().map(|(name, value)| (name.to_owned(), value.into())));
            } else if let Some(advice) = &advice {
                object.insert("detail".to_owned(), advice.as_ref().into());
            }
            if status == 500 {
                object.insert("request_id".to_owned(), request_id.into());
            }
            (
                "application/problem+json",
                Value::Object(object).to_string().into_bytes(),
            )
        }
        (Format::Form, Some(_)) => (FORM, form(members())),
        (Format::Form, None) if status == 500 => (
            "text/plain; charset=utf-8",
            format!("request {request_id}\n").into_bytes(),
        ),
        (Format::Form, None) => {
            let text = advice.as_deref().unwrap_or_else(|| reason(status));
            (
                "text/plain; charset=utf-8",
                format!("{text}\n").into_bytes(),
            )
        }
    };
    let mut answer = Answer::new(status, content_type, body, verdict);
    answer.fields.push(("Cache-Control", "no-store".to_owned()));
    if let (401, Some(code)) = (status, code) {
        let realm = realm.replace('\\', "\\\\").replace('"', "\\\"");
        answer.fields.push((
            "WWW-Authenticate",
            format!("OAuth realm=\"{realm}\", oauth_problem=\"{code}\""),
        ));
    }
    answer.fields.extend(field);
    answer
}

/// Pairs as RFC 5849 §2.1 has token responses encoded; the percent-encoding of §3.6 is a subset of the form's.
fn form<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    for (name, value) in pairs {
        if !body.is_empty() {
            body.push(b'&');
        }
        percent::encode_into(&mut body, name.as_bytes());
        body.push(b'=');
        percent::encode_into(&mut body, value.as_bytes());
    }
    body
}

/// The reason phrase of a status this program sends.
#[must_use]
pub const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        414 => "URI Too Long",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        508 => "Loop Detected",
        _ => "",
    }
}
