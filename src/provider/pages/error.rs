//! Every reason for which a page is not shown, and the response to it.

use crate::{
    provider::respond::Failure, records::values::record::Consumer, request::problem::Problem,
    telemetry::metrics::Verdict,
};

/// Why a page is not shown.
#[derive(Debug)]
pub enum PageError {
    /// Query or form cannot be read, or lack something; the message that says so.
    Malformed(&'static str),
    /// There is more than one session cookie.
    SeveralSessionCookies,
    /// The form came from elsewhere.
    ForgedForm,
    /// The form was ours and is no longer valid; the message that says why, and where to begin again.
    StaleForm(&'static str, String),
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
    /// No consumer gets more tokens.
    GrantsEnded,
    /// The callback is no longer registered.
    CallbackRefused,
    /// The consumer has no access token of the user.
    ApplicationUnknown,
    /// The link of a developer has ended, or there never was one.
    LinkUnknown,
    /// The service does not keep passwords.
    NoPasswords,
    /// The password was changed after the form was sent; where to log in with the new one.
    PasswordReplaced(String),
    /// The proxy in front, which checks who the user is, named no user.
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
    /// The error for a user who comes from this consumer.
    pub(super) fn about(self, consumer: &Consumer) -> Failure {
        let mut problem = self.problem();
        problem.application = Some((consumer.name.clone(), consumer.website.clone()));
        Failure::Page(Box::new(problem))
    }

    fn problem(self) -> Problem {
        let (status, verdict, title) = match &self {
            Self::Malformed(_) => (400, Verdict::BadRequest, "error-malformed"),
            Self::SeveralSessionCookies => (400, Verdict::BadRequest, "error-two-sessions"),
            Self::ForgedForm => (403, Verdict::Forbidden, "error-forged"),
            Self::StaleForm(..) => (403, Verdict::Forbidden, "error-stale"),
            Self::NoCookie(_) => (403, Verdict::Forbidden, "error-cookie"),
            Self::TokenUnknown => (401, Verdict::TokenRejected, "error-unknown"),
            Self::TokenExpired => (401, Verdict::TokenExpired, "error-expired"),
            Self::TokenUsed => (401, Verdict::TokenUsed, "error-used"),
            Self::AlreadyDecided => (403, Verdict::Forbidden, "error-used"),
            Self::ConsumerDisabled => (401, Verdict::ConsumerKeyRefused, "error-disabled"),
            Self::GrantsEnded => (403, Verdict::GrantsEnded, "error-ended"),
            Self::CallbackRefused => (400, Verdict::BadRequest, "error-callback"),
            Self::ApplicationUnknown => (404, Verdict::NotFound, "error-no-application"),
            Self::LinkUnknown => (404, Verdict::NotFound, "error-link"),
            Self::NoPasswords => (404, Verdict::NotFound, "error-not-found"),
            Self::PasswordReplaced(_) => (409, Verdict::Forbidden, "error-password"),
            Self::NobodyNamed => (403, Verdict::Forbidden, "error-nobody"),
            Self::NotAdmitted => (403, Verdict::Forbidden, "error-not-admitted"),
        };
        let text = match &self {
            Self::Malformed(text) | Self::StaleForm(text, _) => Some(*text),
            _ => None,
        };
        let retry_path = match self {
            Self::StaleForm(_, here) | Self::NoCookie(here) | Self::PasswordReplaced(here) => {
                Some(here)
            }
            _ => None,
        };
        Problem {
            code: (status == 401).then_some(verdict.as_str()),
            page: Some((title, text)),
            retry_path,
            ..Problem::plain(status, verdict)
        }
    }
}
