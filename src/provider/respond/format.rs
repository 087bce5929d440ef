//! The body of a response to a failure, in the format that the caller prefers.

use std::time::Duration;

use askama::Template;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Map, Value};

use super::{
    challenge::{Schemes, challenges},
    duration::in_words,
    own_response::{FORM, OwnResponse, form},
};
use crate::{
    base::network::http_fields::{
        SEC_FETCH_DEST, SEC_FETCH_MODE, SEC_FETCH_SITE, all, list, single, trim,
    },
    provider::theme::frame::Frame,
    request::problem::Problem,
    telemetry::metrics::Verdict,
};

/// The format of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/x-www-form-urlencoded`, as consumers' libraries read it.
    Form,
    /// `application/problem+json` (RFC 9457).
    Json,
    /// A page, for a user.
    Html,
    /// A page for a user whose launch failed.
    Launch,
    /// No body, but the advice in `WWW-Authenticate`: for a proxy in front that does not pass bodies on.
    Challenge,
}

impl Format {
    /// The format that a request's Accept prefers: HTML if it is named and nothing else is preferred to it, or JSON if it is
    /// named and the form is not named with a greater weight.
    pub fn preferred_by(headers: &HeaderMap) -> Self {
        let (mut json, mut form, mut html, mut any) = (None, None, None, None);
        for element in all(headers, &header::ACCEPT).flat_map(list) {
            let mut parts = element.split(|&byte| byte == b';').map(trim);
            let media_type = parts.next().unwrap_or_default();
            let wanted = if media_type.eq_ignore_ascii_case(b"application/json")
                || media_type.eq_ignore_ascii_case(b"application/problem+json")
            {
                &mut json
            } else if media_type.eq_ignore_ascii_case(FORM.as_bytes()) {
                &mut form
            } else if media_type.eq_ignore_ascii_case(b"text/html") {
                &mut html
            } else if media_type == b"*/*" {
                &mut any
            } else if media_type == b"*" {
                // Not a media range. Java's HttpURLConnection sends it by default, for consumers, not for people:
                // `text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2`.
                return Self::Form;
            } else {
                // Weights of other media types are not parsed: this runs for every request.
                continue;
            };
            *wanted = (*wanted).max(Some(parts.find_map(weight).unwrap_or(1000)));
        }
        match (json, form) {
            _ if html > json.max(form).max(Some(0)) && html >= any => Self::Html,
            (Some(json), None) if json > 0 => Self::Json,
            (Some(json), Some(form)) if json > form => Self::Json,
            _ => Self::Form,
        }
    }
}

/// Whether a user opens it in a browser.
pub fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name, value: &[u8]| {
        single(headers, name).is_ok_and(|sent| sent.is_none_or(|sent| sent == value))
    };
    // An old browser sends none of these fields, and accepts HTML first only where it navigates.
    let navigates = says(&SEC_FETCH_MODE, b"navigate")
        && (headers.contains_key(&SEC_FETCH_MODE) || says(&SEC_FETCH_SITE, b"none"));
    navigates
        && matches!(*method, Method::GET | Method::HEAD)
        && !headers.contains_key(header::UPGRADE)
        && says(&SEC_FETCH_DEST, b"document")
        && Format::preferred_by(headers) == Format::Html
}

