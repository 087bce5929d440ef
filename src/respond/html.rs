//! What every HTML response has: the style sheet, the fields that protect it, and the page of an error.

use std::sync::LazyLock;

use askama::Template;
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::STANDARD};

/// The Content-Type of a page.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// The one style sheet, inside every page.
pub const STYLE: &str = include_str!("../../templates/style.css");

/// The style sheet as the Content-Security-Policy names it, so that no other style applies.
pub static STYLE_HASH: LazyLock<String> = LazyLock::new(|| {
    let digest = digest::digest(&digest::SHA256, STYLE.as_bytes());
    format!("sha256-{}", STANDARD.encode(digest))
});

/// The fields of every page. Its forms come back to this origin and then lead on to `further`, a list of CSP sources.
#[must_use]
pub fn fields(further: &str) -> Vec<(&'static str, String)> {
    let policy = format!(
        "default-src 'none'; style-src '{}'; form-action 'self'{further}; frame-ancestors 'none'; base-uri 'none'",
        *STYLE_HASH
    );
    let fields = [
        ("Content-Security-Policy", policy.as_str()),
        ("X-Frame-Options", "DENY"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "same-origin"),
        ("Cache-Control", "no-store"),
    ];
    fields.map(|(name, value)| (name, value.to_owned())).into()
}

/// The page of an error; askama escapes the values in it.
#[derive(Template)]
#[template(path = "refusal.html")]
pub struct ErrorPage<'a> {
    /// The name of the service.
    pub service: &'a str,
    /// The heading.
    pub title: &'a str,
    /// What happened and what to do.
    pub text: &'a str,
    /// The members of the problem, for the developer of a consumer.
    pub members: &'a [(&'static str, &'a str)],
    /// Where to begin again.
    pub again: Option<&'a str>,
    /// By which an operator finds the fault in the log.
    pub request_id: Option<&'a str>,
}

/// A heading and a sentence for a person, where a status is all there is to tell.
#[must_use]
pub const fn explained(status: u16) -> (&'static str, &'static str) {
    match status {
        303 => ("Log in", "You have to log in to see this page."),
        401 => (
            "Not allowed",
            "The request does not prove in whose name it is made.",
        ),
        403 => (
            "Not allowed",
            "You may not do this, or you came here from another site. Open the page from this site.",
        ),
        404 => (
            "Not found",
            "There is nothing at this address. Check that it is spelt right.",
        ),
        405 => ("Not like this", "This page cannot be called that way."),
        408 => ("Too slow", "The request took too long. Try again."),
        413 | 414 | 431 => ("Too large", "The request is too large."),
        421 => ("Wrong address", "This service is not at this address."),
        429 => ("Too many requests", "Wait a moment and try again."),
        502 | 504 => (
            "Not available",
            "The service behind this address does not respond. Try again in a few minutes.",
        ),
        503 => (
            "Please try again",
            "The service cannot respond just now. Try again in a few seconds.",
        ),
        500 | 508 => ("Something went wrong", "The fault is on this side."),
        _ => ("Bad request", "The request is broken."),
    }
}
