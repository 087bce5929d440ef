//! The service on one screen: every call and page, the requests that are for it, its methods, and the module that responds.

use std::fmt;

use http::Method;

use self::{Page as P, TokenCall as T};
use crate::oauth::{Parameters, ProtocolParameter};

/// A call of a consumer at the service itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCall {
    /// `mode=req_req_token`: gives out a request token (RFC 5849 §2.1).
    RequestToken,
    /// `mode=req_acc_token`: exchanges a request token for an access token (RFC 5849 §2.3).
    AccessToken,
    /// `mode=revoke_token`: revokes the access token that signs the call.
    RevokeToken,
    /// `mode=exchange`: gives out an OAuth 2 access token for the access token that signs the call, or for the consumer.
    Exchange,
}

impl TokenCall {
    /// Whether it leads to a new token for OAuth 1.0a.
    pub const fn is_grant(self) -> bool {
        matches!(self, Self::RequestToken | Self::AccessToken)
    }

    /// The call that the protocol parameters name, where nothing else does.
    pub(super) fn by_parameters(parameters: &Parameters) -> Option<Self> {
        if parameters.was_sent(ProtocolParameter::Verifier) {
            return Some(Self::AccessToken);
        }
        let is_first = parameters.was_sent(ProtocolParameter::Callback);
        is_first.then_some(Self::RequestToken)
    }
}

/// A page for a user's browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// `mode=auth_req_token`: the authorization page (RFC 5849 §2.2).
    Authorize,
    /// `mode=applications`: the user's connected applications.
    Applications,
    /// An address without a page, such as `/` where the API is under another host or path: leads to the user's
    /// applications.
    Home,
    /// `mode=login`: direct login.
    Login,
    /// `mode=logout`: a GET asks, a POST ends browser sessions.
    Logout,
    /// `mode=password`: a user sets another password.
    Password,
    /// `mode=developer`: the developer of a consumer sees why its calls are rejected.
    Developer,
    /// `mode=register`: a user asks for consumers, and manages them.
    Register,
    /// A file that pages refer to.
    Asset,
}

/// A call or a page of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceCall {
    /// A call of a consumer.
    Token(TokenCall),
    /// A page for a browser.
    Page(Page),
    /// The public keys of our signatures.
    JwkSet,
}

/// The value of `mode`, under `service.path`; the paths of its own, of a call with a `mode` those that many client libraries
/// expect (`service.aliases`); what it is; and its methods.
type Entry = (
    Option<&'static str>,
    &'static [&'static str],
    ServiceCall,
    AllowedMethods,
);

/// Every call and page. Further paths of some are `service.request_token_paths`, `service.authorize_paths` and
/// `service.access_token_paths`.
#[rustfmt::skip]
const SERVICE: [Entry; 14] = {
    use ServiceCall::{JwkSet, Page, Token};
    // The last one is the best known, as FlowPaths::best_of wants it.
    const AUTHORIZE: &[&str] = &["/oauth/authenticate", "/oauth/authorize"];
    [
        (Some("req_req_token"),  &["/oauth/request_token"], Token(T::RequestToken), GET_POST),      // endpoints/request_token
        (Some("auth_req_token"), AUTHORIZE,                 Page(P::Authorize),     GET_HEAD_POST), // pages/consent
        (Some("req_acc_token"),  &["/oauth/access_token"],  Token(T::AccessToken),  GET_POST),      // endpoints/access_token
        (Some("revoke_token"),   &[],                       Token(T::RevokeToken),  POST),          // endpoints/revoke_token
        (Some("exchange"),       &[],                       Token(T::Exchange),     POST),          // endpoints/exchange
        (Some("applications"),   &[],                       Page(P::Applications),  GET_HEAD_POST), // pages/applications
        (Some("login"),          &[],                       Page(P::Login),         GET_HEAD_POST), // pages/login
        (Some("logout"),         &[],                       Page(P::Logout),        GET_HEAD_POST), // pages/login
        (Some("password"),       &[],                       Page(P::Password),      GET_HEAD_POST), // pages/password
        (Some("developer"),      &[],                       Page(P::Developer),     GET_HEAD_POST), // pages/developer
        (Some("register"),       &["/oauth/register"],      Page(P::Register),      GET_HEAD_POST), // pages/registration
        // `/` and `service.path` without a call: leads to the applications.
        (None,                   &[],                       Page(P::Home),          GET_HEAD),      // pages
        // The names of assets have the digest of their content.
        (None,                   &[],                       Page(P::Asset),         GET_HEAD),      // pages
        (None,                   &[JWK_SET],                JwkSet,                 GET_HEAD),      // gateway/proxy
    ]
};

/// The path of the public keys of our signatures, if anything is signed.
pub(super) const JWK_SET: &str = "/.well-known/jwks.json";

const POST: AllowedMethods = AllowedMethods(&["POST"]);
const GET_POST: AllowedMethods = AllowedMethods(&["GET", "POST"]);
const GET_HEAD: AllowedMethods = AllowedMethods(&["GET", "HEAD"]);
const GET_HEAD_POST: AllowedMethods = AllowedMethods(&["GET", "HEAD", "POST"]);

/// The methods of a call or a page. As text it is the value of `Allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedMethods(&'static [&'static str]);

impl AllowedMethods {
    /// Whether it is one of them.
    pub(super) fn has(self, method: &Method) -> bool {
        self.0.iter().any(|known| known == method)
    }
}

impl fmt::Display for AllowedMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl ServiceCall {
    /// Its methods.
    pub(super) fn methods(self) -> AllowedMethods {
        let found = SERVICE.into_iter().find(|(.., call, _)| *call == self);
        found.map_or(GET_HEAD, |(.., methods)| methods)
    }
}

/// Every value of `mode`.
pub(super) fn modes() -> impl Iterator<Item = &'static str> {
    SERVICE.into_iter().filter_map(|(mode, ..)| mode)
}

/// The call or the page that this `mode` names.
pub(super) fn by_mode(mode: &str) -> Option<ServiceCall> {
    let mut entries = SERVICE.into_iter();
    let named = entries.find(|(known, ..)| *known == Some(mode));
    named.map(|(.., call, _)| call)
}

/// The value of `mode` that names a call or a page, if one does.
pub(super) fn mode_of(call: ServiceCall) -> Option<&'static str> {
    let mut entries = SERVICE.into_iter();
    let (mode, ..) = entries.find(|(.., known, _)| *known == call)?;
    mode
}

/// The paths that many client libraries expect (`service.aliases`), each with its call.
pub fn aliases() -> impl Iterator<Item = (&'static str, ServiceCall)> {
    let named = SERVICE.into_iter().filter(|(mode, ..)| mode.is_some());
    named.flat_map(|(_, paths, call, _)| paths.iter().map(move |path| (*path, call)))
}
