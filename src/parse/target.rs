//! The request target (RFC 9112 §3.2), split and never changed.

use http::uri::{Scheme, Uri};
use thiserror::Error;

use crate::oauth::percent;

/// Why a target is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither a path nor an `http` or `https` URI: `*`, an authority, or something else.
    #[error("the request target is neither a path nor an absolute URI")]
    Form,
    /// A byte that no URI has.
    #[error("the request target is malformed")]
    Byte,
}

/// A request target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Scheme and authority of an absolute target (RFC 9112 §3.2.2).
    pub absolute: Option<Absolute<'a>>,
    /// The path as sent, beginning with `/`.
    pub path: &'a [u8],
    /// The query as sent, without its `?`; `None` if there is no `?`.
    pub query: Option<&'a [u8]>,
}

/// What an absolute target has in front of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absolute<'a> {
    /// The scheme is `https`.
    pub secure: bool,
    /// Host and port as sent.
    pub authority: &'a [u8],
}

impl<'a> Target<'a> {
    /// Splits a target.
    ///
    /// # Errors
    /// [`TargetError`]
    pub fn of(uri: &'a Uri) -> Result<Self, TargetError> {
        let (path, query) = (uri.path().as_bytes(), uri.query().map(str::as_bytes));
        // RFC 3986 §2: raw bytes beyond ASCII are no URI, though a lenient parser lets them pass.
        let is_visible = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_graphic);
        if !is_visible(path) || !query.is_none_or(is_visible) {
            return Err(TargetError::Byte);
        }
        let absolute = match (uri.scheme(), uri.authority()) {
            (None, None) => None,
            (Some(scheme), Some(authority)) if is_http(scheme) => Some(Absolute {
                secure: *scheme == Scheme::HTTPS,
                authority: authority.as_str().as_bytes(),
            }),
            _ => return Err(TargetError::Form),
        };
        if path.first() != Some(&b'/') {
            return Err(TargetError::Form);
        }
        Ok(Self {
            absolute,
            path,
            query,
        })
    }
}

fn is_http(scheme: &Scheme) -> bool {
    *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS
}

/// Whether an API could read `path` as one above where it begins, however it writes dots and slashes: by escapes, with
/// `\` for a slash, with parameters behind `;`, with several slashes taken for one.
#[must_use]
pub fn climbs(path: &[u8]) -> bool {
    // Nearly every path is done with here.
    if memchr::memmem::find(path, b"..").is_none() && !path.contains(&b'%') {
        return false;
    }
    let Ok(decoded) = percent::decode(path) else {
        // Nobody knows what the API makes of it.
        return true;
    };
    let mut depth = 0_usize;
    for segment in decoded.split(|&byte| matches!(byte, b'/' | b'\\')) {
        match segment.split(|&byte| byte == b';').next() {
            None | Some(b"" | b".") => {}
            Some(b"..") => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            Some(_) => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Option<String>, String, Option<String>), TargetError> {
        let uri: Uri = text.parse().expect("a URI");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Target::of(&uri).map(|target| {
            let absolute = target.absolute.map(|absolute| text(absolute.authority));
            (absolute, text(target.path), target.query.map(text))
        })
    }

    #[test]
    fn splits_and_keeps_every_byte() {
        for (target, absolute, path, query) in [
            ("/a/../%2e;x?b=?c", None, "/a/../%2e;x", Some("b=?c")),
            ("/a?", None, "/a", Some("")),
            ("/a", None, "/a", None),
            ("HTTPS://Host:1?x", Some("Host:1"), "/", Some("x")),
            ("http://h", Some("h"), "/", None),
        ] {
            let split = (absolute.map(str::to_owned), path.to_owned(), query.map(str::to_owned));
            assert_eq!(parse(target), Ok(split), "{target}");
        }
    }

    #[test]
    fn tells_what_an_api_could_read_as_a_path_above() {
        for path in [
            "/..",
            "/../x",
            "/a/../../x",
            "/./../x",
            "//../x",
            "/a//../../x",
            "/%2e%2E/x",
            "/a%2f..%2f../x",
            "/..%5cx",
            "/a/..\\..\\x",
            "/..;a=b/x",
            "/%zz",
        ] {
            assert!(climbs(path.as_bytes()), "{path}");
        }
        for path in [
            "",
            "/",
            "/a/..",
            "/a/../b",
            "/a/b/../../c",
            "/...",
            "/..a",
            "/a..b/c",
            "/%41",
            "/a%2fb",
        ] {
            assert!(!climbs(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn rejects_other_forms() {
        for target in ["*", "host:443", "ftp://x/"] {
            assert_eq!(parse(target), Err(TargetError::Form), "{target}");
        }
        assert_eq!(parse("/\u{e9}"), Err(TargetError::Byte));
    }
}
