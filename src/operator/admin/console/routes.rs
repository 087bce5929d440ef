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

/// A path of the console.
struct ConsoleRoute {
    path: &'static str,
    /// Its name in the menu; empty: it is not there.
    menu: &'static str,
    access: Access,
    respond: Respond,
}

type Respond = for<'r> fn(&'r ConsoleRequest<'_>) -> Responding<'r>;

type Responding<'r> = Pin<Box<dyn Future<Output = Result<OwnResponse>> + 'r>>;

/// All paths; the menu has its entries in this order.
#[rustfmt::skip]
const ROUTES: &[ConsoleRoute] = &[
    route("/",                      "Overview",          Page,   |it| Box::pin(it.overview())),
    route("/consumers",             "Consumers",         Page,   |it| Box::pin(it.consumers())),
    route("/consumer",              "",                  Page,   |it| Box::pin(it.consumer())),
    route("/consumer/consent",      "",                  Page,   |it| Box::pin(it.consent())),
    route("/consumer/consent-page", "",                  Page,   |it| Box::pin(it.consent_page())),
    route("/consumer/add",          "",                  Change, |it| Box::pin(it.add_consumer())),
    route("/consumer/edit",         "",                  Change, |it| Box::pin(it.edit_consumer())),
    route("/consumer/rotate",       "",                  Change, |it| Box::pin(it.rotate_secret())),
    route("/consumer/end-grace",    "",                  Change, |it| Box::pin(it.end_grace())),
    route("/consumer/disable",      "",                  Change, |it| Box::pin(it.disable_consumer())),
    route("/consumer/enable",       "",                  Change, |it| Box::pin(it.enable_consumer())),
    route("/consumer/approve",      "",                  Change, |it| Box::pin(it.approve_consumer())),
    route("/consumer/decline",      "",                  Change, |it| Box::pin(it.decline_consumer())),
    route("/consumer/link",         "",                  Change, |it| Box::pin(it.make_developer_link())),
    route("/consumer/end-link",     "",                  Change, |it| Box::pin(it.end_developer_link())),
    route("/consumer/remove",       "",                  Change, |it| Box::pin(it.remove_consumer())),
    route("/users",                 "Users",             Page,   |it| Box::pin(it.users())),
    route("/user",                  "",                  Page,   |it| Box::pin(it.user())),
    route("/user/add",              "",                  Change, |it| Box::pin(it.add_user())),
    route("/user/edit",             "",                  Change, |it| Box::pin(it.edit_user())),
    route("/user/password",         "",                  Change, |it| Box::pin(it.set_password())),
    route("/user/disable",          "",                  Change, |it| Box::pin(it.disable_user())),
    route("/user/enable",           "",                  Change, |it| Box::pin(it.enable_user())),
    route("/user/end-sessions",     "",                  Change, |it| Box::pin(it.end_sessions())),
    route("/user/end-pauses",       "",                  Change, |it| Box::pin(it.end_pauses())),
    route("/tokens",                "Tokens",            Page,   |it| Box::pin(it.tokens())),
    route("/token/revoke",          "",                  Change, |it| Box::pin(it.revoke_token())),
    route("/tokens/revoke",         "",                  Change, |it| Box::pin(it.revoke_tokens())),
    route("/rejections",            "Rejections",        Page,   |it| Box::pin(it.rejections())),
    route("/rejection",             "",                  Page,   |it| Box::pin(it.rejected_call())),
    route("/operations",            "Operations",        Page,   |it| Box::pin(it.operations())),
    route("/signature",             "Check a signature", Change, |it| Box::pin(it.signature())),
    route("/audit",                 "Audit",             Page,   |it| Box::pin(it.audit_page())),
    route("/configuration",         "Configuration",     Page,   |it| Box::pin(async { Ok(it.configuration()) })),
    // A form, because somebody may search for a whole token, which no address should have.
    route("/search",                "",                  Form,   |it| Box::pin(it.search())),
    route("/login",                 "",                  Form,   |it| Box::pin(async { Ok(it.is_logged_in()) })),
    route("/logout",                "",                  Form,   |it| Box::pin(async { it.log_out() })),
];

const fn route(
    path: &'static str,
    menu: &'static str,
    access: Access,
    respond: Respond,
) -> ConsoleRoute {
    ConsoleRoute {
        path,
        menu,
        access,
        respond,
    }
}

/// Path and name of each entry of the menu, for an operator who may change something or not.
pub(super) fn menu(may_write: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_shown =
        move |it: &&ConsoleRoute| !it.menu.is_empty() && (may_write || it.access != Change);
    let shown = ROUTES.iter().filter(is_shown);
    shown.map(|it| (it.path, it.menu))
}

/// Whether this path shows a page, and changes nothing.
pub(super) fn is_page(path: &str) -> bool {
    let mut pages = ROUTES.iter().filter(|it| it.access == Page);
    pages.any(|it| it.path == path)
}

impl ConsoleRequest<'_> {
    /// Responds with the page of the path.
    pub(super) async fn respond(&self) -> Result<OwnResponse> {
        let mut routes = ROUTES.iter();
        let found = routes.find(|route| route.path == self.path);
        match found.map(|route| route.access) {
            Some(Change) if !self.may_write() => return Err(Rejected::ReadOnly),
            None | Some(Page) if self.form.is_some() => return Err(Rejected::OtherMethod),
            _ => {}
        }
        match found {
            Some(route) => (route.respond)(self).await,
            None => Err(Rejected::NotFound),
        }
    }
}
