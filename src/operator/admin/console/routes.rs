//! The console on one screen: every page and form, and its place in the menu.

use std::{future::Future, pin::Pin};

use super::{ConsoleRequest, Rejected, Result};
use crate::provider::respond::OwnResponse;

/// Who may send what to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// A page.
    Page,
    /// A page or a form that changes nothing.
    Form,
    /// A page or a form of those who may change something.
    Change,
}
use Access::{Change, Form, Page};

/// A path of the console, its name in the menu (empty: it is not there), who may send what to it, and its page.
type ConsoleRoute = (&'static str, &'static str, Access, Respond);
type Respond = for<'r> fn(&'r ConsoleRequest<'_>) -> Responding<'r>;
type Responding<'r> = Pin<Box<dyn Future<Output = Result<OwnResponse>> + 'r>>;

/// All paths; the menu has its entries in this order.
#[rustfmt::skip]
const ROUTES: &[ConsoleRoute] = &[
    ("/",                      "Overview",          Page,   |it| Box::pin(it.overview())),
    ("/consumers",             "Consumers",         Page,   |it| Box::pin(it.consumers())),
    ("/consumer",              "",                  Page,   |it| Box::pin(it.consumer())),
    ("/consumer/consent",      "",                  Page,   |it| Box::pin(it.consent())),
    ("/consumer/consent-page", "",                  Page,   |it| Box::pin(it.consent_page())),
    ("/consumer/add",          "",                  Change, |it| Box::pin(it.add_consumer())),
    ("/consumer/edit",         "",                  Change, |it| Box::pin(it.edit_consumer())),
    ("/consumer/rotate",       "",                  Change, |it| Box::pin(it.rotate_secret())),
    ("/consumer/end-grace",    "",                  Change, |it| Box::pin(it.end_grace())),
    ("/consumer/disable",      "",                  Change, |it| Box::pin(it.disable_consumer())),
    ("/consumer/enable",       "",                  Change, |it| Box::pin(it.enable_consumer())),
    ("/consumer/approve",      "",                  Change, |it| Box::pin(it.approve_consumer())),
    ("/consumer/decline",      "",                  Change, |it| Box::pin(it.decline_consumer())),
    ("/consumer/link",         "",                  Change, |it| Box::pin(it.make_developer_link())),
    ("/consumer/end-link",     "",                  Change, |it| Box::pin(it.end_developer_link())),
    ("/consumer/remove",       "",                  Change, |it| Box::pin(it.remove_consumer())),
    ("/users",                 "Users",             Page,   |it| Box::pin(it.users())),
    ("/user",                  "",                  Page,   |it| Box::pin(it.user())),
    ("/user/add",              "",                  Change, |it| Box::pin(it.add_user())),
    ("/user/edit",             "",                  Change, |it| Box::pin(it.edit_user())),
    ("/user/password",         "",                  Change, |it| Box::pin(it.set_password())),
    ("/user/disable",          "",                  Change, |it| Box::pin(it.disable_user())),
    ("/user/enable",           "",                  Change, |it| Box::pin(it.enable_user())),
    ("/user/end-sessions",     "",                  Change, |it| Box::pin(it.end_sessions())),
    ("/user/end-pauses",       "",                  Change, |it| Box::pin(it.end_pauses())),
    ("/tokens",                "Tokens",            Page,   |it| Box::pin(it.tokens())),
    ("/token/revoke",          "",                  Change, |it| Box::pin(it.revoke_token())),
    ("/tokens/revoke",         "",                  Change, |it| Box::pin(it.revoke_tokens())),
    ("/rejections",            "Rejections",        Page,   |it| Box::pin(it.rejections())),
    ("/rejection",             "",                  Page,   |it| Box::pin(it.rejected_call())),
    ("/operations",            "Operations",        Page,   |it| Box::pin(it.operations())),
    ("/signature",             "Check a signature", Change, |it| Box::pin(it.signature())),
    ("/audit",                 "Audit",             Page,   |it| Box::pin(it.audit_page())),
    ("/configuration",         "Configuration",     Page,   |it| Box::pin(async { Ok(it.configuration()) })),
    // A form, because somebody may search for a whole token, which no address should have.
    ("/search",                "",                  Form,   |it| Box::pin(it.search())),
    ("/login",                 "",                  Form,   |it| Box::pin(async { Ok(it.is_logged_in()) })),
    ("/logout",                "",                  Form,   |it| Box::pin(async { it.log_out() })),
];

/// Path and name of each entry of the menu, for an operator who may change something or not.
pub(super) fn menu(may_write: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let shown = move |(path, menu, access, _): &ConsoleRoute| {
        let is_shown = !menu.is_empty() && (may_write || *access != Change);
        is_shown.then_some((*path, *menu))
    };
    ROUTES.iter().filter_map(shown)
}

/// Whether this path shows a page, and changes nothing.
pub(super) fn is_page(path: &str) -> bool {
    let mut routes = ROUTES.iter();
    routes.any(|(of, _, access, _)| *of == path && *access == Page)
}

impl ConsoleRequest<'_> {
    /// Responds with the page of the path.
    pub(super) async fn respond(&self) -> Result<OwnResponse> {
        let mut routes = ROUTES.iter();
        let found = routes.find(|(path, ..)| *path == self.path);
        match found {
            Some((_, _, Change, _)) if !self.may_write() => Err(Rejected::ReadOnly),
            None | Some((_, _, Page, _)) if self.form.is_some() => Err(Rejected::OtherMethod),
            Some((.., respond)) => respond(self).await,
            None => Err(Rejected::NotFound),
        }
    }
}
