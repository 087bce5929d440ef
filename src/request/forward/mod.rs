//! To the API and back: heads rewritten, bodies streamed, connections kept.

pub mod credentials;
mod error;
pub mod exchange;
pub mod folded;
pub mod header;
pub mod pool;
pub mod request;
pub mod response;
pub mod settings;
pub mod tunnel;
pub mod websocket;

use std::time::Duration;

use http::HeaderValue;

pub use self::{
    error::{ForwardError, ForwardFault, ForwardRejection},
    folded::FoldedNames,
};
use crate::request::{
    identity::Identity,
    policy::{call::Call, permit::Permit},
};

/// The rules by which heads are rewritten.
pub struct ForwardParams {
    /// The path of `upstream.api_url`, without a slash at its end.
    pub api_path: String,
    /// Scheme, host and port of `upstream.api_url`; `None` for a Unix socket.
    pub api_origin: Option<url::Origin>,
    /// `Host` as sent to the API.
    pub host: HostMode,
    /// `X-Forwarded-*` are set.
    pub forwarded: bool,
    /// Callers' fields that are dropped: the identity headers' spellings, and those by which an API would undo the
    /// decision or believe an identity or an address.
    pub dropped: FoldedNames,
    /// Those that are dropped unless they are the field itself: names that only differ from HTTP's own by `_` and the
    /// like.
    pub lookalikes: FoldedNames,
    /// The fields that identify the caller.
    pub identity: Identity,
    /// The names of our own cookies: the API neither gets them nor sets any of that name. Those of the console are
    /// among them, because a browser sends the cookies of a host to all its ports.
    pub cookies: [&'static str; 4],
    /// The name of this process in `Countersign-Hop`, by which it recognises a request that comes back.
    pub hop: HeaderValue,
    /// The time that the API has for the head of its response.
    pub response_timeout: Duration,
    /// The time for which it may send nothing of the body.
    pub silence_timeout: Duration,
    /// The time that both sides of an upgraded connection may be silent.
    pub tunnel_timeout: Duration,
}

impl ForwardParams {
    /// Whether the OAuth credentials of a permitted call go on to the API.
    pub fn forwards_authorization(&self, permit: &Permit) -> bool {
        let of_operation = permit.forward_authorization();
        of_operation.unwrap_or(self.identity.forward_authorization)
    }

    /// Whether the API looks for OAuth credentials in a permitted call, signed or not.
    pub fn shows_credentials(&self, call: &Call<'_>, permit: &Permit) -> bool {
        let rules = call.found.rules();
        let of_operation = rules.and_then(|it| it.forward_authorization);
        permit.kind().is_some() && of_operation.unwrap_or(self.identity.forward_authorization)
    }

    /// Whether a cookie of that name is one of ours.
    #[must_use]
    pub fn is_reserved_cookie(&self, name: &[u8]) -> bool {
        self.cookies
            .iter()
            .any(|reserved| reserved.as_bytes() == name)
    }
}

/// The `Host` that the API sees.
#[derive(Debug, Clone)]
pub enum HostMode {
    /// The caller's.
    Public,
    /// A fixed one.
    Fixed(HeaderValue),
}

/// Names that a CGI-like framework reads like fields of HTTP itself or like forwarded fields: in any other spelling
/// than their own they are dropped.
pub const LOOKALIKES: [&str; 14] = [
    "Authorization",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "Forwarded",
    "Host",
    "Transfer-Encoding",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Prefix",
    "X-Forwarded-Proto",
    "X-Request-Id",
];

/// Not a field of HTTP: CGI makes `HTTP_PROXY` of it, which libraries of the API use for requests (CVE-2016-5385).
pub const HTTPOXY: &str = "Proxy";

#[cfg(test)]
mod tests;
