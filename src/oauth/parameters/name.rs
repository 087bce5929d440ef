//! The names of protocol parameters, and lists of names as responses carry them.

use std::fmt;

use strum::VariantArray;

use crate::oauth::percent;

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
pub(in crate::oauth) const OAUTH_PREFIX: &[u8] = b"oauth_";

/// A name as some framework reads it (PHP, Rack, Express, ASP.NET): it skips white space and brackets in front, ends the
/// name at NUL and at an index in brackets, takes dots, spaces and a bracket that is not closed for underscores, and
/// ignores letter case.
pub(in crate::oauth) fn folded_name(name: &[u8]) -> Vec<u8> {
    let start = name.iter().position(|byte| !is_skipped(*byte));
    let name = &name[start.unwrap_or(name.len())..];
    let ends = |byte: u8| memchr::memchr(byte, name).unwrap_or(name.len());
    let index = match (ends(b'['), ends(b']')) {
        (opened, closed) if opened < closed && closed == name.len() => name.len(),
        (opened, closed) => opened.min(closed),
    };
    let name = name[..index.min(ends(0))].trim_ascii_end();
    let underscored = name.iter().map(|byte| match byte {
        b'.' | b'[' | ..=b' ' => b'_',
        byte => byte.to_ascii_lowercase(),
    });
    let folded: Vec<u8> = underscored.collect();
    match std::str::from_utf8(&folded) {
        // The long s and the Kelvin sign are letters of ASCII in the other case.
        Ok(text) if !text.is_ascii() => text.to_uppercase().to_lowercase().into_bytes(),
        _ => folded,
    }
}

/// Whether some framework skips this byte in front of a name.
const fn is_skipped(byte: u8) -> bool {
    matches!(byte, 0..=b' ' | b'[' | b']')
}

/// Whether a name that is not that of a protocol parameter may be read as one; without `oauth_` in front, as any name
/// that has it.
#[inline]
pub(in crate::oauth) fn is_look_alike(name: &[u8]) -> bool {
    // Nearly every name ends here.
    let begins = |byte: u8| matches!(byte, b'o' | b'O') || is_skipped(byte);
    if !name.first().copied().is_some_and(begins) {
        return false;
    }
    let word = &OAUTH_PREFIX[..OAUTH_PREFIX.len() - 1];
    let start = name.iter().position(|byte| !is_skipped(*byte));
    let begin = start.and_then(|start| name[start..].get(..word.len()));
    if !begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word)) {
        return false;
    }
    match name.starts_with(OAUTH_PREFIX) {
        true => ProtocolParameter::resembled_by(name).is_some(),
        false => folded_name(name).starts_with(OAUTH_PREFIX),
    }
}

/// Whether an Authorization value of another scheme names a protocol parameter all the same: some providers read its
/// parameters whatever the scheme, as PECL's and those of Magento do.
#[must_use]
pub fn names_parameter(field_value: &[u8]) -> bool {
    let decoded: Vec<u8> = percent_encoding::percent_decode(field_value).collect();
    let lower = decoded.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, OAUTH_PREFIX).any(|at| {
        let suffix = &lower[at + OAUTH_PREFIX.len()..];
        let is_name_byte = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
        let end = suffix.iter().position(|byte| !is_name_byte(byte));
        ProtocolParameter::from_suffix(&suffix[..end.unwrap_or(suffix.len())]).is_some()
    })
}

impl ProtocolParameter {
    /// The parameter that some framework takes this name for.
    pub(in crate::oauth) fn resembled_by(name: &[u8]) -> Option<Self> {
        Self::from_suffix(folded_name(name).strip_prefix(OAUTH_PREFIX)?)
    }

    /// All of them, in the order in which responses list them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The parameter whose name this is, without its `oauth_`.
    #[inline]
    pub(in crate::oauth) fn from_suffix(suffix: &[u8]) -> Option<Self> {
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

    pub(in crate::oauth) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a name that is not percent-encoded yet.
    pub(in crate::oauth) fn add(&mut self, name: &[u8]) {
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
    fn a_name_is_folded_as_frameworks_read_it() {
        for name in [
            "school_id",
            " school_id",
            "\t\0 School_ID",
            "school.id",
            "school id ",
            "school_id[]",
            "school_id[a][b]",
            "school[id",
            "school_id\0x",
            "[school_id]",
            "school_id]",
            "\u{17f}chool_id",
        ] {
            assert_eq!(folded_name(name.as_bytes()), b"school_id", "{name:?}");
        }
        for name in [
            "",
            "school",
            "schoolid",
            "school-id",
            "school[id]",
            "x_school_id",
            "school_id2",
        ] {
            assert_ne!(folded_name(name.as_bytes()), b"school_id", "{name:?}");
        }
        for name in [
            "OAUTH_TOKEN",
            " oauth.token",
            "oauth[token",
            "[oauth_to\u{212a}en]",
            "Oauth Token",
        ] {
            assert!(is_look_alike(name.as_bytes()), "{name}");
            let resembled = ProtocolParameter::resembled_by(name.as_bytes());
            assert_eq!(resembled, Some(ProtocolParameter::Token), "{name}");
        }
        for name in [
            "oauth",
            "oauthtoken",
            "order",
            "OAuth2_token",
            "xoauth_token",
            "o\u{e4}uth_token",
            " [",
            "\0",
        ] {
            assert!(!is_look_alike(name.as_bytes()), "{name}");
        }
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
