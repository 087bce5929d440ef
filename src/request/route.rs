//! The part of the program that responds: a token call, a page, or the API.

mod flow_path;
mod flow_paths;
mod service;
pub mod settings;

use std::borrow::Cow;

use http::{Method, header};
use thiserror::Error;

use self::service::{JWK_SET, modes};
pub use self::{
    flow_path::{FlowPath, InvalidFlowPath},
    flow_paths::FlowPaths,
    service::{AllowedMethods, Page, ServiceCall, TokenCall, aliases},
};
use crate::{
    base::network::http_fields,
    oauth::{Parameters, ProtocolParameter},
    request::{
        parse::{
            head::Head,
            origin::{Origins, PrefixMode, PublicUrl},
            target,
        },
        problem::Problem,
    },
    telemetry::metrics::Verdict,
};

/// Why a path at the right host does not belong to this service.
const PREFIX_MISSING: &str = "the path lacks the prefix of the public URL at this host: send it, or, if a gateway has stripped it, set \
                              service.prefix = \"restore\"";

/// Why a request has no route.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouteRejection {
    /// The service does not have this host, or not this path there.
    #[error("{}; use {public}", if *.is_known { PREFIX_MISSING } else { "Host names no public URL of this service" })]
    Misdirected {
        /// The host that was received, with its port if it has one.
        host: String,
        /// The host is one of a public URL; the path lacks its prefix.
        is_known: bool,
        /// The public URLs, separated by commas.
        public: String,
    },
    /// The API could read the path as one above the published prefix.
    #[error("the path leads out of what is public")]
    PathAbovePrefix,
    /// The host is for pages alone, and has no page at this path.
    #[error("no such page{}", .0.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    NotFound(Option<String>),
    /// Another proxy describes a token call or a page.
    #[error(
        "token calls and pages are on the public listener: the proxy in front has to send this path there"
    )]
    NotForApi,
    /// A request to the listener for other proxies is at a path that describes nothing.
    #[error("the proxy in front describes a request at {ways}")]
    NoDescription {
        /// The paths that do.
        ways: &'static str,
    },
    /// `mode` is missing or repeated.
    #[error("parameter 'mode' is missing or repeated")]
    ModeNotOnce,
    /// `mode` has an unknown value.
    #[error("parameter 'mode' is one of {}", modes().collect::<Vec<_>>().join(", "))]
    ModeUnknown,
    /// The endpoint does not have the method.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// What is there.
        call: ServiceCall,
    },
}

impl RouteRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Misdirected { .. } => Verdict::Misdirected,
            Self::PathAbovePrefix => Verdict::BadRequest,
            Self::NotFound(_) | Self::NotForApi | Self::NoDescription { .. } => Verdict::NotFound,
            Self::ModeNotOnce | Self::ModeUnknown => Verdict::ParameterRejected,
            Self::MethodNotAllowed { .. } => Verdict::MethodNotAllowed,
        }
    }

    /// The content of the response.
    pub fn problem(&self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Misdirected { .. } => Problem::plain(421, verdict).advise(self.to_string()),
            Self::PathAbovePrefix => Problem::malformed(verdict, self),
            Self::NotFound(None) => Problem::plain(404, verdict),
            Self::NotFound(Some(_)) | Self::NotForApi | Self::NoDescription { .. } => {
                Problem::plain(404, verdict).advise(self.to_string())
            }
            Self::ModeNotOnce | Self::ModeUnknown => {
                Problem::rejected(verdict, "mode", self.to_string())
            }
            Self::MethodNotAllowed { call } => {
                Problem::method_not_allowed(verdict, &call.methods().to_string())
            }
        }
    }
}

