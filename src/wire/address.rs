//! Addresses as the configuration writes them.

use std::{fmt, net::SocketAddr, path::PathBuf};

use super::origin::{HttpUrl, InvalidUrl, Origin, authority, is_loopback, without_brackets};
use crate::base::settings::{Reason, Text, deserialize_text, plain_values, texts};

/// Something on the network, or a Unix socket of this machine, without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOrUnix<N> {
    /// Over TCP.
    Tcp(N),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The address of a listener; with port 0 the system chooses a free one.
pub type ListenAddress = TcpOrUnix<SocketAddr>;

impl<N> TcpOrUnix<N> {
    /// The address on the network; `None` for a Unix socket.
    pub const fn tcp(&self) -> Option<&N> {
        match self {
            Self::Tcp(place) => Some(place),
            Self::Unix(_) => None,
        }
    }
}

impl ListenAddress {
    /// Whether only this machine reaches it over the network.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.tcp().is_some_and(|address| is_loopback(address.ip()))
    }
}

/// Reads `unix:` and a path, or an address on the network.
///
/// # Errors
/// The reason.
pub fn tcp_or_unix<N: Text>(text: &str) -> Result<TcpOrUnix<N>, Reason> {
    let Some(path) = text.strip_prefix("unix:") else {
        return N::parse(text).map(TcpOrUnix::Tcp);
    };
    if !path.starts_with('/') {
        return Err("the path of a Unix socket is absolute".into());
    }
    PathBuf::parse(path).map(TcpOrUnix::Unix)
}

impl<N: fmt::Display> fmt::Display for TcpOrUnix<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => place.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The name of a host, or its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName(pub String);

/// The URL of one endpoint: its path is sent as written, a slash at its end included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    /// The scheme, host and port.
    pub origin: Origin,
    /// The path, `/` at least.
    pub path: String,
}

texts! {
    HttpUrl: "a URL such as \"https://example.com\" or \"https://example.com/api\"" => Self::parse;
    ListenAddress: "an IP address and a port such as \"127.0.0.1:8081\", or \"unix:/run/countersign.sock\"" => tcp_or_unix;
    Origin: "an origin such as \"https://auth.example.com\"" => Self::parse;
    ServerName: "a host name such as \"api.internal\"" =>
        |text| match authority(text)? {
            (host, None) => Ok(Self(without_brackets(&host).to_owned())),
            _ => Err(InvalidUrl("it has a port")),
        };
}
plain_values!(EndpointUrl);
deserialize_text!(EndpointUrl, HttpUrl, ListenAddress, Origin, ServerName);

impl Text for EndpointUrl {
    const EXPECTED: &'static str = "a URL such as \"https://accounts.example.com/check\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        let HttpUrl { origin, mut path } =
            HttpUrl::parse(text).map_err(|error| error.to_string())?;
        if path.is_empty() || text.ends_with('/') {
            path.push('/');
        }
        Ok(Self { origin, path })
    }
}
