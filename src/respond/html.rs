//! What every HTML response has: its language, the style sheet, the fields that protect it, and the page of an error.

use std::sync::LazyLock;

use askama::Template;
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::language::{Languages, Texts};

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

/// What all pages have in common. A reload makes a new one.
pub struct Look {
    /// `service.realm`: what the pages call the service, and the realm of a 401.
    pub realm: String,
    /// The languages that they can be shown in.
    pub languages: Languages,
}

impl Look {
    /// The look of pages of a service that is not configured, such as those of the admin listener.
    pub fn plain() -> &'static Self {
        static PLAIN: LazyLock<Look> = LazyLock::new(|| Look {
            realm: String::new(),
            languages: Languages::built_in(),
        });
        &PLAIN
    }

    /// The frame of a page in English.
    #[must_use]
    pub fn in_english(&self) -> Frame<'_> {
        self.frame(self.languages.english())
    }

    /// The frame of a page in a language.
    #[must_use]
    pub const fn frame<'a>(&'a self, texts: Texts<'a>) -> Frame<'a> {
        Frame { look: self, texts }
    }
}

/// What is around the content of a page for one browser.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// What it has in common with every other page.
    pub look: &'a Look,
    /// The messages in its language.
    pub texts: Texts<'a>,
}

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
