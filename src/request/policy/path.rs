//! Paths as patterns see them: decoded once, and without any doubt about their segments.

use std::borrow::Cow;

use thiserror::Error;

use crate::{oauth::percent, request::parse::target::has_dot_segment};

/// Why a path has more than one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AmbiguousPath {
    /// A segment is `.` or `..`, or a reader may find one in it.
    #[error("the path has a dot segment")]
    DotSegment,
    /// A segment other than the last is empty.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// A `%` without two hexadecimal digits.
    #[error("the path has an invalid escape")]
    InvalidEscape,
    /// An escape of a separator or of `%`.
    #[error("the path has an encoded / \\ ; or %")]
    EncodedSeparator,
    /// An escape of a control byte.
    #[error("the path has an encoded control byte")]
    EncodedControl,
    /// Parameters of a segment.
    #[error("the path has a ; or \\")]
    Parameters,
    /// A backslash, which no URI has.
    #[error("the path has a ; or \\")]
    Backslash,
    /// A control byte.
    #[error("the path has a control byte")]
    Control,
    /// It has so many readings that they are not compared.
    #[error("the path is too long to compare its readings")]
    TooLong,
}

impl AmbiguousPath {
    /// The setting that permits it where the API has one reading of it.
    pub const fn setting(self) -> Option<&'static str> {
        match self {
            Self::EmptySegment => Some("paths.empty_segments"),
            Self::EncodedSeparator => Some("paths.encoded"),
            Self::Parameters => Some("paths.parameters"),
            Self::DotSegment
            | Self::InvalidEscape
            | Self::EncodedControl
            | Self::Backslash
            | Self::Control
            | Self::TooLong => None,
        }
    }
}

/// The parts of a path that are data of its segments: the API splits it at each slash as it was sent, and nowhere else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentData {
    /// Escapes of `/`, `\`, `%` and `;`.
    pub encoded: bool,
    /// A `;` and what follows it.
    pub parameters: bool,
    /// Nothing.
    pub empty: bool,
}

impl SegmentData {
    /// All of them.
    pub(super) const ALL: Self = Self {
        encoded: true,
        parameters: true,
        empty: true,
    };
}

/// A path as patterns see it: its escapes are decoded, but for those of `/` and `%`, which a slash and an escape of it are
/// told by.
#[derive(Debug)]
pub(super) struct MatchablePath<'a> {
    pub(super) text: Cow<'a, [u8]>,
    /// Some API may read it otherwise, because it has [`SegmentData`].
    pub(super) has_data: bool,
}

/// The path as patterns see it.
pub(super) fn matchable(
    path: &[u8],
    data: SegmentData,
) -> Result<MatchablePath<'_>, AmbiguousPath> {
    let mut decoded = decode(path, data)?;
    if decoded.has_data && path.split(|&byte| byte == b'/').any(has_dot_segment) {
        return Err(AmbiguousPath::DotSegment);
    }
    // The last segment may be empty: the path ends with a slash, or is the root.
    let text = &*decoded.text;
    let inner = text.strip_suffix(b"/").unwrap_or(text);
    for segment in inner.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." | b".." => return Err(AmbiguousPath::DotSegment),
            b"" if !data.empty => return Err(AmbiguousPath::EmptySegment),
            b"" => decoded.has_data = true,
            _ => {}
        }
    }
    Ok(decoded)
}

/// Decodes every escape once, and rejects what a second reader could decode again or split elsewhere, unless it is `data`.
pub(super) fn decode(path: &[u8], data: SegmentData) -> Result<MatchablePath<'_>, AmbiguousPath> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b';' | b'\\');
    if path.iter().copied().all(plain) {
        return Ok(MatchablePath {
            text: Cow::Borrowed(path),
            has_data: false,
        });
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut has_data = false;
    let mut rest = path;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'%' => {
                let invalid = AmbiguousPath::InvalidEscape;
                let (digits, tail) = rest.split_first_chunk().ok_or(invalid)?;
                rest = tail;
                match percent::escaped(*digits).map_err(|_| invalid)? {
                    b'/' | b'\\' | b';' | b'%' if !data.encoded => {
                        return Err(AmbiguousPath::EncodedSeparator);
                    }
                    0..=0x1f | 0x7f => return Err(AmbiguousPath::EncodedControl),
                    byte => {
                        has_data |= matches!(byte, b'/' | b'\\' | b';' | b'%');
                        push_data(&mut decoded, byte);
                    }
                }
            }
            b';' if !data.parameters => return Err(AmbiguousPath::Parameters),
            b'\\' => return Err(AmbiguousPath::Backslash),
            byte if byte.is_ascii_graphic() => {
                has_data |= *byte == b';';
                decoded.push(*byte);
            }
            _ => return Err(AmbiguousPath::Control),
        }
    }
    Ok(MatchablePath {
        text: Cow::Owned(decoded),
        has_data,
    })
}

/// Adds a byte that is data of its segment, as patterns see it.
pub(super) fn push_data(decoded: &mut Vec<u8>, byte: u8) {
    match byte {
        b'/' => decoded.extend_from_slice(b"%2F"),
        b'%' => decoded.extend_from_slice(b"%25"),
        byte => decoded.push(byte),
    }
}
