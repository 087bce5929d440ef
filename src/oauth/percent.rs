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

/// Appends the encoded form of `bytes` to `out`.
pub fn encode_into(out: &mut Vec<u8>, bytes: &[u8]) {
    encode_to(out, bytes);
}

/// The encoded form of `bytes`.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    encode_into(&mut out, bytes);
    // Only ASCII was written, so nothing is replaced here.
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes strictly: each `%` needs two hexadecimal digits, of either case; every other byte is literal.
///
/// # Errors
///
/// [`InvalidEscape`] if one of them is missing.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, [u8]>, InvalidEscape> {
    if memchr::memchr(b'%', bytes).is_none() {
        return Ok(Cow::Borrowed(bytes));
    }
    decode_with(bytes, false).map(Cow::Owned)
}

/// Decodes as `application/x-www-form-urlencoded` is: as [`decode`], and `+` is a space.
///
/// # Errors
///
/// [`InvalidEscape`] as with [`decode`].
pub fn decode_form(bytes: &[u8]) -> Result<Cow<'_, [u8]>, InvalidEscape> {
    if memchr::memchr2(b'%', b'+', bytes).is_none() {
        return Ok(Cow::Borrowed(bytes));
    }
    decode_with(bytes, true).map(Cow::Owned)
}

fn decode_with(bytes: &[u8], form: bool) -> Result<Vec<u8>, InvalidEscape> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => {
                let digits = rest.split_first_chunk().ok_or(InvalidEscape)?;
                out.push(escaped(*digits.0)?);
                rest = digits.1;
            }
            b'+' if form => out.push(b' '),
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Writes the encoded form of `bytes` to `sink`.
pub(super) fn encode_to(sink: &mut impl Sink, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let (run, tail) = rest.split_at(unreserved_run(rest));
        sink.write(run);
        let Some((&byte, tail)) = tail.split_first() else {
            return;
        };
        sink.write(&ESCAPES[usize::from(byte)]);
        rest = tail;
    }
}

/// The byte that an escape's two digits stand for.
///
/// # Errors
///
/// [`InvalidEscape`] if one of them is no hexadecimal digit.
#[inline]
pub fn escaped(digits: [u8; 2]) -> Result<u8, InvalidEscape> {
    let [high, low] = digits;
    let (high, low) = (HEX_VALUES[usize::from(high)], HEX_VALUES[usize::from(low)]);
    if (high | low) > 0xf {
        return Err(InvalidEscape);
    }
    Ok(high << 4 | low)
}

/// How many bytes at the start of `bytes` do not change when encoded.
#[inline]
pub(super) fn unreserved_run(bytes: &[u8]) -> usize {
    let reserved = bytes.iter().position(|&byte| !is_unreserved(byte));
    reserved.unwrap_or(bytes.len())
}

/// Whether the byte is in RFC 3986's unreserved set.
#[inline]
#[must_use]
pub fn is_unreserved(byte: u8) -> bool {
    UNRESERVED[usize::from(byte)]
}

/// What a byte becomes when it is encoded twice, and how many bytes of that count: one, or the five of `%25XX`.
#[inline]
pub(super) fn twice(byte: u8) -> (&'static [u8; 8], usize) {
    let length = if is_unreserved(byte) { 1 } else { 5 };
    (&TWICE[usize::from(byte)], length)
}

/// What `%` becomes when it is encoded again.
pub(super) const ENCODED_PERCENT: &[u8] = b"%25";

const UNRESERVED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// `%XX` for every byte.
const ESCAPES: [[u8; 3]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut table = [[b'%'; 3]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte][1] = DIGITS[byte >> 4];
        table[byte][2] = DIGITS[byte & 0xf];
        byte += 1;
    }
    table
};

/// For every byte what it is when encoded twice, filled up to what is stored at once.
const TWICE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0u8;
    loop {
        let [_, high, low] = ESCAPES[byte as usize];
        table[byte as usize] = match UNRESERVED[byte as usize] {
            true => [byte, 0, 0, 0, 0, 0, 0, 0],
            false => [b'%', b'2', b'5', high, low, 0, 0, 0],
        };
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// The value of a hexadecimal digit of either case, a byte above 15 for any other.
const HEX_VALUES: [u8; 256] = {
    const NO_DIGIT: u8 = 0xff;
    let mut table = [NO_DIGIT; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => NO_DIGIT,
        };
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
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
    fn encoding_twice_is_encoding_the_encoded() {
        for byte in 0..=u8::MAX {
            let (stored, length) = twice(byte);
            assert_eq!(
                encode(encode(&[byte]).as_bytes()).as_bytes(),
                &stored[..length]
            );
        }
        assert_eq!(encode(b"%").as_bytes(), ENCODED_PERCENT);
    }
}
