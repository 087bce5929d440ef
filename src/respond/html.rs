//! The page of an error, and what it says.

use askama::Template;

use super::look::Frame;

/// The Content-Type of a page.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// The style sheet inside every page.
pub(super) const STYLE: &str = include_str!("../../templates/style.css");

/// The page of an error; askama escapes the values in it.
#[derive(Template)]
#[template(path = "refusal.html")]
pub struct ErrorPage<'a> {
    /// What is around it.
    pub frame: Frame<'a>,
    /// The message that is the heading.
    pub title: &'a str,
    /// The message that tells what happened and what to do.
    pub text: &'a str,
    /// The same more exactly and in English, for a developer.
    pub advice: Option<&'a str>,
    /// The members of the problem, for the developer of a consumer.
    pub members: &'a [(&'static str, &'a str)],
    /// Where to begin again.
    pub again: Option<&'a str>,
    /// By which an operator finds the fault in the log.
    pub request_id: Option<&'a str>,
}

/// The messages for a person, heading and text, where a status is all there is to tell.
#[must_use]
pub const fn explained(status: u16) -> (&'static str, &'static str) {
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
