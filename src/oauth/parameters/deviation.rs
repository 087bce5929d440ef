//! Deviations from RFC 5849 that consumers in the field cannot be cured of. None is accepted unless the consumer's record
//! names it.

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use thiserror::Error;

/// A deviation from RFC 5849 that a consumer may be allowed.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(
    serialize_all = "snake_case",
    parse_err_ty = UnknownDeviation,
    parse_err_fn = unknown
)]
pub enum Deviation {
    /// The request token call has no `oauth_callback` (§2.1 demands it): the only registered callback stands in.
    CallbackAbsent,
    /// Of parameters with one name only the last is signed (§3.4.1.3.2 demands all): the API gets that one alone.
    RepeatsOnce,
    /// The key of a call without a token is the consumer secret without the `&` after it (§3.4.2).
    KeyWithoutAmpersand,
    /// The consumer secret is empty: PLAINTEXT with an access token, under TLS, proves the token alone (§3.4.4).
    EmptySecret,
    /// The values of protocol parameters are percent-encoded once in the base string, not twice (§3.4.1.3.2).
    /// Records and commands may have the name that it had while it was for the body hash alone.
    #[serde(alias = "hash_unencoded")]
    #[strum(to_string = "values_unencoded", serialize = "hash_unencoded")]
    ValuesUnencoded,
}

/// A text names no [`Deviation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is not one of {}", Deviation::ALL.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownDeviation;

fn unknown(_: &str) -> UnknownDeviation {
    UnknownDeviation
}

impl Deviation {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name in records, logs and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of deviations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviationSet(u8);

impl DeviationSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `deviation` is in it.
    #[must_use]
    pub const fn contains(self, deviation: Deviation) -> bool {
        self.0 & deviation.bit() != 0
    }

    /// The set with `deviation` too.
    #[must_use]
    pub const fn with(self, deviation: Deviation) -> Self {
        Self(self.0 | deviation.bit())
    }

    /// The set without `deviation`.
    #[must_use]
    pub const fn without(self, deviation: Deviation) -> Self {
        Self(self.0 & !deviation.bit())
    }

    /// The deviations that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Every set of some of its deviations, the empty one first.
    pub fn subsets(self) -> impl Iterator<Item = Self> {
        (0..=self.0)
            .map(Self)
            .filter(move |set| set.0 & !self.0 == 0)
    }

    /// The deviations in it.
    pub fn iter(self) -> impl Iterator<Item = Deviation> {
        let all = Deviation::ALL.iter().copied();
        all.filter(move |it| self.contains(*it))
    }
}

impl FromIterator<Deviation> for DeviationSet {
    fn from_iter<I: IntoIterator<Item = Deviation>>(deviations: I) -> Self {
        deviations.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_again_and_so_is_the_earlier_one() {
        for &deviation in Deviation::ALL {
            assert_eq!(deviation.as_str().parse(), Ok(deviation));
            let json = serde_json::to_string(&deviation).unwrap();
            assert_eq!(json, format!("\"{deviation}\""));
            assert_eq!(serde_json::from_str::<Deviation>(&json).unwrap(), deviation);
        }
        let earlier = Deviation::ValuesUnencoded;
        assert_eq!("hash_unencoded".parse(), Ok(earlier));
        let json = r#""hash_unencoded""#;
        assert_eq!(serde_json::from_str::<Deviation>(json).unwrap(), earlier);
        assert_eq!("other".parse::<Deviation>(), Err(UnknownDeviation));
    }
}
