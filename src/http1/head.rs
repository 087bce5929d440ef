//! Message heads (RFC 9112 §2 to §5): found, parsed and kept as spans of the bytes that arrived.

use std::cell::RefCell;

use memchr::memchr;
use thiserror::Error;

use super::{
    name::Name,
    pool::Buffer,
    token::{is_token, is_token_byte, trim},
};

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

/// A span of the head's bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "heads are bounded far below 4 GiB"
    )]
    const fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

#[derive(Debug, Clone, Copy)]
struct FieldSpan {
    known: Name,
    name: Span,
    value: Span,
}

/// One field line.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// The name, if it is one the proxy knows.
    pub known: Name,
    /// The name as sent.
    pub name: &'a [u8],
    /// The value without the white space around it.
    pub value: &'a [u8],
}

/// The field lines of a head, in the order they came.
#[derive(Debug)]
pub struct Fields {
    bytes: Buffer,
    spans: Vec<FieldSpan>,
}

thread_local! {
    static FREE_SPANS: RefCell<Vec<Vec<FieldSpan>>> = const { RefCell::new(Vec::new()) };
}

const MAX_KEPT_SPANS: usize = 512;

impl Fields {
    fn over(bytes: Buffer) -> Self {
        let spans = FREE_SPANS.with_borrow_mut(Vec::pop);
        Self {
            bytes,
            spans: spans.unwrap_or_else(|| Vec::with_capacity(24)),
        }
    }

    /// All field lines.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.spans.iter().map(|span| Field {
            known: span.known,
            name: span.name.of(&self.bytes),
            value: span.value.of(&self.bytes),
        })
    }

    /// The values of all lines of a known name.
    pub fn all(&self, name: Name) -> impl Iterator<Item = &[u8]> {
        self.spans
            .iter()
            .filter(move |span| span.known == name)
            .map(|span| span.value.of(&self.bytes))
    }

    /// The value of the only line of a known name.
    ///
    /// # Errors
    /// [`Repeated`] if there are several lines.
    pub fn single(&self, name: Name) -> Result<Option<&[u8]>, Repeated> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            Err(Repeated)
        } else {
            Ok(first)
        }
    }

    /// Whether there is a line of a known name.
    #[must_use]
    pub fn has(&self, name: Name) -> bool {
        self.spans.iter().any(|span| span.known == name)
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        let _ = FREE_SPANS.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_KEPT_SPANS && spans.capacity() <= 256 {
                free.push(spans);
            }
        });
    }
}

/// A field that may stand once stands twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

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
        let mut lines = Lines::new(&bytes);
        let line = lines.next()?;
        let (method, target, version) = request_line(&bytes, line, limits)?;
        let mut fields = Fields::over(Buffer::none());
        parse_fields(&bytes, lines, limits, &mut fields.spans)?;
        fields.bytes = bytes;
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
        self.method.of(&self.fields.bytes)
    }

    /// The request target as sent.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        self.target.of(&self.fields.bytes)
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
        let mut lines = Lines::new(&bytes);
        let line = lines.next()?;
        let (version, status, reason) = status_line(&bytes, line)?;
        let mut fields = Fields::over(Buffer::none());
        parse_fields(&bytes, lines, limits, &mut fields.spans)?;
        fields.bytes = bytes;
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
        self.reason.of(&self.fields.bytes)
    }
}

/// Looks for the end of a head in bytes that arrive piece by piece.
#[derive(Debug, Default)]
pub struct HeadEnd {
    /// Everything before is complete lines.
    line_start: usize,
    /// Everything before has been searched.
    searched: usize,
}

