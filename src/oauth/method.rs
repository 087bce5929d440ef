//! Signature methods: the three of RFC 5849 §3.4, and others that are in use.

pub mod rsa;
pub mod signing_key;

use std::str::FromStr;

use strum::{Display, IntoStaticStr, VariantArray};
use thiserror::Error;

use crate::oauth::method::{rsa::RsaHash, signing_key::HmacHash};

/// How a method makes a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// RFC 5849 §3.4.2: with the two secrets.
    Hmac(HmacHash),
    /// RFC 5849 §3.4.3: with the consumer's private key.
    Rsa(RsaHash),
    /// RFC 5849 §3.4.4: no signature at all, the two secrets are sent.
    Plaintext,
}

/// A method of signing requests, with its registered name, such as `HMAC-SHA1`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "SCREAMING-KEBAB-CASE")]
pub enum SignatureMethod {
    /// RFC 5849 §3.4.2. Consumers use it without a reason for another.
    #[default]
    HmacSha1,
    /// As §3.4.2 with MD5; named by older services.
    HmacMd5,
    /// As §3.4.2 with SHA-256.
    HmacSha256,
    /// As §3.4.2 with SHA-512.
    HmacSha512,
    /// RFC 5849 §3.4.3.
    RsaSha1,
    /// As §3.4.3 with SHA-256.
    RsaSha256,
    /// As §3.4.3 with SHA-512.
    RsaSha512,
    /// RSASSA-PSS (RFC 8017 §8.1) with SHA-256 and a salt of 32 bytes; named by Mastercard.
    RsaPss,
    /// RFC 5849 §3.4.4: no signature at all, the key itself is sent.
    Plaintext,
}

impl SignatureMethod {
    /// Every method there is.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The registered spelling, such as `HMAC-SHA1`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub(super) const fn family(self) -> Family {
        match self {
            Self::HmacSha1 => Family::Hmac(HmacHash::Sha1),
            Self::HmacMd5 => Family::Hmac(HmacHash::Md5),
            Self::HmacSha256 => Family::Hmac(HmacHash::Sha256),
            Self::HmacSha512 => Family::Hmac(HmacHash::Sha512),
            Self::RsaSha1 => Family::Rsa(RsaHash::Sha1),
            Self::RsaSha256 => Family::Rsa(RsaHash::Sha256),
            Self::RsaSha512 => Family::Rsa(RsaHash::Sha512),
            Self::RsaPss => Family::Rsa(RsaHash::PssSha256),
            Self::Plaintext => Family::Plaintext,
        }
    }

    /// Looks a name up without regard to case, `-` and `_`, as consumers in the field spell it.
    pub fn from_wire(name: &[u8]) -> Option<Self> {
        // The registered spelling of the usual method comes with nearly every request.
        let usual = Self::default();
        if name == usual.as_str().as_bytes() {
            return Some(usual);
        }
        fn folded(name: &[u8]) -> impl Iterator<Item = u8> {
            let letters = name.iter().filter(|&byte| !matches!(byte, b'-' | b'_'));
            letters.map(u8::to_ascii_uppercase)
        }
        let mut all = Self::ALL.iter().copied();
        all.find(|method| folded(method.as_str().as_bytes()).eq(folded(name)))
    }

    /// Its bit in a [`MethodSet`].
    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The hash of the method over `message`; SHA-1 for PLAINTEXT, which has none.
    pub fn digest(self, message: &[u8]) -> Vec<u8> {
        match self.family() {
            Family::Hmac(hash) => hash.digest(message),
            Family::Rsa(hash) => hash.digest(message),
            Family::Plaintext => HmacHash::Sha1.digest(message),
        }
    }

    /// Whether a public key verifies it.
    #[must_use]
    pub const fn is_rsa(self) -> bool {
        matches!(self.family(), Family::Rsa(_))
    }

    /// Whether signatures of the method can be made here, not only verified.
    #[must_use]
    pub const fn can_sign(self) -> bool {
        match self.family() {
            Family::Rsa(hash) => hash.can_sign(),
            Family::Hmac(_) | Family::Plaintext => true,
        }
    }

    /// The names of the methods that `chosen` picks, for a sentence: `RSA-SHA256 or RSA-SHA512`.
    pub fn names(chosen: impl Fn(Self) -> bool) -> String {
        let all = Self::ALL.iter().filter(|method| chosen(**method));
        let names: Vec<&str> = all.map(|method| method.as_str()).collect();
        match &*names {
            [names @ .., last] if !names.is_empty() => format!("{} or {last}", names.join(", ")),
            _ => names.concat(),
        }
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
pub struct MethodSet(u16);

impl MethodSet {
    /// No method.
    pub const EMPTY: Self = Self(0);
    /// Every method, PLAINTEXT included: to read what a request says, not to accept it.
    pub const ALL: Self = Self(u16::MAX);

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

// More methods need a wider set.
const _: () = assert!(SignatureMethod::ALL.len() <= u16::BITS as usize);

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
