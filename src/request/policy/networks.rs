//! The networks from which an operation may be called (`from`).

use ipnet::IpNet;

use crate::request::parse::caller_facts::CallerFacts;

/// The networks of the callers of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerNetworks(
    /// Empty: callers may be anywhere.
    pub Vec<IpNet>,
);

impl CallerNetworks {
    /// Whether the caller's address is in one of them; an unknown address is in none.
    #[must_use]
    pub fn admits(&self, caller: &CallerFacts) -> bool {
        let address = caller.address.map(|address| address.to_canonical());
        let mut networks = self.0.iter();
        self.0.is_empty()
            || address.is_some_and(|address| networks.any(|network| network.contains(&address)))
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
            let all = CallerNetworks(all.map(|text| text.parse().unwrap()).collect());
            let address = address.map(|text| text.parse().unwrap());
            let admitted = all.admits(&CallerFacts { address });
            assert_eq!(admitted, is_admitted, "{address:?} in {networks}");
        }
    }
}
