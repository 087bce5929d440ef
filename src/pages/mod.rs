//! What a browser sees: the login form, the consent form, a user's applications, and errors as HTML.
//!
//! The pages know nothing of HTTP engines: a [`PageRequest`] goes in, an [`OwnResponse`] comes out. They work without
//! JavaScript, change nothing on GET, and keep no state of their own but the store's, so that a reload, a restart or
//! another replica under the same name can continue.
//!
//! # How forged forms are rejected
//!
//! Every form carries a value that only this browser's secret cookie and the very thing decided make (`csrf.rs`); a POST
//! that a browser marks as cross-site, or that names another origin, is rejected before that. Both cookies are
//! `HttpOnly` and `SameSite=Lax`.

use std::{net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use http::HeaderMap;

use crate::{
    clock::UnixTime,
    language::Texts,
    login::{LoginBackend, PasswordPool, Throttle, header::UserHeaders},
    names::Permission,
    respond::{
        OwnResponse,
        look::{Frame, Look},
    },
    secret::Secret,
    store::{
        Store, StoreError,
        cached::Cached,
        record::{Dialect, OutsideUser, Session, User},
    },
    telemetry::request_id::RequestId,
};

mod applications;
mod authorize;
mod cookies;
mod csrf;
mod error;
mod fields;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
mod login;
mod page;
mod password;
mod return_to;
mod view;

pub use cookies::{CookieNames, cookie_names};

use cookies::Cookie;
use error::PageError;

/// The path of the authorization page beside [`Params::path`], if the router knows it.
pub const AUTHORIZE_ALIAS: &str = "/oauth/authorize";

/// The parameter that names the languages of a page, best first, as in OpenID Connect.
const UI_LOCALES: &str = "ui_locales";

/// What the pages are to know of the configuration. A reload makes new [`Pages`] with new ones.
#[derive(Clone)]
pub struct Params {
    /// Whether `service.base_url` is https: cookies then are `Secure` and have the `__Host-` prefix.
    pub secure: bool,
    /// The origin of `service.base_url`, as browsers write it in `Origin`: `https://service.example`.
    pub origin: String,
    /// `service.path`: where the pages are, beside [`AUTHORIZE_ALIAS`].
    pub path: String,
    /// What all pages have in common.
    pub look: Arc<Look>,
    /// `login.session_ttl`.
    pub session_ttl: Duration,
    /// `limits.sessions_per_user`: the oldest one ends when there are more.
    pub sessions_per_user: NonZeroU32,
    /// `login.user_header`: a proxy in front checks who the user is, and there is no login form.
    pub user_headers: Option<UserHeaders>,
    /// `tokens.request_ttl`: the time to exchange, counted again when the user agrees.
    pub request_ttl: Duration,
    /// `tokens.access_idle`: an access token unused for that long is not listed any more.
    pub access_idle: Option<Duration>,
    /// `signature.default_dialect`, for consumers without one.
    pub default_dialect: Dialect,
    /// `[[permission]]`: what pages call them. One that is missing here is called by its name.
    pub permissions: Vec<PermissionText>,
}

/// How a page describes a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionText {
    /// The permission.
    pub name: Permission,
    /// A few words.
    pub title: String,
    /// A sentence, or nothing.
    pub description: String,
}

/// What the pages work with. All of it outlives a reload.
#[derive(Clone)]
pub struct Services {
    /// Where tokens, users and sessions are kept.
    pub store: Arc<dyn Store>,
    /// The cache of credentials, which is told of what a page revokes.
    pub credentials: Arc<Cached>,
    /// Checks passwords.
    pub login: Arc<dyn LoginBackend>,
    /// Where new passwords are hashed; `None`: the store is not what has the passwords.
    pub passwords: Option<Arc<PasswordPool>>,
    /// What counts failed logins.
    pub throttle: Arc<Throttle>,
}

/// What a page reads of a browser's request.
#[derive(Debug, Clone)]
pub struct PageRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, as routed: [`Params::path`] or [`AUTHORIZE_ALIAS`].
    pub path: &'a str,
    /// The query as received, without `?`.
    pub query: &'a [u8],
    /// The body of a form POST as received, else empty. Its length is bounded by the caller.
    pub form: &'a [u8],
    /// The value of `Accept-Language`.
    pub accept_language: Option<&'a [u8]>,
    /// The values of all `Cookie` fields.
    pub cookies: Vec<&'a [u8]>,
    /// The value of `Origin`.
    pub origin: Option<&'a [u8]>,
    /// The value of `Sec-Fetch-Site`.
    pub sec_fetch_site: Option<&'a [u8]>,
    /// The fields of the request, if a trusted proxy sent it.
    pub trusted_fields: Option<&'a HeaderMap>,
    /// The address of the browser, as trusted proxies tell it.
    pub peer: IpAddr,
    /// The time now.
    pub now: UnixTime,
    /// The id by which a fault is found in the log.
    pub request_id: &'a RequestId,
}

/// The pages.
pub struct Pages {
    params: Params,
    services: Services,
    cookies: CookieNames,
}

impl Pages {
    /// Pages for this configuration.
    #[must_use]
    pub fn new(params: Params, services: Services) -> Self {
        let cookies = cookie_names(params.secure);
        Self {
            params,
            services,
            cookies,
        }
    }

