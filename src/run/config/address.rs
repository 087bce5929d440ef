//! Settings that name an address: public URLs, the API, listeners.

use std::{fmt, net::SocketAddr, path::PathBuf};

use unic_langid::LanguageIdentifier;

use super::text::{Reason, Text, texts};
use crate::{
    provider::{issue::registration::web_page, respond::colour::Colour},
    wire::origin::{HttpUrl, InvalidUrl, Origin, authority, is_loopback, without_brackets},
};

/// Something on the network, or a Unix socket of this machine, without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOrUnix<N> {
    /// Over TCP.
    Tcp(N),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The address of the API. Over TCP it is a URL, with or without TLS, whose path goes in front of each forwarded path.
pub type ApiUrl = TcpOrUnix<HttpUrl>;

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

fn tcp_or_unix<N: Text>(text: &str) -> Result<TcpOrUnix<N>, Reason> {
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

/// The Host field that the API gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamHost {
    /// As received.
    Public,
    /// `upstream.api_url`'s.
    Upstream,
    /// This name, with a port if one is written.
    Name(String),
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

/// The address of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl(pub String);

/// A language, as `lang` in HTML names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language(pub String);

texts! {
    ApiUrl: "a URL such as \"http://127.0.0.1:9000\" or \"unix:/run/api.sock\"" => tcp_or_unix;
    Colour: "a colour such as \"#1f4fd8\"" => |text| Self::parse(text).ok_or("");
    HttpUrl: "a URL such as \"https://example.com\" or \"https://example.com/api\"" => Self::parse;
    ListenAddress: "an IP address and a port such as \"127.0.0.1:8081\", or \"unix:/run/countersign.sock\"" => tcp_or_unix;
    Origin: "an origin such as \"https://auth.example.com\"" => Self::parse;
    ServerName: "a host name such as \"api.internal\"" =>
        |text| match authority(text)? {
            (host, None) => Ok(Self(without_brackets(&host).to_owned())),
            _ => Err(InvalidUrl("it has a port")),
        };
    Language: "a language such as \"en\" or \"pt-BR\"" => |text: &str|
        text.parse::<LanguageIdentifier>().map(|id| Self(id.to_string())).map_err(|_| "");
    WebUrl: "the address of a web page such as \"https://example.com/terms\"" => |text| web_page(text).map(Self);
}

impl Text for EndpointUrl {
    const EXPECTED: &'static str = "a URL such as \"https://accounts.example.com/check\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        let HttpUrl { origin, mut path } = HttpUrl::parse(text).map_err(reason)?;
        if path.is_empty() || text.ends_with('/') {
            path.push('/');
        }
        Ok(Self { origin, path })
    }
}

impl Text for UpstreamHost {
    const EXPECTED: &'static str = "\"public\", \"upstream\" or a host name";

    fn parse(text: &str) -> Result<Self, Reason> {
        match text {
            "public" => Ok(Self::Public),
            "upstream" => Ok(Self::Upstream),
            _ => {
                let (host, port) = authority(text).map_err(reason)?;
                Ok(Self::Name(match port {
                    Some(port) => format!("{host}:{port}"),
                    None => host,
                }))
            }
        }
    }
}

fn reason(error: InvalidUrl) -> Reason {
    error.to_string().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_places_where_an_api_can_be() {
        assert_eq!(
            ApiUrl::parse("unix:/run/a.sock"),
            Ok(ApiUrl::Unix("/run/a.sock".into()))
        );
        assert!(ApiUrl::parse("unix:a.sock").is_err());
        let Ok(ApiUrl::Tcp(url)) = ApiUrl::parse("https://api:8443/v1/") else {
            panic!("no URL");
        };
        assert_eq!((url.origin.port, url.path.as_str()), (8443, "/v1"));
        assert_eq!(
            UpstreamHost::parse("API:80"),
            Ok(UpstreamHost::Name("api:80".to_owned()))
        );
        assert!(UpstreamHost::parse("a b").is_err());
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text: String) {
            let _ = (ApiUrl::parse(&text), UpstreamHost::parse(&text), ServerName::parse(&text));
        }
    }
}
