//! Message heads (RFC 9112 §2 to §5): found, parsed and kept as spans of the bytes that arrived.

mod fields;
mod lines;

use memchr::memchr;
use thiserror::Error;

use self::fields::{FieldSpan, Span};
pub use self::{
    fields::{Fate, Field, Fields, Repeated},
    lines::HeadLines,
};
use super::{
    name::Name,
    pool::Buffer,
    token::{is_token, is_token_byte, trim},
};
use crate::scan::{BLOCK_BYTES, Block, padded};

/// What is wrong with a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadError {
    /// A line ends with LF alone, or a CR stands alone (RFC 9112 §2.2).
    #[error("a line does not end with CRLF")]
    LineEnd,
    /// A field value goes on in the next line (RFC 9112 §5.2).
    #[error("a field is folded over two lines")]
    Folded,
    /// The request line is not `method SP target SP version`, or the status line is none.
    #[error("the first line is malformed")]
    StartLine,
    /// The target has a byte that no URI has, or is of no form this proxy serves.
    #[error("the request target is malformed")]
    Target,
    /// The version is not HTTP/1.0 or HTTP/1.1.
    #[error("the HTTP version is not supported")]
    Version,
    /// A field name is empty, has a byte outside a token, or is followed by white space (RFC 9112 §5.1).
    #[error("a field name is malformed")]
    FieldName,
    /// A field value has a control byte (RFC 9110 §5.5).
    #[error("a field value has a control byte")]
    FieldValue,
    /// More bytes than allowed.
    #[error("the head is too large")]
    TooLarge,
    /// More fields than allowed.
    #[error("the head has too many fields")]
    TooManyFields,
    /// A longer target than allowed.
    #[error("the request target is too long")]
    TargetTooLong,
}

/// Bounds of a head.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// Bytes in all.
    pub head_bytes: usize,
    /// Number of fields.
    pub head_fields: usize,
    /// Bytes of the request target.
    pub target_bytes: usize,
}

/// The version of HTTP that a message came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: closes unless told otherwise, knows no chunks.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2: the head was made from a HEADERS frame, and nothing is said about the connection.
    Http2,
}

/// The head of a request.
#[derive(Debug)]
pub struct RequestHead {
    /// The field lines.
    pub fields: Fields,
    /// The version of the message.
    pub version: Version,
    method: Span,
    target: Span,
}

impl RequestHead {
    /// Parses the head that `bytes` consists of, from the request line to the empty line.
    ///
    /// # Errors
    /// Every [`HeadError`]: nothing is mended or skipped.
    pub fn parse(bytes: Buffer, limits: &HeadLimits) -> Result<Self, HeadError> {
        let lines = whole(&bytes, limits)?;
        Self::of(lines, bytes, limits)
    }

    /// Parses the head whose lines were found in `bytes`, up to its end.
    ///
    /// # Errors
    /// As [`RequestHead::parse`].
    pub fn of(lines: HeadLines, bytes: Buffer, limits: &HeadLimits) -> Result<Self, HeadError> {
        let line = lines.first.ok_or(HeadError::StartLine)?;
        let (method, target, version) = request_line(&bytes, line, limits)?;
        let fields = parse_fields(lines, bytes)?;
        Ok(Self {
            fields,
            version,
            method,
            target,
        })
    }

    /// The method as sent; methods are case-sensitive (RFC 9110 §9.1).
    #[must_use]
    pub fn method(&self) -> &[u8] {
        self.method.of(self.fields.bytes())
    }

    /// The request target as sent.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        self.target.of(self.fields.bytes())
    }
}

/// The head of an answer.
#[derive(Debug)]
pub struct ResponseHead {
    /// The field lines.
    pub fields: Fields,
    /// The version of the message.
    pub version: Version,
    /// 100 to 999.
    pub status: u16,
    reason: Span,
}

impl ResponseHead {
    /// Parses the head that `bytes` consists of, from the status line to the empty line.
    ///
    /// # Errors
    /// Every [`HeadError`] but those of the target.
    pub fn parse(bytes: Buffer, limits: &HeadLimits) -> Result<Self, HeadError> {
        let lines = whole(&bytes, limits)?;
        Self::of(lines, bytes)
    }

    /// Parses the head whose lines were found in `bytes`, up to its end.
    ///
    /// # Errors
    /// As [`ResponseHead::parse`].
    pub fn of(lines: HeadLines, bytes: Buffer) -> Result<Self, HeadError> {
        let line = lines.first.ok_or(HeadError::StartLine)?;
        let (version, status, reason) = status_line(&bytes, line)?;
        let fields = parse_fields(lines, bytes)?;
        Ok(Self {
            fields,
            version,
            status,
            reason,
        })
    }

    /// The reason phrase, possibly empty.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.reason.of(self.fields.bytes())
    }
}

/// The lines of a head that is `bytes` and nothing more.
fn whole(bytes: &[u8], limits: &HeadLimits) -> Result<HeadLines, HeadError> {
    let mut lines = HeadLines::default();
    // Its length has been bounded where it was collected.
    let limits = HeadLimits {
        head_bytes: usize::MAX,
        ..*limits
    };
    match lines.find(bytes, &limits)? {
        Some(length) if length == bytes.len() => Ok(lines),
        _ => Err(HeadError::LineEnd),
    }
}

