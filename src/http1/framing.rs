//! Where a message ends (RFC 9112 §6) and whether its connection may be used again (§9.3).

use thiserror::Error;

use super::{
    head::{Fields, RequestHead, ResponseHead, Version},
    name::Name,
    token::{is_token, list},
};

/// How the body of a message is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes, more than none.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Everything until the connection closes; answers only.
    UntilClose,
}

/// Why nobody can tell where the message ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FramingError {
    /// `Content-Length` stands beside `Transfer-Encoding` (RFC 9112 §6.1: ought to be treated as an error).
    #[error("Content-Length and Transfer-Encoding together")]
    LengthAndEncoding,
    /// `Transfer-Encoding` is anything but one `chunked`.
    #[error("Transfer-Encoding is not a single chunked")]
    Encoding,
    /// `Transfer-Encoding` in a version that knows none: HTTP/1.0 (RFC 9112 §6.1) or HTTP/2 (RFC 9113 §8.2.2).
    #[error("Transfer-Encoding in a version of HTTP other than 1.1")]
    EncodingUnknown,
    /// `Content-Length` is no number, too large, or stands twice.
    #[error("Content-Length is no single number")]
    Length,
    /// A `Connection` option is no token.
    #[error("Connection is malformed")]
    Connection,
    /// The `Connection` lines are longer than [`MAX_CONNECTION_BYTES`].
    #[error("Connection is too long")]
    ConnectionTooLong,
}

/// So long may the values of all `Connection` lines be together, in bytes: each field is looked for in them, so that the
/// work would grow with the square of a head.
pub const MAX_CONNECTION_BYTES: usize = 1024;

/// Tells where the body of a request ends.
///
/// # Errors
/// Every [`FramingError`] but those of `Connection`: a request that two recipients could split differently is refused.
pub fn request(head: &RequestHead) -> Result<Framing, FramingError> {
    Ok(match delimiter(&head.fields, head.version)? {
        None | Some(Framing::Length(0)) => Framing::None,
        Some(framing) => framing,
    })
}

/// Tells where the body of an answer ends, given the method it answers.
///
/// # Errors
/// As [`request`].
pub fn response(head: &ResponseHead, to_head: bool) -> Result<Framing, FramingError> {
    let delimiter = delimiter(&head.fields, head.version)?;
    if to_head || matches!(head.status, 100..=199 | 204 | 304) {
        return Ok(Framing::None);
    }
    Ok(match delimiter {
        None => Framing::UntilClose,
        Some(Framing::Length(0)) => Framing::None,
        Some(framing) => framing,
    })
}

fn delimiter(fields: &Fields, version: Version) -> Result<Option<Framing>, FramingError> {
    let mut length = None;
    let mut chunked = false;
    for field in fields.iter() {
        match field.known {
            Name::ContentLength => {
                if length.is_some() {
                    return Err(FramingError::Length);
                }
                length = Some(content_length(field.value)?);
            }
            Name::TransferEncoding => {
                if version != Version::Http11 {
                    return Err(FramingError::EncodingUnknown);
                }
                if chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(FramingError::Encoding);
                }
                chunked = true;
            }
            _ => {}
        }
    }
    match (length, chunked) {
        (Some(_), true) => Err(FramingError::LengthAndEncoding),
        (Some(length), false) => Ok(Some(Framing::Length(length))),
        (None, true) => Ok(Some(Framing::Chunked)),
        (None, false) => Ok(None),
    }
}

fn content_length(value: &[u8]) -> Result<u64, FramingError> {
    // 18 digits are an exabyte; beyond them some recipient's integer overflows.
    if value.is_empty() || value.len() > 18 {
        return Err(FramingError::Length);
    }
    value.iter().try_fold(0u64, |length, &digit| {
        if digit.is_ascii_digit() {
            Ok(length * 10 + u64::from(digit - b'0'))
        } else {
            Err(FramingError::Length)
        }
    })
}

/// What the `Connection` lines of a head say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Persistence {
    /// The connection may be used for another message.
    pub keep_alive: bool,
    /// An option besides `close` and `keep-alive` names fields to drop.
    pub names_fields: bool,
}

/// Reads all `Connection` lines (RFC 9110 §7.6.1, RFC 9112 §9.3).
///
/// # Errors
/// [`FramingError::Connection`] if an option is no token, and [`FramingError::ConnectionTooLong`].
pub fn persistence(fields: &Fields, version: Version) -> Result<Persistence, FramingError> {
    let mut close = false;
    let mut keep_alive = version != Version::Http10;
    let mut names_fields = false;
    let mut length = 0;
    for value in fields.all(Name::Connection) {
        length += value.len();
        if length > MAX_CONNECTION_BYTES {
            return Err(FramingError::ConnectionTooLong);
        }
        // Nearly every line says only this.
        if value == b"keep-alive" {
            keep_alive = true;
            continue;
        }
        for option in list(value) {
            if option.eq_ignore_ascii_case(b"close") {
                close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                keep_alive = true;
            } else if is_token(option) {
                names_fields = true;
            } else {
                return Err(FramingError::Connection);
            }
        }
    }
    Ok(Persistence {
        keep_alive: keep_alive && !close,
        names_fields,
    })
}

