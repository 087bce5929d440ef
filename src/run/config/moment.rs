//! Settings that name a moment.

use serde::de::{Deserialize, Deserializer, Error};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use toml::Value;

use crate::base::clock::UnixTime;

/// A moment from 2000 to 9999: an RFC 3339 text, or a TOML date-time with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Moment(pub UnixTime);

/// The beginning of a deprecation; `None`: the time at which the configuration was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation(pub Option<Moment>);

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Datetime(moment) => moment.to_string(),
        _ => String::new(),
    })
}

fn moment<E: Error>(text: &str) -> Result<Moment, E> {
    let has_offset = OffsetDateTime::parse(text, &Rfc3339).is_ok();
    let time = UnixTime::from_written(text).ok().filter(|_| has_offset);
    time.map(Moment).ok_or_else(|| {
        E::custom("expected a date and a time with an offset, such as 2027-03-31T00:00:00Z, from 2000 to 9999")
    })
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        moment(&text(deserializer)?)
    }
}

impl<'de> Deserialize<'de> for Deprecation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text(deserializer)?;
        Ok(Self(match text.as_str() {
            "now" => None,
            text => Some(moment(text)?),
        }))
    }
}
