//! The page for a user whose launch failed.

use askama::Template;

use crate::provider::theme::frame::Frame;

/// The page; askama escapes the values in it.
#[derive(Template)]
#[template(path = "launch.html")]
pub(super) struct LaunchPage<'a> {
    pub(super) frame: Frame<'a>,
    /// The message that says what to do.
    pub(super) text: &'static str,
    /// The id by which an operator finds the request in the log.
    pub(super) request_id: &'a str,
    /// The members of the problem, for the administrator of the platform.
    pub(super) members: &'a [(&'static str, &'a str)],
    /// The documentation of the code.
    pub(super) docs: Option<String>,
}

/// The message that says what to do after a response with this status.
pub(super) const fn what_to_do(status: u16) -> &'static str {
    match status {
        408 | 429 | 500.. => "launch-busy",
        _ => "launch-text",
    }
}
