//! The base strings of a call whose signature is wrong, as the consumer's developer may see them.
//!
//! A base string has the token and every value that was sent. What is kept shows how it was written, and hides what it says: every
//! letter and digit becomes an x, but for the method, the host, the names of parameters, and the parts of a path that the
//! configuration has. The marks of what differs are made before that.

use std::ops::Range;

use percent_encoding::percent_decode_str;

use crate::{
    oauth::{
        ProtocolParameter,
        compare::{Parts, marked},
    },
    telemetry::redact::SHOWN_TOKEN_CHARS,
};

/// The most bytes that are kept of a base string.
const MAX_BYTES: usize = 1_024;

/// The most marks that are kept of one.
const MAX_MARKS: usize = 32;

/// The most bytes that both take.
pub(super) const MOST_BYTES: usize = 2 * (MAX_BYTES + MAX_MARKS * size_of::<Range<u16>>())
    + size_of::<BaseStrings>()
    + size_of::<usize>() * 2;

/// The right base string of a call, and the one that its consumer signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseStrings {
    /// The right one.
    pub right: MarkedText,
    /// The one that was signed, if the mistake is known.
    pub signed: Option<MarkedText>,
}

/// A text in which some parts are marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedText {
    text: Box<str>,
    marks: Box<[Range<u16>]>,
}

impl BaseStrings {
    /// Hides what the developer of `consumer` has no need to see. `path` is the one of the configuration for the call.
    pub fn new(right: &[u8], signed: Option<&[u8]>, consumer: &str, path: &str) -> Self {
        let (right, signed) = (ascii(right), signed.map(ascii));
        let hidden = |parts: Parts| MarkedText::new(&parts, consumer, path);
        match signed {
            None => Self {
                right: hidden(vec![(right, false)]),
                signed: None,
            },
            Some(signed) => {
                let (right, signed) = marked(&right, &signed);
                Self {
                    right: hidden(right),
                    signed: Some(hidden(signed)),
                }
            }
        }
    }
}

impl MarkedText {
    fn new(parts: &Parts, consumer: &str, path: &str) -> Self {
        let whole: String = parts.iter().map(|(part, _)| part.as_str()).collect();
        let mut text = hidden(&whole, consumer, path);
        text.truncate(MAX_BYTES);
        let mut marks: Vec<Range<u16>> = Vec::new();
        let mut at = 0;
        for (part, is_marked) in parts {
            let (begin, end) = (at, at + part.len());
            at = end;
            let [begin, end] =
                [begin, end].map(|it| u16::try_from(it.min(text.len())).unwrap_or(u16::MAX));
            let count = marks.len();
            match marks.last_mut() {
                _ if !is_marked || begin == end => {}
                Some(last) if last.end == begin => last.end = end,
                _ if count == MAX_MARKS => break,
                _ => marks.push(begin..end),
            }
        }
        Self {
            text: text.into(),
            marks: marks.into(),
        }
    }

    /// Its parts, and whether each is marked.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::new();
        let mut at = 0;
        let mut push = |to: usize, is_marked| {
            let part = self.text.get(at..to).unwrap_or_default();
            if !part.is_empty() {
                parts.push((part.to_owned(), is_marked));
            }
            at = to;
        };
        for mark in &self.marks {
            push(mark.start.into(), false);
            push(mark.end.into(), true);
        }
        push(self.text.len(), false);
        parts
    }
}

/// Bytes as text of as many ASCII characters.
fn ascii(bytes: &[u8]) -> String {
    let shown = bytes.iter().map(|byte| match byte {
        0x20..=0x7e => char::from(*byte),
        _ => 'x',
    });
    shown.collect()
}

/// A text of ASCII with an x for each letter and digit that is not shown.
fn hidden(text: &str, consumer: &str, path: &str) -> String {
    let mut shown = vec![false; text.len()];
    let mut show = |range: Range<usize>| {
        let range = shown.get_mut(range).unwrap_or_default();
        range.fill(true);
    };
    escapes(text).for_each(&mut show);
    uri(text, path).into_iter().for_each(&mut show);
    parameters(text, consumer).into_iter().for_each(&mut show);
    let characters = text.bytes().zip(shown).map(|(byte, is_shown)| {
        match is_shown || !byte.is_ascii_alphanumeric() {
            true => char::from(byte),
            false => 'x',
        }
    });
    characters.collect()
}

