//! Units that settings are written in: durations, sizes, rates. Exact, and safe against overflow.

use std::{fmt, num::NonZeroU32, time::Duration};

use thiserror::Error;

/// One second.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// One day.
pub(super) const DAY: Duration = Duration::from_secs(86_400);
/// The longest duration that can be written, so that a deadline computed from it never overflows a clock.
pub(super) const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidUnit {
    /// There is no whole number at the start.
    #[error("it begins with no whole number")]
    Number,
    /// What follows the number is no unit of a duration.
    #[error("the unit is one of ms, s, m, h, d")]
    TimeUnit,
    /// What follows the number is no unit of a size.
    #[error("the unit is one of B, KiB, MiB, GiB")]
    SizeUnit,
    /// The value is too large.
    #[error("it is too large")]
    TooLarge,
    /// A rate without ` per `, of nothing, or over no time.
    #[error("a rate has a count and a period, both above zero")]
    Rate,
}

/// Reads a duration: a whole number and one of `ms`, `s`, `m`, `h`, `d`; at most 36500 days.
///
/// # Errors
///
/// [`InvalidUnit`] says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidUnit> {
    let (number, unit) = split(text)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(InvalidUnit::TimeUnit),
    };
    let total = number
        .checked_mul(milliseconds)
        .ok_or(InvalidUnit::TooLarge)?;
    let duration = Duration::from_millis(total);
    if duration > LONGEST {
        return Err(InvalidUnit::TooLarge);
    }
    Ok(duration)
}

/// Writes a duration in the largest unit that says it exactly, to the millisecond.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let total = duration.as_millis();
    let (size, unit) = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ]
    .into_iter()
    .find(|(size, _)| total > 0 && total.is_multiple_of(*size))
    .unwrap_or(if total == 0 { (1, "s") } else { (1, "ms") });
    format!("{}{unit}", total / size)
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    pub(super) const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// The size in bytes as an index, at most what this machine can address.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Reads a size: a whole number and one of `B`, `KiB`, `MiB`, `GiB`.
    ///
    /// # Errors
    ///
    /// [`InvalidUnit`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, InvalidUnit> {
        let (number, unit) = split(text)?;
        let bytes = match unit {
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(InvalidUnit::SizeUnit),
        };
        let total = number.checked_mul(bytes).ok_or(InvalidUnit::TooLarge)?;
        Ok(Self(total))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
            .into_iter()
            .find(|(size, _)| self.0 > 0 && self.0.is_multiple_of(*size))
            .unwrap_or((1, "B"));
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl fmt::Debug for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How often something may happen: `10 per 15m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many times.
    pub count: NonZeroU32,
    /// Within which time; never zero.
    pub period: Duration,
}

impl Rate {
    /// Reads a rate: a count, ` per `, a duration.
    ///
    /// # Errors
    ///
    /// [`InvalidUnit`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, InvalidUnit> {
        let (count, period) = text.split_once(" per ").ok_or(InvalidUnit::Rate)?;
        let (count, rest) = split(count)?;
        if !rest.is_empty() {
            return Err(InvalidUnit::Rate);
        }
        let count = u32::try_from(count).map_err(|_| InvalidUnit::TooLarge)?;
        let count = NonZeroU32::new(count).ok_or(InvalidUnit::Rate)?;
        let period = parse_duration(period)?;
        if period.is_zero() {
            return Err(InvalidUnit::Rate);
        }
        Ok(Self { count, period })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {}", self.count, format_duration(self.period))
    }
}

/// How long something lives: a duration, or `never` for no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It never expires.
    Never,
    /// It expires after this time.
    For(Duration),
}

impl Lifetime {
    /// The duration, `None` for never.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::For(duration) => Some(duration),
        }
    }
}

/// Splits off the leading digits as a number.
fn split(text: &str) -> Result<(u64, &str), InvalidUnit> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err(InvalidUnit::Number);
    }
    // Only digits are left, so the one way to fail is to be too large.
    let number = digits.parse().map_err(|_| InvalidUnit::TooLarge)?;
    Ok((number, unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_durations_exactly() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("500ms", 500),
            ("300s", 300_000),
            ("10m", 600_000),
            ("12h", 43_200_000),
            ("7d", 604_800_000),
            ("36500d", 3_153_600_000_000),
        ] {
            let expected = Ok(Duration::from_millis(milliseconds));
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for (text, error) in [
            ("", InvalidUnit::Number),
            ("s", InvalidUnit::Number),
            ("-1s", InvalidUnit::Number),
            ("+1s", InvalidUnit::Number),
            (" 1s", InvalidUnit::Number),
            ("1", InvalidUnit::TimeUnit),
            ("1 s", InvalidUnit::TimeUnit),
            ("1.5s", InvalidUnit::TimeUnit),
            ("1S", InvalidUnit::TimeUnit),
            ("1h30m", InvalidUnit::TimeUnit),
            ("36501d", InvalidUnit::TooLarge),
            ("18446744073709551615d", InvalidUnit::TooLarge),
            ("18446744073709551616ms", InvalidUnit::TooLarge),
        ] {
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
    }

    #[test]
    fn reads_sizes_exactly() {
        for (text, bytes) in [
            ("0B", 0),
            ("64B", 64),
            ("32KiB", 32_768),
            ("1MiB", 1_048_576),
            ("2GiB", 2_147_483_648),
        ] {
            assert_eq!(
                ByteSize::parse(text).map(ByteSize::bytes),
                Ok(bytes),
                "{text}"
            );
        }
        for (text, error) in [
            ("1MB", InvalidUnit::SizeUnit),
            ("1", InvalidUnit::SizeUnit),
            ("1kib", InvalidUnit::SizeUnit),
            ("KiB", InvalidUnit::Number),
            ("18446744073709551615KiB", InvalidUnit::TooLarge),
        ] {
            assert_eq!(ByteSize::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn reads_rates_exactly() {
        let rate = Rate::parse("10 per 15m").unwrap();
        assert_eq!((rate.count.get(), rate.period.as_secs()), (10, 900));
        for (text, error) in [
            ("10", InvalidUnit::Rate),
            ("10/15m", InvalidUnit::Rate),
            ("10 per 0s", InvalidUnit::Rate),
            ("0 per 1s", InvalidUnit::Rate),
            ("10x per 1s", InvalidUnit::Rate),
            ("10 per s", InvalidUnit::Number),
            ("4294967296 per 1s", InvalidUnit::TooLarge),
        ] {
            assert_eq!(Rate::parse(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(number in 0..3_153_600_000_000u64, bytes: u64, count in 1..=u32::MAX) {
            let duration = Duration::from_millis(number);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
            let size = ByteSize::new(bytes);
            prop_assert_eq!(ByteSize::parse(&size.to_string()), Ok(size));
            let rate = Rate {
                count: NonZeroU32::new(count).unwrap(),
                period: duration + Duration::from_millis(1),
            };
            prop_assert_eq!(Rate::parse(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn never_panics_on_any_text(text: String) {
            let _ = (parse_duration(&text), ByteSize::parse(&text), Rate::parse(&text));
        }
    }
}
