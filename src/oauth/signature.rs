//! Making and checking signatures, RFC 5849 §3.4.2 to §3.4.4.

use thiserror::Error;

use super::{
    base_string::BaseString,
    method::{Family, SignatureMethod},
    sink::Message,
};
use crate::oauth::method::{
    rsa::{RsaPrivateKey, RsaPublicKey},
    signing_key::{Key, LONGEST_BASE64, hmac_base64},
};

/// The proof that a request was signed with the key it was checked with. Nothing but [`verify`] makes one.
#[derive(Debug)]
#[must_use]
pub struct SignatureHolds(());

/// The signature is not the one that this key makes of this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the signature does not match")]
pub struct SignatureInvalid;

/// Whether the `+` of a signature was not escaped in a query or form, where it is a space then. Base64 has no space, so nothing
/// else can be meant.
#[must_use]
pub fn has_bare_plus(method: SignatureMethod, sent: &[u8]) -> bool {
    method != SignatureMethod::Plaintext && sent.contains(&b' ')
}

/// Checks the signature that was sent, `oauth_signature` decoded.
///
/// It has to be the one padded base64 spelling (RFC 4648 §4) of the right bytes, where a space counts as `+`, and is compared in
/// time that does not depend on where it differs. The RSA methods use `rsa` and nothing of `key`; without an RSA key they fail.
///
/// # Errors
///
/// [`SignatureInvalid`] in every other case.
pub fn verify<'k>(
    method: SignatureMethod,
    key: impl Into<Key<'k>>,
    rsa: Option<&RsaPublicKey>,
    base: &BaseString<'_>,
    sent: &[u8],
) -> Result<SignatureHolds, SignatureInvalid> {
    let key = key.into();
    let escaped;
    let sent = match has_bare_plus(method, sent) {
        true => {
            escaped = Vec::from_iter(sent.iter().map(|byte| match byte {
                b' ' => b'+',
                byte => *byte,
            }));
            &escaped
        }
        false => sent,
    };
    let holds = match method.family() {
        Family::Plaintext => equal(sent, &key.text()),
        Family::Rsa(hash) => rsa.is_some_and(|rsa| rsa.verifies(hash, base, sent)),
        Family::Hmac(hash) => {
            // Encodes the right signature rather than decoding the sent one, so that no second spelling passes.
            let mut expected = [0; LONGEST_BASE64];
            hmac_base64(hash, key, base, &mut expected)
                .is_some_and(|expected| equal(sent, expected))
        }
    };
    if holds {
        Ok(SignatureHolds(()))
    } else {
        Err(SignatureInvalid)
    }
}

/// Makes the signature of an RSA method, not encoded for its place yet; nothing if not [`SignatureMethod::can_sign`].
pub fn sign_rsa(
    method: SignatureMethod,
    key: &RsaPrivateKey,
    base: &BaseString<'_>,
) -> Option<String> {
    match method.family() {
        Family::Rsa(hash) => key.sign(hash, &base.to_vec()),
        Family::Hmac(_) | Family::Plaintext => None,
    }
}

/// Makes the signature of a base string, not encoded for its place yet; nothing for the RSA methods.
pub fn sign<'k>(
    method: SignatureMethod,
    key: impl Into<Key<'k>>,
    message: &impl Message,
) -> Option<String> {
    let key = key.into();
    let hash = match method.family() {
        Family::Plaintext => return Some(String::from_utf8_lossy(&key.text()).into_owned()),
        Family::Rsa(_) => return None,
        Family::Hmac(hash) => hash,
    };
    let mut signature = [0; LONGEST_BASE64];
    let signature = hmac_base64(hash, key, message, &mut signature)?;
    str::from_utf8(signature).ok().map(str::to_owned)
}

/// Compares in time that depends on the lengths only.
pub(super) fn equal(left: &[u8], right: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(left, right).is_ok()
}

#[cfg(test)]
mod tests;
