//! Signature methods, RFC 5849 §3.4, and the ones in use beside its three.

use std::fmt;

/// How a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureMethod {
    /// RFC 5849 §3.4.2.
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
    /// RFC 5849 §3.4.4: no signature at all, the key itself is sent.
    Plaintext,
}

/// The longest folded name, `HMACSHA512`; `PLAINTEXT` and the others are shorter.
const LONGEST_FOLDED: usize = 10;

impl SignatureMethod {
    /// Every method there is.
    pub const ALL: [Self; 8] = [
        Self::HmacSha1,
        Self::HmacMd5,
        Self::HmacSha256,
        Self::HmacSha512,
        Self::RsaSha1,
        Self::RsaSha256,
        Self::RsaSha512,
        Self::Plaintext,
    ];

    /// Looks a name up without regard to case, `-` and `_`, as consumers in the field spell it.
    #[must_use]
    pub fn from_wire(name: &[u8]) -> Option<Self> {
        // The registered spelling of the usual method comes with nearly every request.
        if name == b"HMAC-SHA1" {
            return Some(Self::HmacSha1);
        }
        let mut folded = [0; LONGEST_FOLDED];
        let mut length = 0;
        for byte in name.iter().filter(|&byte| !matches!(byte, b'-' | b'_')) {
            *folded.get_mut(length)? = byte.to_ascii_uppercase();
            length += 1;
        }
        match &folded[..length] {
            b"HMACSHA1" => Some(Self::HmacSha1),
            b"HMACMD5" => Some(Self::HmacMd5),
            b"HMACSHA256" => Some(Self::HmacSha256),
            b"HMACSHA512" => Some(Self::HmacSha512),
            b"RSASHA1" => Some(Self::RsaSha1),
            b"RSASHA256" => Some(Self::RsaSha256),
            b"RSASHA512" => Some(Self::RsaSha512),
            b"PLAINTEXT" => Some(Self::Plaintext),
            _ => None,
        }
    }

    /// The registered spelling, such as `HMAC-SHA1`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HmacSha1 => "HMAC-SHA1",
            Self::HmacMd5 => "HMAC-MD5",
            Self::HmacSha256 => "HMAC-SHA256",
            Self::HmacSha512 => "HMAC-SHA512",
            Self::RsaSha1 => "RSA-SHA1",
            Self::RsaSha256 => "RSA-SHA256",
            Self::RsaSha512 => "RSA-SHA512",
            Self::Plaintext => "PLAINTEXT",
        }
    }

    /// Its place in a [`MethodSet`]. A ninth method has none: the set must become wider first.
    const fn bit(self) -> u8 {
        match self {
            Self::HmacSha1 => 1,
            Self::HmacMd5 => 1 << 1,
            Self::HmacSha256 => 1 << 2,
            Self::HmacSha512 => 1 << 3,
            Self::RsaSha1 => 1 << 4,
            Self::RsaSha256 => 1 << 5,
            Self::RsaSha512 => 1 << 6,
            Self::Plaintext => 1 << 7,
        }
    }

    /// Whether a public key verifies it.
    #[must_use]
    pub fn is_rsa(self) -> bool {
        matches!(self, Self::RsaSha1 | Self::RsaSha256 | Self::RsaSha512)
    }
}

impl fmt::Display for SignatureMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of signature methods, such as those that are switched on.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodSet(u8);

impl MethodSet {
    /// No method.
    pub const EMPTY: Self = Self(0);
    /// Every method, PLAINTEXT included: for telling what a request says, not for admitting it.
    pub const ALL: Self = Self(u8::MAX);

    /// The set with `method` in it too.
    #[must_use]
    pub const fn with(self, method: SignatureMethod) -> Self {
        Self(self.0 | method.bit())
    }

    /// Whether `method` is in the set.
    #[must_use]
    pub const fn contains(self, method: SignatureMethod) -> bool {
        self.0 & method.bit() != 0
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The methods of the set, in the order of [`SignatureMethod::ALL`].
    pub fn iter(self) -> impl Iterator<Item = SignatureMethod> {
        SignatureMethod::ALL
            .into_iter()
            .filter(move |&method| self.contains(method))
    }
}

// No two methods share a place.
const _: () = {
    let (mut set, mut at) = (MethodSet::EMPTY, 0);
    while at < SignatureMethod::ALL.len() {
        assert!(!set.contains(SignatureMethod::ALL[at]));
        set = set.with(SignatureMethod::ALL[at]);
        at += 1;
    }
};

impl FromIterator<SignatureMethod> for MethodSet {
    fn from_iter<I: IntoIterator<Item = SignatureMethod>>(methods: I) -> Self {
        methods.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for MethodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_case_hyphen_and_underscore() {
        for method in SignatureMethod::ALL {
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
        for method in SignatureMethod::ALL {
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
