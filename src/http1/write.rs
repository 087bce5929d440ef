//! Writing heads and chunks into a buffer.

use std::io::Write as _;

/// Appends a field line.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    // Writing into a Vec cannot fail.
    let _ = write!(out, "{number}");
}

/// Appends `data` as one chunk (RFC 9112 §7.1); nothing for no data, since an empty chunk ends the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let _ = write!(out, "{:x}\r\n", data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
