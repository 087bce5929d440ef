//! The kinds of caller, and which of them may call an operation.

use strum::{IntoStaticStr, VariantArray, VariantNames};

/// A kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum CallerKind {
    /// A consumer's signature with an access token: it acts for a user.
    Consumer,
    /// A consumer's signature alone.
    Application,
    /// A user who is logged in directly.
    User,
    /// A caller without credentials.
    Anonymous,
}

impl CallerKind {
    /// Its name in the API and the configuration.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The kinds of caller that may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access(u8);

impl Access {
    /// No caller.
    pub const NOBODY: Self = Self(0);

    /// These kinds.
    pub fn to(kinds: &[CallerKind]) -> Self {
        Self(kinds.iter().fold(0, |bits, kind| bits | kind.bit()))
    }

    /// The kinds that one of these admits.
    pub(super) fn any_of(all: impl Iterator<Item = Self>) -> Self {
        Self(all.fold(0, |bits, access| bits | access.0))
    }

    /// Whether the kinds of `other` are among them.
    pub(super) const fn admits_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether `kind` is among them.
    #[must_use]
    pub const fn admits(self, kind: CallerKind) -> bool {
        self.0 & kind.bit() != 0
    }
}
