//! The request target (RFC 9112 §3.2), split and never changed.

use thiserror::Error;

use crate::oauth::percent;

/// Why a target is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither a path nor an `http` or `https` URI: `*`, an authority, or something else.
    #[error("the request target is neither a path nor an absolute URI")]
    Form,
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
    /// Splits a target that has been checked to be visible ASCII without a fragment.
    ///
    /// # Errors
    /// [`TargetError::Form`]
    pub fn parse(target: &'a [u8]) -> Result<Self, TargetError> {
        if target.first() == Some(&b'/') {
            return Ok(Self::origin_form(None, target));
        }
        let (secure, rest) = if let Some(rest) = strip_scheme(target, b"http://") {
            (false, rest)
        } else if let Some(rest) = strip_scheme(target, b"https://") {
            (true, rest)
        } else {
            return Err(TargetError::Form);
        };
        let end = rest
            .iter()
            .position(|&byte| matches!(byte, b'/' | b'?'))
            .unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.is_empty() {
            return Err(TargetError::Form);
        }
        let absolute = Some(Absolute { secure, authority });
        Ok(match rest {
            [b'/', ..] => Self::origin_form(absolute, rest),
            [b'?', query @ ..] => Self {
                absolute,
                path: b"/",
                query: Some(query),
            },
            _ => Self {
                absolute,
                path: b"/",
                query: None,
            },
        })
    }

    fn origin_form(absolute: Option<Absolute<'a>>, rest: &'a [u8]) -> Self {
        match memchr::memchr(b'?', rest) {
            Some(mark) => Self {
                absolute,
                path: &rest[..mark],
                query: Some(&rest[mark + 1..]),
            },
            None => Self {
                absolute,
                path: rest,
                query: None,
            },
        }
    }
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

fn strip_scheme<'a>(target: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (front, rest) = target.split_at_checked(scheme.len())?;
    front.eq_ignore_ascii_case(scheme).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_and_keeps_every_byte() {
        let target = Target::parse(b"/a/../%2e;x?b=?c").expect("a path");
        assert_eq!(
            (target.path, target.query),
            (&b"/a/../%2e;x"[..], Some(&b"b=?c"[..]))
        );
        assert_eq!(Target::parse(b"/a?").expect("a path").query, Some(&b""[..]));
        assert_eq!(Target::parse(b"/a").expect("a path").query, None);
        let target = Target::parse(b"HTTPS://Host:1?x").expect("absolute");
        assert_eq!(
            target.absolute,
            Some(Absolute {
                secure: true,
                authority: b"Host:1"
            })
        );
        assert_eq!((target.path, target.query), (&b"/"[..], Some(&b"x"[..])));
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
    fn refuses_other_forms() {
        for target in [
            &b"*"[..],
            b"host:443",
            b"http:///a",
            b"ftp://x/",
            b"a/b",
            b"http:/x",
            b"?",
        ] {
            assert_eq!(Target::parse(target), Err(TargetError::Form), "{target:?}");
        }
    }
}
