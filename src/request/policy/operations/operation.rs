//! One `[[operation]]`: what its calls have to meet, and what the API gets of them.

use std::net::IpAddr;

use http::Method;
use ipnet::IpNet;

use crate::{
    base::network,
    records::values::record::BodyHash,
    request::{
        policy::{UnmetRule, access::Access, settings::OperationSettings},
        verify::settings::Enforcement,
    },
    telemetry::calls::facts::OperationRule,
};

/// One `[[operation]]`.
#[derive(Debug, Clone)]
pub struct Operation {
    /// As it is written.
    pub rules: OperationSettings,
    /// The kinds of caller that may call it.
    pub access: Access,
    /// Its place among all operations.
    pub index: usize,
}

impl Operation {
    /// Its path, with the methods in front where it lists any.
    pub(super) fn label(&self) -> String {
        let path = &self.rules.path;
        match self.methods().as_slice() {
            [] => path.to_string(),
            methods => format!("{} {path}", methods.join(",")),
        }
    }

    /// The methods that it lists; none: it has every method.
    pub fn methods(&self) -> Vec<&str> {
        self.rules.methods.iter().map(Method::as_str).collect()
    }

    /// What the API gets of the credentials, where the operation itself says it.
    pub fn credentials(&self) -> Option<&'static str> {
        let forwards = self.rules.forward_authorization;
        forwards.map(|is_forwarded| match is_forwarded {
            true => "the credentials go on to the API",
            false => "the credentials are taken out",
        })
    }

    /// Whether it lists this method; GET does not list HEAD here.
    #[must_use]
    pub fn has_method(&self, method: &[u8]) -> bool {
        let methods = &self.rules.methods;
        methods.is_empty() || methods.iter().any(|it| it.as_str().as_bytes() == method)
    }

    /// Whether signatures of its calls are enforced; `enforces`: they are where it does not say so.
    pub fn is_enforced(&self, enforces: bool) -> bool {
        let written = self.rules.enforcement;
        written.map_or(enforces, |it| it == Enforcement::Enforce)
    }

    /// Its rank: observed, as configured for all, enforced.
    pub(super) const fn enforcement(&self) -> u8 {
        match self.rules.enforcement {
            Some(Enforcement::Observe) => 0,
            None => 1,
            Some(Enforcement::Enforce) => 2,
        }
    }

    /// Whether what `other` asks of a call is enough for this one, which has its method too.
    pub(super) fn asks_at_most(&self, other: &Self) -> bool {
        let (own, others) = (&self.rules, &other.rules);
        (own.permission.is_none() || own.permission == others.permission)
            && self.access.admits_all(other.access)
            && (own.from.is_empty() || own.from == others.from)
            && self.enforcement() <= other.enforcement()
            && (own.body_hash == BodyHash::Optional || own.body_hash == others.body_hash)
            && (!own.upgrade.is_empty() || others.upgrade.is_empty())
            && own.timestamp_window == others.timestamp_window
    }

    /// The rule by which a caller at this address may not call it.
    pub(super) fn unmet_by(&self, caller: Option<IpAddr>) -> Option<UnmetRule> {
        let is_met = network::admit(&self.rules.from, caller);
        (!is_met).then_some(UnmetRule::Other(OperationRule::From))
    }
}

/// From where callers are allowed by these networks, in words.
pub fn allowed_networks(networks: &[IpNet]) -> String {
    let networks = Vec::from_iter(networks.iter().map(ToString::to_string));
    format!("only from {}", networks.join(" or "))
}
