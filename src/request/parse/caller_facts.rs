//! The facts about a caller that rules of operations judge, in addition to its credentials.

use std::net::IpAddr;

/// The facts about a caller. A rule that judges another one, such as its certificate, adds a field.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallerFacts {
    /// Its address; `None` if there is none, as over a Unix socket, or if the proxy in front does not report it.
    pub address: Option<IpAddr>,
}