/// The part of the program that a request is for.
#[derive(Debug)]
pub enum Route<'o, 'r> {
    /// A token call; `None` where neither path nor query name it: see [`RouteRules::token_call`].
    Token(Option<TokenCall>),
    /// A token call that its parameters or its form name, or else a call to the API, which has the same path.
    TokenOrApi(ApiCall<'o, 'r>),
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

/// The rules of routing.
#[derive(Debug, Clone)]
pub struct RouteRules {
    /// The paths of the token endpoints.
    pub flow: FlowPaths,
    /// `mode=exchange` too.
    pub exchange: bool,
    /// `mode=register` too.
    pub registration: bool,
    /// `/.well-known/jwks.json` too.
    pub jwk_set: bool,
    /// The paths of the files that pages refer to.
    pub assets: Vec<String>,
}

impl RouteRules {
    /// The token call of a request with this form, which is empty where the request has none. `named` is the call that
    /// path or query name. If neither names one, the protocol parameters decide: Net::OAuth drops the query of the URL. `None` if
    /// nothing names one.
    ///
    /// # Errors
    /// [`RouteRejection::ModeNotOnce`], [`RouteRejection::ModeUnknown`] and [`RouteRejection::MethodNotAllowed`].
    pub fn token_call(
        &self,
        named: Option<TokenCall>,
        head: &Head<'_>,
        form: &[u8],
        parameters: &Parameters,
    ) -> Result<Option<TokenCall>, RouteRejection> {
        let in_form = self.mode_of_form(head, form)?;
        let call = match (named, in_form) {
            (Some(call), None) | (None, Some(ServiceCall::Token(call))) => call,
            (None, None) => match TokenCall::by_parameters(parameters) {
                Some(call) => call,
                None => return Ok(None),
            },
            // The mode of a page belongs in the query.
            (Some(_), Some(_)) | (None, Some(_)) => {
                return Err(RouteRejection::ModeNotOnce);
            }
        };
        check_method(ServiceCall::Token(call), &head.parts.method)?;
        Ok(Some(call))
    }

    /// Checks that the form of a page does not name a mode too.
    ///
    /// # Errors
    /// [`RouteRejection::ModeNotOnce`] and [`RouteRejection::ModeUnknown`].
    pub fn check_page_form(&self, head: &Head<'_>, form: &[u8]) -> Result<(), RouteRejection> {
        match self.mode_of_form(head, form)? {
            None => Ok(()),
            Some(_) => Err(RouteRejection::ModeNotOnce),
        }
    }

    /// The `mode` of a form. Under the other paths, which name the call themselves, it is a parameter like any other.
    fn mode_of_form(
        &self,
        head: &Head<'_>,
        form: &[u8],
    ) -> Result<Option<ServiceCall>, RouteRejection> {
        if head.target.path == self.flow.endpoint.as_bytes() {
            self.by_mode(form)
        } else {
            Ok(None)
        }
    }

    /// The call or the page that `mode` names in a query or a form; `None` if it is not there.
    fn by_mode(&self, pairs: &[u8]) -> Result<Option<ServiceCall>, RouteRejection> {
        let mode =
            http_fields::parameter(pairs, "mode").map_err(|_| RouteRejection::ModeNotOnce)?;
        let is_on = |call: &ServiceCall| match call {
            ServiceCall::Token(TokenCall::Exchange) => self.exchange,
            ServiceCall::Page(Page::Register) => self.registration,
            _ => true,
        };
        let known = |mode: Cow<'_, str>| {
            let named = service::by_mode(&mode).filter(is_on);
            named.ok_or(RouteRejection::ModeUnknown)
        };
        mode.map(known).transpose()
    }

    /// The call or the page that path and query name; `None` under other paths.
    fn named(&self, head: &Head<'_>) -> Result<Option<Route<'static, 'static>>, RouteRejection> {
        let target = &head.target;
        let call = match target.path {
            // The API is the provider: nothing but the page for developers is ours.
            path if self.flow.guards() && path == self.flow.endpoint.as_bytes() => {
                let page = ServiceCall::Page(Page::Developer);
                match self.by_mode(target.query.unwrap_or_default()) {
                    Ok(Some(call)) if call == page => call,
                    _ => return Ok(None),
                }
            }
            path if path == self.flow.endpoint.as_bytes() => {
                match self.by_mode(target.query.unwrap_or_default())? {
                    None => return Ok(Some(Route::Token(None))),
                    Some(call) => call,
                }
            }
            path if self.jwk_set && path == JWK_SET.as_bytes() => ServiceCall::JwkSet,
            path if self.assets.iter().any(|asset| asset.as_bytes() == path) => {
                ServiceCall::Page(Page::Asset)
            }
            _ => match self.flow.find(target) {
                Some((_, call)) => *call,
                None => return Ok(None),
            },
        };
        check_method(call, &head.parts.method)?;
        Ok(Some(match call {
            ServiceCall::Token(call) => Route::Token(Some(call)),
            ServiceCall::Page(page) => Route::Page(page),
            ServiceCall::JwkSet => Route::JwkSet,
        }))
    }

