//! The other end of a connection.

use std::net::{IpAddr, Ipv6Addr};

/// The connection a request came by. By default it is one of a Unix socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct Peer {
    /// The address of the other end; `None` for a Unix socket.
    pub address: Option<IpAddr>,
    /// The connection is under TLS that ends here.
    pub secure: bool,
    /// The address is that of a proxy, which passes the connection on and does not name the caller. The fields are then
    /// not the proxy's, whether or not it is trusted.
    pub is_relay: bool,
}

/// The network that counts as one caller: an IPv4 address, or the /64 of an IPv6 address, which is what one host gets.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}
