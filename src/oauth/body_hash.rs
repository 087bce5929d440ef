//! `oauth_body_hash` of the OAuth Request Body Hash extension (draft-eaton-oauth-bodyhash-00): base64 of a digest of the whole body.
//!
//! The draft has the hash follow the signature method: SHA-1 with HMAC-SHA1 and RSA-SHA1. Consumers that sign with a longer hash
//! send either that one or SHA-1, so both are taken, told apart by their lengths.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use thiserror::Error;

use super::method::SignatureMethod;

/// The proof that a body is the one that was hashed. Nothing but [`BodyHash::finish`] makes one.
#[derive(Debug)]
#[must_use]
pub struct BodyHashHolds(());

/// The body's hash is not the one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("oauth_body_hash does not match the body")]
pub struct BodyHashInvalid;

/// A body on its way through the hash that `oauth_body_hash` was made with.
pub struct BodyHash {
    expected: Box<[u8]>,
    hasher: Hasher,
}

enum Hasher {
    Sha1(Sha1),
    Md5(Md5),
    Sha256(Sha256),
    Sha512(Sha512),
}

impl BodyHash {
    /// Starts the hash that can have made what was `sent`, `oauth_body_hash` decoded: SHA-1 or the signature method's own.
    ///
    /// # Errors
    ///
    /// [`BodyHashInvalid`] if neither makes a value of that length, so that no body need be read.
    pub fn expecting(method: SignatureMethod, sent: &[u8]) -> Result<Self, BodyHashInvalid> {
        let own = match method {
            SignatureMethod::HmacMd5 => Hasher::Md5(Md5::new()),
            SignatureMethod::HmacSha256 | SignatureMethod::RsaSha256 => {
                Hasher::Sha256(Sha256::new())
            }
            SignatureMethod::HmacSha512 | SignatureMethod::RsaSha512 => {
                Hasher::Sha512(Sha512::new())
            }
            SignatureMethod::HmacSha1 | SignatureMethod::RsaSha1 | SignatureMethod::Plaintext => {
                Hasher::Sha1(Sha1::new())
            }
        };
        let hasher = [own, Hasher::Sha1(Sha1::new())]
            .into_iter()
            .find(|hasher| hasher.base64_length() == sent.len())
            .ok_or(BodyHashInvalid)?;
        Ok(Self {
            expected: sent.into(),
            hasher,
        })
    }

    /// Takes the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.hasher {
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Md5(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// Checks that these were all, and the right ones.
    ///
    /// # Errors
    ///
    /// [`BodyHashInvalid`] if they were not.
    pub fn finish(self) -> Result<BodyHashHolds, BodyHashInvalid> {
        let found = match self.hasher {
            Hasher::Sha1(hasher) => STANDARD.encode(hasher.finalize()),
            Hasher::Md5(hasher) => STANDARD.encode(hasher.finalize()),
            Hasher::Sha256(hasher) => STANDARD.encode(hasher.finalize()),
            Hasher::Sha512(hasher) => STANDARD.encode(hasher.finalize()),
        };
        // The value was public from the start, so there is no time to hide.
        if found.as_bytes() == &*self.expected {
            Ok(BodyHashHolds(()))
        } else {
            Err(BodyHashInvalid)
        }
    }
}

impl Hasher {
    /// The length of the digest's padded base64.
    fn base64_length(&self) -> usize {
        match self {
            Self::Md5(_) => 24,
            Self::Sha1(_) => 28,
            Self::Sha256(_) => 44,
            Self::Sha512(_) => 88,
        }
    }
}

impl fmt::Debug for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyHash").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: SignatureMethod, sent: &str, body: &[u8]) -> Result<(), BodyHashInvalid> {
        let mut hash = BodyHash::expecting(method, sent.as_bytes())?;
        for piece in body.chunks(3) {
            hash.update(piece);
        }
        hash.finish().map(|_| ())
    }

    #[test]
    fn takes_sha1_with_every_method() {
        for method in SignatureMethod::ALL {
            assert_eq!(
                check(method, "Lve95gjOVATpfV8EL5X4nxwjKHE=", b"Hello World!"),
                Ok(())
            );
            assert_eq!(check(method, "2jmj7l5rSw0yVb/vlWAYkK/YBwk=", b""), Ok(()));
            assert_eq!(
                check(method, "Lve95gjOVATpfV8EL5X4nxwjKHE=", b"Hello World"),
                Err(BodyHashInvalid)
            );
        }
    }

    #[test]
    fn takes_the_method_s_own_hash_and_no_other() {
        let body = b"{\"a\":1}";
        let hashes = [
            (
                STANDARD.encode(Md5::digest(body)),
                vec![SignatureMethod::HmacMd5],
            ),
            (
                STANDARD.encode(Sha256::digest(body)),
                vec![SignatureMethod::HmacSha256, SignatureMethod::RsaSha256],
            ),
            (
                STANDARD.encode(Sha512::digest(body)),
                vec![SignatureMethod::HmacSha512, SignatureMethod::RsaSha512],
            ),
        ];
        for (sent, owners) in hashes {
            for method in SignatureMethod::ALL {
                assert_eq!(
                    check(method, &sent, body).is_ok(),
                    owners.contains(&method),
                    "{method} {sent}"
                );
            }
        }
    }

    #[test]
    fn takes_the_one_padded_spelling_only() {
        for spelling in [
            "Lve95gjOVATpfV8EL5X4nxwjKHE",
            "Lve95gjOVATpfV8EL5X4nxwjKHF=",
            " Lve95gjOVATpfV8EL5X4nxwjKHE",
            "",
        ] {
            assert_eq!(
                check(SignatureMethod::HmacSha1, spelling, b"Hello World!"),
                Err(BodyHashInvalid)
            );
        }
    }
}
