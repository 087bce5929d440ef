//! The request target (RFC 9112 §3.2), split and never changed.

use http::Uri;

use super::ParseRejection;
use crate::oauth::{Scheme, percent};

/// Neither a path nor an `http` or `https` URI: `*`, an authority, or something else.
pub const INVALID_FORM: ParseRejection =
    ParseRejection::Malformed("the request target is neither a path nor an absolute URI");

/// A byte that no URI has.
pub const INVALID_BYTE: ParseRejection =
    ParseRejection::Malformed("the request target has a byte beyond ASCII; percent-encode it");

/// A request target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    /// Scheme and authority of an absolute target (RFC 9112 §3.2.2).
    pub absolute: Option<Absolute<'a>>,
    /// The path as sent, beginning with `/`.
    pub path: &'a [u8],
    /// The query as sent, without its `?`; `None` if there is no `?`.
    pub query: Option<&'a [u8]>,
}

/// Scheme and authority of an absolute target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absolute<'a> {
    /// The scheme.
    pub scheme: Scheme,
    /// Host and port as sent.
    pub authority: &'a [u8],
}

impl<'a> RequestTarget<'a> {
    /// Splits a target.
    ///
    /// # Errors
    /// [`INVALID_FORM`] and [`INVALID_BYTE`]
    pub fn split(uri: &'a Uri) -> Result<Self, ParseRejection> {
        let (path, query) = (uri.path().as_bytes(), uri.query().map(str::as_bytes));
        // RFC 3986 §2: a URI has no raw bytes beyond ASCII, though a lenient parser accepts them.
        // Without a branch: the compiler reads many bytes at once.
        let is_visible = |it: &[u8]| {
            it.iter()
                .fold(true, |all, byte| all & byte.is_ascii_graphic())
        };
        if !is_visible(path) || !query.is_none_or(is_visible) {
            return Err(INVALID_BYTE);
        }
        let absolute = match (uri.scheme(), uri.authority()) {
            (None, None) => None,
            (Some(scheme), Some(authority)) => Some(Absolute {
                scheme: Scheme::parse(scheme.as_str()).ok_or(INVALID_FORM)?,
                authority: authority.as_str().as_bytes(),
            }),
            _ => return Err(INVALID_FORM),
        };
        if path.first() != Some(&b'/') {
            return Err(INVALID_FORM);
        }
        Ok(Self {
            absolute,
            path,
            query,
        })
    }
}

/// Whether an API could read `path` as one above its beginning.
///
/// Only a literal `/` always separates segments. A `\` and an escaped separator may separate or be plain bytes, each one
/// independently, since a request may pass several readers. A reader may decode escapes more than once, and overlong
/// UTF-8 too; may drop what follows `;`, NUL, `?` or `#`; may ignore white space and control bytes; and may read several
/// slashes as one.
#[must_use]
pub fn climbs(path: &[u8]) -> bool {
    // Nearly every path ends here.
    if memchr::memmem::find(path, b"..").is_none() && !path.contains(&b'%') {
        return false;
    }
    if percent::decode(path).is_err() {
        // It is unknown how the API reads it.
        return true;
    }
    // The depth of the path below its beginning, by the reading that leads least far down.
    let mut depth = 0_i32;
    for segment in path.split(|&byte| byte == b'/') {
        // The same if the last separator is read as a plain byte.
        let mut joined = i32::MAX;
        let decoded = decode_all(segment);
        for piece in decoded.split(|&byte| matches!(byte, b'/' | b'\\')) {
            let (whole, cut) = steps(piece);
            let before = depth;
            depth = (before + whole).min(joined);
            joined = joined.min(before + cut);
            if depth < 0 {
                return true;
            }
        }
    }
    false
}

