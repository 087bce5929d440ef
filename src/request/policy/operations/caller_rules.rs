//! The rules of an operation about facts of the caller in addition to its credentials: a field and a row for each. The
//! permit, the log, `check` with its warnings, and the console follow from the rows.

use ipnet::IpNet;

use crate::{
    base::network, request::parse::caller_facts::CallerFacts,
    telemetry::calls::facts::OperationRule,
};

/// The rules of one operation. By default they admit every caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerRules {
    /// The networks from which it may be called; empty: callers may be anywhere.
    pub from: Vec<IpNet>,
}

/// A rule about a fact.
pub struct CallerRule {
    /// Its key in `[[operation]]`.
    pub key: OperationRule,
    /// Whether a caller with these facts meets it.
    is_met: fn(&CallerRules, &CallerFacts) -> bool,
    /// What it demands of callers; empty: nothing.
    demand: fn(&CallerRules) -> String,
}

/// All rules, in the order in which they are checked.
pub const CALLER_RULES: &[CallerRule] = &[CallerRule {
    key: OperationRule::From,
    is_met: |CallerRules { from }, caller| network::admit(from, caller.address),
    demand: |CallerRules { from }| match &*Vec::from_iter(from.iter().map(ToString::to_string)) {
        [] => String::new(),
        networks => format!("only from {}", networks.join(" or ")),
    },
}];

impl CallerRules {
    /// The first rule that a caller with these facts does not meet.
    #[must_use]
    pub fn unmet_by(&self, caller: &CallerFacts) -> Option<OperationRule> {
        let unmet = CALLER_RULES
            .iter()
            .find(|rule| !(rule.is_met)(self, caller));
        unmet.map(|rule| rule.key)
    }

    /// The rules that demand something: the key of each, and its demand in words.
    pub fn demands(&self) -> impl Iterator<Item = (&'static str, String)> {
        let demands = CALLER_RULES
            .iter()
            .map(|rule| (rule.key.into(), (rule.demand)(self)));
        demands.filter(|(_, demand)| !demand.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;

    #[test]
    fn admits_the_addresses_of_its_networks_alone() {
        for (networks, address, is_admitted) in [
            ("", Some("192.0.2.1"), true),
            ("", None, true),
            ("10.0.0.0/8", None, false),
            ("10.0.0.0/8", Some("10.255.0.1"), true),
            ("10.0.0.0/8", Some("11.0.0.1"), false),
            ("10.0.0.0/8", Some("::ffff:10.0.0.1"), true),
            ("10.0.0.0/8", Some("::ffff:11.0.0.1"), false),
            ("10.0.0.0/8", Some("::10.0.0.1"), false),
            ("0.0.0.0/0", Some("2001:db8::1"), false),
            ("::/0", Some("::ffff:10.0.0.1"), false),
            ("192.0.2.1/32 2001:db8::/32", Some("2001:db8::1"), true),
            ("192.0.2.1/32 2001:db8::/32", Some("192.0.2.1"), true),
            ("192.0.2.1/32 2001:db8::/32", Some("192.0.2.2"), false),
        ] {
            let all = words(networks).into_iter();
            let from = all.map(|text| text.parse().unwrap()).collect();
            let address = address.map(|text| text.parse().unwrap());
            let unmet = CallerRules { from }.unmet_by(&CallerFacts { address });
            assert_eq!(
                unmet,
                (!is_admitted).then_some(OperationRule::From),
                "{address:?} in {networks}"
            );
        }
    }
}
