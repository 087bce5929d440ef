//! Which part of the program responds: a token endpoint, a page, or the API.

use http::Method;
use thiserror::Error;

use crate::parse::{
    head::Head,
    origin::{OriginError, Origins, PrefixMode, PublicUrl},
    target::{self, Target},
};

/// Why a request has no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Rejection {
    /// No public URL matches.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The API could read the path as one above the published prefix.
    #[error("the path leads out of what is public")]
    PathAbovePrefix,
    /// The host is that of the pages alone, and has none at this path.
    #[error("no such page")]
    NotFound,
    /// `mode` is missing or repeated.
    #[error("mode is needed once, in the query or in a form")]
    ModeNotOnce,
    /// `mode` is none of ours.
    #[error("mode is one of {}", MODES.map(|(name, _)| name).join(", "))]
    ModeUnknown,
    /// The endpoint does not have the method.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: &'static str,
    },
}

/// An endpoint of the service itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `mode=req_req_token`: gives out a request token (RFC 5849 §2.1).
    RequestToken,
    /// `mode=auth_req_token`: the authorization page (RFC 5849 §2.2).
    Authorize,
    /// `mode=req_acc_token`: exchanges a request token for an access token (RFC 5849 §2.3).
    AccessToken,
    /// `mode=revoke_token`: revokes the access token that signs the call.
    RevokeToken,
    /// `mode=applications`: the user's connected applications.
    Applications,
    /// `/` where the API is under another host or path: leads to the user's applications.
    Home,
    /// `mode=login`: direct login.
    Login,
    /// `mode=logout`: ends the browser session.
    Logout,
    /// `mode=password`: a user sets another password.
    Password,
    /// A file that pages refer to.
    Asset,
}

impl Endpoint {
    /// Whether it is for a user's browser, rather than for a consumer.
    #[must_use]
    pub const fn is_page(self) -> bool {
        !matches!(
            self,
            Self::RequestToken | Self::AccessToken | Self::RevokeToken
        )
    }

    fn check_method(self, method: &Method) -> Result<(), Rejection> {
        let allow = self.methods();
        if allow.split(", ").any(|known| known == method) {
            Ok(())
        } else {
            Err(Rejection::MethodNotAllowed { allow })
        }
    }

    /// Its methods, as the value of `Allow`.
    const fn methods(self) -> &'static str {
        match self {
            Self::RequestToken | Self::AccessToken => "GET, POST",
            Self::RevokeToken | Self::Logout => "POST",
            Self::Home | Self::Asset => "GET, HEAD",
            Self::Authorize | Self::Login | Self::Applications | Self::Password => {
                "GET, HEAD, POST"
            }
        }
    }
}

/// What names the endpoint of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The path, one of the aliases.
    ByPath(Endpoint),
    /// `mode` in the query.
    ByQuery(Endpoint),
    /// `mode` in a form, where Net::OAuth and liboauth send it; unknown until the form has been read.
    ByForm,
}

impl Named {
    /// Whether it is known to be a page.
    #[must_use]
    pub const fn is_page(self) -> bool {
        match self {
            Self::ByPath(endpoint) | Self::ByQuery(endpoint) => endpoint.is_page(),
            Self::ByForm => false,
        }
    }

    /// The endpoint of a request with this form, which is empty where the request has none.
    ///
    /// # Errors
    /// [`Rejection::ModeNotOnce`] for a `mode` in query and form, [`Rejection::ModeUnknown`], and
    /// [`Rejection::MethodNotAllowed`].
    pub fn endpoint(self, form: &[u8], method: &Method) -> Result<Endpoint, Rejection> {
        match self {
            Self::ByPath(endpoint) => Ok(endpoint),
            Self::ByQuery(endpoint) if by_mode(form)?.is_none() => Ok(endpoint),
            Self::ByQuery(_) => Err(Rejection::ModeNotOnce),
            Self::ByForm => {
                let endpoint = by_mode(form)?.ok_or(Rejection::ModeNotOnce)?;
                endpoint.check_method(method)?;
                Ok(endpoint)
            }
        }
    }
}

/// Where a request goes.
#[derive(Debug)]
pub enum Route<'o, 'r> {
    /// An endpoint of the service itself.
    Endpoint(Named),
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

/// Where the token endpoints are.
#[derive(Debug, Clone)]
pub struct Params {
    /// The path of the endpoints that `mode` selects.
    pub path: String,
    /// `/oauth/request_token`, `/oauth/authorize` and `/oauth/access_token` too.
    pub aliases: bool,
    /// The paths of the files that pages refer to.
    pub assets: Vec<String>,
}

/// Finds the route of a request.
///
/// # Errors
/// [`Rejection`]
pub fn route<'o, 'r>(
    params: &Params,
    origins: &'o Origins,
    head: &Head<'r>,
) -> Result<Route<'o, 'r>, Rejection> {
    let (received, target) = (&head.received, &head.target);
    let is_base = origins.is_base(received);
    if is_base && let Some(named) = named(params, target)? {
        if let Named::ByPath(endpoint) | Named::ByQuery(endpoint) = named {
            endpoint.check_method(&head.parts.method)?;
        }
        return Ok(Route::Endpoint(named));
    }
    let url = match origins.choose(received, target.path) {
        Err(OriginError::Misdirected) if is_base && target.path == b"/" => {
            Endpoint::Home.check_method(&head.parts.method)?;
            return Ok(Route::Endpoint(Named::ByPath(Endpoint::Home)));
        }
        Err(OriginError::Misdirected) if is_base => return Err(Rejection::NotFound),
        chosen => chosen?,
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
    Ok(Route::Api(ApiCall {
        url,
        restored_prefix,
        path,
    }))
}

fn named(params: &Params, target: &Target<'_>) -> Result<Option<Named>, Rejection> {
    if target.path == params.path.as_bytes() {
        let in_query = by_mode(target.query.unwrap_or_default())?;
        return Ok(Some(in_query.map_or(Named::ByForm, Named::ByQuery)));
    }
    let alias = match target.path {
        b"/oauth/request_token" if params.aliases => Endpoint::RequestToken,
        b"/oauth/authorize" if params.aliases => Endpoint::Authorize,
        b"/oauth/access_token" if params.aliases => Endpoint::AccessToken,
        path if params.assets.iter().any(|asset| asset.as_bytes() == path) => Endpoint::Asset,
        _ => return Ok(None),
    };
    Ok(Some(Named::ByPath(alias)))
}

/// What `mode` may be.
const MODES: [(&str, Endpoint); 8] = [
    ("req_req_token", Endpoint::RequestToken),
    ("auth_req_token", Endpoint::Authorize),
    ("req_acc_token", Endpoint::AccessToken),
    ("revoke_token", Endpoint::RevokeToken),
    ("applications", Endpoint::Applications),
    ("login", Endpoint::Login),
    ("logout", Endpoint::Logout),
    ("password", Endpoint::Password),
];

/// The endpoint that `mode` names in a query or a form; `None` if it is not there.
fn by_mode(pairs: &[u8]) -> Result<Option<Endpoint>, Rejection> {
    let mut modes = url::form_urlencoded::parse(pairs).filter(|(name, _)| name == "mode");
    let mode = match (modes.next(), modes.next()) {
        (None, _) => return Ok(None),
        (Some((_, mode)), None) => mode,
        (Some(_), Some(_)) => return Err(Rejection::ModeNotOnce),
    };
    let known = MODES.into_iter().find(|(name, _)| *name == mode);
    let (_, endpoint) = known.ok_or(Rejection::ModeUnknown)?;
    Ok(Some(endpoint))
}
