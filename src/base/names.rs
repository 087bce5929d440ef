//! Names that operators and other systems choose: consumer keys, user ids, permissions.
//!
//! None of them needs an escape in a header field or a log line. Keys and ids may be those of another system, which have
//! `/`, `=` or braces in them; in a path they are percent-encoded.

use std::{fmt, str::FromStr, sync::Arc};

use thiserror::Error;

use super::longest;

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
    #[error("a key or an id has only visible ASCII characters other than \" , ; and \\ in it")]
    KeyCharacter,
    /// A key or an id that a path cannot hold.
    #[error("a key or an id cannot be . or ..")]
    Dots,
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~@+:-".contains(&byte)
}

fn is_of_key(byte: u8) -> bool {
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

fn check_key(text: &str) -> Result<(), InvalidName> {
    check_length(text)?;
    match text {
        "." | ".." => Err(InvalidName::Dots),
        _ if text.bytes().all(is_of_key) => Ok(()),
        _ => Err(InvalidName::KeyCharacter),
    }
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
            let is_of_key = is_plain || b"!#$%&'()*/<=>?[]^`{|}".contains(&byte);
            assert_eq!(text.parse::<ConsumerKey>().is_ok(), is_of_key, "{byte:#x}");
            assert_eq!(text.parse::<UserId>().is_ok(), is_of_key, "{byte:#x}");
        }
        assert_eq!("é".parse::<ConsumerKey>(), Err(InvalidName::KeyCharacter));
        for dots in [".", ".."] {
            assert_eq!(dots.parse::<UserId>(), Err(InvalidName::Dots));
        }
        assert!("...".parse::<UserId>().is_ok());
    }

    #[test]
    fn bounds_the_length() {
        assert_eq!("".parse::<UserId>(), Err(InvalidName::Empty));
        assert!("a".repeat(255).parse::<UserId>().is_ok());
        assert_eq!("a".repeat(256).parse::<UserId>(), Err(InvalidName::TooLong));
    }
}
