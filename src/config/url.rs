//! The grammar of URLs in settings: origins, hosts, paths.
//!
//! Read strictly, byte by byte: a parser for browsers mends what it reads (backslashes, tabs, dot segments, case of
//! escapes), and what a signature covers must not depend on mending.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Why a text is not the address it should be.
pub(super) type Reason = &'static str;

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// `http` or `https`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that is meant where none is written.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

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
    /// The origin of a listener that is bound to `address`.
    #[must_use]
    pub fn of_listener(address: SocketAddr, tls: bool) -> Self {
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
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether the host is this machine itself: `localhost`, 127.0.0.0/8 or `[::1]`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let literal = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost" || literal.parse().is_ok_and(is_loopback)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

/// Whether an address is this machine's own, also when written as IPv4 within IPv6.
pub(super) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// An origin and a path in front of everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    /// The origin.
    pub origin: Origin,
    /// The path: empty, or with a slash at its start and none at its end.
    pub path: String,
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// Splits a URL into its origin and all that follows.
pub(super) fn split_url(text: &str) -> Result<(Origin, &str), Reason> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or("it begins with no http:// or https://")?;
    let scheme = if scheme.eq_ignore_ascii_case("http") {
        Scheme::Http
    } else if scheme.eq_ignore_ascii_case("https") {
        Scheme::Https
    } else {
        return Err("it begins with no http:// or https://");
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (written, path) = rest.split_at(end);
    let (host, port) = authority(written)?;
    let origin = Origin {
        scheme,
        host,
        port: port.unwrap_or(scheme.default_port()),
    };
    Ok((origin, path))
}

/// Reads `host` or `host:port`.
pub(super) fn authority(text: &str) -> Result<(String, Option<u16>), Reason> {
    if text.contains('@') {
        return Err("a user and a password have no place here");
    }
    let port_at = text
        .rfind(':')
        .filter(|colon| !text.ends_with(']') && text.find(']').is_none_or(|end| end < *colon));
    let Some(colon) = port_at else {
        return Ok((host(text)?, None));
    };
    let digits = &text[colon + 1..];
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("its port is no number");
    }
    match digits.parse::<u16>() {
        Ok(port) if port > 0 => Ok((host(&text[..colon])?, Some(port))),
        _ => Err("a port is from 1 to 65535"),
    }
}

/// Reads a host into the spelling in which hosts are compared.
pub(super) fn host(text: &str) -> Result<String, Reason> {
    if let Some(inner) = text.strip_prefix('[') {
        let address = inner
            .strip_suffix(']')
            .and_then(|inner| inner.parse::<Ipv6Addr>().ok());
        return match address {
            Some(address) => Ok(format!("[{address}]")),
            None => Err("the brackets hold no IPv6 address"),
        };
    }
    if text.is_empty() {
        return Err("it has no host");
    }
    if !text.is_ascii() {
        return Err("write the host in its ASCII form (xn--…)");
    }
    if text.len() > 253 || !text.split('.').all(is_label) {
        return Err("its host is no host name");
    }
    // A last label of digits makes an IPv4 address or nothing (RFC 1123 §2.1).
    let last = text.rsplit('.').next().unwrap_or(text);
    if last.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<Ipv4Addr>().is_err() {
        return Err("its host is no IPv4 address");
    }
    Ok(text.to_ascii_lowercase())
}

/// Underscores are no letters of host names, but container networks hand out names with them.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Reads what follows an origin as a path that goes in front of others: without the slash at its end.
pub(super) fn prefix(path: &str) -> Result<String, Reason> {
    if path.contains('?') {
        return Err("it has a query");
    }
    if path.contains('#') {
        return Err("it has a fragment");
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    if !path.is_empty() {
        plain_path(path)?;
    }
    Ok(path.to_owned())
}

/// Checks a path that is compared byte by byte: no dot or empty segments, nothing that is read in two ways.
pub(super) fn plain_path(path: &str) -> Result<(), Reason> {
    let Some(segments) = path.strip_prefix('/') else {
        return Err("a path begins with a slash");
    };
    for segment in segments.split('/') {
        if segment.is_empty() {
            return Err("it has an empty segment");
        }
        plain_segment(segment)?;
    }
    Ok(())
}

/// Checks one segment of such a path. Escapes are upper-case and only where needed, so that each byte has one spelling.
pub(super) fn plain_segment(segment: &str) -> Result<(), Reason> {
    if matches!(segment, "." | "..") {
        return Err("it has a dot segment");
    }
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = (bytes.next().and_then(hex), bytes.next().and_then(hex));
                let (Some(high), Some(low)) = digits else {
                    return Err("an escape is % and two of 0-9 A-F");
                };
                let decoded = high << 4 | low;
                if is_unreserved(decoded) {
                    return Err("letters, digits and - . _ ~ are written without escape");
                }
                if b"/\\;%".contains(&decoded) || decoded.is_ascii_control() {
                    return Err("an encoded / \\ ; % or control byte never matches");
                }
            }
            b';' | b'\\' => return Err("it has a ; or \\ in it, which never matches"),
            _ if is_unreserved(byte) || b"!$&'()*+,=:@".contains(&byte) => {}
            _ => return Err("a byte in it must be percent-encoded"),
        }
    }
    Ok(())
}

fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}
