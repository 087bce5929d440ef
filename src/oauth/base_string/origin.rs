//! The origin part of the base string URI, RFC 5849 §3.4.1.2, and the authority that it is made of.

use std::net::Ipv6Addr;

use strum::{Display, EnumString, IntoStaticStr};
use thiserror::Error;

use crate::oauth::percent;

/// The scheme of a signed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Scheme {
    /// `http`, port 80 by default.
    Http,
    /// `https`, port 443 by default.
    Https,
}

impl Scheme {
    /// Reads `http` or `https`, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Reads the scheme of a forwarded field: Traefik writes `ws` and `wss` (RFC 6455 §3) for a WebSocket handshake.
    pub fn from_forwarded(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        match () {
            () if text.eq_ignore_ascii_case("ws") => Some(Self::Http),
            () if text.eq_ignore_ascii_case("wss") => Some(Self::Https),
            () => Self::parse(text),
        }
    }

    /// The scheme in lower case, without `:`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The port that the base string URI leaves out.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why a text is not the URL, host or path that it should be: one clause for an error line, without the text itself,
/// which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidUrl(pub &'static str);

/// Host and port, checked, as a URL or a Host field has them (RFC 3986 §3.2, without user-info).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The host as written: a name, or an IPv6 address in brackets.
    pub host: &'a str,
    /// The port, if there is one.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads `host` or `host:port`.
    ///
    /// # Errors
    /// [`InvalidUrl`] says what is wrong with the text.
    pub fn parse(text: &'a [u8]) -> Result<Self, InvalidUrl> {
        let read = str::from_utf8(text).map_err(|_| InvalidUrl(""));
        read.and_then(Self::read).map_err(|error| match text {
            _ if text.contains(&b'@') => InvalidUrl("it must not contain credentials"),
            _ if !text.is_ascii() => InvalidUrl("write the host in its ASCII form (xn--…)"),
            _ => error,
        })
    }

    fn read(text: &'a str) -> Result<Self, InvalidUrl> {
        let (host, port) = split_port(text);
        if let Some(address) = host.strip_prefix('[') {
            let address = address.strip_suffix(']').map(str::parse::<Ipv6Addr>);
            if !matches!(address, Some(Ok(_))) {
                return Err(InvalidUrl("invalid IPv6 address in the brackets"));
            }
        } else if host.is_empty() {
            return Err(InvalidUrl("it has no host"));
        } else if !host.bytes().all(is_host_byte) {
            return Err(InvalidUrl("invalid host name"));
        }
        let number = |digits: &str| match digits.parse() {
            Ok(port @ 1..) if digits.len() <= 5 && !digits.starts_with('+') => Ok(port),
            _ => Err(InvalidUrl("a port is a number from 1 to 65535")),
        };
        let port = port.map(number).transpose()?;
        Ok(Self { host, port })
    }
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`. Neither part is checked; of other texts some part is not valid.
pub fn split_port(authority: &str) -> (&str, Option<&str>) {
    let brackets = authority.rfind(']').map_or(0, |end| end + 1);
    match authority[brackets..].split_once(':') {
        Some((rest, port)) => (&authority[..brackets + rest.len()], Some(port)),
        None => (authority, None),
    }
}

/// Whether a reg-name may have the byte (RFC 3986 §3.2.2).
fn is_host_byte(byte: u8) -> bool {
    percent::is_unreserved(byte) || b"%!$&'()*+,;=".contains(&byte)
}

/// Scheme, host and port, ready to be written into a base string.
///
/// "The scheme and host MUST be in lowercase", "the port MUST be included if it is not the default port for the scheme, and MUST
/// be excluded if it is the default".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EncodedOrigin(String);

impl EncodedOrigin {
    /// Makes one of a host (an IPv6 address in its brackets) and a port, the scheme's if there is none.
    pub fn new(scheme: Scheme, host: &str, port: Option<u16>) -> Self {
        let mut plain = format!("{scheme}://{}", host.to_ascii_lowercase());
        if let Some(port) = port.filter(|&port| port != scheme.default_port()) {
            plain = format!("{plain}:{port}");
        }
        Self(percent::encode(plain.as_bytes()))
    }

    /// The percent-encoded text, such as `http%3A%2F%2Fexample.com`.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(scheme: Scheme, authority: &str) -> String {
        let Authority { host, port } = Authority::parse(authority.as_bytes()).unwrap();
        let origin = EncodedOrigin::new(scheme, host, port);
        String::from_utf8(percent::decode(origin.as_bytes()).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn lowers_the_host_and_drops_only_the_scheme_s_own_port() {
        use Scheme::{Http, Https};
        for (scheme, authority, expected) in [
            (Http, "EXAMPLE.com:80", "http://example.com"),
            (Http, "example.com:443", "http://example.com:443"),
            (Https, "example.com:443", "https://example.com"),
            (Https, "example.com:80", "https://example.com:80"),
            (
                Https,
                "www.example.net:8080",
                "https://www.example.net:8080",
            ),
            (Http, "example.com:0080", "http://example.com"),
            (Http, "[2001:DB8::A]", "http://[2001:db8::a]"),
            (Http, "[2001:DB8::A]:80", "http://[2001:db8::a]"),
            (Http, "[::1]:8443", "http://[::1]:8443"),
        ] {
            assert_eq!(decoded(scheme, authority), expected);
        }
    }

    #[test]
    fn rejects_what_is_not_a_host_with_a_port() {
        for (authority, expected) in [
            ("", "it has no host"),
            (":80", "it has no host"),
            ("::1", "it has no host"),
            ("[]", "invalid IPv6 address in the brackets"),
            ("user@example.com", "it must not contain credentials"),
            ("exa mple.com", "invalid host name"),
            ("example.com/x", "invalid host name"),
            ("bücher.example", "write the host in its ASCII form (xn--…)"),
            ("[::1", "invalid IPv6 address in the brackets"),
            ("[::g]", "invalid IPv6 address in the brackets"),
            ("[::1]x", "invalid IPv6 address in the brackets"),
            ("example.com:", "a port is a number from 1 to 65535"),
            ("example.com:0", "a port is a number from 1 to 65535"),
            ("example.com:+80", "a port is a number from 1 to 65535"),
            ("example.com:65536", "a port is a number from 1 to 65535"),
            ("example.com:000080", "a port is a number from 1 to 65535"),
            ("example.com:80:80", "a port is a number from 1 to 65535"),
        ] {
            let read = Authority::parse(authority.as_bytes());
            assert_eq!(read, Err(InvalidUrl(expected)), "{authority}");
        }
    }
}