/// The digits of escapes that stand for a character other than a letter or a digit, also of escaped ones: `%2520`.
fn escapes(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = memchr::memchr(b'%', bytes.get(at..)?)? + at + 1;
        let mut end = begin;
        loop {
            let digits = text.get(end..end + 2);
            let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                break;
            };
            match byte {
                b'%' => end += 2,
                byte if byte.is_ascii() && !byte.is_ascii_alphanumeric() => {
                    end += 2;
                    break;
                }
                _ => break,
            }
        }
        at = end;
        Some(begin..end)
    })
}

/// The method, scheme and host, and the segments of the path that are also in this one.
fn uri(text: &str, path: &str) -> Vec<Range<usize>> {
    let mut ands = memchr::memchr_iter(b'&', text.as_bytes());
    let (Some(first), Some(second)) = (ands.next(), ands.next()) else {
        return Vec::new();
    };
    let (method, uri) = (&text[..first], &text[first + 1..second]);
    let is_method = method.len() <= 20 && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_url = uri
        .get(..4)
        .is_some_and(|begin| begin.eq_ignore_ascii_case("http"));
    if !is_method || !is_url {
        return Vec::new();
    }
    let slash = match uri.contains("%2F") {
        true => "%2F",
        false => "/",
    };
    let mut at = first + 1;
    let mut shown = Vec::from_iter(std::iter::once(0..first));
    for (index, segment) in uri.split(slash).enumerate() {
        // Scheme, nothing, host, path.
        let is_known = path.split('/').any(|known| known == segment);
        if index <= 2 && !segment.contains(['?', '@']) || index > 2 && is_known {
            shown.push(at..at + segment.len());
        }
        at += segment.len() + slash.len();
    }
    shown
}

/// The names of parameters, and the values of some protocol parameters.
fn parameters(text: &str, consumer: &str) -> Vec<Range<usize>> {
    const SEPARATORS: [&str; 6] = ["&", "?", "%26", "%3F", "%2526", "%253F"];
    const EQUALS: [&str; 3] = ["=", "%3D", "%253D"];

    let beginning = |text: &str, marks: &[&'static str]| {
        let mut marks = marks.iter().copied();
        marks.find(|mark| text.starts_with(mark))
    };
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.~-".contains(&byte);
    let mut shown = Vec::new();
    let mut begin = 0;
    while begin < text.len() {
        let rest = &text[begin..];
        let ends = (0..rest.len()).find(|at| beginning(&rest[*at..], &SEPARATORS).is_some());
        let pair = &rest[..ends.unwrap_or(rest.len())];
        let name = pair.bytes().take_while(|byte| is_in_name(*byte)).count();
        if let Some(equals) = beginning(&pair[name..], &EQUALS) {
            shown.push(begin..begin + name);
            let value = name + equals.len();
            let count = visible(&pair[..name], &pair[value..], consumer);
            shown.push(begin + value..begin + value + count);
        }
        let separator = beginning(&rest[pair.len()..], &SEPARATORS);
        begin += pair.len() + separator.map_or(1, str::len);
    }
    shown
}

