//! Encodings that consumers use in place of RFC 5849 §3.6, and spellings of a signature in place of base64.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};

use crate::oauth::percent;

/// How a text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// RFC 5849 §3.6.
    Right,
    /// Not at all.
    Plain,
    /// As [`Self::Right`], and then once more.
    Twice,
    /// With small letters in the escapes.
    LowerCase,
    /// With `+` for a space, as forms have it.
    Form,
    /// As JavaScript's `encodeURIComponent` does, which leaves `!*'()`.
    LeavesMarks,
    /// As Python's `quote` does, which leaves `/`.
    LeavesSlash,
    /// As JavaScript's `encodeURI` does, which leaves what separates the parts of a URL.
    LeavesReserved,
    /// As older libraries do, which encode `~`.
    EncodesTilde,
    /// As Java's `URLEncoder` does: `+` for a space, `*` left, `~` encoded.
    JavaForm,
    /// Of the text as ISO 8859-1.
    Latin1,
    /// Of the UTF-8 of the text, taken for ISO 8859-1 and encoded as UTF-8 again.
    Utf8Twice,
}

impl Coding {
    pub(super) fn encode(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Right => percent::encode(text).into_bytes(),
            Self::Plain => text.to_vec(),
            Self::Twice => percent::encode(percent::encode(text).as_bytes()).into_bytes(),
            Self::LowerCase => lower_escapes(percent::encode(text).as_bytes()),
            Self::Form => differing(text, b"", &[(b' ', b"+")]),
            Self::LeavesMarks => differing(text, b"!*'()", &[]),
            Self::LeavesSlash => differing(text, b"/", &[]),
            Self::LeavesReserved => differing(text, b"!*'();/?:@&=+$,#", &[]),
            Self::EncodesTilde => differing(text, b"", &[(b'~', b"%7E")]),
            Self::JavaForm => differing(text, b"*", &[(b' ', b"+"), (b'~', b"%7E")]),
            Self::Latin1 => percent::encode(&latin1(text)).into_bytes(),
            Self::Utf8Twice => {
                let characters: String = text.iter().copied().map(char::from).collect();
                percent::encode(characters.as_bytes()).into_bytes()
            }
        }
    }
}

/// Encodes rightly all bytes but those that are left as they are and those that are written otherwise.
fn differing(text: &[u8], left: &[u8], others: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in text {
        match others.iter().find(|(other, _)| other == byte) {
            Some((_, written)) => out.extend_from_slice(written),
            None if left.contains(byte) => out.push(*byte),
            None => percent::encode_into(&mut out, &[*byte]),
        }
    }
    out
}

/// Writes the letters of all escapes small.
pub(super) fn lower_escapes(encoded: &[u8]) -> Vec<u8> {
    let mut out = encoded.to_vec();
    let mut at = 0;
    while at < out.len() {
        if out[at] == b'%' {
            let end = out.len().min(at + 3);
            out[at..end].make_ascii_lowercase();
            at = end;
        } else {
            at += 1;
        }
    }
    out
}

fn latin1(text: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(text) else {
        return text.to_vec();
    };
    text.chars()
        .map(|character| u8::try_from(u32::from(character)).unwrap_or(b'?'))
        .collect()
}

/// How a digest becomes a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Padded base64.
    Right,
    /// Base64 without its `=`.
    Unpadded,
    /// Base64 with `-` and `_`, padded.
    UrlSafe,
    /// Base64 with `-` and `_`, not padded.
    UrlSafeUnpadded,
    /// Hexadecimal digits.
    Hex,
    /// Base64 of hexadecimal digits.
    HexBase64,
    /// Base64, percent-encoded once more than its place asks for.
    EncodedTwice,
    /// Base64, not percent-encoded for its place, so that each `+` came as a space.
    NotEncoded,
    /// Base64 with a line break at the end.
    LineBreak,
}

impl Spelling {
    /// The digest that `sent` spells, if it is spelt so.
    pub(super) fn read(self, sent: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Right => STANDARD.decode(sent).ok(),
            Self::Unpadded => STANDARD_NO_PAD.decode(sent).ok(),
            Self::UrlSafe => URL_SAFE.decode(sent).ok(),
            Self::UrlSafeUnpadded => URL_SAFE_NO_PAD.decode(sent).ok(),
            Self::Hex => unhex(sent),
            Self::HexBase64 => unhex(&STANDARD.decode(sent).ok()?),
            Self::EncodedTwice => STANDARD.decode(percent::decode(sent).ok()?).ok(),
            Self::NotEncoded => {
                let words: Vec<&[u8]> = sent.split(|&byte| byte == b' ').collect();
                STANDARD.decode(words.join(&b'+')).ok()
            }
            Self::LineBreak => STANDARD.decode(sent.trim_ascii_end()).ok(),
        }
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks();
    let bytes = pairs.iter().map(|&digits| percent::escaped(digits).ok());
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}
