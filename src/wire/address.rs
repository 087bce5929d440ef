//! Addresses as the configuration writes them.

use std::{fmt, net::SocketAddr, path::PathBuf};

use crate::{
    base::settings::{Reason, Text, deserialize_text, plain_values, texts},
    wire::url::origin::{
        HttpUrl, InvalidUrl, Origin, authority, is_loopback, plain_path, without_brackets,
    },
};

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
    /// The scheme, host and port, or a Unix socket.
    pub server: TcpOrUnix<Origin>,
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
    const EXPECTED: &'static str = "a URL such as \"https://accounts.example.com/check\", or \"unix:/run/accounts.sock:/check\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        if let Some(socket) = text.strip_prefix("unix:") {
            // The path of the URL begins after the last colon.
            let (socket, path) = socket.rsplit_once(":/").unwrap_or((socket, ""));
            let path = format!("/{path}");
            plain_path(path.trim_end_matches('/'))
                .or_else(|error| if path == "/" { Ok(()) } else { Err(error) })
                .map_err(|error| error.to_string())?;
            let server = tcp_or_unix(&format!("unix:{socket}"))?;
            return Ok(Self { server, path });
        }
        let HttpUrl { origin, mut path } =
            HttpUrl::parse(text).map_err(|error| error.to_string())?;
        if path.is_empty() || text.ends_with('/') {
            path.push('/');
        }
        let server = TcpOrUnix::Tcp(origin);
        Ok(Self { server, path })
    }
}

impl EndpointUrl {
    /// Whether requests go over TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.server.tcp().is_some_and(Origin::is_https)
    }

    /// Whether requests cross a network in clear.
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        self.server.tcp().is_some_and(Origin::is_in_clear)
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.server {
            TcpOrUnix::Tcp(origin) => write!(f, "{origin}{path}"),
            TcpOrUnix::Unix(socket) => write!(f, "unix:{}:{path}", socket.display()),
        }
    }
}