impl HeadEnd {
    /// Where the head ends, its empty line included, or `None` if more must arrive. `bytes` has the bytes of the
    /// call before and more behind them.
    ///
    /// # Errors
    /// [`HeadError::LineEnd`] as soon as a line ends with LF alone, [`HeadError::TooLarge`] past `head_bytes`.
    pub fn find(&mut self, bytes: &[u8], head_bytes: usize) -> Result<Option<usize>, HeadError> {
        while let Some(offset) = memchr(b'\n', &bytes[self.searched..]) {
            let end = self.searched + offset;
            if end == self.line_start || bytes[end - 1] != b'\r' {
                return Err(HeadError::LineEnd);
            }
            let empty = end - 1 == self.line_start;
            self.line_start = end + 1;
            self.searched = end + 1;
            if empty {
                return if end < head_bytes {
                    Ok(Some(end + 1))
                } else {
                    Err(HeadError::TooLarge)
                };
            }
        }
        self.searched = bytes.len();
        if bytes.len() >= head_bytes {
            Err(HeadError::TooLarge)
        } else {
            Ok(None)
        }
    }
}

/// The lines of a head, CRLF taken off; the last one is empty.
struct Lines<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Lines<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    fn next(&mut self) -> Result<Span, HeadError> {
        let start = self.position;
        let length = memchr(b'\n', &self.bytes[start..]).ok_or(HeadError::LineEnd)?;
        if length == 0 || self.bytes[start + length - 1] != b'\r' {
            return Err(HeadError::LineEnd);
        }
        self.position = start + length + 1;
        Ok(Span::new(start, start + length - 1))
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
    if target.is_empty()
        || !target
            .iter()
            .all(|&byte| byte.is_ascii_graphic() && byte != b'#')
    {
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

fn parse_fields(
    bytes: &[u8],
    mut lines: Lines<'_>,
    limits: &HeadLimits,
    spans: &mut Vec<FieldSpan>,
) -> Result<(), HeadError> {
    spans.clear();
    // A head that has no control byte anywhere, as nearly every one, need not have each value looked through.
    let clean = has_no_control_byte(bytes);
    loop {
        let line = lines.next()?;
        let text = line.of(bytes);
        let start = line.start as usize;
        match text {
            [] => return Ok(()),
            [b' ' | b'\t', ..] => return Err(HeadError::Folded),
            _ => {}
        }
        if spans.len() >= limits.head_fields {
            return Err(HeadError::TooManyFields);
        }
        let name_length = text
            .iter()
            .position(|&byte| !is_token_byte(byte))
            .ok_or(HeadError::FieldName)?;
        // What ends the name is the colon: white space before it is another reading (RFC 9112 §5.1).
        if name_length == 0 || text[name_length] != b':' {
            return Err(HeadError::FieldName);
        }
        let raw = &text[name_length + 1..];
        if !clean && !raw.iter().all(|&byte| is_value_byte(byte)) {
            return Err(HeadError::FieldValue);
        }
        let value = trim(raw);
        let value_start = value.as_ptr() as usize - bytes.as_ptr() as usize;
        spans.push(FieldSpan {
            known: Name::of(&text[..name_length]),
            name: Span::new(start, start + name_length),
            value: Span::new(value_start, value_start + value.len()),
        });
    }
}

/// Whether all bytes are those of values, or end lines: as many CR as LF, so that where each LF has its CR there is none
/// alone. Without a branch in its loop, so that it takes many bytes at a time.
fn has_no_control_byte(bytes: &[u8]) -> bool {
    let mut control = false;
    // The difference of two numbers that are each below the bound of a head, so it cannot come round to 0.
    let mut returns = 0u32;
    for &byte in bytes {
        let line_end = byte == b'\r' || byte == b'\n';
        control |= !(is_value_byte(byte) | line_end);
        returns = returns
            .wrapping_add(u32::from(byte == b'\r'))
            .wrapping_sub(u32::from(byte == b'\n'));
    }
    !control && returns == 0
}

/// Visible characters, space, tab and bytes beyond ASCII (RFC 9110 §5.5).
const fn is_value_byte(byte: u8) -> bool {
    (byte >= b' ') & (byte != 0x7f) | (byte == b'\t')
}

#[cfg(test)]
mod tests;
