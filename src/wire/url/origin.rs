//! URLs and origins as the configuration writes them, in the one spelling in which they are compared.
//!
//! They are read strictly, byte by byte: a URL parser for browsers repairs what it reads (backslashes, tabs, dot
//! segments, the case of escapes), and what a signature covers must not depend on repairs.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use crate::oauth::{
    Authority, RequestUri,
    percent::{escaped, is_unreserved},
};
pub use crate::oauth::{InvalidUrl, Scheme};

/// Scheme, host and port, in the one spelling in which they are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The scheme.
    pub scheme: Scheme,
    /// The host: a lower-case name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    /// The port, the scheme's own one included.
    pub port: u16,
}

impl Origin {
    /// Reads a URL that has no path.
    ///
    /// # Errors
    /// [`InvalidUrl`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        match split_url(text)? {
            (origin, "" | "/", None) => Ok(origin),
            _ => Err(InvalidUrl("an origin has no path, query or fragment")),
        }
    }

    /// The origin of a listener that is bound to `address`.
    pub fn for_listener(address: SocketAddr, tls: bool) -> Self {
        Self {
            scheme: if tls { Scheme::Https } else { Scheme::Http },
            host: match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            },
            port: address.port(),
        }
    }

    /// Host and port as a Host field carries them: without the port if it is the scheme's own.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// Whether the host is this machine itself: `localhost`, 127.0.0.0/8 or `[::1]`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(self.bare_host())
    }

    /// Whether what is sent to it crosses a network in clear.
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        !self.is_https() && !self.is_loopback()
    }

    /// The host without the brackets of an IPv6 address, as a resolver or a certificate has it.
    pub fn bare_host(&self) -> &str {
        without_brackets(&self.host)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

/// The host without the brackets of an IPv6 address.
pub fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Whether a host name is `localhost` or a name under it, which browsers resolve to this machine (RFC 6761 §6.3).
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    let (labels, last) = name.rsplit_once('.').unwrap_or(("localhost", name));
    !labels.is_empty() && last.eq_ignore_ascii_case("localhost")
}

/// Whether an address is loopback, also as an IPv4-mapped IPv6 address.
#[must_use]
pub fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Whether a host, a name or an address without brackets, is this machine.
pub fn is_loopback_host(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(is_loopback)
}

/// An origin and a path that goes in front of other paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    /// The origin.
    pub origin: Origin,
    /// The path: empty, or with a slash at its start and none at its end.
    pub path: String,
}

impl HttpUrl {
    /// Reads an absolute URL without user-info, query and fragment.
    ///
    /// # Errors
    /// [`InvalidUrl`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let (origin, path, query) = split_url(text)?;
        if query.is_some() {
            return Err(InvalidUrl("it has a query"));
        }
        let path = path.strip_suffix('/').unwrap_or(path).to_owned();
        if !path.is_empty() {
            plain_path(&path)?;
        }
        Ok(Self { origin, path })
    }
}