/// Whether an API could find a segment `.` or `..` in what was sent as one, in one of the ways that [`climbs`] knows.
#[must_use]
pub fn has_dot_segment(segment: &[u8]) -> bool {
    let decoded = decode_all(segment);
    decoded
        .split(|&byte| matches!(byte, b'/' | b'\\'))
        .any(|piece| {
            let ends = |byte: &u8| matches!(byte, b';' | b'\0' | b'?' | b'#');
            let name = piece.split(ends).next().unwrap_or_default();
            let ignored = |byte: &&u8| matches!(byte, 0..=b' ' | 0x7f);
            let name: Vec<u8> = name.iter().filter(|it| !ignored(it)).copied().collect();
            matches!(&*name, b"." | b"..")
        })
}

/// The steps that a piece between two separators leads down, -1 being up: by itself, and with more joined to it.
fn steps(piece: &[u8]) -> (i32, i32) {
    let (mut dots, mut named, mut cut) = (0_u32, false, 1);
    let steps = |dots, named| match dots {
        _ if named => 1,
        2 => -1,
        // Some file systems ignore dots at the end, so that `...` may be nothing too.
        _ => 0,
    };
    for byte in piece {
        if matches!(byte, b';' | b'\0' | b'?' | b'#') {
            cut = cut.min(steps(dots, named));
        }
        match byte {
            b'.' => dots += 1,
            ..=b' ' | 0x7f => {}
            _ => named = true,
        }
    }
    (cut.min(steps(dots, named)), cut)
}

/// Decodes until nothing is left to decode, and overlong UTF-8 of ASCII (RFC 3629 §3) like an escape.
fn decode_all(segment: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(segment.len());
    for &byte in segment {
        decoded.push(byte);
        // A decoded byte may complete another escape.
        loop {
            let (length, byte) = match decoded[..] {
                [.., b'%', high, low] => match percent::escaped([high, low]) {
                    Ok(byte) => (3, byte),
                    Err(_) => break,
                },
                [.., 0xf0, 0x80, high @ 0x80..=0x81, low @ 0x80..=0xbf] => (4, overlong(high, low)),
                [.., 0xe0, high @ 0x80..=0x81, low @ 0x80..=0xbf] => (3, overlong(high, low)),
                [.., high @ 0xc0..=0xc1, low @ 0x80..=0xbf] => (2, overlong(high, low)),
                _ => break,
            };
            decoded.truncate(decoded.len() - length);
            decoded.push(byte);
        }
    }
    decoded
}

/// The seven bits of an overlong sequence's last two bytes.
const fn overlong(high: u8, low: u8) -> u8 {
    (high & 1) << 6 | low & 0x3f
}

