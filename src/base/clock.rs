//! The one place where wall-clock time enters, so that tests can move it.

mod written;

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

pub use self::written::InvalidTime;
use self::written::{LAST, rfc_3339};

/// A point in time, in whole seconds since 1970-01-01 00:00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// This time plus `duration`, in whole seconds, at the latest the end of time.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }

    /// This time less `duration`, in whole seconds, at the earliest 1970.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration.as_secs()))
    }
}

impl fmt::Display for UnixTime {
    /// RFC 3339, `2026-01-31T12:00:00Z`. Later times than it can write are shown as its last one, at the end of 9999.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0.min(LAST)).map_err(|_| fmt::Error)?;
        let time = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| fmt::Error)?;
        f.write_str(&time.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl serde::Serialize for UnixTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for UnixTime {
    /// RFC 3339 from 1970 on, as [`UnixTime`] is displayed. In a binary format, such as a row of a database, the seconds
    /// alone. What others wrote is read with [`UnixTime::from_written`].
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        let seconds = rfc_3339(&text).and_then(|time| u64::try_from(time.unix_timestamp()).ok());
        seconds.map(Self).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "{text:?} is not a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z, from 1970 on"
            ))
        })
    }
}

/// One day, in milliseconds.
pub const DAY: u64 = 86_400_000;
/// The longest duration that can be written, in milliseconds: a deadline computed from it never overflows a clock.
pub const LONGEST: u64 = 36_500 * DAY;
/// The units of durations, in milliseconds, the largest first.
pub const TIME_UNITS: [(&str, u64); 5] = [
    ("d", DAY),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];
/// Reads a duration: a whole number and one of `ms`, `s`, `m`, `h`, `d`; at most 36500 days.
///
/// # Errors
/// The form of a duration.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let total = quantity(text, &TIME_UNITS).filter(|total| *total <= LONGEST);
    let total = total.ok_or("write a whole number and ms, s, m, h or d, 36500d at most")?;
    Ok(Duration::from_millis(total))
}

/// How far a clock is off that shows this many seconds more than the right one: `742 s behind`.
pub fn offset(ahead: i128) -> String {
    let side = if ahead < 0 { "behind" } else { "ahead" };
    format!("{} s {side}", ahead.unsigned_abs())
}

/// A length of time in its largest unit: `40 s`, `3 h`.
pub fn roughly(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// A random time between `time` less its `part`th part and `time`, so that many do not come at once.
pub fn spread(time: Duration, part: u32) -> Duration {
    // A hasher has random keys.
    let random = RandomState::new().hash_one(()) % 1024;
    time - time / part / 1024 * u32::try_from(random).unwrap_or(0)
}

/// Reads a whole number and one of `units`.
pub fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let (_, size) = units.iter().find(|(known, _)| *known == unit)?;
    number.checked_mul(*size)
}

/// Tells the time: the system's, or one that a test sets.
#[derive(Debug, Clone)]
pub struct Clock(TimeSource);

#[derive(Debug, Clone)]
enum TimeSource {
    System,
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The system's wall clock.
    pub fn system() -> Self {
        Self(TimeSource::System)
    }

    /// A clock that stands still until [`Clock::set`] moves it; clones move together.
    pub fn manual(start: UnixTime) -> Self {
        Self(TimeSource::Manual(Arc::new(AtomicU64::new(start.0))))
    }

    /// The time now; 1970 if the system's clock is before it.
    pub fn now(&self) -> UnixTime {
        match &self.0 {
            TimeSource::System => UnixTime(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |elapsed| elapsed.as_secs()),
            ),
            TimeSource::Manual(seconds) => UnixTime(seconds.load(Ordering::Relaxed)),
        }
    }

    /// Moves a manual clock; the system's clock is left alone.
    pub fn set(&self, time: UnixTime) {
        if let TimeSource::Manual(seconds) = &self.0 {
            seconds.store(time.0, Ordering::Relaxed);
        }
    }

    /// Moves a manual clock forward.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now().after(duration));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::roughly;

    #[test]
    fn a_time_is_said_in_its_largest_unit() {
        let said = [0, 59, 60, 3_599, 3_600, 172_799, 172_800];
        let said = said.map(|seconds| roughly(Duration::from_secs(seconds)));
        assert_eq!(
            said,
            ["0 s", "59 s", "1 min", "59 min", "1 h", "47 h", "2 days"]
        );
    }
}
