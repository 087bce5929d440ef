//! Every reason for which a page is not shown, and the page that is shown instead.

use std::time::Duration;

use crate::{
    issue::random::NoRandomness,
    respond::{OwnResponse, html::ErrorPage, look::Frame},
    store::{StoreError, port::is_of_logged_outage},
    telemetry::request_id::RequestId,
};

/// How long a browser is told to wait while the store is unavailable.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// Why there is no page.
#[derive(Debug)]
pub(super) enum PageError {
    /// The method is not one of those named.
    Method(&'static str),
    /// Query or form cannot be read, or lack something; the message that says so.
    Malformed(&'static str),
    /// There is more than one session cookie.
    SeveralSessionCookies,
    /// The form came from elsewhere.
    ForgedForm,
    /// The form was ours and counts no longer; where to begin again.
    StaleForm(String),
    /// The browser sent no cookie with a form that needs one; where to begin again.
    NoCookie(String),
    /// There is no such request token, or it is void.
    TokenUnknown,
    /// The request token is expired.
    TokenExpired,
    /// The request token was exchanged, or decided before.
    TokenUsed,
    /// The consumer is disabled.
    ConsumerDisabled,
    /// The callback is not registered any more.
    CallbackRefused,
    /// The access token is not the user's.
    ApplicationUnknown,
    /// The service does not keep passwords.
    NoPasswords,
    /// The password is another one since the form was sent; where to log in with it.
    PasswordReplaced(String),
    /// The proxy in front, which checks who the user is, named nobody.
    NobodyNamed,
    /// The user that it named is disabled or removed, or its name is another user's.
    NotAdmitted,
    /// The store failed.
    Store(StoreError),
    /// The system gave no randomness.
    NoRandomness(NoRandomness),
    /// A template failed.
    Template(askama::Error),
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NoRandomness> for PageError {
    fn from(error: NoRandomness) -> Self {
        Self::NoRandomness(error)
    }
}

impl PageError {
    /// The page that explains it. It hides the details of a fault, which are logged.
    pub(super) fn page(self, frame: Frame<'_>, request_id: &RequestId) -> OwnResponse {
        let request_id = self.log(request_id);
        let (status, title, text) = match &self {
            Self::Method(_) => (405, "error-method", "error-method-text"),
            Self::Malformed(text) => (400, "error-malformed", *text),
            Self::SeveralSessionCookies => (400, "error-two-sessions", "error-two-sessions-text"),
            Self::ForgedForm => (403, "error-forged", "error-forged-text"),
            Self::StaleForm(_) => (403, "error-stale", "error-stale-text"),
            Self::NoCookie(_) => (403, "error-cookie", "error-cookie-text"),
            Self::TokenUnknown => (401, "error-unknown", "error-unknown-text"),
            Self::TokenExpired => (401, "error-expired", "error-expired-text"),
            Self::TokenUsed => (401, "error-used", "error-used-text"),
            Self::ConsumerDisabled => (401, "error-disabled", "error-disabled-text"),
            Self::CallbackRefused => (400, "error-callback", "error-callback-text"),
            Self::ApplicationUnknown => (404, "error-no-application", "error-no-application-text"),
            Self::NoPasswords => (404, "error-not-found", "error-not-found-text"),
            Self::PasswordReplaced(_) => (409, "error-password", "error-password-text"),
            Self::NobodyNamed => (403, "error-nobody", "error-nobody-text"),
            Self::NotAdmitted => (403, "error-not-admitted", "error-not-admitted-text"),
            Self::Store(StoreError::Unavailable(_)) => {
                (503, "error-unavailable", "error-unavailable-text")
            }
            Self::Store(StoreError::Broken(_) | StoreError::Unopened(_))
            | Self::NoRandomness(_)
            | Self::Template(_) => (500, "error-fault", "error-fault-text"),
        };
        let again = match &self {
            Self::StaleForm(again) | Self::NoCookie(again) | Self::PasswordReplaced(again) => {
                Some(again.as_str())
            }
            _ => None,
        };
        let template = ErrorPage {
            frame,
            title,
            text,
            advice: None,
            members: &[],
            again,
            request_id,
        };
        let mut page =
            OwnResponse::html(frame, status, &template).unwrap_or_else(|_| OwnResponse::empty(500));
        if let Some(problem) = self.problem() {
            page.set("WWW-Authenticate", frame.look.challenge(problem));
        }
        match self {
            Self::Method(allowed) => page.set("Allow", allowed.to_owned()),
            Self::Store(StoreError::Unavailable(_)) => page.retry_after(STORE_RETRY),
            _ => {}
        }
        page
    }

    /// The code of the Problem Reporting extension, for a 401.
    fn problem(&self) -> Option<&'static str> {
        match self {
            Self::TokenUnknown => Some("token_rejected"),
            Self::TokenExpired => Some("token_expired"),
            Self::TokenUsed => Some("token_used"),
            Self::ConsumerDisabled => Some("consumer_key_refused"),
            _ => None,
        }
    }

    /// Logs what an operator should know of; returns the id by which a fault is found in the log.
    fn log<'r>(&self, request_id: &'r RequestId) -> Option<&'r str> {
        let error: &dyn std::error::Error = match self {
            Self::Store(error) => error,
            Self::NoRandomness(error) => error,
            Self::Template(error) => error,
            Self::ForgedForm => {
                tracing::info!(request_id = %request_id.as_str(), reason = "forged_form", "page rejected");
                return None;
            }
            Self::SeveralSessionCookies => {
                tracing::info!(request_id = %request_id.as_str(), reason = "several_session_cookies", "page rejected");
                return None;
            }
            _ => return None,
        };
        let request_id = request_id.as_str();
        if is_of_logged_outage(error) {
            tracing::debug!(%request_id, error, "a page failed");
        } else {
            tracing::error!(%request_id, error, "a page failed");
        }
        Some(request_id)
    }
}
