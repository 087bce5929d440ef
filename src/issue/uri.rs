//! Parses an absolute URI, strictly by RFC 3986 and only where browsers agree.
//!
//! Whatever this file accepts, a browser (WHATWG URL) must read as the same scheme, host, port and path, or reject:
//! attackers use the difference between two parsers to redirect users elsewhere. So a backslash, white space, control
//! bytes, user-info and an escape in a host are rejected; a web scheme needs its `//` and a host, and an IPv4 address
//! there has four decimal numbers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::callback::CallbackError;
use crate::oauth::split_port;

/// The longest callback, in bytes: with token and verifier it still fits the header buffers in use.
pub(super) const MAX_LENGTH: usize = 4096;

/// The parts of an absolute URI, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Uri<'a> {
    pub(super) scheme: &'a str,
    pub(super) authority: Option<Authority<'a>>,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
}

/// Host and port of a URI that has `//`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
}

impl<'a> Uri<'a> {
    /// Parses `text`.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, CallbackError> {
        if text.len() > MAX_LENGTH {
            return Err(CallbackError::TooLong);
        }
        let text = uri_characters(text)?;
        let (scheme, rest) = text.split_once(':').ok_or(CallbackError::NotAbsolute)?;
        let mut letters = scheme.bytes();
        if !letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            || !letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            return Err(CallbackError::NotAbsolute);
        }
        let (hierarchy, query) = match rest.split_once('?') {
            Some((hierarchy, query)) => (hierarchy, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match hierarchy.strip_prefix("//") {
            None => (None, hierarchy),
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(Authority::parse(authority)?), path)
            }
        };
        // Brackets are allowed around an IPv6 address only.
        if [path, query.unwrap_or_default()]
            .iter()
            .any(|part| part.contains(['[', ']']))
        {
            return Err(CallbackError::Character);
        }
        let uri = Self {
            scheme,
            authority,
            path,
            query,
        };
        if uri.is_special() {
            // `https:host` and `https:///host` mean https://host/ to a browser.
            let host = authority
                .map(|authority| authority.host)
                .unwrap_or_default();
            if host.is_empty() || is_number_in_disguise(host) {
                return Err(CallbackError::Host);
            }
        }
        Ok(uri)
    }

    /// Whether it is http or https.
    pub(super) fn is_web(&self) -> bool {
        self.has_scheme("http") || self.has_scheme("https")
    }

    /// Whether the scheme is `scheme`, in any case.
    pub(super) fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Whether browsers read it by the rules for http, with or without slashes.
    fn is_special(&self) -> bool {
        ["http", "https", "ws", "wss", "ftp"]
            .iter()
            .any(|scheme| self.has_scheme(scheme))
    }

    /// Whether it is http or https on this machine: `127.0.0.1`, `[::1]` or `localhost`, no other spelling.
    pub(super) fn is_loopback(&self) -> bool {
        let local = |host: &str| {
            host == "127.0.0.1" || host == "[::1]" || host.eq_ignore_ascii_case("localhost")
        };
        self.is_web()
            && self
                .authority
                .is_some_and(|authority| local(authority.host))
    }

    /// The port that a connection would go to.
    pub(super) fn port(&self) -> Option<u16> {
        let given = self.authority.and_then(|authority| authority.port);
        given.or_else(|| match () {
            () if self.has_scheme("http") => Some(80),
            () if self.has_scheme("https") => Some(443),
            () => None,
        })
    }

    /// The path; of http and https the empty one is `/` (RFC 3986 §6.2.3).
    pub(super) fn effective_path(&self) -> &str {
        if self.path.is_empty() && self.is_web() {
            "/"
        } else {
            self.path
        }
    }
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Result<Self, CallbackError> {
        if text.contains('@') {
            return Err(CallbackError::UserInfo);
        }
        let (host, port) = split_port(text);
        if !is_host(host) {
            return Err(CallbackError::Host);
        }
        let port = port.map(parse_port).transpose()?;
        if host.is_empty() && port.is_some() {
            return Err(CallbackError::Host);
        }
        Ok(Self { host, port })
    }
}

/// Narrower than RFC 3986's reg-name: an escape or a sub-delimiter in a host is read differently by different parsers.
fn is_host(host: &str) -> bool {
    match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        // The standard library knows no zone, and neither do browsers.
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)),
    }
}

/// Whether browsers read a host as an IPv4 address that is not written as one: `127.1`, `0x7f.1`, `2130706433`.
fn is_number_in_disguise(host: &str) -> bool {
    let labels = host.strip_suffix('.').unwrap_or(host);
    let last = labels.rsplit('.').next().unwrap_or_default();
    let digits = last.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let ends_in_number = (digits && !last.is_empty())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    ends_in_number && host.parse::<Ipv4Addr>().is_err()
}

fn parse_port(digits: &str) -> Result<u16, CallbackError> {
    // No sign, no leading zero, and with that no port 0.
    let starts_right = digits.starts_with(|first: char| ('1'..='9').contains(&first));
    match digits.parse() {
        Ok(port) if starts_right => Ok(port),
        _ => Err(CallbackError::Port),
    }
}

/// Checks that there are only characters of RFC 3986 §2 and whole escapes, and no fragment.
fn uri_characters(text: &[u8]) -> Result<&str, CallbackError> {
    let known =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(byte);
    if text.contains(&b'#') {
        return Err(CallbackError::Fragment);
    }
    if !text.iter().all(known) {
        return Err(CallbackError::Character);
    }
    let is_escape = |after: &[u8]| matches!(after, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if !text.split(|byte| *byte == b'%').skip(1).all(is_escape) {
        return Err(CallbackError::Character);
    }
    str::from_utf8(text).map_err(|_| CallbackError::Character)
}
