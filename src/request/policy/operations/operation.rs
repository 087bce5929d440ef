//! One `[[operation]]`: what its calls have to meet, and what the API gets of them.

use std::{net::IpAddr, time::Duration};

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;

use super::{frame_ancestors::FrameAncestors, pattern::PathPattern};
use crate::{
    base::{network, text::names::Permission},
    request::policy::{UnmetRule, access::Access},
    telemetry::calls::facts::OperationRule,
};

/// The longest value of a parameter that goes on as a header field, in bytes: servers limit the head of a request.
const MAX_HEADER_BYTES: usize = 4_096;

/// A header field that has the value of a signed parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterHeader {
    /// The name of the field.
    pub name: HeaderName,
    /// The name of the parameter, decoded.
    pub parameter: String,
}

impl ParameterHeader {
    /// The value of the field where the signature covers these values of the parameter: one, or equal copies, with bytes that a
    /// field may have, and no white space at an end, which a recipient would take away.
    pub fn value(&self, values: &[&[u8]]) -> Option<HeaderValue> {
        let (first, others) = values.split_first()?;
        let is_clear = others.iter().all(|other| other == first);
        let fits = first.len() <= MAX_HEADER_BYTES && first.trim_ascii() == *first;
        let value = HeaderValue::from_bytes(first).ok();
        value.filter(|_| is_clear && fits)
    }
}

/// The times that the API has for an operation; `None`: as configured for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApiTimeouts {
    /// For the head of its response.
    pub response: Option<Duration>,
    /// For which it may send nothing of the body.
    pub silence: Option<Duration>,
}

/// One `[[operation]]`.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `/members/{id}`, `/files/{*rest}`.
    pub path: PathPattern,
    /// Allowed methods; empty means any. `GET` also allows `HEAD`.
    pub methods: Vec<String>,
    /// The permission that both token and consumer must have.
    pub permission: Option<Permission>,
    /// The kinds of caller that may call it.
    pub access: Access,
    /// The networks from which it may be called; empty: callers may be anywhere.
    pub from: Vec<IpNet>,
    /// `Some(true)`: protected calls are enforced; `Some(false)`: observed; `None`: as configured for all.
    pub enforce: Option<bool>,
    /// A WebSocket upgrade passes.
    pub websocket: bool,
    /// A body that is not a form needs `oauth_body_hash`.
    pub needs_body_hash: bool,
    /// The accepted difference of a timestamp from the clock, either way; `None`: as configured for all.
    pub timestamp_window: Option<Duration>,
    /// The times that the API has.
    pub timeouts: ApiTimeouts,
    /// The OAuth credentials go on to the API; `None`: as configured for all.
    pub forward_authorization: Option<bool>,
    /// The signed parameters that the API also gets as header fields.
    pub headers: Vec<ParameterHeader>,
    /// It is launched by a browser's form: its user sees the failure, in a frame of these sites too; `None`: it is not.
    pub launch: Option<FrameAncestors>,
    /// Its place among all operations; [`Operations::new`](super::Operations::new) sets it.
    pub index: usize,
}

impl Operation {
    /// Its path, with the methods in front where it lists any.
    pub(super) fn label(&self) -> String {
        match self.methods.as_slice() {
            [] => self.path.to_string(),
            methods => format!("{} {}", methods.join(","), self.path),
        }
    }

    /// What the API gets of the credentials, where the operation itself says it.
    pub fn credentials(&self) -> Option<&'static str> {
        self.forward_authorization
            .map(|is_forwarded| match is_forwarded {
                true => "the credentials go on to the API",
                false => "the credentials are taken out",
            })
    }

    /// Whether it lists this method; GET does not list HEAD here.
    #[must_use]
    pub fn has_method(&self, method: &[u8]) -> bool {
        let same = |known: &String| known.as_bytes() == method;
        self.methods.is_empty() || self.methods.iter().any(same)
    }

    /// Its rank: observed, as configured for all, enforced.
    pub(super) const fn enforcement(&self) -> u8 {
        match self.enforce {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        }
    }

    /// Whether what `other` asks of a call is enough for this one, which has its method too.
    pub(super) fn asks_at_most(&self, other: &Self) -> bool {
        let has_permission = self.permission.is_none() || self.permission == other.permission;
        has_permission
            && self.access.admits_all(other.access)
            && (self.from.is_empty() || self.from == other.from)
            && self.enforcement() <= other.enforcement()
            && (other.needs_body_hash || !self.needs_body_hash)
            && (self.websocket || !other.websocket)
            && self.timestamp_window == other.timestamp_window
    }

    /// The rule by which a caller at this address may not call it.
    pub(super) fn unmet_by(&self, caller: Option<IpAddr>) -> Option<UnmetRule> {
        let is_met = network::admit(&self.from, caller);
        (!is_met).then_some(UnmetRule::Other(OperationRule::From))
    }
}

/// From where callers are allowed by these networks, in words.
pub fn allowed_networks(networks: &[IpNet]) -> String {
    let networks = Vec::from_iter(networks.iter().map(ToString::to_string));
    format!("only from {}", networks.join(" or "))
}
