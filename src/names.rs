//! Names that operators and callers choose: consumer keys, user ids, permissions.
//!
//! All three have one alphabet, so that a name needs no escape in a header, a path or a log line.

use std::{fmt, str::FromStr, sync::Arc};

use thiserror::Error;

/// The longest name, in characters.
pub const MAX_NAME_LENGTH: usize = 255;

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidName {
    /// The text is empty.
    #[error("a name needs at least one character")]
    Empty,
    /// The text has more than [`MAX_NAME_LENGTH`] characters.
    #[error("a name has at most 255 characters")]
    TooLong,
    /// A character outside the alphabet.
    #[error("a name has only A-Z a-z 0-9 and . _ ~ @ + : - in it")]
    Character,
}

fn check(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > MAX_NAME_LENGTH {
        return Err(InvalidName::TooLong);
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._~@+:-".contains(&byte);
    if text.bytes().all(known) {
        Ok(())
    } else {
        Err(InvalidName::Character)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Arc<str>);

        impl $type {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                check(text)?;
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
    ConsumerKey
}
name! {
    /// The identifier of a user (RFC 5849 §1.1: resource owner); never used again after its user is removed.
    UserId
}
name! {
    /// What an operation needs and a token grants.
    Permission
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_whole_alphabet_and_nothing_else() {
        assert!("Az09._~@+:-".parse::<UserId>().is_ok());
        for byte in 0u8..=127 {
            let text = char::from(byte).to_string();
            let known = byte.is_ascii_alphanumeric() || b"._~@+:-".contains(&byte);
            assert_eq!(text.parse::<Permission>().is_ok(), known, "{byte:#x}");
        }
        assert_eq!("é".parse::<ConsumerKey>(), Err(InvalidName::Character));
    }

    #[test]
    fn bounds_the_length() {
        assert_eq!("".parse::<UserId>(), Err(InvalidName::Empty));
        assert!("a".repeat(255).parse::<UserId>().is_ok());
        assert_eq!("a".repeat(256).parse::<UserId>(), Err(InvalidName::TooLong));
    }
}
