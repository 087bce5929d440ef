//! An absolute request URI taken apart without changing a byte of its path and query.
//!
//! The URL is signed as it was sent: a URL type that resolves dot segments, adds a slash or escapes a character would make
//! another base string than the consumer's.

use super::origin::{Authority, EncodedOrigin, InvalidUrl, Scheme};

/// An absolute `http` or `https` URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestUri<'a> {
    /// The scheme, which may have been in any case.
    pub scheme: Scheme,
    /// Host and port as written.
    pub authority: Authority<'a>,
    /// The path as written; empty if there is none.
    pub path: &'a str,
    /// The text after the first `?`, as written.
    pub query: Option<&'a str>,
}

impl<'a> RequestUri<'a> {
    /// Splits `text` into its parts.
    ///
    /// # Errors
    ///
    /// [`InvalidUrl`]: another scheme, an invalid authority, a fragment, a space or a control character.
    pub fn parse(text: &'a str) -> Result<Self, InvalidUrl> {
        let (scheme, rest) = text
            .split_once("://")
            .and_then(|(scheme, rest)| Some((Scheme::parse(scheme)?, rest)))
            .ok_or(InvalidUrl("it must start with http:// or https://"))?;
        if rest.contains('#') {
            return Err(InvalidUrl("it has a fragment, which is never sent"));
        }
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let authority = Authority::parse(authority.as_bytes())?;
        if target.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(InvalidUrl("it has a space or a control character in it"));
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        Ok(Self {
            scheme,
            authority,
            path,
            query,
        })
    }

    /// The origin part of the base string URI.
    pub fn origin(&self) -> EncodedOrigin {
        EncodedOrigin::new(self.scheme, self.authority.host, self.authority.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_path_and_query_as_typed() {
        let parsed = RequestUri::parse("HTTPS://Example.com:8443/a/../b%2f//c?q=%zz&&x?y").unwrap();
        assert_eq!(parsed.scheme, Scheme::Https);
        let authority = parsed.authority;
        assert_eq!(
            (authority.host, authority.port),
            ("Example.com", Some(8443))
        );
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
    fn rejects_what_cannot_be_sent() {
        for [text, expected] in crate::text::rows(
            r"
            example.com/x             | it must start with http:// or https://
            ftp://example.com/        | it must start with http:// or https://
            http://example.com/#top   | it has a fragment, which is never sent
            http://example.com/a b    | it has a space or a control character in it
            http://example.com/a\r\nb | it has a space or a control character in it
            http:///x                 | it has no host
            http://u:p@example.com/   | it must not contain credentials
        ",
        ) {
            let expected = InvalidUrl(expected);
            assert_eq!(RequestUri::parse(text), Err(expected), "{text}");
        }
    }
}
