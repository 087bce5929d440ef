//! Which part of the program responds: a token endpoint, a page, or the API.

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
    /// `mode` is missing or repeated.
    #[error("mode is needed once in the query")]
    ModeNotOnce,
    /// `mode` is none of ours.
    #[error(
        "mode is one of req_req_token, auth_req_token, req_acc_token, revoke_token, applications, login, logout"
    )]
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
    /// `mode=login`: direct login.
    Login,
    /// `mode=logout`: ends the browser session.
    Logout,
}

impl Endpoint {
    /// Whether it is for a user's browser, rather than for a consumer.
    #[must_use]
    pub const fn is_page(self) -> bool {
        match self {
            Self::RequestToken | Self::AccessToken | Self::RevokeToken => false,
            Self::Authorize | Self::Applications | Self::Login | Self::Logout => true,
        }
    }

    /// Its methods, as the value of `Allow`.
    const fn methods(self) -> &'static str {
        match self {
            Self::RequestToken | Self::AccessToken => "GET, POST",
            Self::RevokeToken | Self::Logout => "POST",
            Self::Authorize | Self::Login | Self::Applications => "GET, HEAD, POST",
        }
    }
}

/// Where a request goes.
#[derive(Debug)]
pub enum Route<'o, 'r> {
    /// An endpoint of the service itself.
    Endpoint(Endpoint),
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
    if origins.is_base(received)
        && let Some(endpoint) = endpoint(params, target)?
    {
        let allow = endpoint.methods();
        return if allow.split(", ").any(|known| known == head.parts.method) {
            Ok(Route::Endpoint(endpoint))
        } else {
            Err(Rejection::MethodNotAllowed { allow })
        };
    }
    let url = origins.choose(received, target.path)?;
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

fn endpoint(params: &Params, target: &Target<'_>) -> Result<Option<Endpoint>, Rejection> {
    if target.path == params.path.as_bytes() {
        return by_mode(target.query.unwrap_or_default()).map(Some);
    }
    Ok(match target.path {
        b"/oauth/request_token" if params.aliases => Some(Endpoint::RequestToken),
        b"/oauth/authorize" if params.aliases => Some(Endpoint::Authorize),
        b"/oauth/access_token" if params.aliases => Some(Endpoint::AccessToken),
        _ => None,
    })
}

fn by_mode(query: &[u8]) -> Result<Endpoint, Rejection> {
    let mut modes = url::form_urlencoded::parse(query).filter(|(name, _)| name == "mode");
    let (Some((_, mode)), None) = (modes.next(), modes.next()) else {
        return Err(Rejection::ModeNotOnce);
    };
    match &*mode {
        "req_req_token" => Ok(Endpoint::RequestToken),
        "auth_req_token" => Ok(Endpoint::Authorize),
        "req_acc_token" => Ok(Endpoint::AccessToken),
        "revoke_token" => Ok(Endpoint::RevokeToken),
        "applications" => Ok(Endpoint::Applications),
        "login" => Ok(Endpoint::Login),
        "logout" => Ok(Endpoint::Logout),
        _ => Err(Rejection::ModeUnknown),
    }
}
