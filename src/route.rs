//! The part of the program that responds: a token call, a page, or the API.

use std::borrow::Cow;

use http::Method;
use thiserror::Error;

use crate::{
    fields,
    oauth::{Parameters, ProtocolParameter},
    parse::{
        head::Head,
        origin::{Origins, PrefixMode, PublicUrl},
        target,
    },
    problem::Problem,
    telemetry::metrics::Verdict,
};

/// Why a request has no route.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    /// The service does not have this host.
    #[error("Host names no public URL of this service; use {public}")]
    Misdirected {
        /// The host that was received.
        host: String,
        /// The public URLs, separated by commas.
        public: String,
    },
    /// The API could read the path as one above the published prefix.
    #[error("the path leads out of what is public")]
    PathAbovePrefix,
    /// The host is for pages alone, and has no page at this path.
    #[error("no such page")]
    NotFound,
    /// Another proxy describes a token call or a page.
    #[error(
        "token calls and pages are on the public listener: the proxy in front has to send this path there"
    )]
    NotForApi,
    /// `mode` is missing or repeated.
    #[error("parameter 'mode' is missing or repeated")]
    ModeNotOnce,
    /// `mode` has an unknown value.
    #[error("parameter 'mode' is one of {}", MODES.map(|(name, _)| name).join(", "))]
    ModeUnknown,
    /// The endpoint does not have the method.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: &'static str,
    },
}

impl Rejection {
    /// The content of the response.
    pub fn problem(&self) -> Problem {
        match self {
            Self::Misdirected { .. } => {
                Problem::plain(421, Verdict::Misdirected).advise(self.to_string())
            }
            Self::PathAbovePrefix => Problem::malformed(self),
            Self::NotFound => Problem::plain(404, Verdict::NotFound),
            Self::NotForApi => Problem::plain(404, Verdict::NotFound).advise(self.to_string()),
            Self::ModeNotOnce | Self::ModeUnknown => Problem::rejected("mode", self.to_string()),
            Self::MethodNotAllowed { allow } => Problem::method_not_allowed(allow),
        }
    }
}

/// A call of a consumer at the service itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCall {
    /// `mode=req_req_token`: gives out a request token (RFC 5849 §2.1).
    RequestToken,
    /// `mode=req_acc_token`: exchanges a request token for an access token (RFC 5849 §2.3).
    AccessToken,
    /// `mode=revoke_token`: revokes the access token that signs the call.
    RevokeToken,
    /// `mode=exchange`: gives out an OAuth 2 access token for the access token that signs the call.
    Exchange,
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
    /// A file that pages refer to.
    Asset,
}

/// The part of the program that a request is for.
#[derive(Debug)]
pub enum Target<'o, 'r> {
    /// A token call; `None` where neither path nor query name it: see [`Params::token_call`].
    Token(Option<TokenCall>),
    /// A page.
    Page(Page),
    /// The public keys of our signatures.
    JwkSet,
    /// The API, if the call is permitted.
    Api(ApiCall<'o, 'r>),
}

/// A call that is meant for the API.
#[derive(Debug, Clone, Copy)]
pub struct ApiCall<'o, 'r> {
    /// The public URL for which it was signed.
    pub url: &'o PublicUrl,
    /// The prefix to put in front of the received path for the signature; empty but for [`PrefixMode::Restore`].
    pub restored_prefix: &'o str,
    /// The path to match and to forward.
    pub path: &'r [u8],
}

impl ApiCall<'_, '_> {
    /// The path for which a call with this received path was signed.
    pub fn signed_path<'r>(&self, received: &'r [u8]) -> Cow<'r, [u8]> {
        match self.restored_prefix {
            "" => received.into(),
            prefix => [prefix.as_bytes(), received].concat().into(),
        }
    }
}

/// The paths of the token endpoints.
#[derive(Debug, Clone)]
pub struct Params {
    /// The path of the endpoints that `mode` selects.
    pub path: String,
    /// `/oauth/request_token`, `/oauth/authorize` and `/oauth/access_token` too.
    pub aliases: bool,
    /// `mode=exchange` too.
    pub exchange: bool,
    /// `/.well-known/jwks.json` too.
    pub jwk_set: bool,
    /// The paths of the files that pages refer to.
    pub assets: Vec<String>,
}

impl Params {
    /// The token call of a request with this form, which is empty where the request has none. `named` is the call that
    /// path or query name. If neither names one, the protocol parameters decide: Net::OAuth drops the query of the URL.
    ///
    /// # Errors
    /// [`Rejection::ModeNotOnce`], [`Rejection::ModeUnknown`] and [`Rejection::MethodNotAllowed`].
    pub fn token_call(
        &self,
        named: Option<TokenCall>,
        head: &Head<'_>,
        form: &[u8],
        parameters: &Parameters,
    ) -> Result<TokenCall, Rejection> {
        let in_form = self.mode_of_form(head, form)?;
        let call = match (named, in_form) {
            (Some(call), None) | (None, Some(Mode::Token(call))) => call,
            (None, None) if parameters.was_sent(ProtocolParameter::Verifier) => {
                TokenCall::AccessToken
            }
            (None, None) if parameters.was_sent(ProtocolParameter::Callback) => {
                TokenCall::RequestToken
            }
            // The mode of a page belongs in the query.
            (Some(_), Some(_)) | (None, None | Some(Mode::Page(_))) => {
                return Err(Rejection::ModeNotOnce);
            }
        };
        Mode::Token(call).check_method(&head.parts.method)?;
        Ok(call)
    }

