//! The base strings of a call whose signature is wrong, as the consumer's developer may see them.
//!
//! A base string has the token and every value that was sent. What is kept shows how it was written, and hides what it
//! says: every letter and digit becomes an x, but for the method, the host, the names of parameters, and the parts of a
//! path that the configuration has. The marks of what differs are made before that.
//!
//! The right base string has one form, so its names and values are known for sure. In the other one a value may stand where
//! a name would, so it shows only names and values that the right one has.

use std::{collections::HashMap, ops::Range};

use percent_encoding::percent_decode_str;

use crate::{
    oauth::{
        ProtocolParameter, SignatureMethod,
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
        let known = Known {
            consumer,
            path,
            values: values(&right),
        };
        let (right_parts, signed_parts) = match signed {
            None => (vec![(right.clone(), false)], None),
            Some(signed) => {
                let (right, signed) = marked(&right, &signed);
                (right, Some(signed))
            }
        };
        Self {
            right: MarkedText::new(&right_parts, &known),
            signed: signed_parts.map(|parts| MarkedText::new(&parts, &known)),
        }
    }
}

impl MarkedText {
    fn new(parts: &Parts, known: &Known<'_>) -> Self {
        let whole: String = parts.iter().map(|(part, _)| part.as_str()).collect();
        let mut text = hidden(&whole, known);
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

/// What is known of a call.
struct Known<'k> {
    consumer: &'k str,
    /// The path of the configuration.
    path: &'k str,
    /// The parameters of the right base string.
    values: HashMap<&'k str, &'k str>,
}

/// The parameters of a right base string, as they are written there. One without a value may be a value itself, such as a
/// text that was sent as a form.
fn values(right: &str) -> HashMap<&str, &str> {
    let pairs = right.splitn(3, '&').nth(2).unwrap_or_default();
    let pairs = pairs.split("%26").filter_map(|pair| pair.split_once("%3D"));
    pairs.filter(|(_, value)| !value.is_empty()).collect()
}

/// A text of ASCII with an x for each letter and digit that is not shown.
fn hidden(text: &str, known: &Known<'_>) -> String {
    let mut shown = vec![false; text.len()];
    let mut show = |range: Range<usize>| {
        let range = shown.get_mut(range).unwrap_or_default();
        range.fill(true);
    };
    escapes(text).for_each(&mut show);
    uri(text, known.path).into_iter().for_each(&mut show);
    parameters(text, known).into_iter().for_each(&mut show);
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
fn parameters(text: &str, known: &Known<'_>) -> Vec<Range<usize>> {
    /// What is between name and value, and what is before a name: as it is, and encoded once or twice.
    const CODINGS: [(&str, [&str; 3]); 3] = [
        ("=", ["&", "?", "?"]),
        ("%3D", ["&", "%26", "%3F"]),
        ("%253D", ["&", "%2526", "%253F"]),
    ];

    // One text has one coding. What is encoded further is a part of a value.
    let mut codings = CODINGS.iter();
    let Some((equals, separators)) = codings.find(|(equals, _)| text.contains(equals)) else {
        return Vec::new();
    };
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.~-".contains(&byte);
    let mut shown = Vec::new();
    let mut begin = 0;
    while begin < text.len() {
        let rest = &text[begin..];
        let separator = |at: &usize| {
            let mut known = separators.iter();
            known.find(|mark| rest[*at..].starts_with(**mark))
        };
        let end = (0..rest.len()).find(|at| separator(at).is_some());
        let end = end.unwrap_or(rest.len());
        let pair = &rest[..end];
        let name = pair.bytes().take_while(|byte| is_in_name(*byte)).count();
        let (name, value) = pair.split_at(name);
        if let Some(value) = value.strip_prefix(equals)
            && is_name(name, known)
        {
            shown.push(begin..begin + name.len());
            let value_begin = begin + pair.len() - value.len();
            shown.push(value_begin..value_begin + visible(name, value, known));
        }
        begin += end + separator(&end).map_or(1, |mark| mark.len());
    }
    shown
}

/// Whether a text that stands where a name would is one.
fn is_name(text: &str, known: &Known<'_>) -> bool {
    let mut protocol = ProtocolParameter::ALL.iter();
    known.values.contains_key(text) || protocol.any(|parameter| parameter.as_str() == text)
}

/// The number of characters that are shown of the value of a parameter.
fn visible(name: &str, value: &str, known: &Known<'_>) -> usize {
    use ProtocolParameter as P;

    let is = |parameter: ProtocolParameter| name == parameter.as_str();
    let plain = plain(value);
    if known.values.get(name).map(|right| self::plain(right)) != Some(plain.clone()) {
        return 0;
    }
    let is_method = || {
        let mut methods = SignatureMethod::ALL.iter();
        methods.any(|method| method.as_str().eq_ignore_ascii_case(&plain))
    };
    let is_whole = is(P::ConsumerKey) && plain == self::plain(known.consumer)
        || is(P::Timestamp) && value.bytes().all(|byte| byte.is_ascii_digit())
        || is(P::SignatureMethod) && is_method()
        || is(P::Version) && value == "1.0";
    match is_whole {
        true => value.len(),
        false if is(P::Token) || is(P::Nonce) => SHOWN_TOKEN_CHARS.min(value.len() / 2),
        false => 0,
    }
}

/// A value without its codings, of which there may be three.
fn plain(value: &str) -> String {
    let mut plain = value.to_owned();
    for _ in 0..3 {
        plain = percent_decode_str(&plain).decode_utf8_lossy().into_owned();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_as(text: &str, right: &str) -> String {
        let known = Known {
            consumer: "key@shop",
            path: "/members/{id}/photos",
            values: values(right),
        };
        hidden(text, &known)
    }

    fn shown(text: &str) -> String {
        shown_as(text, text)
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
                "POST&http://a.example/members/xxx?x=xxxxxx&oauth_token=xxxxxxxxxxxx&x=xxxxxx%xx",
            ),
            ("secret", "xxxxxx"),
            ("secret&secret&secret", "xxxxxx&xxxxxx&xxxxxx"),
            ("a&b%3Dsecret", "x&x%3Dxxxxxx"),
            // Another consumer's key, and words instead of a number.
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

    /// The right base string of a call with a value that looks like parameters, a body hash, and a text instead of a form.
    const RIGHT: &str = "GET&http%3A%2F%2Fa%2F&hunter2%3D%26oauth_body_hash%3DAbCdEfGh%253D%26oauth_consumer_key%3Dkey%2540shop\
        %26oauth_timestamp%3D1700000000%26oauth_token%3DaccessToken12345%26q%3Da%2526pin%253D1234%253Fcity%253Drome";

    #[test]
    fn a_value_shows_nothing_even_if_it_looks_like_parameters() {
        assert_eq!(
            shown(RIGHT),
            "GET&http%3A%2F%2Fa%2F&xxxxxxx%3D%26oauth_body_hash%3Dxxxxxxxx%253D%26oauth_consumer_key%3Dkey%2540shop\
            %26oauth_timestamp%3D1700000000%26oauth_token%3DaccessToxxxxxxxx%26q%3Dx%2526xxx%253Dxxxx%253Fxxxx%253Dxxxx"
        );
    }

    #[test]
    fn signed_base_string_shows_only_what_the_right_one_shows() {
        for (signed, expected) in [
            // Not encoded at all: the value breaks into parameters that are none.
            (
                "GET&http://a/&hunter2=&oauth_token=accessToken12345&q=a&pin=1234?city=rome&oauth_timestamp=4711",
                "GET&http://a/&xxxxxxx=&oauth_token=accessToxxxxxxxx&q=x&xxx=xxxx?xxxx=xxxx&oauth_timestamp=xxxx",
            ),
            // Encoded twice.
            (
                "GET&http%3A%2F%2Fa%2F&oauth_token%253DaccessToken12345%2526q%253Da%252526pin%25253D1234",
                "GET&http%3A%2F%2Fa%2F&oauth_token%253DaccessToxxxxxxxx%2526q%253Dx%252526xxx%25253Dxxxx",
            ),
            // A query in the URL, and values without their coding.
            (
                "GET&http%3A%2F%2Fa%2F%3Fq%3Da%26pin%3D1234&q%3Da%26pin%3D1234%26oauth_consumer_key%3Dother",
                "GET&http%3A%2F%2Fa%2F%3Fq%3Dx%26xxx%3Dxxxx&q%3Dx%26xxx%3Dxxxx%26oauth_consumer_key%3Dxxxxx",
            ),
        ] {
            assert_eq!(shown_as(signed, RIGHT), expected);
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