    /// Finds the session of a browser's cookies, with its enabled user; `None` if there is no session cookie, more than
    /// one, or one that opens nothing (any more), or the trusted proxy in front does not name that same user.
    ///
    /// # Errors
    ///
    /// The store's: nothing is known about the caller then.
    pub async fn session(
        &self,
        cookies: &[&[u8]],
        trusted_fields: Option<&HeaderMap>,
        now: UnixTime,
    ) -> Result<Option<(Session, User)>, StoreError> {
        let Cookie::One(id) = cookies::read(cookies, self.cookies.session) else {
            return Ok(None);
        };
        let store = &self.services.store;
        let found = store.session(&cookies::id_hash(&id), now).await?;
        let Some(headers) = &self.params.user_headers else {
            return Ok(found);
        };
        let named = trusted_fields.and_then(|fields| headers.read(fields).ok().flatten());
        Ok(found.filter(|(_, user)| named.is_some_and(|named| named.id == user.id)))
    }

    /// Whether there is a session cookie at all, valid or not: what makes a caller of the kind `user`.
    #[must_use]
    pub fn has_session_cookie(&self, cookies: &[&[u8]]) -> bool {
        !matches!(cookies::read(cookies, self.cookies.session), Cookie::None)
    }

    /// The caller and the session, which is opened on a GET of a user that the trusted proxy in front names.
    async fn logged_in(&self, request: &PageRequest<'_>) -> Result<Option<LoggedIn>, PageError> {
        match self.recognized(request).await? {
            (_, Some(caller)) => Ok(Some(caller)),
            // The user of the browser is another one now: no form of the one before counts.
            (Some(named), None) if request.method != "POST" => {
                self.admit(request, named).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The caller, for a GET that shows no form: no session is opened.
    async fn user(&self, request: &PageRequest<'_>) -> Result<Option<User>, PageError> {
        match self.recognized(request).await? {
            (_, Some(caller)) => Ok(Some(caller.user)),
            (Some(named), None) => self.admitted(request, named).await.map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The user that the trusted proxy in front names, and the caller's session, if it is of that user.
    async fn recognized(
        &self,
        request: &PageRequest<'_>,
    ) -> Result<(Option<OutsideUser>, Option<LoggedIn>), PageError> {
        let found = self.caller_of_session(request).await?;
        let Some(headers) = &self.params.user_headers else {
            return Ok((None, found));
        };
        let named = request
            .trusted_fields
            .map_or(Ok(None), |fields| headers.read(fields));
        let named = named
            .map_err(|_| PageError::Malformed("error-malformed-user"))?
            .ok_or(PageError::NobodyNamed)?;
        let found = found.filter(|caller| caller.user.id == named.id);
        Ok((Some(named), found))
    }

    async fn caller_of_session(
        &self,
        request: &PageRequest<'_>,
    ) -> Result<Option<LoggedIn>, PageError> {
        let id = match cookies::read(&request.cookies, self.cookies.session) {
            Cookie::One(id) => id,
            Cookie::None | Cookie::Invalid => return Ok(None),
            // Somebody may have set the other one, to have the user act in a session that is not theirs.
            Cookie::Several => return Err(PageError::SeveralSessionCookies),
        };
        let store = &self.services.store;
        let found = store.session(&cookies::id_hash(&id), request.now).await?;
        Ok(found.map(|(_, user)| LoggedIn {
            id,
            user,
            is_new: false,
        }))
    }

    fn answer(
        &self,
        request: &PageRequest<'_>,
        outcome: Result<OwnResponse, PageError>,
    ) -> OwnResponse {
        outcome.unwrap_or_else(|error| error.page(self.frame(request), request.request_id))
    }

    /// The response to a browser that asks for a file of the pages.
    pub fn asset(&self, path: &[u8]) -> Option<OwnResponse> {
        let mut assets = self.params.look.assets();
        let asset = assets.find(|asset| asset.path.as_bytes() == path)?;
        Some(asset.response())
    }

    /// What is around the content of a page, in the language that the request asks for.
    fn frame(&self, request: &PageRequest<'_>) -> Frame<'_> {
        let look = &self.params.look;
        let asked = self.ui_locale(request);
        look.frame(asked.unwrap_or_else(|| look.languages.accepted(request.accept_language)))
    }

    /// The language of `ui_locales`, if it is a parameter of the request and there is that language.
    fn ui_locale(&self, request: &PageRequest<'_>) -> Option<Texts<'_>> {
        let tags = fields::parameter(request.query, UI_LOCALES).ok()??;
        self.params.look.languages.of_ui_locales(&tags)
    }

    /// A path of ours, its query begun, with the language that the request asks for.
    fn in_same_language(&self, request: &PageRequest<'_>, mut path: String) -> String {
        if let Some(texts) = self.ui_locale(request) {
            path.extend(["&", UI_LOCALES, "=", texts.tag()]);
        }
        path
    }

    fn described(&self, permission: &Permission) -> PermissionText {
        let mut texts = self.params.permissions.iter();
        let text = texts.find(|text| text.name == *permission).cloned();
        text.unwrap_or_else(|| PermissionText {
            name: permission.clone(),
            title: permission.to_string(),
            description: String::new(),
        })
    }
}

/// The user of a valid session, and the id in the cookie.
struct LoggedIn {
    id: Secret,
    user: User,
    /// The session was opened by this very request: its cookie is still to be set.
    is_new: bool,
}

/// What the pages call a user.
fn displayed(user: &User) -> String {
    match &user.display_name {
        Some(display_name) if *display_name != user.name => {
            format!("{display_name} ({})", user.name)
        }
        _ => user.name.clone(),
    }
}

#[cfg(test)]
mod tests;