impl From<Origin> for HttpUrl {
    fn from(origin: Origin) -> Self {
        let path = String::new();
        Self { origin, path }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// Splits a URL into its origin, its path and its query.
fn split_url(text: &str) -> Result<(Origin, &str, Option<&str>), InvalidUrl> {
    let uri = RequestUri::parse(text)?;
    let origin = Origin {
        scheme: uri.scheme,
        host: host(uri.authority.host)?,
        port: uri.authority.port.unwrap_or(uri.scheme.default_port()),
    };
    Ok((origin, uri.path, uri.query))
}

/// Reads `host` or `host:port`, the host in the spelling in which hosts are compared.
///
/// # Errors
/// [`InvalidUrl`] says what is wrong with the text.
pub fn authority(text: &str) -> Result<(String, Option<u16>), InvalidUrl> {
    let written = Authority::parse(text.as_bytes())?;
    Ok((host(written.host)?, written.port))
}

/// The spelling of a host of an [`Authority`] in which hosts are compared.
fn host(written: &str) -> Result<String, InvalidUrl> {
    // A dot at the end is that of the root: search lists of the resolver do not apply to the name.
    let name = written.strip_suffix('.').unwrap_or(written);
    // A last label of digits makes an IPv4 address or nothing (RFC 1123 §2.1).
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    match without_brackets(written).parse() {
        Ok(IpAddr::V6(address)) => Ok(format!("[{address}]")),
        Err(_) if name.len() > 253 || !name.split('.').all(is_label) => {
            Err(InvalidUrl("invalid host name"))
        }
        Err(_) if is_number => Err(InvalidUrl("invalid IPv4 address")),
        _ => Ok(written.to_ascii_lowercase()),
    }
}

/// Host names have no underscores, but container networks hand out names with them.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Checks a path that is compared byte by byte: no dot or empty segments, nothing that is read in two ways.
///
/// # Errors
/// [`InvalidUrl`] says what is wrong with the text.
pub fn plain_path(path: &str) -> Result<(), InvalidUrl> {
    let Some(segments) = path.strip_prefix('/') else {
        return Err(InvalidUrl("a path begins with a slash"));
    };
    for segment in segments.split('/') {
        if segment.is_empty() {
            return Err(InvalidUrl("it has an empty segment"));
        }
        plain_segment(segment, false)?;
    }
    Ok(())
}

/// Checks one segment of such a path. Escapes are upper-case and only where needed, so that each byte has one spelling. With
/// `has_data` it may have parameters, and escapes of separators.
///
/// # Errors
/// [`InvalidUrl`] says what is wrong with the text.
pub fn plain_segment(segment: &str, has_data: bool) -> Result<(), InvalidUrl> {
    if matches!(segment, "." | "..") {
        return Err(InvalidUrl("it has a dot segment"));
    }
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next(), bytes.next()].map(Option::unwrap_or_default);
                let decoded = match escaped(digits) {
                    Ok(decoded) if !digits.iter().any(u8::is_ascii_lowercase) => decoded,
                    _ => return Err(InvalidUrl("an escape is % and two of 0-9 A-F")),
                };
                if is_unreserved(decoded) {
                    return Err(InvalidUrl(
                        "letters, digits and - . _ ~ are written without escape",
                    ));
                }
                let separates = b"/\\;%".contains(&decoded) && !has_data;
                if separates || decoded.is_ascii_control() {
                    return Err(InvalidUrl(
                        "an encoded / \\ ; % or control byte never matches",
                    ));
                }
            }
            b';' if has_data => {}
            b';' | b'\\' => return Err(InvalidUrl("it has a ; or \\ in it, which never matches")),
            _ if is_unreserved(byte) || b"!$&'()*+,=:@".contains(&byte) => {}
            _ => return Err(InvalidUrl("a byte in it must be percent-encoded")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_under_localhost_are_this_machine() {
        for name in [
            "localhost",
            "LocalHost",
            "countersign.localhost",
            "a.b.LOCALHOST",
        ] {
            assert!(is_localhost(name), "{name}");
        }
        for name in [
            "",
            ".localhost",
            "localhost.",
            "xlocalhost",
            "localhost.test",
            "a.local",
        ] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    #[test]
    fn reads_urls_into_one_spelling() {
        for (text, expected) in [
            ("https://API.example.com", "https://api.example.com"),
            ("HTTPS://api.example.com:443/", "https://api.example.com"),
            ("http://api.example.com:443", "http://api.example.com:443"),
            ("http://h:80/v1/", "http://h/v1"),
            ("http://[0:0::1]:8080/a/b", "http://[::1]:8080/a/b"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("http://my_api:9000", "http://my_api:9000"),
            (
                "http://API.internal.:9000/a/",
                "http://api.internal.:9000/a",
            ),
        ] {
            let read = HttpUrl::parse(text).map(|url| url.to_string());
            assert_eq!(read.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn rejects_what_could_be_read_in_two_ways() {
        for [text, reason] in crate::text::rows(
            r#"
            api.example.com       | it must start with http:// or https://
            ftp://h               | it must start with http:// or https://
            http://               | it has no host
            http://u:p@h          | it must not contain credentials
            http://h:             | a port is a number from 1 to 65535
            http://h:0            | a port is a number from 1 to 65535
            http://h:65536        | a port is a number from 1 to 65535
            http://h:+1           | a port is a number from 1 to 65535
            http://::1            | it has no host
            http://[::1           | invalid IPv6 address in the brackets
            http://[::g]          | invalid IPv6 address in the brackets
            http://[::1]x         | invalid IPv6 address in the brackets
            http://a..b           | invalid host name
            http://a..            | invalid host name
            http://.              | invalid host name
            http://127.0.0.1.     | invalid IPv4 address
            http://[::1].         | invalid IPv6 address in the brackets
            http://-a             | invalid host name
            http://1.2.3          | invalid IPv4 address
            http://256.1.1.1      | invalid IPv4 address
            http://bücher.example | write the host in its ASCII form (xn--…)
            http://h\\x           | invalid host name
            http://h/a?b          | it has a query
            http://h#a            | it has a fragment, which is never sent
            http://h/a/../b       | it has a dot segment
            http://h/a//b         | it has an empty segment
            http://h/a;b          | it has a ; or \\ in it, which never matches
            http://h/%2F          | an encoded / \\ ; % or control byte never matches
            http://h/%41          | letters, digits and - . _ ~ are written without escape
            http://h/%c3%a9       | an escape is % and two of 0-9 A-F
            http://h/a b          | it has a space or a control character in it
            http://h/a"b          | a byte in it must be percent-encoded
        "#,
        ) {
            assert_eq!(HttpUrl::parse(text), Err(InvalidUrl(reason)), "{text}");
        }
    }

    #[test]
    fn takes_an_origin_and_nothing_more() {
        assert!(Origin::parse("https://a.example/").is_ok());
        for text in [
            "https://a.example/x",
            "https://a.example?x",
            "https://a.example/#",
        ] {
            assert!(Origin::parse(text).is_err(), "{text}");
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
            let Ok(origin) = Origin::parse(text) else {
                panic!("{text}");
            };
            assert_eq!(origin.is_loopback(), loopback, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(text in "(http|https)://[a-z0-9.:\\[\\]-]{1,12}(/[a-z%0-9./]{0,8})?") {
            if let Ok(url) = HttpUrl::parse(&text) {
                prop_assert_eq!(HttpUrl::parse(&url.to_string()), Ok(url));
            }
        }

        #[test]
        fn never_panics_on_any_text(text: String) {
            let _ = (HttpUrl::parse(&text), Origin::parse(&text), plain_path(&text));
        }
    }
}
