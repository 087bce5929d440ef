//! Every reason for which a page is not shown, and the response to it.

use crate::{problem::Problem, respond::Failure, telemetry::metrics::Verdict};

/// Why there is no page.
#[derive(Debug)]
pub enum PageError {
    /// Query or form cannot be read, or lack something; the message that says so.
    Malformed(&'static str),
    /// There is more than one session cookie.
    SeveralSessionCookies,
    /// The form came from elsewhere.
    ForgedForm,
    /// The form was ours and is no longer valid; where to begin again.
    StaleForm(String),
    /// The browser sent no cookie with a form that needs one; where to begin again.
    NoCookie(String),
    /// There is no such request token, or it is void.
    TokenUnknown,
    /// The request token is expired.
    TokenExpired,
    /// The request token was exchanged or decided before.
    TokenUsed,
    /// The request token was decided otherwise before.
    AlreadyDecided,
    /// The consumer is disabled.
    ConsumerDisabled,
    /// The callback is no longer registered.
    CallbackRefused,
    /// The consumer has no access token of the user.
    ApplicationUnknown,
    /// The service does not keep passwords.
    NoPasswords,
    /// The password was changed after the form was sent; where to log in with the new one.
    PasswordReplaced(String),
    /// The proxy in front, which checks who the user is, named nobody.
    NobodyNamed,
    /// The user that it named is disabled or removed, or its name is another user's.
    NotAdmitted,
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        Self::Page(Box::new(error.problem()))
    }
}

impl PageError {
    fn problem(self) -> Problem {
        let (status, title, text) = match &self {
            Self::Malformed(text) => (400, "error-malformed", *text),
            Self::SeveralSessionCookies => (400, "error-two-sessions", "error-two-sessions-text"),
            Self::ForgedForm => (403, "error-forged", "error-forged-text"),
            Self::StaleForm(_) => (403, "error-stale", "error-stale-text"),
            Self::NoCookie(_) => (403, "error-cookie", "error-cookie-text"),
            Self::TokenUnknown => (401, "error-unknown", "error-unknown-text"),
            Self::TokenExpired => (401, "error-expired", "error-expired-text"),
            Self::TokenUsed => (401, "error-used", "error-used-text"),
            Self::AlreadyDecided => (403, "error-used", "error-used-text"),
            Self::ConsumerDisabled => (401, "error-disabled", "error-disabled-text"),
            Self::CallbackRefused => (400, "error-callback", "error-callback-text"),
            Self::ApplicationUnknown => (404, "error-no-application", "error-no-application-text"),
            Self::NoPasswords => (404, "error-not-found", "error-not-found-text"),
            Self::PasswordReplaced(_) => (409, "error-password", "error-password-text"),
            Self::NobodyNamed => (403, "error-nobody", "error-nobody-text"),
            Self::NotAdmitted => (403, "error-not-admitted", "error-not-admitted-text"),
        };
        let code = match &self {
            Self::TokenUnknown => Some("token_rejected"),
            Self::TokenExpired => Some("token_expired"),
            Self::TokenUsed => Some("token_used"),
            Self::ConsumerDisabled => Some("consumer_key_refused"),
            _ => None,
        };
        let verdict = match &self {
            Self::ForgedForm => Verdict::Forbidden,
            _ => Verdict::Page,
        };
        let again = match self {
            Self::StaleForm(here) | Self::NoCookie(here) | Self::PasswordReplaced(here) => {
                Some(here)
            }
            _ => None,
        };
        Problem {
            code,
            page: Some((title, text)),
            again,
            ..Problem::plain(status, verdict)
        }
    }
}
