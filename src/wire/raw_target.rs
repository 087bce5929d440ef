//! Request targets with bytes that no URI has (RFC 3986 §2), which callers send all the same: `"`, `<`, `>`, `` ` `` and
//! bytes beyond ASCII.
//!
//! hyper rejects most of them with a response of its own. Here they are hidden from it in the request line, and put back
//! into what it has read, percent-encoded: a reader that decodes the target finds the same bytes. Nothing changes its
//! length, so that hyper alone decides where a message ends.

use http::{Uri, uri::PathAndQuery};

/// What hyper reads instead of such a byte.
const HIDDEN: u8 = b'_';

/// A request target as it was sent.
#[derive(Debug)]
pub(super) struct RawTarget(Box<[u8]>);

/// hyper has read another target than the one that was hidden: it had the beginning of another head.
#[derive(Debug)]
pub(super) struct OtherTarget;

/// Whether hyper takes the byte neither in a path nor in a query, or not in one of them.
const fn is_raw(byte: u8) -> bool {
    matches!(byte, b'"' | b'<' | b'>' | b'`' | 0x80..)
}

/// The bytes of a target, each with whether it has to be hidden: in a path hyper takes `"`, in a query `` ` ``, and they go
/// on as they are.
fn marked(target: &[u8]) -> impl Iterator<Item = (u8, bool)> {
    let query = memchr::memchr(b'?', target).unwrap_or(target.len());
    let bytes = target.iter().enumerate();
    bytes.map(move |(at, &byte)| {
        let taken = if at < query { b'"' } else { b'`' };
        (byte, is_raw(byte) && byte != taken)
    })
}

impl RawTarget {
    /// Hides such bytes in the request line that `head` begins with, if it has any, and if the line has arrived whole.
    #[inline]
    pub(super) fn hide(head: &mut [u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', head)?;
        let line = &mut head[..end];
        // Without a branch: the compiler reads many bytes at once.
        let has_raw = line.iter().fold(false, |any, byte| any | is_raw(*byte));
        if has_raw { Self::hide_in(line) } else { None }
    }

    #[cold]
    fn hide_in(line: &mut [u8]) -> Option<Self> {
        let (start, end) = (
            memchr::memchr(b' ', line)? + 1,
            memchr::memrchr(b' ', line)?,
        );
        let is_version = matches!(&line[end + 1..], b"HTTP/1.1\r" | b"HTTP/1.0\r");
        let target = line.get_mut(start..end).filter(|_| is_version)?;
        if !target.starts_with(b"/") || target.contains(&b' ') {
            return None;
        }
        let sent = Self(target.to_vec().into());
        if !marked(&sent.0).any(|(_, is_hidden)| is_hidden) {
            return None;
        }
        for (byte, (_, is_hidden)) in target.iter_mut().zip(marked(&sent.0)) {
            if is_hidden {
                *byte = HIDDEN;
            }
        }
        Some(sent)
    }

    /// Puts the target back into a request, percent-encoded.
    ///
    /// # Errors
    /// [`OtherTarget`]; then it is not known which bytes of the request were changed.
    pub(super) fn restore(&self, uri: &mut Uri) -> Result<(), OtherTarget> {
        let read = uri.path_and_query().filter(|_| uri.authority().is_none());
        let read = read.ok_or(OtherTarget)?.as_str().bytes();
        let hidden = marked(&self.0).map(|(byte, is_hidden)| if is_hidden { HIDDEN } else { byte });
        if !read.eq(hidden) {
            return Err(OtherTarget);
        }
        let mut encoded = Vec::with_capacity(self.0.len() * 3);
        for (byte, is_hidden) in marked(&self.0) {
            match is_hidden {
                true => encoded
                    .extend_from_slice(percent_encoding::percent_encode_byte(byte).as_bytes()),
                false => encoded.push(byte),
            }
        }
        let target = PathAndQuery::try_from(encoded).map_err(|_| OtherTarget)?;
        *uri = target.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_target_is_hidden_and_put_back_encoded() {
        for (target, hidden, restored) in [
            ("/x?f={\"a\":2}", "/x?f={_a_:2}", "/x?f={%22a%22:2}"),
            ("/<a>`\"?`<>", "/_a__\"?`__", "/%3Ca%3E%60\"?`%3C%3E"),
            ("/caf\u{e9}?\u{e9}", "/caf__?__", "/caf%C3%A9?%C3%A9"),
        ] {
            for version in ["HTTP/1.1\r", "HTTP/1.0\r"] {
                let mut head = format!("GET {target} {version}\nX: \"<>\r\n\r\n").into_bytes();
                let raw = RawTarget::hide(&mut head).expect("a raw target");
                assert_eq!(
                    head,
                    format!("GET {hidden} {version}\nX: \"<>\r\n\r\n").as_bytes()
                );
                let mut uri: Uri = hidden.parse().expect("hyper takes it");
                raw.restore(&mut uri).expect("the same target");
                assert_eq!(uri, restored);
                for other in ["/_", "/x", "http://a/x?f={_a_:2}"] {
                    assert!(raw.restore(&mut other.parse().expect("a URI")).is_err());
                }
            }
        }
    }

    #[test]
    fn nothing_but_the_target_of_a_whole_request_line_is_touched() {
        for head in [
            "GET /x HTTP/1.1\r\nX: \"<>`\u{e9}\r\n\r\n",
            "GET /<x HTTP/1.1",
            "GET /<x HTTP/1.1\n",
            "GET /<x HTTP/1.2\r\n",
            "GET /<x  HTTP/1.1\r\n",
            "GET /x < HTTP/1.1\r\n",
            "GET <x HTTP/1.1\r\n",
            "G\u{c9}T /x HTTP/1.1\r\n",
            "\"GET\" /x HTTP/1.1\r\n",
            "GET /x\u{a0}HTTP/1.1\r\n",
            "GET /x\"?` HTTP/1.1\r\n",
            "<\r\n",
            "< \r\n",
            "",
        ] {
            let mut bytes = head.as_bytes().to_vec();
            assert!(RawTarget::hide(&mut bytes).is_none(), "{head}");
            assert_eq!(bytes, head.as_bytes(), "{head}");
        }
    }
}
