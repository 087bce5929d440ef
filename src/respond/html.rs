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

/// The messages for a person, heading and text, where the status says everything.
pub(super) const fn explained(status: u16) -> (&'static str, &'static str) {
    match status {
        303 => ("error-login", "error-login-text"),
        401 => ("error-unproved", "error-unproved-text"),
        403 => ("error-forbidden", "error-forbidden-text"),
        404 => ("error-not-found", "error-not-found-text"),
        405 => ("error-method", "error-method-text"),
        408 => ("error-slow", "error-slow-text"),
        413 | 414 | 431 => ("error-large", "error-large-text"),
        421 => ("error-misdirected", "error-misdirected-text"),
        429 => ("error-rate", "error-rate-text"),
        502 | 504 => ("error-upstream", "error-upstream-text"),
        503 => ("error-unavailable", "error-unavailable-text"),
        500 | 508 => ("error-fault", "error-fault-text"),
        _ => ("error-request-broken", "error-request-broken-text"),
    }
}
