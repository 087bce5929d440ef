//! The templates of the pages; askama escapes the values in them.

use askama::Template;

use super::PermissionText;
use crate::{issue::callback::Destination, respond::look::Frame};

#[derive(Template)]
#[template(path = "login.html")]
pub(super) struct LoginPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) applications: &'a str,
    pub(super) action: &'a str,
    pub(super) csrf: &'a str,
    pub(super) consumer: Option<&'a str>,
    pub(super) username: &'a str,
    pub(super) problem: Option<&'a str>,
    /// Whether the problem lies in what was typed.
    pub(super) invalid: bool,
}

#[derive(Template)]
#[template(path = "password.html")]
pub(super) struct PasswordPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) applications: &'a str,
    pub(super) action: &'a str,
    pub(super) csrf: &'a str,
    pub(super) user: &'a str,
    /// The name to log in with, for programs that keep passwords by it.
    pub(super) username: &'a str,
    /// Each field: its name, the message that is its label, and what the browser fills in.
    pub(super) fields: [(&'static str, &'static str, &'static str); 3],
    /// The fewest characters.
    pub(super) least: u64,
    pub(super) problem: Option<&'a str>,
    /// The name of the field that the problem is in, if it is in one.
    pub(super) wrong: &'static str,
}

#[derive(Template)]
#[template(path = "consent.html")]
pub(super) struct ConsentPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) applications: &'a str,
    pub(super) action: &'a str,
    pub(super) csrf: &'a str,
    pub(super) consumer: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) website: Option<&'a str>,
    pub(super) user: &'a str,
    pub(super) permissions: &'a [PermissionText],
    /// Where the decision leads: to a web site or to an application on the user's device; `None`: to a page with the
    /// verifier.
    pub(super) destination: Option<Destination>,
}

#[derive(Template)]
#[template(path = "verifier.html")]
pub(super) struct VerifierPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) applications: &'a str,
    pub(super) consumer: &'a str,
    pub(super) verifier: &'a str,
    pub(super) lifetime: &'a str,
}

#[derive(Template)]
#[template(path = "decided.html")]
pub(super) struct DecidedPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) applications: &'a str,
    pub(super) consumer: &'a str,
    /// The message that says what was decided.
    pub(super) title: &'static str,
    /// Where the page leads.
    pub(super) next: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "applications.html")]
pub(super) struct ApplicationsPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) action: &'a str,
    pub(super) user: &'a str,
    pub(super) logout_action: &'a str,
    pub(super) logout_csrf: &'a str,
    pub(super) everywhere_csrf: &'a str,
    pub(super) open_sessions: u64,
    /// When the oldest was opened.
    pub(super) oldest_session: Shown,
    /// The page that changes the password.
    pub(super) password: Option<String>,
    /// The message of what was just done.
    pub(super) notice: Option<&'static str>,
    pub(super) applications: &'a [ListedApplication],
    pub(super) more: Option<String>,
}

/// One access token of the user.
pub(super) struct ListedApplication {
    pub(super) token: String,
    pub(super) csrf: String,
    pub(super) name: String,
    pub(super) permissions: Vec<String>,
    pub(super) issued_at: Shown,
    pub(super) last_used_at: Option<Shown>,
}

/// A time in RFC 3339, and its date alone.
pub(super) type Shown = (String, String);
