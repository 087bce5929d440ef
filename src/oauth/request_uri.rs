//! An absolute request URI taken apart without changing a byte of its path and query.
//!
//! The URL is signed as it was sent: a URL type that resolves dot segments, adds a slash or escapes a character would make another
//! base string than the consumer's.

use thiserror::Error;

use super::origin::{EncodedOrigin, InvalidAuthority, Scheme};

/// An absolute `http` or `https` URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestUri<'a> {
    /// The scheme, which may have been in any case.
    pub scheme: Scheme,
    /// Host and port as written.
    pub authority: &'a str,
    /// The path as written; empty if there is none.
    pub path: &'a str,
    /// The text after the first `?`, as written.
    pub query: Option<&'a str>,
}

/// Why a text is not an absolute request URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidRequestUri {
    /// It does not begin with `http://` or `https://`.
    #[error("the URL does not begin with http:// or https://")]
    Scheme,
    /// A fragment is never sent, so none can have been signed.
    #[error("the URL has a fragment, which is never sent")]
    Fragment,
    /// A space or a control character, which no request line can carry.
    #[error("the URL has a space or a control character in it")]
    Character,
    /// The authority is not a host with an optional port.
    #[error("{0}")]
    Authority(#[source] InvalidAuthority),
}

impl<'a> RequestUri<'a> {
    /// Takes `text` apart.
    ///
    /// # Errors
    ///
    /// [`InvalidRequestUri`] tells what keeps it from being one.
    pub fn parse(text: &'a str) -> Result<Self, InvalidRequestUri> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidRequestUri::Scheme)?;
        let scheme = Scheme::parse(scheme).ok_or(InvalidRequestUri::Scheme)?;
        if rest.contains('#') {
            return Err(InvalidRequestUri::Fragment);
        }
        if rest.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(InvalidRequestUri::Character);
        }
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let uri = Self {
            scheme,
            authority,
            path,
            query,
        };
        uri.origin().map_err(InvalidRequestUri::Authority)?;
        Ok(uri)
    }

    /// The origin part of the base string URI.
    ///
    /// # Errors
    ///
    /// [`InvalidAuthority`], which [`RequestUri::parse`] has ruled out.
    pub fn origin(&self) -> Result<EncodedOrigin, InvalidAuthority> {
        EncodedOrigin::from_authority(self.scheme, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_path_and_query_as_typed() {
        let parsed = RequestUri::parse("HTTPS://Example.com:8443/a/../b%2f//c?q=%zz&&x?y").unwrap();
        assert_eq!(parsed.scheme, Scheme::Https);
        assert_eq!(parsed.authority, "Example.com:8443");
        assert_eq!(parsed.path, "/a/../b%2f//c");
        assert_eq!(parsed.query, Some("q=%zz&&x?y"));
    }

    #[test]
    fn tells_no_path_from_a_slash_and_no_query_from_an_empty_one() {
        assert_eq!(RequestUri::parse("http://h").unwrap().path, "");
        assert_eq!(RequestUri::parse("http://h/").unwrap().path, "/");
        let bare = RequestUri::parse("http://h?n=v").unwrap();
        assert_eq!((bare.path, bare.query), ("", Some("n=v")));
        assert_eq!(RequestUri::parse("http://h/?").unwrap().query, Some(""));
        assert_eq!(RequestUri::parse("http://h/").unwrap().query, None);
    }

    #[test]
    fn refuses_what_cannot_be_sent() {
        for (text, expected) in [
            ("example.com/x", InvalidRequestUri::Scheme),
            ("ftp://example.com/", InvalidRequestUri::Scheme),
            ("http://example.com/#top", InvalidRequestUri::Fragment),
            ("http://example.com/a b", InvalidRequestUri::Character),
            ("http://example.com/a\r\nb", InvalidRequestUri::Character),
            (
                "http:///x",
                InvalidRequestUri::Authority(InvalidAuthority::Host),
            ),
            (
                "http://u:p@example.com/",
                InvalidRequestUri::Authority(InvalidAuthority::Port),
            ),
        ] {
            assert_eq!(RequestUri::parse(text), Err(expected), "{text}");
        }
    }
}
