//! A parameter that a consumer may send with one value alone, such as the id of the school that its key was given to.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{
    parameters::{Parameter, Parameters},
    percent,
};
use crate::{
    base::text::longest,
    oauth::parameters::{
        name::{OAUTH_PREFIX, folded_name},
        shape::ParameterLocation,
    },
};

/// A parameter and the value that a consumer has to send, written as `NAME=VALUE` with escapes as in a query (`%20` is a space).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    text: String,
    name: Box<[u8]>,
    value: Box<[u8]>,
}

/// Why a text is not a pinned parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidPinned {
    /// There is no `=`, or nothing in front of it.
    #[error("write NAME=VALUE, such as tool_consumer_instance_guid=school.example")]
    Form,
    /// A byte that has to be escaped, or a broken escape.
    #[error(
        "write only visible ASCII characters, and others as escapes, such as %20 for a space and %25 for %"
    )]
    Escape,
    /// The name is that of a credential.
    #[error("a name that begins with oauth_ cannot be pinned")]
    Credential,
    /// The text has more than [`longest::PINNED`] bytes.
    #[error("a pinned parameter has at most {} bytes", longest::PINNED)]
    TooLong,
}

impl Pinned {
    /// The first of these that a request does not keep to. Each name has to be where the API reads it, in the form or else in the
    /// query, and whatever an API may read as it is spelled as it is and has one of these values. `values` returns the
    /// values of a name that the signature covers.
    pub fn not_held<'p, 'v>(
        all: &'p [Self],
        parameters: &Parameters,
        values: impl Fn(&[u8]) -> Vec<&'v [u8]>,
    ) -> Option<&'p Self> {
        let mut locations = parameters.iter().map(|it| it.location);
        let place = match locations.any(|it| it == ParameterLocation::Body) {
            true => ParameterLocation::Body,
            false => ParameterLocation::Query,
        };
        let is_held = |sent: &Parameter<'_>| {
            let mut all = all.iter();
            all.any(|it| *it.name == *sent.name && *it.value == *sent.value)
        };
        all.iter().find(|pinned| {
            let mut sent = parameters.iter().filter(|it| pinned.is_read_in(it.name));
            let is_there = sent.clone().any(|it| it.location == place);
            !is_there || values(&pinned.name).is_empty() || !sent.all(|it| is_held(&it))
        })
    }

    /// Whether an API may read a name as this one.
    fn is_read_in(&self, name: &[u8]) -> bool {
        if !self.name.contains(&b'[') {
            return folded_name(name) == folded_name(&self.name);
        }
        // A part of an array: its brackets and what is between them can be spelled in more ways.
        fn letters(name: &[u8]) -> impl Iterator<Item = u8> {
            let letters = name
                .iter()
                .filter(|it| it.is_ascii_alphanumeric() || !it.is_ascii());
            letters.map(u8::to_ascii_lowercase)
        }
        letters(name).eq(letters(&self.name))
    }

    /// The name, decoded.
    pub const fn name(&self) -> &[u8] {
        &self.name
    }

    /// The name as it was written.
    pub fn written_name(&self) -> &str {
        self.text.split('=').next().unwrap_or_default()
    }
}

impl FromStr for Pinned {
    type Err = InvalidPinned;

    fn from_str(text: &str) -> Result<Self, InvalidPinned> {
        if text.len() > longest::PINNED {
            return Err(InvalidPinned::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidPinned::Escape);
        }
        let (name, value) = text.split_once('=').ok_or(InvalidPinned::Form)?;
        let decoded = |text: &str| match percent::decode(text.as_bytes()) {
            Ok(decoded) => Ok(Box::from(&*decoded)),
            Err(_) => Err(InvalidPinned::Escape),
        };
        let (name, value): (Box<[u8]>, _) = (decoded(name)?, decoded(value)?);
        if name.is_empty() {
            return Err(InvalidPinned::Form);
        }
        if name.starts_with(OAUTH_PREFIX) {
            return Err(InvalidPinned::Credential);
        }
        let text = text.to_owned();
        Ok(Self { text, name, value })
    }
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl serde::Serialize for Pinned {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for Pinned {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_name_and_a_value_with_escapes() {
        let read = |text: &str| text.parse::<Pinned>();
        let pinned = read("guid=a%20b%3D=+").unwrap();
        assert_eq!(
            (&*pinned.name, &*pinned.value),
            (&b"guid"[..], &b"a b==+"[..])
        );
        assert_eq!(
            (pinned.written_name(), pinned.to_string().as_str()),
            ("guid", "guid=a%20b%3D=+")
        );
        assert!(read("guid=").unwrap().value.is_empty());
        for (text, error) in [
            ("", InvalidPinned::Form),
            ("guid", InvalidPinned::Form),
            ("=a", InvalidPinned::Form),
            ("a b=c", InvalidPinned::Escape),
            ("a=%zz", InvalidPinned::Escape),
            ("ä=b", InvalidPinned::Escape),
            ("oauth_token=a", InvalidPinned::Credential),
            ("%6fauth_token=a", InvalidPinned::Credential),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
        let longest = format!("a={}", "b".repeat(longest::PINNED - 2));
        assert!(read(&longest).is_ok());
        assert_eq!(read(&format!("{longest}b")), Err(InvalidPinned::TooLong));
    }
}
