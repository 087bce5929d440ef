//! Whether `upstream.api_url` leads to a listener of this process itself.
//!
//! Each request would come back as another one, thousands of times over; on the admin listener, unauthenticated callers would
//! reach metrics. A loop that cannot be seen here, such as one through another proxy, ends with 508 at the first return.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use thiserror::Error;
use tokio::time::timeout;

use crate::{
    request::forward::settings::ApiUrl,
    run::{app::files::paths::resolved, config::Config},
    wire::{address::ListenAddress, outbound},
};

/// The address of a listener, and its key.
pub type BoundAddress = (&'static str, ListenAddress);

/// `upstream.api_url` leads to a listener of this process.
#[derive(Debug, Error)]
#[error(
    "upstream.api_url: {url} is {key} {listener}, a listener of countersign itself; write where the API listens"
)]
pub struct ApiIsOurs {
    url: String,
    key: &'static str,
    listener: ListenAddress,
}

/// Checks that the API is not one of `listeners`. A name that does not resolve now passes: the API may start later.
pub async fn check(config: &Config, listeners: &[BoundAddress]) -> Result<(), ApiIsOurs> {
    let Some(url) = &config.upstream.api_url else {
        return Ok(());
    };
    let found = match url {
        ApiUrl::Unix(path) => {
            let path = resolved(path);
            listeners.iter().find(
                |(_, listener)| matches!(listener, ListenAddress::Unix(at) if resolved(at) == path),
            )
        }
        ApiUrl::Tcp(url) => {
            let (origin, upstream) = (&url.origin, &config.upstream);
            let found = outbound::addresses(origin.bare_host(), upstream.stale_addresses);
            let found = timeout(upstream.connect_timeout, found).await;
            let addresses = found.ok().and_then(Result::ok);
            let is_ours = |at: SocketAddr| {
                let mut ips = addresses
                    .iter()
                    .flat_map(|all| all.iter().map(SocketAddr::ip));
                ips.any(|ip| leads_to(SocketAddr::new(ip, origin.port), at))
            };
            listeners.iter().find(|(_, listener)| match listener {
                ListenAddress::Tcp(at) => is_ours(*at),
                ListenAddress::Unix(_) => false,
            })
        }
    };
    match found {
        None => Ok(()),
        Some((key, listener)) => Err(ApiIsOurs {
            url: url.to_string(),
            key,
            listener: listener.clone(),
        }),
    }
}

/// Whether a connection to `address` arrives at `listener`.
fn leads_to(address: SocketAddr, listener: SocketAddr) -> bool {
    let address_ip = reached(address.ip());
    let listener_ip = listener.ip().to_canonical();
    // A listener on `[::]` takes IPv4 as well.
    let takes_family = listener_ip.is_ipv6() || address_ip.is_ipv4();
    address.port() == listener.port()
        && (listener_ip == address_ip
            || listener_ip.is_unspecified() && takes_family && is_local(address_ip))
}

/// The address that a connection to `ip` reaches: the unspecified address means this machine.
pub fn reached(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Whether an address is this machine's own: a connection to such an address comes from it. The check uses a UDP
/// socket, which sends nothing.
fn is_local(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    ip.is_loopback() || source.is_ok_and(|source| source.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_own_address_leads_to_the_listener() {
        for (address, listener, leads) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:81", "127.0.0.1:80", false),
            ("127.0.0.2:80", "127.0.0.1:80", false),
            ("127.0.0.2:80", "0.0.0.0:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "0.0.0.0:80", true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
            ("[::ffff:0.0.0.0]:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", "[::ffff:0.0.0.0]:80", true),
            ("127.0.0.1:80", "[::]:80", true),
            ("[::1]:80", "[::]:80", true),
            ("[::]:80", "[::1]:80", true),
            ("[::1]:80", "127.0.0.1:80", false),
            ("[::1]:80", "0.0.0.0:80", false),
            ("192.0.2.7:80", "0.0.0.0:80", false),
            ("192.0.2.7:80", "[::]:80", false),
        ] {
            let (to, at) = (address.parse().unwrap(), listener.parse().unwrap());
            assert_eq!(leads_to(to, at), leads, "{address} {listener}");
        }
    }
}
