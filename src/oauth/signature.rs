//! Making and checking signatures, RFC 5849 §3.4.2 to §3.4.4.

use base64::{Engine, engine::general_purpose::STANDARD};
use thiserror::Error;

use super::{
    base_string::BaseString,
    method::SignatureMethod,
    rsa::{RsaPrivateKey, RsaPublicKey},
    signing_key::{Key, Message, hmac_md5, hmac_sha1, hmac_sha256, hmac_sha512},
};

/// The proof that a request was signed with the key it was checked with. Nothing but [`verify`] makes one.
#[derive(Debug)]
#[must_use]
pub struct SignatureHolds(());

/// The signature is not the one that this key makes of this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the signature does not match")]
pub struct SignatureInvalid;

/// Base64 of a SHA-512 digest, the longest.
const LONGEST_BASE64: usize = 88;

/// Checks the signature that was sent, `oauth_signature` decoded.
///
/// It has to be the one padded base64 spelling (RFC 4648 §4) of the right bytes, and is compared in time that does not depend on
/// where it differs. The RSA methods use `rsa` and nothing of `key`; without an RSA key they do not hold.
///
/// # Errors
///
/// [`SignatureInvalid`] in every other case.
pub fn verify(
    method: SignatureMethod,
    key: &impl Key,
    rsa: Option<&RsaPublicKey>,
    base: &BaseString<'_>,
    sent: &[u8],
) -> Result<SignatureHolds, SignatureInvalid> {
    let holds = match method {
        SignatureMethod::HmacSha1 => is_base64_of(sent, &hmac_sha1(key, base)),
        SignatureMethod::HmacMd5 => is_base64_of(sent, &hmac_md5(key, base)),
        SignatureMethod::HmacSha256 => is_base64_of(sent, &hmac_sha256(key, base)),
        SignatureMethod::HmacSha512 => is_base64_of(sent, &hmac_sha512(key, base)),
        SignatureMethod::Plaintext => equal(sent, &key.text()),
        SignatureMethod::RsaSha1 | SignatureMethod::RsaSha256 | SignatureMethod::RsaSha512 => {
            rsa.is_some_and(|rsa| rsa.verifies(method, base, sent))
        }
    };
    if holds {
        Ok(SignatureHolds(()))
    } else {
        Err(SignatureInvalid)
    }
}

/// Makes the signature of an RSA method, not encoded for its place yet; nothing for other methods and for RSA-SHA1.
#[must_use]
pub fn sign_rsa(
    method: SignatureMethod,
    key: &RsaPrivateKey,
    base: &BaseString<'_>,
) -> Option<String> {
    key.sign(method, &base.to_vec())
}

/// Makes the signature, not encoded for its place yet; nothing for the RSA methods, which need a private key.
#[must_use]
pub fn sign(method: SignatureMethod, key: &impl Key, base: &BaseString<'_>) -> Option<String> {
    sign_message(method, key, base)
}

/// [`sign`] for a base string that is there as text.
#[must_use]
pub fn sign_text(method: SignatureMethod, key: &impl Key, base_string: &[u8]) -> Option<String> {
    sign_message(method, key, &base_string)
}

fn sign_message(method: SignatureMethod, key: &impl Key, message: &impl Message) -> Option<String> {
    let signature = match method {
        SignatureMethod::HmacSha1 => STANDARD.encode(hmac_sha1(key, message)),
        SignatureMethod::HmacMd5 => STANDARD.encode(hmac_md5(key, message)),
        SignatureMethod::HmacSha256 => STANDARD.encode(hmac_sha256(key, message)),
        SignatureMethod::HmacSha512 => STANDARD.encode(hmac_sha512(key, message)),
        SignatureMethod::Plaintext => String::from_utf8_lossy(&key.text()).into_owned(),
        SignatureMethod::RsaSha1 | SignatureMethod::RsaSha256 | SignatureMethod::RsaSha512 => {
            return None;
        }
    };
    Some(signature)
}

/// Whether `sent` is the base64 spelling of `digest`.
fn is_base64_of(sent: &[u8], digest: &[u8]) -> bool {
    // Encodes the right signature rather than decoding the sent one, so that no second spelling passes.
    let mut expected = [0; LONGEST_BASE64];
    match STANDARD.encode_slice(digest, &mut expected) {
        Ok(length) => equal(sent, &expected[..length]),
        Err(_) => false,
    }
}

/// Compares in time that depends on the lengths only.
pub(super) fn equal(left: &[u8], right: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(left, right).is_ok()
}

#[cfg(test)]
mod tests;
