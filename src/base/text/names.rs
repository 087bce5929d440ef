//! Names that operators and other systems choose: consumer keys, user ids, permissions.
//!
//! None of them needs an escape in a header field or a log line, unless `identity.encoding` percent-encodes keys and ids
//! there. Keys and ids may be those of another system, which have `/`, `=` or braces in them; in a path they are
//! percent-encoded.

use std::{
    borrow::Cow,
    fmt,
    str::FromStr,
    sync::{Arc, OnceLock},
};

use thiserror::Error;

use super::{longest, percent_encoded};

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidName {
    /// The text is empty.
    #[error("a name needs at least one character")]
    Empty,
    /// The text has more than [`longest::NAME`] characters.
    #[error("a name has at most {} characters", longest::NAME)]
    TooLong,
    /// A permission with another character.
    #[error("a name has only A-Z a-z 0-9 and . _ ~ @ + : - in it")]
    Character,
    /// A key or an id with another character.
    #[error(
        "a key or an id has only visible ASCII characters other than \" , ; and \\ in it, unless identity.encoding is \"percent\""
    )]
    KeyCharacter,
    /// A key or an id with a control character.
    #[error("a key or an id has no control character in it")]
    Control,
    /// A key or an id that a path cannot hold.
    #[error("a key or an id cannot be . or ..")]
    Dots,
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~@+:-".contains(&byte)
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

fn check_length(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > longest::NAME {
        return Err(InvalidName::TooLong);
    }
    Ok(())
}

fn check_permission(text: &str) -> Result<(), InvalidName> {
    check_length(text)?;
    let is_known = text.bytes().all(is_plain);
    is_known.then_some(()).ok_or(InvalidName::Character)
}

/// The spelling of keys and ids in the header fields that the API gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameEncoding {
    /// As they are: they have only characters that a field may hold.
    #[default]
    None,
    /// Percent-encoded, so that they may have any character but controls.
    Percent,
}

/// The spelling in this process. A name of the store or of another system is one or not by it, wherever it is read.
static ENCODING: OnceLock<NameEncoding> = OnceLock::new();

impl NameEncoding {
    /// Sets the encoding of this process. Only the first call counts: another encoding needs a restart.
    pub fn set(self) {
        let _ = ENCODING.set(self);
    }

    /// A key or an id as a header field has it.
    pub fn field_text(name: &str) -> Cow<'_, str> {
        ENCODING.get().copied().unwrap_or_default().encode(name)
    }

    fn encode(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::None => name.into(),
            Self::Percent => percent_encoded(name).into(),
        }
    }

    /// Whether a text may be a key or an id with this encoding.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check_key(self, text: &str) -> Result<(), InvalidName> {
        check_length(text)?;
        match (self, text) {
            (_, "." | "..") => Err(InvalidName::Dots),
            (Self::None, _) if text.bytes().all(is_key_byte) => Ok(()),
            (Self::None, _) => Err(InvalidName::KeyCharacter),
            (Self::Percent, _) if text.chars().any(char::is_control) => Err(InvalidName::Control),
            (Self::Percent, _) => Ok(()),
        }
    }
}

fn check_key(text: &str) -> Result<(), InvalidName> {
    // Until it is known, as in the arguments of a command and in the configuration, a name may be one of either.
    let encoding = ENCODING.get().copied().unwrap_or(NameEncoding::Percent);
    encoding.check_key(text)
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Arc<str>);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                $check(text)?;
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name! {
    /// The public identifier of a consumer (RFC 5849 §1.1: the client identifier), `oauth_consumer_key` on the wire.
    ConsumerKey, check_key
}
name! {
    /// The identifier of a user (RFC 5849 §1.1: resource owner); never used again after its user is removed.
    UserId, check_key
}
name! {
    /// A permission that an operation needs and a token grants.
    Permission, check_permission
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_whole_alphabet_and_nothing_else() {
        for byte in 0u8..=127 {
            let text = format!("a{}", char::from(byte));
            let is_plain = byte.is_ascii_alphanumeric() || b"._~@+:-".contains(&byte);
            assert_eq!(text.parse::<Permission>().is_ok(), is_plain, "{byte:#x}");
            let is_key_byte = is_plain || b"!#$%&'()*/<=>?[]^`{|}".contains(&byte);
            let key = NameEncoding::None.check_key(&text);
            assert_eq!(key.is_ok(), is_key_byte, "{byte:#x}");
        }
        let key = NameEncoding::None.check_key("é");
        assert_eq!(key, Err(InvalidName::KeyCharacter));
        for dots in [".", ".."] {
            assert_eq!(dots.parse::<UserId>(), Err(InvalidName::Dots));
        }
        assert!("...".parse::<UserId>().is_ok());
    }

    #[test]
    fn percent_encoding_lets_a_key_have_any_character_but_controls() {
        let percent = NameEncoding::Percent;
        for (name, encoded) in [
            ("My School 2026", "My%20School%202026"),
            ("DOMAIN\\bob", "DOMAIN%5Cbob"),
            ("josé", "jos%C3%A9"),
            ("a,b;c\"d%20", "a%2Cb%3Bc%22d%2520"),
            ("-._~Az09", "-._~Az09"),
            (" 学校 ", "%20%E5%AD%A6%E6%A0%A1%20"),
        ] {
            assert_eq!(percent.check_key(name), Ok(()), "{name}");
            assert_eq!(percent.encode(name), encoded, "{name}");
            assert_eq!(NameEncoding::None.encode(name), name);
        }
        for control in ["a\0", "a\n", "a\u{7f}", "a\u{85}"] {
            assert_eq!(percent.check_key(control), Err(InvalidName::Control));
        }
        assert_eq!(percent.check_key(".."), Err(InvalidName::Dots));
        assert_eq!(percent.check_key(""), Err(InvalidName::Empty));
    }

    #[test]
    fn bounds_the_length() {
        assert_eq!("".parse::<UserId>(), Err(InvalidName::Empty));
        assert!("a".repeat(255).parse::<UserId>().is_ok());
        assert_eq!("a".repeat(256).parse::<UserId>(), Err(InvalidName::TooLong));
    }
}
