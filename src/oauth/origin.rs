//! The origin part of the base string URI, RFC 5849 §3.4.1.2.

use std::fmt;

use thiserror::Error;

use super::percent;

/// The scheme of a signed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`, port 80 unless told.
    Http,
    /// `https`, port 443 unless told.
    Https,
}

impl Scheme {
    /// Reads `http` or `https`, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let schemes = [Self::Http, Self::Https];
        schemes
            .into_iter()
            .find(|scheme| scheme.as_str().eq_ignore_ascii_case(text))
    }

    /// The scheme in lower case, without `:`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that the base string URI leaves out.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is not a host with an optional port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidAuthority {
    /// There is no host.
    #[error("the host is missing")]
    Host,
    /// User information, a space, or another byte that no host has.
    #[error("the host has a forbidden character")]
    Character,
    /// The text after the colon is not a number up to 65535.
    #[error("the port is not a number up to 65535")]
    Port,
}

/// Scheme, host and port, ready to be written into a base string.
///
/// "The scheme and host MUST be in lowercase", "the port MUST be included if it is not the default port for the scheme, and MUST
/// be excluded if it is the default".
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EncodedOrigin {
    encoded: Box<[u8]>,
}

impl EncodedOrigin {
    /// Makes one of a host (an IPv6 address in its brackets) and a port, the scheme's if there is none.
    #[must_use]
    pub fn new(scheme: Scheme, host: &str, port: Option<u16>) -> Self {
        let mut plain = format!("{scheme}://{}", host.to_ascii_lowercase());
        if let Some(port) = port.filter(|&port| port != scheme.default_port()) {
            plain = format!("{plain}:{port}");
        }
        Self {
            encoded: percent::encode(plain.as_bytes()).into_bytes().into(),
        }
    }

    /// Makes one of what a Host header field or the authority of a URI has.
    ///
    /// # Errors
    ///
    /// [`InvalidAuthority`] if that is not a host with an optional port.
    pub fn from_authority(scheme: Scheme, authority: &str) -> Result<Self, InvalidAuthority> {
        let (host, port) = split_authority(authority)?;
        Ok(Self::new(scheme, host, port))
    }

    /// The percent-encoded text, such as `http%3A%2F%2Fexample.com`.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.encoded
    }
}

impl fmt::Debug for EncodedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.encoded))
    }
}

/// Splits an authority without user-info at its port: `host`, `host:port`, `[v6]` or `[v6]:port`. Neither part is checked;
/// of other texts some part is not valid.
#[must_use]
pub fn split_port(authority: &str) -> (&str, Option<&str>) {
    let brackets = authority.rfind(']').map_or(0, |end| end + 1);
    match authority[brackets..].find(':') {
        Some(colon) => {
            let (host, port) = authority.split_at(brackets + colon);
            (host, Some(&port[1..]))
        }
        None => (authority, None),
    }
}

/// Splits and checks an authority; an empty port counts as absent (RFC 3986 §3.2.3).
///
/// # Errors
///
/// [`InvalidAuthority`] for any other text.
pub fn split_authority(authority: &str) -> Result<(&str, Option<u16>), InvalidAuthority> {
    let (host, port) = split_port(authority);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let allowed = |byte: u8| match bare {
        Some(_) => byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'),
        // reg-name of RFC 3986 §3.2.2.
        None => percent::is_unreserved(byte) || b"%!$&'()*+,;=".contains(&byte),
    };
    let host_bytes = bare.unwrap_or(host);
    if host_bytes.is_empty() {
        return Err(InvalidAuthority::Host);
    }
    if !host_bytes.bytes().all(allowed) {
        return Err(InvalidAuthority::Character);
    }
    let port = match port {
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| InvalidAuthority::Port)?)
        }
        _ => return Err(InvalidAuthority::Port),
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(scheme: Scheme, authority: &str) -> String {
        let origin = EncodedOrigin::from_authority(scheme, authority).unwrap();
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
            (Https, "example.com:", "https://example.com"),
            (Http, "example.com:0080", "http://example.com"),
            (Http, "[2001:DB8::A]", "http://[2001:db8::a]"),
            (Http, "[2001:DB8::A]:80", "http://[2001:db8::a]"),
            (Http, "[::1]:8443", "http://[::1]:8443"),
        ] {
            assert_eq!(decoded(scheme, authority), expected);
        }
    }

    #[test]
    fn refuses_what_is_no_host_with_port() {
        for (authority, expected) in [
            ("", InvalidAuthority::Host),
            (":80", InvalidAuthority::Host),
            ("[]", InvalidAuthority::Host),
            ("user@example.com", InvalidAuthority::Character),
            ("exa mple.com", InvalidAuthority::Character),
            ("example.com/x", InvalidAuthority::Character),
            ("bücher.example", InvalidAuthority::Character),
            ("[::1", InvalidAuthority::Character),
            ("[::g]", InvalidAuthority::Character),
            ("[::1]x", InvalidAuthority::Character),
            ("example.com:+80", InvalidAuthority::Port),
            ("example.com:65536", InvalidAuthority::Port),
            ("example.com:80:80", InvalidAuthority::Port),
        ] {
            assert_eq!(split_authority(authority), Err(expected), "{authority}");
        }
    }
}
