//! As much of DER (ITU-T X.690) as it takes to find an RSA key in its wrappings. What is found is checked by whoever uses it.

/// The OBJECT IDENTIFIER rsaEncryption, 1.2.840.113549.1.1.1 (RFC 8017 appendix A.1).
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0]`, the version of a certificate.
const EXPLICIT_0: u8 = 0xa0;

/// The SubjectPublicKeyInfo within a certificate (RFC 5280 §4.1), wrapping included.
pub(super) fn spki_of_certificate(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = take(certificate, SEQUENCE)?;
    let (mut fields, _) = take(certificate, SEQUENCE)?;
    if let Some((_version, rest)) = take(fields, EXPLICIT_0) {
        fields = rest;
    }
    let (_serial, mut fields) = take(fields, INTEGER)?;
    // signature algorithm, issuer, validity, subject
    for _ in 0..4 {
        fields = take(fields, SEQUENCE)?.1;
    }
    let (_spki, rest) = take(fields, SEQUENCE)?;
    fields.get(..fields.len() - rest.len())
}

/// The RSAPublicKey (RFC 8017 appendix A.1.1) within a SubjectPublicKeyInfo, wrapping included.
pub(super) fn rsa_key_of_spki(spki: &[u8]) -> Option<&[u8]> {
    let (spki, _) = take(spki, SEQUENCE)?;
    let (algorithm, rest) = take(spki, SEQUENCE)?;
    let (identifier, _) = take(algorithm, OBJECT_IDENTIFIER)?;
    let (bits, _) = take(rest, BIT_STRING)?;
    // The first octet of a BIT STRING counts the bits that its last one leaves unused.
    let (unused, key) = bits.split_first()?;
    (identifier == RSA_ENCRYPTION && *unused == 0).then_some(key)
}

/// The length of an RSAPublicKey's modulus in bits.
pub(super) fn modulus_bits(key: &[u8]) -> Option<usize> {
    let (key, _) = take(key, SEQUENCE)?;
    let (modulus, _) = take(key, INTEGER)?;
    let first = modulus.iter().position(|&byte| byte != 0)?;
    let modulus = &modulus[first..];
    Some(8 * modulus.len() - modulus.first()?.leading_zeros() as usize)
}

/// Takes one element with that tag off the front: its contents, and what follows it.
fn take(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = input.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (
                octets
                    .iter()
                    .fold(0, |length, &octet| length << 8 | usize::from(octet)),
                rest,
            )
        }
        _ => return None,
    };
    if found == tag {
        rest.split_at_checked(length)
    } else {
        None
    }
}