fn request_line(
    bytes: &[u8],
    line: Span,
    limits: &HeadLimits,
) -> Result<(Span, Span, Version), HeadError> {
    let text = line.of(bytes);
    let start = line.start as usize;
    let method_end = memchr(b' ', text).ok_or(HeadError::StartLine)?;
    if !is_token(&text[..method_end]) {
        return Err(HeadError::StartLine);
    }
    let rest = &text[method_end + 1..];
    let target_length = memchr(b' ', rest).ok_or(HeadError::StartLine)?;
    let version = match &rest[target_length + 1..] {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        other if other.starts_with(b"HTTP/") => return Err(HeadError::Version),
        _ => return Err(HeadError::StartLine),
    };
    if target_length > limits.target_bytes {
        return Err(HeadError::TargetTooLong);
    }
    let target = &rest[..target_length];
    // RFC 9112 §3.2: visible ASCII without a fragment. Raw bytes beyond ASCII are no URI (RFC 3986 §2).
    if target.is_empty() || !is_of_uri(target) {
        return Err(HeadError::Target);
    }
    let target_start = start + method_end + 1;
    Ok((
        Span::new(start, start + method_end),
        Span::new(target_start, target_start + target_length),
        version,
    ))
}

fn status_line(bytes: &[u8], line: Span) -> Result<(Version, u16, Span), HeadError> {
    let text = line.of(bytes);
    let (version, rest) = if let Some(rest) = text.strip_prefix(b"HTTP/1.1 ") {
        (Version::Http11, rest)
    } else if let Some(rest) = text.strip_prefix(b"HTTP/1.0 ") {
        (Version::Http10, rest)
    } else if text.starts_with(b"HTTP/") {
        return Err(HeadError::Version);
    } else {
        return Err(HeadError::StartLine);
    };
    let (
        &[
            hundreds @ b'1'..=b'9',
            tens @ b'0'..=b'9',
            ones @ b'0'..=b'9',
        ],
        reason,
    ) = rest.split_first_chunk::<3>().ok_or(HeadError::StartLine)?
    else {
        return Err(HeadError::StartLine);
    };
    let status =
        u16::from(hundreds - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
    // Some servers leave out the space before an empty reason; nothing else is left out.
    let reason = match reason {
        [] => reason,
        [b' ', reason @ ..] if reason.iter().all(|&byte| is_value_byte(byte)) => reason,
        _ => return Err(HeadError::StartLine),
    };
    let end = line.end as usize;
    Ok((version, status, Span::new(end - reason.len(), end)))
}

/// Whether all bytes are visible ASCII other than `#`.
fn is_of_uri(target: &[u8]) -> bool {
    let all = |block: &[u8; BLOCK_BYTES]| {
        let block = Block::new(block);
        block.within(b'!', b'~').except(block.equal(b'#')).others() == 0
    };
    let (blocks, rest) = target.as_chunks();
    blocks.iter().all(all) && all(&padded(rest, b'/'))
}

/// Reads the lines as fields.
fn parse_fields(mut lines: HeadLines, bytes: Buffer) -> Result<Fields, HeadError> {
    for field in &mut *lines.others {
        *field = read_field(&bytes, field.value, lines.has_control)?;
    }
    Ok(Fields::new(bytes, lines.others))
}

#[inline(always)]
fn read_field(bytes: &[u8], line: Span, has_control: bool) -> Result<FieldSpan, HeadError> {
    let text = line.of(bytes);
    let start = line.start as usize;
    if let [b' ' | b'\t', ..] = text {
        return Err(HeadError::Folded);
    }
    let name_length = name_length(&bytes[start..], text)?;
    // What ends the name is the colon: white space before it is another reading (RFC 9112 §5.1).
    if name_length == 0 || text[name_length] != b':' {
        return Err(HeadError::FieldName);
    }
    let raw = &text[name_length + 1..];
    // A head that has no control byte anywhere, as nearly every one, need not have each value looked through.
    if has_control && !raw.iter().all(|&byte| is_value_byte(byte)) {
        return Err(HeadError::FieldValue);
    }
    let value = trim(raw);
    let value_start = value.as_ptr() as usize - bytes.as_ptr() as usize;
    Ok(FieldSpan {
        known: Name::of(&text[..name_length]),
        name: Span::new(start, start + name_length),
        value: Span::new(value_start, value_start + value.len()),
    })
}

/// Where the token ends that `text` begins with; `behind` is `text` and whatever follows it.
#[inline(always)]
fn name_length(behind: &[u8], text: &[u8]) -> Result<usize, HeadError> {
    // Nearly every name is of letters, digits and hyphens, and short.
    if let Some(block) = behind.first_chunk() {
        let block = Block::new(block);
        let usual = block
            .letters(b'a', b'z')
            .or(block.within(b'0', b'9'))
            .or(block.equal(b'-'));
        // Where all of them are usual, the name goes on up to the end of the block at least.
        let length = (usual.others() | 1 << BLOCK_BYTES).trailing_zeros() as usize;
        if text.get(length) == Some(&b':') {
            return Ok(length);
        }
    }
    text.iter()
        .position(|&byte| !is_token_byte(byte))
        .ok_or(HeadError::FieldName)
}

/// Visible characters, space, tab and bytes beyond ASCII (RFC 9110 §5.5).
const fn is_value_byte(byte: u8) -> bool {
    (byte >= b' ') & (byte != 0x7f) | (byte == b'\t')
}

#[cfg(test)]
mod tests;