#[cfg(test)]
mod tests {
    use crate::text::words;
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<(Option<String>, String, Option<String>), ParseRejection> {
        let uri: Uri = text.parse().expect("a URI");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        RequestTarget::split(&uri).map(|target| {
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
            let split = (
                absolute.map(str::to_owned),
                path.to_owned(),
                query.map(str::to_owned),
            );
            assert_eq!(parse(target), Ok(split), "{target}");
        }
    }

    #[test]
    fn tells_what_an_api_could_read_as_a_path_above() {
        // A separator that may be a plain byte leads down once at most, or not at all.
        for path in words(
            r"/.. /../x /a/../../x /./../x //../x /a//../../x /%2e%2E/x /a%2f..%2f../x /..%5cx
             /a/..\..\x /..;a=b/x /%zz /a\b/../../x /a%5cb/../../x /a%2fb/../../x
             /a%2fb%2f..%2f.. /a%252fb/../../x /\/../x /;a/../x /.;a/../x /;%2fa/../x /..;%2fa
             /..;%2fa/b /a/..%2f../x /%252e%252e/x /%25252e%25252E/x /..%252fx /%c0%ae%c0%ae/x
             /%e0%80%ae%f0%80%80%ae/x /..%c0%afx /a%c1%9cb/../../x /..%00/x /.%00./x /%00/../x
             /..%20/x /%20../x /.%09./x /%20/../x /..%3fx /..%23x /.../../x",
        ) {
            assert!(climbs(path.as_bytes()), "{path}");
        }
        assert!(!climbs(b""));
        for path in words(
            r"/ /a/.. /a/../b /a/b/../../c /... /..a /a..b/c /%41 /a%2fb /a%2f.. /a/b%2f../..
             /a\.. /a;b/.. /a%00/.. /a/..;/b /a/%252e%252e /caf%e9/.. /%C0/.. /a%20b/..",
        ) {
            assert!(!climbs(path.as_bytes()), "{path}");
        }
    }

    const PARTS: &[&str] = &[
        "/",
        "/",
        "/",
        "..",
        "..",
        ".",
        "a",
        "\\",
        "%2f",
        "%5C",
        "%2e",
        ";",
        "%3b",
        "%25",
        "2e",
        "%252f",
        "%00",
        "%20",
        "%3f",
        "%c0%ae",
        "%e0%80%af",
        "%f0%80%81%9c",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn a_path_climbs_if_some_reading_of_it_does(
            parts in prop::collection::vec(prop::sample::select(PARTS), 0..10),
        ) {
            let path = format!("/{}", parts.concat());
            let above = (0..6).any(|passes| {
                let segments = path.split('/').map(|segment| {
                    (0..passes).fold(segment.as_bytes().to_vec(), |bytes, _| decode_once(&bytes))
                });
                some_reading_is_above(&segments.collect::<Vec<_>>(), 0)
            });
            prop_assert_eq!(climbs(path.as_bytes()), above, "{}", path);
        }
    }

    /// One reader's decoding.
    fn decode_once(bytes: &[u8]) -> Vec<u8> {
        let text: String = bytes.iter().copied().map(char::from).collect();
        let mut decoded = Vec::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let escape = rest.get(1..3).filter(|_| first == '%');
            let byte = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            rest = &rest[if byte.is_some() { 3 } else { first.len_utf8() }..];
            decoded.push(byte.unwrap_or(first as u8));
        }
        for (overlong, byte) in [
            (&b"\xc0\xae"[..], b'.'),
            (b"\xe0\x80\xaf", b'/'),
            (b"\xf0\x80\x81\x9c", b'\\'),
        ] {
            while let Some(at) = memchr::memmem::find(&decoded, overlong) {
                decoded.splice(at..at + overlong.len(), [byte]);
            }
        }
        decoded
    }

    /// Whether the segments lead above, from this depth on, with each separator within them taken as one or not.
    fn some_reading_is_above(segments: &[Vec<u8>], depth: i32) -> bool {
        let Some((segment, rest)) = segments.split_first() else {
            return false;
        };
        let separators = (0..segment.len()).filter(|&at| b"/\\".contains(&segment[at]));
        let ends = separators.chain([segment.len()]);
        ends.into_iter().any(|end| {
            let mut rest = rest.to_vec();
            if let Some(tail) = segment.get(end + 1..) {
                rest.insert(0, tail.to_vec());
            }
            names(&segment[..end]).iter().any(|name| {
                let depth = match name.as_slice() {
                    b".." => depth - 1,
                    name if name.iter().all(|&byte| byte == b'.') => depth,
                    _ => depth + 1,
                };
                depth < 0 || some_reading_is_above(&rest, depth)
            })
        })
    }

    /// The readings of a name: up to a byte that ends it or whole, its white space and control bytes ignored.
    fn names(name: &[u8]) -> Vec<Vec<u8>> {
        let ends = (0..name.len()).filter(|&at| b";\0?#".contains(&name[at]));
        ends.chain([name.len()])
            .map(|end| {
                let printable = name[..end].iter().copied();
                printable
                    .filter(|&byte| byte > b' ' && byte != 0x7f)
                    .collect()
            })
            .collect()
    }

    #[test]
    fn rejects_other_forms() {
        for target in ["*", "host:443", "ftp://x/"] {
            assert_eq!(parse(target), Err(INVALID_FORM), "{target}");
        }
        assert_eq!(parse("/\u{e9}"), Err(INVALID_BYTE));
    }
}