/// Whether a `Connection` line may name fields, so that each has to be looked for with [`is_named_by_connection`].
#[must_use]
pub fn names_fields(fields: &Fields) -> bool {
    persistence(fields, Version::Http11).map_or(true, |persistence| persistence.names_fields)
}

/// Whether a `Connection` line names the field (RFC 9110 §7.6.1: "an intermediary MUST parse a received Connection
/// header field before a message is forwarded and, for each connection-option in this field, remove any header field(s)").
#[must_use]
pub fn is_named_by_connection(fields: &Fields, name: &[u8]) -> bool {
    fields
        .all(Name::Connection)
        .flat_map(list)
        .any(|option| option.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{head::HeadLimits, pool::Buffer};

    const LIMITS: HeadLimits = HeadLimits {
        head_bytes: 4096,
        head_fields: 20,
        target_bytes: 1000,
    };

    fn head(version: &str, fields: &str) -> RequestHead {
        let mut bytes = Buffer::take();
        bytes.extend_from_slice(format!("POST / HTTP/{version}\r\n{fields}\r\n").as_bytes());
        RequestHead::parse(bytes, &LIMITS).expect("a good head")
    }

    #[test]
    fn refuses_every_ambiguous_framing() {
        use FramingError::{Encoding, EncodingUnknown, Length, LengthAndEncoding};
        for (fields, error) in [
            (
                "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                LengthAndEncoding,
            ),
            ("Content-Length: 1\r\nContent-Length: 1\r\n", Length),
            ("Content-Length: 1, 1\r\n", Length),
            ("Content-Length: +1\r\n", Length),
            ("Content-Length: -1\r\n", Length),
            ("Content-Length: 0x1\r\n", Length),
            ("Content-Length: 1 1\r\n", Length),
            ("Content-Length:\r\n", Length),
            ("Content-Length: 18446744073709551617\r\n", Length),
            ("Transfer-Encoding: gzip\r\n", Encoding),
            ("Transfer-Encoding: gzip, chunked\r\n", Encoding),
            ("Transfer-Encoding: chunked, chunked\r\n", Encoding),
            ("Transfer-Encoding: identity\r\n", Encoding),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                Encoding,
            ),
            ("Transfer-Encoding: \"chunked\"\r\n", Encoding),
            ("Transfer-Encoding: chunked;q=1\r\n", Encoding),
            ("Transfer-Encoding:\r\n", Encoding),
        ] {
            assert_eq!(request(&head("1.1", fields)), Err(error), "{fields:?}");
        }
        assert_eq!(
            request(&head("1.0", "Transfer-Encoding: chunked\r\n")),
            Err(EncodingUnknown)
        );
    }

    #[test]
    fn finds_the_framing() {
        for (fields, framing) in [
            ("", Framing::None),
            ("Content-Length: 0\r\n", Framing::None),
            ("Content-Length: 007\r\n", Framing::Length(7)),
            ("transfer-encoding: Chunked\r\n", Framing::Chunked),
        ] {
            assert_eq!(request(&head("1.1", fields)), Ok(framing), "{fields:?}");
        }
    }

    #[test]
    fn reads_every_connection_line() {
        let head = head(
            "1.1",
            "Connection: x-a, keep-alive\r\nConnection: close,X-B\r\n",
        );
        let persistence = persistence(&head.fields, head.version);
        assert_eq!(
            persistence,
            Ok(Persistence {
                keep_alive: false,
                names_fields: true
            })
        );
        assert!(is_named_by_connection(&head.fields, b"x-b"));
        assert!(is_named_by_connection(&head.fields, b"X-A"));
        assert!(!is_named_by_connection(&head.fields, b"X-C"));
    }

    #[test]
    fn bounds_what_each_field_is_looked_for_in() {
        let read = |fields: &str| persistence(&head("1.1", fields).fields, Version::Http11);
        let half = "a,".repeat(MAX_CONNECTION_BYTES / 4);
        let whole = format!("Connection: {half}\r\nConnection: {half}\r\n");
        assert!(read(&whole).is_ok_and(|read| read.names_fields));
        for more in ["b", "close", "keep-alive", ","] {
            let fields = format!("{whole}Connection: {more}\r\n");
            assert_eq!(read(&fields), Err(FramingError::ConnectionTooLong));
        }
    }
}