    /// Checks that the form of a page does not name a mode too.
    ///
    /// # Errors
    /// [`Rejection::ModeNotOnce`] and [`Rejection::ModeUnknown`].
    pub fn check_page_form(&self, head: &Head<'_>, form: &[u8]) -> Result<(), Rejection> {
        match self.mode_of_form(head, form)? {
            None => Ok(()),
            Some(_) => Err(Rejection::ModeNotOnce),
        }
    }

    /// The `mode` of a form. Under the other paths, which name the call themselves, it is a parameter like any other.
    fn mode_of_form(&self, head: &Head<'_>, form: &[u8]) -> Result<Option<Mode>, Rejection> {
        if head.target.path == self.path.as_bytes() {
            self.by_mode(form)
        } else {
            Ok(None)
        }
    }

    /// The call or the page that `mode` names in a query or a form; `None` if it is not there.
    fn by_mode(&self, pairs: &[u8]) -> Result<Option<Mode>, Rejection> {
        let mode = fields::parameter(pairs, "mode").map_err(|_| Rejection::ModeNotOnce)?;
        let is_on = |named| self.exchange || !matches!(named, Mode::Token(TokenCall::Exchange));
        let known = |mode| {
            let mut modes = MODES.into_iter();
            let named = modes.find(|(name, named)| *name == mode && is_on(*named));
            named.map(|(_, named)| named).ok_or(Rejection::ModeUnknown)
        };
        mode.map(known).transpose()
    }

    /// The call or the page that path and query name; `None` under other paths.
    fn named(&self, head: &Head<'_>) -> Result<Option<Target<'static, 'static>>, Rejection> {
        let target = &head.target;
        let mode = match target.path {
            path if path == self.path.as_bytes() => {
                match self.by_mode(target.query.unwrap_or_default())? {
                    None => return Ok(Some(Target::Token(None))),
                    Some(mode) => mode,
                }
            }
            b"/oauth/request_token" if self.aliases => Mode::Token(TokenCall::RequestToken),
            b"/oauth/authorize" if self.aliases => Mode::Page(Page::Authorize),
            b"/oauth/access_token" if self.aliases => Mode::Token(TokenCall::AccessToken),
            b"/.well-known/jwks.json" if self.jwk_set => {
                Mode::Page(Page::Asset).check_method(&head.parts.method)?;
                return Ok(Some(Target::JwkSet));
            }
            path if self.assets.iter().any(|asset| asset.as_bytes() == path) => {
                Mode::Page(Page::Asset)
            }
            _ => return Ok(None),
        };
        mode.check_method(&head.parts.method)?;
        Ok(Some(match mode {
            Mode::Token(call) => Target::Token(Some(call)),
            Mode::Page(page) => Target::Page(page),
        }))
    }
}

/// The most characters of a host in a log line; no name has more (RFC 1035 §2.3.4).
const MAX_HOST_CHARS: usize = 255;

/// Finds the part of the program that a request is for.
///
/// # Errors
/// [`Rejection`]
pub fn route<'o, 'r>(
    params: &Params,
    origins: &'o Origins,
    head: &Head<'r>,
) -> Result<Target<'o, 'r>, Rejection> {
    let (received, target) = (&head.received, &head.target);
    let is_base = origins.is_base(received);
    if is_base && let Some(named) = params.named(head)? {
        return Ok(named);
    }
    let url = match origins.choose(received, target.path) {
        Some(url) => url,
        None if is_base && target.path == b"/" => {
            Mode::Page(Page::Home).check_method(&head.parts.method)?;
            return Ok(Target::Page(Page::Home));
        }
        None if is_base => return Err(Rejection::NotFound),
        None => {
            let host = received.authority.host.chars();
            return Err(Rejection::Misdirected {
                host: host.take(MAX_HOST_CHARS).collect(),
                public: origins.all_urls(),
            });
        }
    };
    let (path, restored_prefix) = match origins.prefix_mode {
        PrefixMode::Keep => {
            if !url.prefix.is_empty() && target::climbs(&target.path[url.prefix.len()..]) {
                return Err(Rejection::PathAbovePrefix);
            }
            (target.path, "")
        }
        PrefixMode::Restore => (target.path, url.prefix.as_str()),
        PrefixMode::Strip => match &target.path[url.prefix.len()..] {
            [] => (&b"/"[..], ""),
            path => (path, ""),
        },
    };
    Ok(Target::Api(ApiCall {
        url,
        restored_prefix,
        path,
    }))
}

/// A call or a page that `mode` names.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Token(TokenCall),
    Page(Page),
}

impl Mode {
    fn check_method(self, method: &Method) -> Result<(), Rejection> {
        let allow = match self {
            Self::Token(TokenCall::RequestToken | TokenCall::AccessToken) => "GET, POST",
            Self::Token(TokenCall::RevokeToken | TokenCall::Exchange) => "POST",
            Self::Page(Page::Home | Page::Asset) => "GET, HEAD",
            Self::Page(_) => "GET, HEAD, POST",
        };
        match allow.split(", ").any(|known| known == method) {
            true => Ok(()),
            false => Err(Rejection::MethodNotAllowed { allow }),
        }
    }
}

/// The values of `mode`.
const MODES: [(&str, Mode); 9] = [
    ("req_req_token", Mode::Token(TokenCall::RequestToken)),
    ("auth_req_token", Mode::Page(Page::Authorize)),
    ("req_acc_token", Mode::Token(TokenCall::AccessToken)),
    ("revoke_token", Mode::Token(TokenCall::RevokeToken)),
    ("exchange", Mode::Token(TokenCall::Exchange)),
    ("applications", Mode::Page(Page::Applications)),
    ("login", Mode::Page(Page::Login)),
    ("logout", Mode::Page(Page::Logout)),
    ("password", Mode::Page(Page::Password)),
];
