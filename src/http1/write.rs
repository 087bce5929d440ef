//! Writing heads and chunks into a buffer.

use std::{io::Write as _, net::IpAddr};

/// Appends a field line.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
pub fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends an address as it stands in a field; an IPv4 one in IPv6 clothes as the former.
pub fn address(out: &mut Vec<u8>, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            // Each octet with its period: four bytes at most, sixteen in all.
            let mut text = [b'.'; 16];
            let mut end = 0;
            for octet in address.octets() {
                for (digit, shown) in [
                    (octet / 100, octet >= 100),
                    (octet / 10 % 10, octet >= 10),
                    (octet % 10, true),
                ] {
                    text[end] = b'0' + digit;
                    end += usize::from(shown);
                }
                text[end] = b'.';
                end += 1;
            }
            out.extend_from_slice(&text[..end - 1]);
        }
        // Writing into a Vec cannot fail.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_addresses_are_those_of_the_standard_library(
            number: u64, small in 0u64..1_000, address: IpAddr,
        ) {
            for number in [number, small, 0, u64::MAX] {
                let mut out = Vec::new();
                decimal(&mut out, number);
                prop_assert_eq!(String::from_utf8(out).expect("text"), number.to_string());
            }
            let mut out = Vec::new();
            super::address(&mut out, address);
            prop_assert_eq!(String::from_utf8(out).expect("text"), address.to_canonical().to_string());
        }
    }
}
