//! Which part of the program answers: a token endpoint, a page, or the API behind.

use crate::{
    parse::{
        origin::{OriginError, Origins, PrefixMode, PublicUrl, Received},
        target::{self, Target},
    },
    refusal::Refusal,
};

/// What the service itself answers.
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
}

/// Where a request goes.
#[derive(Debug)]
pub enum Route<'o, 'r> {
    /// To the service itself.
    Endpoint(Endpoint),
    /// To the API, if it may.
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
    /// The path of the token endpoints that tell their kind by `mode`.
    pub path: String,
    /// `/oauth/request_token`, `/oauth/authorize` and `/oauth/access_token` too.
    pub aliases: bool,
}

/// Finds out where a request goes.
///
/// # Errors
/// A `mode` that is missing, unknown or given twice, and [`OriginError::Misdirected`].
pub fn route<'o, 'r>(
    params: &Params,
    origins: &'o Origins,
    received: &Received<'_>,
    target: &Target<'r>,
) -> Result<Route<'o, 'r>, Refusal> {
    if origins.is_base(received) {
        if target.path == params.path.as_bytes() {
            return Ok(Route::Endpoint(by_mode(target.query.unwrap_or_default())?));
        }
        if params.aliases {
            match target.path {
                b"/oauth/request_token" => return Ok(Route::Endpoint(Endpoint::RequestToken)),
                b"/oauth/authorize" => return Ok(Route::Endpoint(Endpoint::Authorize)),
                b"/oauth/access_token" => return Ok(Route::Endpoint(Endpoint::AccessToken)),
                _ => {}
            }
        }
    }
    let url = origins.choose(received, target.path)?;
    let (path, restored_prefix) = match origins.prefix_mode {
        PrefixMode::Keep => {
            if !url.prefix.is_empty() && target::climbs(&target.path[url.prefix.len()..]) {
                return Err(Refusal::Malformed(
                    "the path leads out of what is public".into(),
                ));
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

impl From<OriginError> for Refusal {
    fn from(error: OriginError) -> Self {
        match error {
            OriginError::Misdirected => Self::Misdirected,
            OriginError::Host | OriginError::Disagree | OriginError::Forwarded => {
                Self::Malformed(error.to_string().into())
            }
        }
    }
}

fn by_mode(query: &[u8]) -> Result<Endpoint, Refusal> {
    let mut modes = url::form_urlencoded::parse(query).filter(|(name, _)| name == "mode");
    let (Some((_, mode)), None) = (modes.next(), modes.next()) else {
        return Err(Refusal::ParameterRejected(
            vec!["mode".to_owned()],
            "mode is needed once in the query",
        ));
    };
    match &*mode {
        "req_req_token" => Ok(Endpoint::RequestToken),
        "auth_req_token" => Ok(Endpoint::Authorize),
        "req_acc_token" => Ok(Endpoint::AccessToken),
        "revoke_token" => Ok(Endpoint::RevokeToken),
        "applications" => Ok(Endpoint::Applications),
        "login" => Ok(Endpoint::Login),
        "logout" => Ok(Endpoint::Logout),
        _ => Err(Refusal::ParameterRejected(
            vec!["mode".to_owned()],
            "mode is one of req_req_token, auth_req_token, req_acc_token, revoke_token, applications, login, logout",
        )),
    }
}
