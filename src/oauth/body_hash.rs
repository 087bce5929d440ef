//! `oauth_body_hash` of the OAuth Request Body Hash extension (draft-eaton-oauth-bodyhash-00): base64 of a digest of the whole body.
//!
//! The draft has the hash follow the signature method: SHA-1 with HMAC-SHA1 and RSA-SHA1. Consumers that sign with a longer hash
//! send either that one or SHA-1, so both are accepted, but SHA-1 only where a method with it is.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::method::{MethodSet, SignatureMethod};

/// The hash of `body` for a request that is signed with `method`.
#[must_use]
pub fn body_hash(method: SignatureMethod, body: &[u8]) -> String {
    STANDARD.encode(method.digest(body))
}

/// Whether `sent`, `oauth_body_hash` decoded, is the hash of `body`.
#[must_use]
pub fn is_body_hash(method: SignatureMethod, sent: &[u8], body: &[u8]) -> bool {
    is_allowed_body_hash(method, MethodSet::ALL, sent, body)
}

/// [`is_body_hash`] where only these methods are accepted.
#[must_use]
pub fn is_allowed_body_hash(
    method: SignatureMethod,
    accepted: MethodSet,
    sent: &[u8],
    body: &[u8],
) -> bool {
    let with_sha1 = [SignatureMethod::HmacSha1, SignatureMethod::RsaSha1].into_iter();
    let sha1 = with_sha1
        .filter(|&method| accepted.contains(method))
        .take(1);
    // The value is public, so its comparison need not take constant time.
    let mut hashes = sha1.chain([method]).map(|method| body_hash(method, body));
    hashes.any(|hash| hash.as_bytes() == sent)
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};
    use sha2::{Sha256, Sha512};

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
    fn takes_the_method_s_own_hash_and_no_other() {
        use SignatureMethod::{HmacMd5, HmacSha256, HmacSha512, RsaSha256, RsaSha512};

        let body = b"{\"a\":1}";
        for (hash, owners) in [
            (Md5::digest(body).to_vec(), &[HmacMd5][..]),
            (Sha256::digest(body).to_vec(), &[HmacSha256, RsaSha256]),
            (Sha512::digest(body).to_vec(), &[HmacSha512, RsaSha512]),
        ] {
            let sent = STANDARD.encode(hash);
            for &method in SignatureMethod::ALL {
                let is = is_body_hash(method, sent.as_bytes(), body);
                assert_eq!(is, owners.contains(&method), "{method} {sent}");
            }
        }
    }
}
