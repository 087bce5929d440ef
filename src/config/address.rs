//! Settings that name a place: public URLs, the API behind, listeners.

use std::{borrow::Cow, fmt, net::SocketAddr, path::PathBuf};

use super::{
    setting::Text,
    url::{HttpUrl, Origin, authority, host, prefix, split_url},
};

/// A URL for which consumers sign: its path is a prefix of what they call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublicUrl(pub HttpUrl);

/// `service.base_url`: the public origin of the token endpoints and pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BaseUrl {
    /// Not written: the public listener's own address, which is known once it is bound.
    #[default]
    FromListener,
    /// As written.
    Url(Origin),
}

/// Where the API is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiUrl {
    /// Over TCP, with or without TLS. The path goes in front of what is forwarded.
    Http(HttpUrl),
    /// Over a Unix socket, without TLS.
    Unix(PathBuf),
}

impl fmt::Display for ApiUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => url.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where a listener listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
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

/// The name that an upstream certificate must be valid for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName(pub String);

impl Text for BaseUrl {
    fn expected() -> Cow<'static, str> {
        "an origin such as \"https://auth.example.com\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let (origin, path) = split_url(text)?;
        if !matches!(path, "" | "/") {
            return Err("an origin has no path, query or fragment".into());
        }
        Ok(Self::Url(origin))
    }
}

impl Text for PublicUrl {
    fn expected() -> Cow<'static, str> {
        "a URL such as \"https://api.example.com\" or \"https://example.com/api\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let (origin, path) = split_url(text)?;
        let path = prefix(path)?;
        if path.contains('%') {
            // One path can be escaped in many ways, and a prefix is compared byte by byte.
            return Err("a prefix has no percent-encoding".into());
        }
        Ok(Self(HttpUrl { origin, path }))
    }
}

impl Text for HttpUrl {
    fn expected() -> Cow<'static, str> {
        "a URL such as \"https://accounts.example.com/check\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let (origin, path) = split_url(text)?;
        let path = prefix(path)?;
        Ok(Self { origin, path })
    }
}

impl Text for ApiUrl {
    fn expected() -> Cow<'static, str> {
        "a URL such as \"http://127.0.0.1:9000\" or \"unix:/run/api.sock\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(Self::Unix(socket_path(path)?)),
            None => HttpUrl::parse(text).map(Self::Http),
        }
    }
}

impl Text for ListenAddress {
    fn expected() -> Cow<'static, str> {
        "an IP address and a port such as \"127.0.0.1:8081\", or \"unix:/run/countersign.sock\""
            .into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(Self::Unix(socket_path(path)?)),
            None => SocketAddr::parse(text).map(Self::Tcp),
        }
    }
}

impl Text for UpstreamHost {
    fn expected() -> Cow<'static, str> {
        "\"public\", \"upstream\" or a host name".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        match text {
            "public" => Ok(Self::Public),
            "upstream" => Ok(Self::Upstream),
            _ => {
                let (host, port) = authority(text)?;
                Ok(Self::Name(match port {
                    Some(port) => format!("{host}:{port}"),
                    None => host,
                }))
            }
        }
    }
}

impl Text for ServerName {
    fn expected() -> Cow<'static, str> {
        "a host name such as \"api.internal\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let host = host(text)?;
        Ok(Self(
            host.trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
        ))
    }
}

fn socket_path(path: &str) -> Result<PathBuf, Cow<'static, str>> {
    if !path.starts_with('/') {
        return Err("the path of a Unix socket is absolute".into());
    }
    PathBuf::parse(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_public_urls_into_one_spelling() {
        for (text, expected) in [
            ("https://API.example.com", "https://api.example.com"),
            ("HTTPS://api.example.com:443/", "https://api.example.com"),
            ("http://api.example.com:443", "http://api.example.com:443"),
            ("http://h:80/v1/", "http://h/v1"),
            ("http://[0:0::1]:8080/a/b", "http://[::1]:8080/a/b"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("http://my_api:9000", "http://my_api:9000"),
        ] {
            let read = PublicUrl::parse(text).map(|url| url.0.to_string());
            assert_eq!(read.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for (text, reason) in [
            ("api.example.com", "it begins with no http:// or https://"),
            ("ftp://h", "it begins with no http:// or https://"),
            ("http://", "it has no host"),
            ("http://u:p@h", "a user and a password have no place here"),
            ("http://h:", "a port is from 1 to 65535"),
            ("http://h:0", "a port is from 1 to 65535"),
            ("http://h:65536", "a port is from 1 to 65535"),
            ("http://h:+1", "its port is no number"),
            ("http://::1", "its host is no host name"),
            ("http://[::1", "the brackets hold no IPv6 address"),
            ("http://[::g]", "the brackets hold no IPv6 address"),
            ("http://[::1]x", "the brackets hold no IPv6 address"),
            ("http://a..b", "its host is no host name"),
            ("http://a.", "its host is no host name"),
            ("http://-a", "its host is no host name"),
            ("http://1.2.3", "its host is no IPv4 address"),
            ("http://256.1.1.1", "its host is no IPv4 address"),
            (
                "http://bücher.example",
                "write the host in its ASCII form (xn--…)",
            ),
            ("http://h\\x", "its host is no host name"),
            ("http://h/a?b", "it has a query"),
            ("http://h#a", "it has a fragment"),
            ("http://h/a/../b", "it has a dot segment"),
            ("http://h/a//b", "it has an empty segment"),
            (
                "http://h/a;b",
                "it has a ; or \\ in it, which never matches",
            ),
            (
                "http://h/%2F",
                "an encoded / \\ ; % or control byte never matches",
            ),
            (
                "http://h/%41",
                "letters, digits and - . _ ~ are written without escape",
            ),
            ("http://h/%c3%a9", "an escape is % and two of 0-9 A-F"),
            ("http://h/%C3%A9", "a prefix has no percent-encoding"),
            ("http://h/a b", "a byte in it must be percent-encoded"),
        ] {
            let read = PublicUrl::parse(text).map_err(Cow::into_owned);
            assert_eq!(read, Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn takes_an_origin_and_nothing_more_as_base() {
        assert!(BaseUrl::parse("https://a.example/").is_ok());
        for text in [
            "https://a.example/x",
            "https://a.example?x",
            "https://a.example/#",
        ] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn knows_loopback_by_name_and_address() {
        for (text, loopback) in [
            ("http://localhost", true),
            ("http://LOCALHOST:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
        ] {
            let Ok(BaseUrl::Url(origin)) = BaseUrl::parse(text) else {
                panic!("{text}");
            };
            assert_eq!(origin.is_loopback(), loopback, "{text}");
        }
    }

    #[test]
    fn reads_the_places_where_an_api_can_be() {
        assert_eq!(
            ApiUrl::parse("unix:/run/a.sock"),
            Ok(ApiUrl::Unix("/run/a.sock".into()))
        );
        assert!(ApiUrl::parse("unix:a.sock").is_err());
        let Ok(ApiUrl::Http(url)) = ApiUrl::parse("https://api:8443/v1/") else {
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
        fn reads_back_what_it_writes(text in "(http|https)://[a-z0-9.:\\[\\]-]{1,12}(/[a-z%0-9./]{0,8})?") {
            if let Ok(url) = PublicUrl::parse(&text) {
                prop_assert_eq!(PublicUrl::parse(&url.0.to_string()), Ok(url));
            }
        }

        #[test]
        fn never_panics_on_any_text(text: String) {
            let _ = (PublicUrl::parse(&text), ApiUrl::parse(&text), UpstreamHost::parse(&text));
        }
    }
}
