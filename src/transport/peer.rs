//! Who is at the other end of a connection.

use std::net::IpAddr;

/// The connection a request came by.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The address of the other end; `None` for a Unix socket.
    pub address: Option<IpAddr>,
    /// The connection is under TLS that ends here.
    pub secure: bool,
}
