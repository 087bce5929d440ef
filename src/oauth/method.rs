//! Signature methods: the three of RFC 5849 §3.4, and others that are in use.

use std::str::FromStr;

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use strum::{Display, IntoStaticStr, VariantArray};
use thiserror::Error;

/// A method of signing requests.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Display, IntoStaticStr, VariantArray,
)]
pub enum SignatureMethod {
    /// RFC 5849 §3.4.2.
    #[default]
    #[strum(serialize = "HMAC-SHA1")]
    HmacSha1,
    /// As §3.4.2 with MD5; named by older services.
    #[strum(serialize = "HMAC-MD5")]
    HmacMd5,
    /// As §3.4.2 with SHA-256.
    #[strum(serialize = "HMAC-SHA256")]
    HmacSha256,
    /// As §3.4.2 with SHA-512.
    #[strum(serialize = "HMAC-SHA512")]
    HmacSha512,
    /// RFC 5849 §3.4.3.
    #[strum(serialize = "RSA-SHA1")]
    RsaSha1,
    /// As §3.4.3 with SHA-256.
    #[strum(serialize = "RSA-SHA256")]
    RsaSha256,
    /// As §3.4.3 with SHA-512.
    #[strum(serialize = "RSA-SHA512")]
    RsaSha512,
    /// RFC 5849 §3.4.4: no signature at all, the key itself is sent.
    #[strum(serialize = "PLAINTEXT")]
    Plaintext,
}

impl SignatureMethod {
    /// Every method there is.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Looks a name up without regard to case, `-` and `_`, as consumers in the field spell it.
    pub fn from_wire(name: &[u8]) -> Option<Self> {
        // The registered spelling of the usual method comes with nearly every request.
        if name == b"HMAC-SHA1" {
            return Some(Self::HmacSha1);
        }
        fn folded(name: &[u8]) -> impl Iterator<Item = u8> {
            let letters = name.iter().filter(|&byte| !matches!(byte, b'-' | b'_'));
            letters.map(u8::to_ascii_uppercase)
        }
        let mut all = Self::ALL.iter().copied();
        all.find(|method| folded(method.as_str().as_bytes()).eq(folded(name)))
    }

    /// The registered spelling, such as `HMAC-SHA1`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Its place in a [`MethodSet`].
    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The hash of the method over `message`; SHA-1 for PLAINTEXT, which has none.
    pub fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::HmacMd5 => Md5::digest(message).to_vec(),
            Self::HmacSha1 | Self::RsaSha1 | Self::Plaintext => Sha1::digest(message).to_vec(),
            Self::HmacSha256 | Self::RsaSha256 => Sha256::digest(message).to_vec(),
            Self::HmacSha512 | Self::RsaSha512 => Sha512::digest(message).to_vec(),
        }
    }

    /// Whether a public key verifies it.
    #[must_use]
    pub fn is_rsa(self) -> bool {
        matches!(self, Self::RsaSha1 | Self::RsaSha256 | Self::RsaSha512)
    }
}

/// The text does not name a signature method; the message lists the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is not one of {}", SignatureMethod::ALL.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownMethod;

impl FromStr for SignatureMethod {
    type Err = UnknownMethod;

    /// As [`SignatureMethod::from_wire`].
    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        Self::from_wire(text.as_bytes()).ok_or(UnknownMethod)
    }
}

/// A set of signature methods, such as those that are switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodSet(u8);

impl MethodSet {
    /// No method.
    pub const EMPTY: Self = Self(0);
    /// Every method, PLAINTEXT included: to read what a request says, not to accept it.
    pub const ALL: Self = Self(u8::MAX);

    /// The set with `method` in it too.
    pub const fn with(self, method: SignatureMethod) -> Self {
        Self(self.0 | method.bit())
    }

    /// Whether `method` is in the set.
    #[must_use]
    pub const fn contains(self, method: SignatureMethod) -> bool {
        self.0 & method.bit() != 0
    }

    /// The methods of the set, in the order of [`SignatureMethod::ALL`].
    pub fn iter(self) -> impl Iterator<Item = SignatureMethod> {
        let all = SignatureMethod::ALL.iter().copied();
        all.filter(move |&method| self.contains(method))
    }
}

// A ninth method needs a wider set.
const _: () = assert!(SignatureMethod::ALL.len() <= u8::BITS as usize);

impl FromIterator<SignatureMethod> for MethodSet {
    fn from_iter<I: IntoIterator<Item = SignatureMethod>>(methods: I) -> Self {
        methods.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_case_hyphen_and_underscore() {
        for &method in SignatureMethod::ALL {
            let name = method.as_str();
            for spelling in [
                name.to_owned(),
                name.to_lowercase(),
                name.replace('-', "_"),
                name.replace('-', ""),
                format!("-{}_", name.replace("SHA", "SHA-")),
            ] {
                assert_eq!(
                    SignatureMethod::from_wire(spelling.as_bytes()),
                    Some(method),
                    "{spelling}"
                );
            }
        }
    }

    #[test]
    fn knows_no_other_name() {
        for name in [
            "",
            "SHA1",
            "SHA1-HMAC",
            "HMAC-SHA3-256",
            "RSA-SHA1\0",
            "HMAC SHA1",
            "HMAC-SHA1 ",
            "HMAC-SHA5120",
        ] {
            assert_eq!(
                SignatureMethod::from_wire(name.as_bytes()),
                None,
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: MethodSet = [SignatureMethod::HmacSha1, SignatureMethod::Plaintext]
            .into_iter()
            .collect();
        for &method in SignatureMethod::ALL {
            let expected = matches!(
                method,
                SignatureMethod::HmacSha1 | SignatureMethod::Plaintext
            );
            assert_eq!(set.contains(method), expected, "{method}");
            assert!(MethodSet::ALL.contains(method));
            assert!(!MethodSet::EMPTY.contains(method));
        }
        assert_eq!(set.iter().count(), 2);
    }
}
