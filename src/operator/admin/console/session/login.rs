//! Logging in with an admin token.

use std::net::IpAddr;

use askama::Template;
use http::Uri;

use super::invitation;
use crate::{
    operator::admin::{
        Admin, Backend,
        console::{
            Sent,
            page::{ConsoleFrame, Shell, show},
            parts::path,
            session,
        },
        tokens::{Denied, TokenHolder, TokenKind},
    },
    provider::{
        pages::form::{Form, return_to::local_path},
        respond::OwnResponse,
    },
};

/// A request without a session.
pub(crate) struct LoginRequest<'a> {
    pub(crate) admin: &'a Admin,
    pub(crate) backend: &'a Backend,
    pub(crate) peer: Option<IpAddr>,
    /// The browser speaks https.
    pub(crate) is_secure: bool,
    /// The browser has sent a cookie.
    pub(crate) is_back: bool,
    pub(crate) shell: &'a Shell<'a>,
    /// Neither a form nor a HEAD, which no browser shows.
    pub(crate) is_get: bool,
}

#[derive(Template)]
#[template(path = "console/login.html")]
struct LoginPage<'a> {
    frame: ConsoleFrame<'a>,
    problem: Option<&'a str>,
    /// Where to go after the login.
    to: &'a str,
}

impl LoginRequest<'_> {
    /// Responds with the login form, or opens a session.
    pub(crate) fn respond(&self, uri: &Uri, sent: Sent) -> OwnResponse {
        if self.shell.path != "/login" {
            if sent.form.is_some() {
                let text = "Nothing was changed: the session has ended. Log in and begin again.";
                return self.form(403, "/", Some(text));
            }
            let here = uri.path_and_query().map_or("/", |here| here.as_str());
            let to = if here == "/" { "" } else { here };
            return OwnResponse::see_other(path("/login", &[("to", to)]));
        }
        let to = |form: &Form| {
            let to = form.field("to").and_then(local_path);
            to.unwrap_or_else(|| "/".to_owned())
        };
        let Some(form_sent) = &sent.form else {
            let to = to(&sent.query);
            if let Some(token) = sent
                .query
                .field(invitation::PARAMETER)
                .filter(|_| self.is_get)
            {
                let console = &self.admin.control.console;
                if console.invitation.take(token, console.clock.now()) {
                    let holder = self.backend.tokens.any_writer();
                    return self.open_session(holder, "/");
                }
                let text = "This link was used or has expired. Press Enter where the demo runs for another one, or paste the token.";
                return self.form(403, "/", Some(text));
            }
            let is_lost = sent.query.field("opened").is_some() && !self.is_back;
            let lost = "The browser did not keep the session's cookie. Open the console by https, or through a tunnel to a \
                        loopback address.";
            return self.form(200, &to, is_lost.then_some(lost));
        };
        let (to, token) = (to(form_sent), form_sent.field("token").unwrap_or_default());
        let tokens = &self.backend.tokens;
        let checked =
            self.admin
                .control
                .token_guard()
                .check(tokens, token.trim().as_bytes(), self.peer);
        let holder = match checked {
            Ok(holder) if holder.kind == TokenKind::Lookup => {
                let text = "This token can only call POST /v1/lookup/forget.";
                return self.form(403, &to, Some(text));
            }
            Ok(holder) => holder,
            Err(Denied::Throttled(wait)) => {
                let text = format!(
                    "Too many wrong tokens from this address. Wait {} s.",
                    wait.as_secs()
                );
                return self
                    .form(429, &to, Some(&text))
                    .field("Retry-After", wait.as_secs().to_string());
            }
            Err(Denied::Missing | Denied::Wrong) => {
                return self.form(403, &to, Some("This is not an admin token."));
            }
        };
        self.open_session(holder, &to)
    }

    fn open_session(&self, holder: TokenHolder, to: &str) -> OwnResponse {
        let (console, tokens) = (&self.admin.control.console, &self.backend.tokens);
        match console.sessions.open(tokens, holder, console.clock.now()) {
            Ok(session) => {
                session.audit("console_login", self.peer);
                let cookie = session::set_cookie(Some(&session), self.is_secure);
                let next = match to {
                    "/" => path("/login", &[("opened", "1")]),
                    to => to.to_owned(),
                };
                OwnResponse::see_other(next).field("Set-Cookie", cookie)
            }
            Err(error) => {
                tracing::error!(%error, "console: no session");
                let text = "No session could be opened; the log says more.";
                self.form(500, to, Some(text))
            }
        }
    }
}

impl LoginRequest<'_> {
    fn form(&self, status: u16, to: &str, problem: Option<&str>) -> OwnResponse {
        let page = LoginPage {
            frame: self.shell.frame("Log in"),
            problem,
            to,
        };
        show(status, &page)
    }
}