    /// The authorization page, for a browser that comes with a request token to another path.
    fn authorize_hint(&self, head: &Head<'_>) -> Option<String> {
        let query = head.target.query.unwrap_or_default();
        let token = http_fields::parameter(query, ProtocolParameter::Token.as_str());
        let authorize = ServiceCall::Page(Page::Authorize);
        matches!(token, Ok(Some(_)))
            .then(|| format!("the authorization page is {}", self.flow.best_of(authorize)))
    }
}

/// The most characters of a host in a log line; no name has more (RFC 1035 §2.3.4).
const MAX_HOST_CHARS: usize = 255;

/// Finds the part of the program that a request is for.
///
/// # Errors
/// [`RouteRejection`]
pub fn route<'o, 'r>(
    params: &RouteRules,
    origins: &'o Origins,
    head: &Head<'r>,
) -> Result<Route<'o, 'r>, RouteRejection> {
    let (received, target) = (&head.received, &head.target);
    let is_base = origins.is_base(received);
    let has_pages = is_base || origins.is_page_host(received);
    // A call of the endpoint that its path and its query do not name.
    let mut is_undecided = false;
    if has_pages {
        match params.named(head)? {
            Some(Route::Token(None)) => is_undecided = is_base,
            Some(page @ Route::Page(_)) => return Ok(page),
            Some(named) if is_base => return Ok(named),
            _ => {}
        }
    }
    let url = match origins.choose(received, target.path) {
        Some(url) => url,
        None if is_undecided => return Ok(Route::Token(None)),
        None if has_pages && target.path == b"/" => {
            check_method(ServiceCall::Page(Page::Home), &head.parts.method)?;
            return Ok(Route::Page(Page::Home));
        }
        None if has_pages => {
            let headers = &head.parts.headers;
            let is_signed = headers.contains_key(header::AUTHORIZATION)
                || matches!(
                    http_fields::parameter(
                        target.query.unwrap_or_default(),
                        ProtocolParameter::Signature.as_str(),
                    ),
                    Ok(Some(_))
                );
            let api = || is_signed.then(|| format!("the API is at {}", origins.api_urls()));
            let hint = params
                .authorize_hint(head)
                .filter(|_| !is_signed)
                .or_else(api);
            return Err(RouteRejection::NotFound(hint));
        }
        None => {
            let (authority, at_host) = (&received.authority, origins.urls_at(received));
            let host: String = authority.host.chars().take(MAX_HOST_CHARS).collect();
            let port = authority.port.map(|port| format!(":{port}"));
            return Err(RouteRejection::Misdirected {
                host: host + &port.unwrap_or_default(),
                is_known: at_host.is_some(),
                public: at_host.unwrap_or_else(|| origins.all_urls()),
            });
        }
    };
    let (path, restored_prefix) = match origins.prefix_mode {
        PrefixMode::Keep => {
            if !url.prefix.is_empty() && target::climbs(&target.path[url.prefix.len()..]) {
                return Err(RouteRejection::PathAbovePrefix);
            }
            (target.path, "")
        }
        PrefixMode::Restore => (target.path, url.prefix.as_str()),
        PrefixMode::Strip => match &target.path[url.prefix.len()..] {
            [] => (&b"/"[..], ""),
            path => (path, ""),
        },
    };
    let call = ApiCall {
        url,
        restored_prefix,
        path,
    };
    Ok(match is_undecided {
        true => Route::TokenOrApi(call),
        false => Route::Api(call),
    })
}

fn check_method(call: ServiceCall, method: &Method) -> Result<(), RouteRejection> {
    match call.methods().has(method) {
        true => Ok(()),
        false => Err(RouteRejection::MethodNotAllowed { call }),
    }
}
