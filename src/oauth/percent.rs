//! Percent-encoding, RFC 5849 §3.6.
//!
//! "Characters in the unreserved character set as defined by \[RFC3986\], Section 2.3 (ALPHA, DIGIT, "-", ".", "_", "~") MUST NOT
//! be encoded. All other characters MUST be encoded. The two hexadecimal characters used to represent encoded characters MUST be
//! uppercase." Everything here works on bytes: the values of a request need not be UTF-8.

use std::borrow::Cow;

use thiserror::Error;

use super::sink::Sink;

/// A `%` that two hexadecimal digits do not follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a '%' is not followed by two hexadecimal digits")]
pub struct InvalidEscape;

/// The encoded form of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    encode_to(&mut out, bytes);
    // Only ASCII was written, so nothing is replaced here.
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes strictly: each `%` needs two hexadecimal digits, of either case; every other byte is literal.
///
/// # Errors
///
/// [`InvalidEscape`] if one of them is missing.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, [u8]>, InvalidEscape> {
    decode_with(bytes, false)
}

/// Decodes as `application/x-www-form-urlencoded` is: as [`decode`], and `+` is a space.
///
/// # Errors
///
/// [`InvalidEscape`] as with [`decode`].
pub fn decode_form(bytes: &[u8]) -> Result<Cow<'_, [u8]>, InvalidEscape> {
    decode_with(bytes, true)
}

fn decode_with(bytes: &[u8], form: bool) -> Result<Cow<'_, [u8]>, InvalidEscape> {
    if next_coded(bytes, form).is_none() {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(bytes.len());
    decode_into(&mut out, bytes, form)?;
    Ok(Cow::Owned(out))
}

/// Appends the decoded bytes to `out`; in a form `+` is a space.
///
/// # Errors
///
/// [`InvalidEscape`], with a part of the bytes appended.
#[inline]
pub(super) fn decode_into(
    out: &mut Vec<u8>,
    bytes: &[u8],
    form: bool,
) -> Result<(), InvalidEscape> {
    let mut rest = bytes;
    while let Some(at) = next_coded(rest, form) {
        out.extend_from_slice(&rest[..at]);
        let is_plus = rest[at] == b'+';
        rest = &rest[at + 1..];
        if is_plus {
            out.push(b' ');
            continue;
        }
        let (digits, remainder) = rest.split_first_chunk().ok_or(InvalidEscape)?;
        out.push(escaped(*digits)?);
        rest = remainder;
    }
    out.extend_from_slice(rest);
    Ok(())
}

#[inline]
fn next_coded(bytes: &[u8], form: bool) -> Option<usize> {
    match form {
        true => memchr::memchr2(b'%', b'+', bytes),
        false => memchr::memchr(b'%', bytes),
    }
}

/// Writes the encoded form of `bytes` to `sink`.
pub fn encode_to(sink: &mut impl Sink, bytes: &[u8]) {
    encode_with(sink, bytes, |high, low| [b'%', high, low]);
}

/// Writes the form of `bytes` that is encoded twice to `sink`.
pub(super) fn encode_twice_to(sink: &mut impl Sink, bytes: &[u8]) {
    encode_with(sink, bytes, |high, low| [b'%', b'2', b'5', high, low]);
}

#[inline]
fn encode_with<const N: usize>(
    sink: &mut impl Sink,
    bytes: &[u8],
    escape: impl Fn(u8, u8) -> [u8; N],
) {
    let digit = |value: u8| DIGITS[usize::from(value)];
    let mut rest = bytes;
    loop {
        let (run, tail) = rest.split_at(unreserved_run(rest));
        if !run.is_empty() {
            sink.write(run);
        }
        let Some((&byte, tail)) = tail.split_first() else {
            return;
        };
        sink.write(&escape(digit(byte >> 4), digit(byte & 0xf)));
        rest = tail;
    }
}

/// The byte that the two digits of an escape encode.
///
/// # Errors
///
/// [`InvalidEscape`] if one of them is not a hexadecimal digit.
#[inline]
pub fn escaped(digits: [u8; 2]) -> Result<u8, InvalidEscape> {
    let [high, low] = digits;
    let (high, low) = (HEX_VALUES[usize::from(high)], HEX_VALUES[usize::from(low)]);
    if (high | low) > 0xf {
        return Err(InvalidEscape);
    }
    Ok(high << 4 | low)
}

/// The number of bytes at the start of `bytes` that do not change when encoded.
#[inline]
pub(super) fn unreserved_run(bytes: &[u8]) -> usize {
    // Four at a time without a branch for each.
    let (blocks, _) = bytes.as_chunks::<4>();
    let is_reserved = |block: &[u8; 4]| {
        !block
            .iter()
            .fold(true, |all, &byte| all & is_unreserved(byte))
    };
    let start = 4 * blocks.iter().position(is_reserved).unwrap_or(blocks.len());
    let reserved = bytes[start..].iter().position(|&byte| !is_unreserved(byte));
    reserved.map_or(bytes.len(), |at| start + at)
}

/// Whether the byte is in RFC 3986's unreserved set.
#[inline]
#[must_use]
pub fn is_unreserved(byte: u8) -> bool {
    UNRESERVED[usize::from(byte)]
}

/// The place of a byte in the order of encoded bytes: one that is encoded begins with `%`, which sorts before all others.
#[inline]
pub(super) fn encoded_order(byte: u8) -> (bool, u8) {
    (is_unreserved(byte), byte)
}

const UNRESERVED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 0x80 {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    table
};

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The value of a hexadecimal digit of either case, a byte above 15 for any other.
const HEX_VALUES: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        let digit = DIGITS[value as usize];
        table[digit as usize] = value;
        table[digit.to_ascii_lowercase() as usize] = value;
        value += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_all_but_the_unreserved_in_upper_case() {
        for byte in 0..=u8::MAX {
            let expected = if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            };
            assert_eq!(encode(&[byte]), expected);
        }
    }

    #[test]
    fn decodes_escapes_of_either_case_and_leaves_plus_alone() {
        assert_eq!(&*decode(b"a%2Bb%2b+%00%ff").unwrap(), b"a+b++\x00\xff");
        assert_eq!(&*decode_form(b"a%2Bb+c").unwrap(), b"a+b c");
        assert!(matches!(decode(b"plain+"), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn rejects_each_kind_of_broken_escape() {
        for broken in [
            "%", "%4", "a%", "%zz", "%4g", "%g4", "%%41", "% 41", "%+1", "%-1", "\u{664}%",
        ] {
            assert_eq!(decode(broken.as_bytes()), Err(InvalidEscape), "{broken}");
            assert_eq!(
                decode_form(broken.as_bytes()),
                Err(InvalidEscape),
                "{broken}"
            );
        }
    }

    #[test]
    fn a_run_ends_at_the_first_reserved_byte_wherever_it_stands() {
        for length in 0..50 {
            let plain = vec![b'a'; length];
            assert_eq!(unreserved_run(&plain), length);
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    let expected = if is_unreserved(byte) { length } else { at };
                    assert_eq!(unreserved_run(&bytes), expected);
                }
            }
        }
    }

    #[test]
    fn the_order_of_bytes_is_that_of_their_encoded_forms() {
        for left in 0..=u8::MAX {
            for right in 0..=u8::MAX {
                let encoded = encode(&[left]).cmp(&encode(&[right]));
                assert_eq!(encoded_order(left).cmp(&encoded_order(right)), encoded);
            }
        }
    }
}
