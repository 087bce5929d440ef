//! A number of requests in a period, as operators write it.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};

use super::{
    clock::parse_duration,
    settings::{deserialize_text, format_duration, rate_pattern, texts},
};
use crate::base::text::longest;

/// A number of requests in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The number of requests.
    pub count: NonZeroU32,
    /// The period, longer than zero.
    pub period: Duration,
}

texts! {
    Rate: "a rate such as \"10 per 15m\"" => str::parse::<Self>, rate_pattern();
}
deserialize_text!(Rate);

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > longest::RATE {
            return Err("it is too long; write COUNT per PERIOD, such as 10 per 15m");
        }
        let (count, period) = text
            .split_once(" per ")
            .ok_or("write COUNT per PERIOD, such as 10 per 15m")?;
        let count = count
            .parse()
            .map_err(|_| "the count is a whole number above 0")?;
        let period = parse_duration(period)?;
        if period.is_zero() {
            return Err("the period is above 0");
        }
        Ok(Self { count, period })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {}", self.count, format_duration(self.period))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates_exactly_and_writes_them_as_they_are_read() {
        let rate: Rate = "10 per 15m".parse().unwrap();
        assert_eq!((rate.count.get(), rate.period.as_secs()), (10, 900));
        for text in ["10 per 15m", "1 per 500ms", "4294967295 per 36500d"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in [
            "10",
            "10/15m",
            "10 per 0s",
            "0 per 1s",
            "10x per 1s",
            "10 per s",
            "4294967296 per 1s",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