/// The number of characters that are shown of the value of a parameter.
fn visible(name: &str, value: &str, consumer: &str) -> usize {
    use ProtocolParameter as P;

    let is = |parameter: ProtocolParameter| name == parameter.as_str();
    let is_consumer = || {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let once = decoded(value);
        value == consumer || once == consumer || decoded(&once) == consumer
    };
    let is_whole = is(P::ConsumerKey) && is_consumer()
        || is(P::Timestamp) && value.bytes().all(|byte| byte.is_ascii_digit())
        || is(P::SignatureMethod) && value.len() <= 16
        || is(P::Version) && value.len() <= 4
        || is(P::BodyHash);
    match is_whole {
        true => value.len(),
        false if is(P::Token) || is(P::Nonce) => SHOWN_TOKEN_CHARS.min(value.len() / 2),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        hidden(text, "key@shop", "/members/{id}/photos")
    }

    #[test]
    fn shows_how_a_base_string_was_written_and_hides_what_it_says() {
        let text = "GET&https%3A%2F%2Fapi.example%2Fv1%2Fmembers%2Fada%2Fphotos&email%3Dada%2540example.com%26name%3DZo%25C3%25AB%2520L\
            %26oauth_consumer_key%3Dkey%2540shop%26oauth_nonce%3Dabcdefghijklmnop%26oauth_signature_method%3DHMAC-SHA1\
            %26oauth_timestamp%3D1700000000%26oauth_token%3DaccessToken12345%26oauth_verifier%3D1234%26oauth_version%3D1.0";
        assert_eq!(
            shown(text),
            "GET&https%3A%2F%2Fapi.example%2Fxx%2Fmembers%2Fxxx%2Fphotos&email%3Dxxx%2540xxxxxxx.xxx%26name%3Dxx%25xx%25xx%2520x\
            %26oauth_consumer_key%3Dkey%2540shop%26oauth_nonce%3Dabcdefghxxxxxxxx%26oauth_signature_method%3DHMAC-SHA1\
            %26oauth_timestamp%3D1700000000%26oauth_token%3DaccessToxxxxxxxx%26oauth_verifier%3Dxxxx%26oauth_version%3D1.0"
        );
    }

    #[test]
    fn hides_secrets_wherever_a_mistake_puts_them() {
        for (text, expected) in [
            // Not encoded at all.
            (
                "POST&http://a.example/members/ada?q=secret&oauth_token=abcdefghijkl&b=secret%41",
                "POST&http://a.example/members/xxx?q=xxxxxx&oauth_token=abcdefxxxxxx&b=xxxxxx%xx",
            ),
            ("secret", "xxxxxx"),
            ("secret&secret&secret", "xxxxxx&xxxxxx&xxxxxx"),
            ("a&b%3Dsecret", "x&b%3Dxxxxxx"),
            // Another consumer's key, and words in place of a number.
            (
                "oauth_consumer_key=other&oauth_timestamp=secret&oauth_version=secret",
                "oauth_consumer_key=xxxxx&oauth_timestamp=xxxxxx&oauth_version=xxxxxx",
            ),
            (
                "GET&http://ada:secret@host/&",
                "GET&http://xxx:xxxxxx@xxxx/&",
            ),
            ("", ""),
            ("%", "%"),
            ("%4", "%x"),
            ("%25", "%25"),
            ("&=&", "&=&"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn marks_what_differs_also_where_it_is_hidden() {
        let kept = BaseStrings::new(
            b"GET&http%3A%2F%2Fa%2F&n%3Dada",
            Some(b"GET&http%3A%2F%2Fa%2F&n%3Dbob"),
            "c",
            "",
        );
        let marked = vec![
            ("GET&http%3A%2F%2Fa%2F&n".to_owned(), false),
            ("%3Dxxx".to_owned(), true),
        ];
        assert_eq!(kept.right.parts(), marked);
        assert_eq!(kept.signed.unwrap().parts(), marked);
    }

    #[test]
    fn is_bounded() {
        let (one, other) = ("&a=1".repeat(400), "&b=\u{fc}".repeat(400));
        let kept = BaseStrings::new(one.as_bytes(), Some(other.as_bytes()), "c", "");
        for text in [&kept.right, kept.signed.as_ref().unwrap()] {
            let bytes = text.text.len() + size_of_val(&*text.marks);
            assert!(bytes <= MOST_BYTES / 2, "{bytes}");
            let whole: String = text.parts().into_iter().map(|(part, _)| part).collect();
            assert_eq!(whole.len(), MAX_BYTES);
        }
        let few = BaseStrings::new(&[0xff; 3], None, "c", "");
        assert_eq!(few.right.parts(), [("xxx".to_owned(), false)]);
    }
}
