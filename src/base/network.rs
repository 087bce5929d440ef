//! Networks of callers, as the record of a consumer has them.

pub mod http_fields;
pub mod peer;
pub mod tls;

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use serde::{Serialize, Serializer};

use super::settings::{Reason, Text as _, deserialize_text, texts};

/// A network, written as a CIDR or as one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub IpNet);

texts! {
    Network: "an address or a network such as \"10.0.0.0/8\"" => str::parse::<Self>;
}
deserialize_text!(Network);

impl FromStr for Network {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        IpNet::parse(text)
            .map(Self)
            .map_err(|reason| match &*reason {
                "" => "write an address or a network such as 10.0.0.0/8".into(),
                _ => reason,
            })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether these networks admit a caller: one of them has its address, or there are none. They admit no caller whose
/// address is unknown.
#[must_use]
pub fn admit<'n>(networks: impl IntoIterator<Item = &'n IpNet>, address: Option<IpAddr>) -> bool {
    let mut networks = networks.into_iter().peekable();
    if networks.peek().is_none() {
        return true;
    }
    let address = address.map(|address| address.to_canonical());
    address.is_some_and(|address| networks.any(|network| network.contains(&address)))
}
