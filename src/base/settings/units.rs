//! Units that settings are written in: durations, sizes, rates. Exact, and safe against overflow.

use std::{num::NonZeroU32, time::Duration};

use serde::de::{Deserialize as _, Deserializer, Error as _};

use serde_json::{Value, json};

use super::{Reason, Text, deserialize_text, plain_values, text, texts};
pub use crate::base::clock::{DAY, LONGEST};
use crate::base::clock::{TIME_UNITS, parse_duration, quantity};

/// One KiB, in bytes.
pub const KIB: usize = 1 << 10;
/// One MiB, in bytes.
pub const MIB: usize = 1 << 20;

/// The units of sizes, in bytes, the largest first.
const SIZE_UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// Reads a duration from `LOW` to `HIGH` milliseconds, both allowed.
///
/// # Errors
/// It is something else.
pub fn duration<'de, const LOW: u64, const HIGH: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let duration = text(deserializer)?;
    let (low, high) = (Duration::from_millis(LOW), Duration::from_millis(HIGH));
    if low <= duration && duration <= high {
        return Ok(duration);
    }
    let [low, high] = [low, high].map(format_duration);
    Err(D::Error::custom(format!("expected {low:?} to {high:?}")))
}

/// As [`duration`], under a key that may be absent.
///
/// # Errors
/// The value is something else.
pub fn optional_duration<'de, const LOW: u64, const HIGH: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration::<LOW, HIGH, D>(deserializer).map(Some)
}

/// Reads whole seconds from one to `HIGH` milliseconds: timestamps, to which they are compared, are not finer.
///
/// # Errors
/// It is something else.
pub fn seconds<'de, const HIGH: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let duration = duration::<1_000, HIGH, D>(deserializer)?;
    if duration.subsec_nanos() > 0 {
        return Err(D::Error::custom("expected whole seconds"));
    }
    Ok(duration)
}

/// As [`seconds`], under a key that may be absent.
///
/// # Errors
/// It is something else.
pub fn optional_seconds<'de, const HIGH: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    seconds::<HIGH, D>(deserializer).map(Some)
}

/// Reads a size from `LOW` to `HIGH` bytes, both allowed.
///
/// # Errors
/// It is something else.
pub fn size<'de, const LOW: usize, const HIGH: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<usize, D::Error> {
    let ByteSize(size) = text(deserializer)?;
    if (LOW..=HIGH).contains(&size) {
        return Ok(size);
    }
    let [low, high] = [LOW, HIGH].map(format_size);
    Err(D::Error::custom(format!("expected {low:?} to {high:?}")))
}

/// As [`size`], under a key that may be absent.
///
/// # Errors
/// It is something else.
pub fn optional_size<'de, const LOW: usize, const HIGH: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<usize>, D::Error> {
    size::<LOW, HIGH, D>(deserializer).map(Some)
}

/// Reads a whole number from 1 to `HIGH`.
///
/// # Errors
/// It is something else.
pub fn count<'de, const HIGH: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<NonZeroU32, D::Error> {
    let count = NonZeroU32::deserialize(deserializer)?;
    if count.get() > HIGH {
        return Err(D::Error::custom(format!("expected 1 to {HIGH}")));
    }
    Ok(count)
}

/// Writes a duration in the largest unit that divides it, to the millisecond.
pub fn format_duration(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "0s".to_owned(),
        total => written(total, &TIME_UNITS),
    }
}

/// A number of bytes.
#[derive(Debug, PartialEq, Eq)]
struct ByteSize(usize);

fn parse_size(text: &str) -> Result<ByteSize, &'static str> {
    let bytes = quantity(text, &SIZE_UNITS).and_then(|bytes| usize::try_from(bytes).ok());
    bytes
        .map(ByteSize)
        .ok_or("write a whole number and B, KiB, MiB or GiB")
}

/// Writes a size in the largest unit that divides it.
pub fn format_size(bytes: usize) -> String {
    match bytes {
        0 => "0B".to_owned(),
        bytes => written(bytes as u128, &SIZE_UNITS),
    }
}

/// A lifetime; `None`: it never expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime(pub Option<Duration>);

texts! {
    Duration: "a duration such as \"300s\", \"10m\" or \"7d\"" => parse_duration, pattern(&quantities(&TIME_UNITS));
    ByteSize: "a size such as \"32KiB\" or \"1MiB\"" => parse_size, usize::schema();
}
deserialize_text!(Lifetime);

// A number of bytes; numbers of other things have types with a fixed width.
plain_values!(
    usize: pattern(&quantities(&SIZE_UNITS)),
    Lifetime: pattern(&format!("never|{}", quantities(&TIME_UNITS))),
);

/// The schema of a rate.
pub fn rate_pattern() -> Value {
    pattern(&format!("[0-9]+ per {}", quantities(&TIME_UNITS)))
}

/// The schema of a string that matches the whole of an expression.
fn pattern(expression: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({expression})$") })
}

/// The expression of a whole number and one of `units`.
fn quantities(units: &[(&str, u64)]) -> String {
    let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
    format!("[0-9]+({})", names.join("|"))
}

impl Text for Lifetime {
    const EXPECTED: &'static str = "a duration such as \"12h\" or \"30d\", or \"never\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        if text == "never" {
            return Ok(Self(None));
        }
        let duration = parse_duration(text)?;
        if duration.is_zero() || duration.subsec_nanos() > 0 {
            return Err("write whole seconds, one at least".into());
        }
        Ok(Self(Some(duration)))
    }
}

/// Writes a quantity above zero in the first of `units` that divides it; the last unit is 1.
fn written(total: u128, units: &[(&str, u64)]) -> String {
    let mut units = units.iter().map(|(name, size)| (name, u128::from(*size)));
    let unit = units.find(|(_, size)| total.is_multiple_of(*size));
    let (name, size) = unit.unwrap_or((&"", 1));
    format!("{}{name}", total / size)
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
        for text in [
            "",
            "s",
            "-1s",
            "+1s",
            " 1s",
            "1",
            "1 s",
            "1.5s",
            "1S",
            "1h30m",
            "36501d",
            "18446744073709551615d",
            "18446744073709551616ms",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
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
            assert_eq!(parse_size(text), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["1MB", "1", "1kib", "KiB", "18446744073709551615KiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(number in 0..3_153_600_000_000u64, bytes: usize) {
            let duration = Duration::from_millis(number);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(ByteSize(bytes)));
        }

        #[test]
        fn never_panics_on_any_text(text: String) {
            let _ = (parse_duration(&text), parse_size(&text));
        }
    }
}
