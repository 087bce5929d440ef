//! The names of protocol parameters, and lists of names as responses carry them.

use std::fmt;

use strum::VariantArray;

use super::percent;

/// The parameters that RFC 5849, or OAuth Core 1.0a before it, gives a meaning in a request; and the body hash extension's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(prefix = "oauth_", serialize_all = "snake_case")]
pub enum ProtocolParameter {
    /// `oauth_consumer_key`
    ConsumerKey,
    /// `oauth_token`
    Token,
    /// `oauth_signature_method`
    SignatureMethod,
    /// `oauth_signature`
    Signature,
    /// `oauth_timestamp`
    Timestamp,
    /// `oauth_nonce`
    Nonce,
    /// `oauth_version`
    Version,
    /// `oauth_callback`
    Callback,
    /// `oauth_verifier`
    Verifier,
    /// `oauth_body_hash`
    BodyHash,
}

/// The beginning of all names of protocol parameters, and of no others.
pub(super) const OAUTH_PREFIX: &[u8] = b"oauth_";

impl ProtocolParameter {
    /// All of them, in the order in which responses list them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The parameter whose name this is, without its `oauth_`.
    #[inline]
    pub(super) fn from_suffix(suffix: &[u8]) -> Option<Self> {
        Some(match suffix {
            b"consumer_key" => Self::ConsumerKey,
            b"token" => Self::Token,
            b"signature_method" => Self::SignatureMethod,
            b"signature" => Self::Signature,
            b"timestamp" => Self::Timestamp,
            b"nonce" => Self::Nonce,
            b"version" => Self::Version,
            b"callback" => Self::Callback,
            b"verifier" => Self::Verifier,
            b"body_hash" => Self::BodyHash,
            _ => return None,
        })
    }
}

/// A response lists at most this many names.
const MAX_NAMES: usize = 16;
/// A longer name of the caller's own making is cut here.
const MAX_NAME_BYTES: usize = 64;

/// Names of parameters, as a response lists them: percent-encoded, at most 16 of at most 64 bytes each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterNames(Vec<String>);

impl ParameterNames {
    /// The names one after the other, each percent-encoded.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a name that is not percent-encoded yet.
    pub(super) fn add(&mut self, name: &[u8]) {
        // An escape is three bytes: a name that may be too long is cut before it is encoded, so that no escape is.
        let cut = match percent::encode(name) {
            whole if whole.len() <= MAX_NAME_BYTES => whole,
            _ => percent::encode(&name[..name.len().min(MAX_NAME_BYTES / 3)]),
        };
        if self.0.len() < MAX_NAMES && !self.0.contains(&cut) {
            self.0.push(cut);
        }
    }
}

impl FromIterator<ProtocolParameter> for ParameterNames {
    fn from_iter<I: IntoIterator<Item = ProtocolParameter>>(parameters: I) -> Self {
        let mut names = Self::default();
        for parameter in parameters {
            names.add(parameter.as_str().as_bytes());
        }
        names
    }
}

impl fmt::Display for ParameterNames {
    /// `a&b`, as `oauth_parameters_absent` and `oauth_parameters_rejected` want it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again() {
        for &parameter in ProtocolParameter::ALL {
            let suffix = parameter
                .as_str()
                .as_bytes()
                .strip_prefix(OAUTH_PREFIX)
                .unwrap();
            assert_eq!(ProtocolParameter::from_suffix(suffix), Some(parameter));
        }
        assert_eq!(ProtocolParameter::from_suffix(b"token_secret"), None);
    }

    #[test]
    fn the_list_of_names_is_bounded_and_plain_ascii() {
        let mut names = ParameterNames::default();
        for at in 0..100u8 {
            names.add(&[b'"', at, b'&']);
        }
        names.add(&[b'x'; 1000]);
        assert_eq!(names.iter().count(), MAX_NAMES);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME_BYTES));
        assert!(names.to_string().starts_with("%22%00%26&%22%01%26&"));
    }

    #[test]
    fn names_are_listed_once_and_joined() {
        let names: ParameterNames = [
            ProtocolParameter::Nonce,
            ProtocolParameter::Token,
            ProtocolParameter::Nonce,
        ]
        .into_iter()
        .collect();
        assert_eq!(names.to_string(), "oauth_nonce&oauth_token");
    }
}
