//! Why a page is not shown, or a change not made, and the page that says so.

use askama::Template;

use crate::{
    operator::{
        admin::console::page::{ConsoleFrame, Shell, show},
        manage::ManageError,
    },
    provider::respond::OwnResponse,
    telemetry::log::causes::causes,
    wire::server::rejection::BodyRejection,
};

/// Why a page is not shown, or a change not made.
pub(crate) enum Rejected {
    /// The request cannot be read; the reason.
    Malformed(&'static str),
    /// The form came from elsewhere.
    Forged,
    /// The form is no longer valid; where to begin again.
    Stale(String),
    /// The session is one of the read token.
    ReadOnly,
    /// There is no such page.
    NotFound,
    /// What the page shows is not there any longer; where it may be.
    Gone(&'static str),
    /// The method is not one of the page.
    OtherMethod,
    /// The input cannot be used; the reason.
    Invalid(String),
    Body(BodyRejection),
    /// Too much is computed at once.
    Busy,
    Manage(ManageError),
}

impl From<BodyRejection> for Rejected {
    fn from(rejection: BodyRejection) -> Self {
        Self::Body(rejection)
    }
}

impl<E: Into<ManageError>> From<E> for Rejected {
    fn from(error: E) -> Self {
        Self::Manage(error.into())
    }
}

#[derive(Template)]
#[template(path = "console/message.html")]
struct MessagePage<'a> {
    frame: ConsoleFrame<'a>,
    text: &'a str,
    /// Where to begin again.
    again: &'a str,
}

impl Rejected {
    pub(crate) fn response(self, shell: &Shell<'_>) -> OwnResponse {
        let (status, title) = self.status_and_title();
        let text = self.text();
        let again = match &self {
            Self::Stale(here) => here,
            _ => "/",
        };
        let frame = shell.frame(title);
        let page = MessagePage {
            frame,
            text: &text,
            again,
        };
        let response = show(status, &page);
        match status {
            405 => response.field("Allow", allowed(shell.path)),
            _ => response,
        }
    }

    fn status_and_title(&self) -> (u16, &'static str) {
        match self {
            Self::Malformed(_) => (400, "Request not understood"),
            Self::Forged => (403, "Form rejected"),
            Self::Stale(_) => (403, "Form no longer valid"),
            Self::ReadOnly => (403, "Not permitted"),
            Self::NotFound => (404, "Page not found"),
            Self::Gone(_) => (404, "No longer here"),
            Self::OtherMethod => (405, "Method not allowed"),
            Self::Invalid(_) => (422, "Not accepted"),
            Self::Body(BodyRejection::TooLarge) => (413, "Too large"),
            Self::Body(_) => (408, "Form incomplete"),
            Self::Busy => (503, "Busy"),
            Self::Manage(error) => match error.status() {
                status @ 500.. => (status, "Store unavailable"),
                404 => (404, "Not found"),
                status => (status, "Not possible"),
            },
        }
    }

    fn text(&self) -> String {
        let text = match self {
            Self::Malformed(why) => why,
            Self::Forged => {
                "The form did not come from this console. Open the console again and send its own form."
            }
            Self::Stale(_) => {
                "The form is no longer valid: the session is another one, or the record has changed since it was shown. \
                 Nothing was changed."
            }
            Self::ReadOnly => {
                "You are logged in with the read token, which changes nothing. Log in with the token of admin.token_file."
            }
            Self::NotFound => "There is nothing here.",
            Self::Gone(where_else) => where_else,
            Self::OtherMethod => {
                "Pages are opened with GET, and the forms of changes are sent with POST."
            }
            Self::Invalid(why) => why,
            Self::Body(BodyRejection::TooLarge) => "The form is larger than 64 KiB.",
            Self::Body(_) => "The form did not arrive whole, or too slowly. Send it again.",
            Self::Busy => "Too much is computed at once. Send it again.",
            Self::Manage(error) if error.status() >= 500 => {
                tracing::error!(error = causes(error), "console: the store fails");
                "The store does not answer. Nothing was changed; the log says more."
            }
            Self::Manage(error) => return error.to_string(),
        };
        text.to_owned()
    }
}

/// The methods of a page.
fn allowed(path: &str) -> &'static str {
    let changes = [
        "/consumer/",
        "/user/",
        "/token/",
        "/tokens/",
        "/login",
        "/signature",
        "/search",
    ];
    match path {
        "/logout" => "POST",
        path if changes.iter().any(|change| path.starts_with(change)) => "GET, HEAD, POST",
        _ => "GET, HEAD",
    }
}
