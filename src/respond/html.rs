//! Pages as responses, and the page of an error.

use askama::Template;

use super::{OwnResponse, look::Frame};
use crate::telemetry::metrics::Verdict;

/// The style sheet inside every page.
pub(super) const STYLE: &str = include_str!("../../templates/style.css");

impl OwnResponse {
    /// A page. Its forms come back to this origin and then lead on to `further`, a list of CSP sources.
    pub fn page(frame: Frame<'_>, status: u16, template: &impl Template, further: &str) -> Self {
        match template.render() {
            Ok(html) => {
                let mut page = Self::new(status, "text/html; charset=utf-8", html, Verdict::Page);
                page.fields.extend(frame.look.fields(further));
                page
            }
            // No value in a template fails to print.
            Err(error) => {
                tracing::error!(%error, "a page cannot be rendered");
                Self::new(500, "text/plain", "", Verdict::InternalError).never_stored()
            }
        }
    }
}

/// The page of an error; askama escapes the values in it.
#[derive(Template)]
#[template(path = "refusal.html")]
pub(super) struct ErrorPage<'a> {
    pub(super) frame: Frame<'a>,
    /// The message that is the heading.
    pub(super) title: &'a str,
    /// The message that says what happened and what to do.
    pub(super) text: &'a str,
    /// The same in more detail and in English, for a developer.
    pub(super) advice: Option<&'a str>,
    /// The members of the problem, for the developer of a consumer.
    pub(super) members: &'a [(&'static str, &'a str)],
    /// Where to begin again.
    pub(super) again: Option<&'a str>,
    /// The id by which an operator finds the fault in the log.
    pub(super) request_id: Option<&'a str>,
}

/// The message for a person that is the heading, where the status says everything. The message of the text has `-text`
/// added.
pub(super) const fn explained(status: u16) -> &'static str {
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