/// Whether a browser posts it for its user, who sees the response in a window or in a frame of another page. A form is posted
/// like this, and no request of a script.
pub fn is_posted_by_person(method: &Method, headers: &HeaderMap) -> bool {
    let is_one_of = |name, values: &[&[u8]]| {
        single(headers, name).is_ok_and(|sent| sent.is_none_or(|sent| values.contains(&sent)))
    };
    let shown: [&[u8]; 5] = [b"document", b"iframe", b"frame", b"embed", b"object"];
    *method == Method::POST
        && !headers.contains_key(header::UPGRADE)
        && is_one_of(&SEC_FETCH_MODE, &[b"navigate"])
        && is_one_of(&SEC_FETCH_DEST, &shown)
        && Format::preferred_by(headers) == Format::Html
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

/// Writes a problem.
pub(super) fn render(
    problem: Problem,
    frame: Frame<'_>,
    format: Format,
    request_id: &str,
    schemes: Schemes,
) -> OwnResponse {
    let (status, code) = (problem.status, problem.code);
    let advice = problem.advice.as_deref();
    let detail = problem.detail.as_ref();
    // Problems without a code carry no machine-readable members.
    let members: Vec<_> = match code {
        Some(code) => [("oauth_problem", code)]
            .into_iter()
            .chain(advice.map(|advice| ("oauth_problem_advice", advice)))
            .chain(detail.map(|(name, value)| (*name, value.as_str())))
            .collect(),
        None => Vec::new(),
    };
    // A redirect has no description.
    let responses = &frame.theme.rules.responses;
    let docs = responses.docs_url.as_ref().filter(|_| status >= 400);
    let heading = problem.mistake.or(code).unwrap_or(problem.verdict.as_str());
    let docs = docs.map(|url| format!("{}#{heading}", url.0));
    let link = docs
        .as_ref()
        .map(|docs| ("Link", format!("<{docs}>; rel=\"help\"")));
    let mut response = match format {
        Format::Launch => {
            let members = match code {
                Some(_) => members,
                None => {
                    let advice = advice.map(|advice| ("advice", advice));
                    let error = ("error", problem.verdict.as_str());
                    [Some(error), advice].into_iter().flatten().collect()
                }
            };
            let page = LaunchPage {
                frame,
                text: match status {
                    408 | 429 | 500.. => "launch-busy",
                    _ => "launch-text",
                },
                request_id,
                members: &members,
                docs,
            };
            OwnResponse::page(frame, status, &page, "")
        }
        Format::Html => error_page(&problem, frame, &members, docs, request_id),
        Format::Json => {
            let body = problem_details(&problem, &members, docs, request_id);
            OwnResponse::new(status, "application/problem+json", body, problem.verdict)
                .never_stored()
        }
        Format::Challenge => {
            OwnResponse::new(status, "text/plain", "", problem.verdict).never_stored()
        }
        Format::Form => {
            let (content_type, body) = match code {
                Some(_) => (FORM, form(members.into_iter())),
                None => {
                    let text = match status {
                        500 => format!("request {request_id}\n"),
                        _ => format!("{}\n", advice.unwrap_or(reason(status))),
                    };
                    ("text/plain; charset=utf-8", text.into_bytes())
                }
            };
            OwnResponse::new(status, content_type, body, problem.verdict).never_stored()
        }
    };
    response.verdict = problem.verdict;
    let is_bearer = matches!(schemes, Schemes::Bearer(Some(_)));
    let told = match format {
        Format::Challenge => Some(advice.unwrap_or(reason(status))),
        _ => None,
    };
    let challenges = match told.is_some() || code.is_some() && (status == 401 || is_bearer) {
        true => challenges(schemes, &responses.realm, code, (advice, told)),
        false => Vec::new(),
    };
    let challenges = challenges.into_iter().map(|it| ("WWW-Authenticate", it));
    let id = (!request_id.is_empty()).then(|| ("X-Request-Id", request_id.to_owned()));
    response.fields.extend(challenges);
    response
        .fields
        .extend([problem.field, link, id].into_iter().flatten());
    response
}

/// A problem as a page for a user.
fn error_page(
    problem: &Problem,
    frame: Frame<'_>,
    members: &[(&'static str, &str)],
    docs: Option<String>,
    request_id: &str,
) -> OwnResponse {
    let (status, code) = (problem.status, problem.code);
    let advice = problem.advice.as_deref();
    let is_explained = problem.page.is_some();
    // A program's request, which its developer opened in a browser.
    let is_signature = code == Some(Verdict::SignatureInvalid.as_str()) && !is_explained;
    let title = match is_signature {
        true => "error-signature",
        false => explained(status),
    };
    let (title, text) = problem.page.unwrap_or((title, None));
    let wait = problem
        .field
        .as_ref()
        .filter(|(name, _)| *name == "Retry-After");
    let wait = wait.and_then(|(_, seconds)| seconds.parse().ok());
    // A few seconds are what the usual text says.
    let wait = wait.filter(|seconds| (10..86_400).contains(seconds) && text.is_none());
    let text = match wait {
        Some(seconds) => {
            let wait = in_words(frame.texts, rounded(seconds));
            frame.texts.title("error-wait", &[("wait", wait)])
        }
        None => {
            let text = text.map_or_else(|| format!("{title}-text"), str::to_owned);
            frame.texts.text(&text).into_owned()
        }
    };
    let origin = &frame.theme.rules.origin;
    let (label, retry) = match status {
        // The public address of the service.
        421 => (
            None,
            Some(origin.as_str()).filter(|origin| !origin.is_empty()),
        ),
        408 | 429 | 500.. => (Some("error-try-again"), frame.reload_link()),
        _ => (Some("error-again"), problem.retry_path.as_deref()),
    };
    let page = ErrorPage {
        frame,
        title,
        text: &text,
        is_open: is_signature,
        application: problem.application.as_ref(),
        advice: advice.filter(|_| code.is_none() && !is_explained),
        members: if is_explained { &[] } else { members },
        docs: docs.filter(|_| !is_explained),
        label,
        retry,
        request_id,
    };
    OwnResponse::page(frame, status, &page, "")
}

/// A problem as JSON (RFC 9457).
fn problem_details(
    problem: &Problem,
    members: &[(&'static str, &str)],
    docs: Option<String>,
    request_id: &str,
) -> String {
    let mut object = Map::new();
    if let Some(docs) = docs {
        object.insert("type".to_owned(), docs.into());
    }
    object.insert("title".to_owned(), reason(problem.status).into());
    object.insert("status".to_owned(), problem.status.into());
    let advice = problem.advice.as_deref().filter(|_| problem.code.is_none());
    let members = members.iter().copied();
    let members = members.chain(advice.map(|advice| ("detail", advice)));
    object.extend(members.map(|(name, value)| (name.to_owned(), value.into())));
    if !request_id.is_empty() {
        object.insert("request_id".to_owned(), request_id.into());
    }
    Value::Object(object).to_string()
}

/// A time to wait as a user reads it: whole minutes if it is longer than one.
const fn rounded(seconds: u64) -> Duration {
    Duration::from_secs(match seconds {
        0..=60 => seconds,
        more => more.next_multiple_of(60),
    })
}

/// The reason phrase of a status.
fn reason(status: u16) -> &'static str {
    match StatusCode::from_u16(status) {
        // RFC 9110 §15.5.14; the crate has the name of RFC 7231.
        Ok(StatusCode::PAYLOAD_TOO_LARGE) => "Content Too Large",
        Ok(status) => status.canonical_reason().unwrap_or_default(),
        Err(_) => "",
    }
}

/// The page of an error; askama escapes the values in it.
#[derive(Template)]
#[template(path = "refusal.html")]
struct ErrorPage<'a> {
    frame: Frame<'a>,
    /// The message that is the heading.
    title: &'a str,
    /// What happened, and what to do.
    text: &'a str,
    /// The part for developers is open.
    is_open: bool,
    /// The application that the user came from: its name, and its web page.
    application: Option<&'a (String, Option<String>)>,
    /// The same in more detail and in English, for a developer.
    advice: Option<&'a str>,
    /// The members of the problem, for the developer of a consumer.
    members: &'a [(&'static str, &'a str)],
    /// The documentation of the code.
    docs: Option<String>,
    /// The message of the link `retry`, which otherwise shows its address.
    label: Option<&'static str>,
    /// The path by which to begin again.
    retry: Option<&'a str>,
    /// The id by which an operator finds the request in the log; it may be empty.
    request_id: &'a str,
}

/// The page for a user whose launch failed; askama escapes the values in it.
#[derive(Template)]
#[template(path = "launch.html")]
struct LaunchPage<'a> {
    frame: Frame<'a>,
    /// The message that says what to do.
    text: &'static str,
    /// The id by which an operator finds the request in the log.
    request_id: &'a str,
    /// The members of the problem, for the administrator of the platform.
    members: &'a [(&'static str, &'a str)],
    /// The documentation of the code.
    docs: Option<String>,
}

/// The message for a user that is the heading, where the status says everything. The message of the text has `-text`
/// added.
const fn explained(status: u16) -> &'static str {
    match status {
        303 => "error-login",
        401 => "error-unproved",
        403 => "error-forbidden",
        404 => "error-not-found",
        405 => "error-method",
        408 => "error-slow",
        413 | 414 | 431 => "error-large",
        421 => "error-misdirected",
        429 => "error-rate",
        502 | 504 => "error-upstream",
        503 => "error-unavailable",
        500 | 508 => "error-fault",
        _ => "error-request-broken",
    }
}
