//! `oauth_body_hash` of the OAuth Request Body Hash extension (draft-eaton-oauth-bodyhash-00): base64 of a digest of the whole
//! body.
//!
//! The draft has the hash follow the signature method: SHA-1 with HMAC-SHA1 and RSA-SHA1. In the field it does not: some
//! libraries send SHA-1 with every method, others the hash of the method. So the length of the value tells the hash.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::oauth::method::{SignatureMethod, signing_key::HmacHash};

/// The hash of `body` for a request that is signed with `method`.
#[must_use]
pub fn body_hash(method: SignatureMethod, body: &[u8]) -> String {
    STANDARD.encode(method.digest(body))
}

/// Whether `sent`, `oauth_body_hash` decoded, is the SHA-1, SHA-256 or SHA-512 of `body`, or with HMAC-MD5 its MD5.
///
/// The signature covers the value, so the signer has chosen the hash, and a weaker one cannot be put there.
#[must_use]
pub fn is_body_hash(method: SignatureMethod, sent: &[u8], body: &[u8]) -> bool {
    // This engine takes padded base64 without spare bits only, which leaves one spelling.
    let Ok(sent) = STANDARD.decode(sent) else {
        return false;
    };
    let hash = match sent.len() {
        16 if method == SignatureMethod::HmacMd5 => HmacHash::Md5,
        20 => HmacHash::Sha1,
        32 => HmacHash::Sha256,
        64 => HmacHash::Sha512,
        _ => return false,
    };
    // The value is public, so its comparison need not take constant time.
    hash.digest(body) == sent
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};
    use sha2::{Sha256, Sha384, Sha512, Sha512_256};

    use super::*;

    #[test]
    fn takes_sha1_with_every_method_in_its_one_padded_spelling() {
        for &method in SignatureMethod::ALL {
            let is = |sent: &str, body: &[u8]| is_body_hash(method, sent.as_bytes(), body);
            assert!(is("Lve95gjOVATpfV8EL5X4nxwjKHE=", b"Hello World!"));
            assert!(is("2jmj7l5rSw0yVb/vlWAYkK/YBwk=", b""));
            assert!(!is("Lve95gjOVATpfV8EL5X4nxwjKHE=", b"Hello World"));
            for spelling in [
                "Lve95gjOVATpfV8EL5X4nxwjKHE",
                "Lve95gjOVATpfV8EL5X4nxwjKHF=",
                " Lve95gjOVATpfV8EL5X4nxwjKHE",
                "",
            ] {
                assert!(!is(spelling, b"Hello World!"), "{spelling}");
            }
        }
    }

    #[test]
    fn its_length_tells_the_hash_whatever_the_method() {
        let body = b"{\"a\":1}";
        for (hash, is_taken) in [
            (Sha256::digest(body).to_vec(), true),
            (Sha512::digest(body).to_vec(), true),
            // Neither another hash of that length nor a part of one.
            (Sha512_256::digest(body).to_vec(), false),
            (Sha256::digest(body)[..20].to_vec(), false),
            (Sha384::digest(body).to_vec(), false),
            (Vec::new(), false),
        ] {
            let sent = STANDARD.encode(hash);
            for &method in SignatureMethod::ALL {
                let is = is_body_hash(method, sent.as_bytes(), body);
                assert_eq!(is, is_taken, "{method} {sent}");
            }
        }
    }

    #[test]
    fn md5_is_taken_with_hmac_md5_alone() {
        let sent = STANDARD.encode(Md5::digest(b"a"));
        for &method in SignatureMethod::ALL {
            let is = is_body_hash(method, sent.as_bytes(), b"a");
            assert_eq!(is, method == SignatureMethod::HmacMd5, "{method}");
        }
    }
}
