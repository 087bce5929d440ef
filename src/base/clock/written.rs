//! Times as people and other systems write them: seconds, dates of 14 digits, RFC 3339.

use thiserror::Error;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::UnixTime;

/// 2000-01-01 00:00:00 UTC, the first time that can be given.
const FIRST: u64 = 946_684_800;
/// 9999-12-31 23:59:59 UTC, the last time that can be given, and the last one that RFC 3339 can write.
pub(super) const LAST: u64 = 253_402_300_799;
/// Units smaller than a second, and how many a second has.
const FRACTIONS: [(&str, u64); 3] = [
    ("milliseconds", 1_000),
    ("microseconds", 1_000_000),
    ("nanoseconds", 1_000_000_000),
];

/// Why a text is not a time that can be given. The message repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidTime {
    /// A number that is a time of today in a smaller unit.
    #[error("{text} looks like {unit} since 1970; write seconds, {seconds}")]
    Fraction {
        /// The number.
        text: String,
        /// The unit that it seems to have.
        unit: &'static str,
        /// The number in seconds.
        seconds: u64,
    },
    /// 14 digits of this or the last century that are not a date.
    #[error("{0} looks like YYYYMMDDHHMMSS, but there is no such date and time; correct it")]
    NoSuchDate(String),
    /// A date without a time.
    #[error("{0} looks like YYYYMMDD; add the time, as in {0}000000")]
    DateAlone(String),
    /// A zero, by which other systems mean that there is no time.
    #[error("0 is not a time; leave the time out where there is none")]
    Zero,
    /// A time that is too early or too late.
    #[error(
        "{0} is not between 2000-01-01 and 9999-12-31; write seconds since 1970, a time such as 2026-01-31T12:00:00Z, or \
         YYYYMMDDHHMMSS in UTC"
    )]
    OutOfRange(String),
    /// Another text.
    #[error(
        "{0:?} is not a time; write one such as 2026-01-31T12:00:00Z (RFC 3339), seconds since 1970, or YYYYMMDDHHMMSS in UTC"
    )]
    Unknown(String),
}

impl UnixTime {
    /// Reads a time from 2000 to 9999, cut to the second: seconds since 1970, RFC 3339 of any offset, or in UTC
    /// `YYYYMMDDHHMMSS` or `YYYY-MM-DD HH:MM:SS`.
    ///
    /// # Errors
    /// [`InvalidTime`] says what the text looks like.
    pub fn from_written(text: &str) -> Result<Self, InvalidTime> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse().ok().filter(|_| is_number) {
            Some(number) => from_number(text, number),
            None => {
                let time = rfc_3339(&with_zone(text));
                let time = time.ok_or_else(|| InvalidTime::Unknown(text.to_owned()))?;
                in_range(time.unix_timestamp(), text)
            }
        }
    }
}

fn from_number(text: &str, number: u64) -> Result<UnixTime, InvalidTime> {
    if let Some(time) = from_digits(text) {
        return in_range(time.unix_timestamp(), text);
    }
    let given = || text.to_owned();
    if (FIRST..=LAST).contains(&number) {
        return Ok(UnixTime(number));
    }
    if text.len() == 14 && (text.starts_with("19") || text.starts_with("20")) {
        return Err(InvalidTime::NoSuchDate(given()));
    }
    if number == 0 {
        return Err(InvalidTime::Zero);
    }
    if from_digits(&format!("{text}000000")).is_some() {
        return Err(InvalidTime::DateAlone(given()));
    }
    let mut seconds = FRACTIONS.iter().map(|(unit, size)| (*unit, number / size));
    Err(
        match seconds.find(|(_, seconds)| (FIRST..=LAST).contains(seconds)) {
            Some((unit, seconds)) => InvalidTime::Fraction {
                text: given(),
                unit,
                seconds,
            },
            None => InvalidTime::OutOfRange(given()),
        },
    )
}

/// The time that `YYYYMMDDHHMMSS` names, in UTC.
fn from_digits(text: &str) -> Option<OffsetDateTime> {
    let text = Some(text).filter(|text| text.len() == 14)?;
    let [year, month, day, hour, minute, second] =
        [0..4, 4..6, 6..8, 8..10, 10..12, 12..14].map(|part| text.get(part).unwrap_or_default());
    rfc_3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// `2026-01-31 12:00:00`, as databases write UTC, in the form of RFC 3339; other texts as they are.
fn with_zone(text: &str) -> String {
    match text.split_once(' ') {
        Some((date, time)) if !time.contains(['+', '-', 'Z']) => format!("{date}T{time}Z"),
        Some((date, time)) => format!("{date}T{time}"),
        None => text.to_owned(),
    }
}

fn in_range(seconds: i64, text: &str) -> Result<UnixTime, InvalidTime> {
    let seconds = u64::try_from(seconds).ok();
    let known = seconds.filter(|seconds| (FIRST..=LAST).contains(seconds));
    known
        .map(UnixTime)
        .ok_or_else(|| InvalidTime::OutOfRange(text.to_owned()))
}

pub(super) fn rfc_3339(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_seconds_and_dates() {
        for (text, expected) in [
            ("946684800", "2000-01-01T00:00:00Z"),
            ("1600000000", "2020-09-13T12:26:40Z"),
            ("253402300799", "9999-12-31T23:59:59Z"),
            ("20251231235959", "2025-12-31T23:59:59Z"),
            ("20240229115959", "2024-02-29T11:59:59Z"),
            ("2026-01-31T12:00:00.999+02:00", "2026-01-31T10:00:00Z"),
            ("2026-01-31 12:00:00", "2026-01-31T12:00:00Z"),
            ("2026-01-31 12:00:00-01:00", "2026-01-31T13:00:00Z"),
        ] {
            let time = UnixTime::from_written(text).unwrap();
            assert_eq!(time.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn every_time_is_shown_as_rfc_3339() {
        let shown = |seconds| UnixTime(seconds).to_string();
        assert_eq!(shown(0), "1970-01-01T00:00:00Z");
        for late in [LAST, LAST + 1, 20_240_229_115_959, u64::MAX] {
            assert_eq!(shown(late), "9999-12-31T23:59:59Z");
        }
    }

    #[test]
    fn says_what_another_number_looks_like() {
        for [text, expected] in crate::text::rows(
            r#"
            1600000000000 | 1600000000000 looks like milliseconds since 1970; write seconds, 1600000000
            1600000000123456 | 1600000000123456 looks like microseconds since 1970; write seconds, 1600000000
            1600000000123456789 | 1600000000123456789 looks like nanoseconds since 1970; write seconds, 1600000000
            20230229115959 | 20230229115959 looks like YYYYMMDDHHMMSS, but there is no such date and time; correct it
            20251231 | 20251231 looks like YYYYMMDD; add the time, as in 20251231000000
            0 | 0 is not a time; leave the time out where there is none
            946684799 | 946684799 is not between 2000-01-01 and 9999-12-31; write
            19991231235959 | 19991231235959 is not between 2000-01-01 and 9999-12-31; write
            253402300800 | 253402300800 is not between
            1999-12-31T23:59:59Z | 1999-12-31T23:59:59Z is not between
            9999-12-31T23:59:59-01:00 | 9999-12-31T23:59:59-01:00 is not between
            -1 | "-1" is not a time; write
            "#,
        ) {
            let problem = UnixTime::from_written(text).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
        for text in [
            "",
            "now",
            "+1600000000",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "99999999999999999999",
            "@1600000000",
        ] {
            let problem = UnixTime::from_written(text).unwrap_err();
            assert_eq!(problem, InvalidTime::Unknown(text.to_owned()));
        }
    }
}
