//! The settings of the planned end of OAuth 1.0a.

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderValue;
use httpdate::fmt_http_date;
use serde::de::{Deserialize, Deserializer, Error};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use toml::Value;

use super::Sunset;
use crate::{
    base::{
        clock::{Clock, UnixTime},
        settings::{filled, plain_values, section},
        text::names::ConsumerKey,
    },
    wire::url::web_page::WebUrl,
};

section! {
    /// The planned end of OAuth 1.0a, announced in responses to rightly signed calls. See docs/leaving.md.
    SunsetSettings["sunset"] {
        /// false: developers cannot ask for consumers (mode=register); operators can register them.
        new_consumers: bool = true, reload;
        /// false: no new tokens of OAuth 1.0a. Existing access tokens go on, also in the exchange.
        new_grants: bool = true, reload;
        /// false: signed calls to the API get 403. Bearer tokens and token calls go on, with the exchange.
        signatures: bool = true, reload;
        /// The field Deprecation (RFC 9745): "now", or a date and a time with an offset, not later than date.
        deprecation: Option<Deprecation> [else "now: when the configuration was read": "2026-09-01T00:00:00Z"], reload;
        /// The field Sunset (RFC 8594). Nothing ends by itself; disable the consumers then.
        date: Option<WrittenTime> [else "none": "2027-03-31T00:00:00Z"], reload;
        /// A page about it: the field Link, relation sunset.
        link: Option<WebUrl> [else "none": "https://example.com/oauth2"], reload;
        /// The consumers that get this.
        #[serde(default, deserialize_with = "filled")] consumers: Vec<ConsumerKey> [else "all": ["dpf43f3p2l4k3l03"]], reload;
    }
}

section! {
    /// A planned time in which rightly signed calls get 503 with Retry-After.
    BrownOutSettings["sunset.brownout", list] {
        /// The beginning.
        from: WrittenTime [required: "2027-02-01T09:00:00Z"], reload;
        /// The end.
        until: WrittenTime [required: "2027-02-01T09:15:00Z"], reload;
        /// The consumers that get it.
        #[serde(default, deserialize_with = "filled")] consumers: Vec<ConsumerKey> [else "sunset.consumers": ["dpf43f3p2l4k3l03"]], reload;
    }
}

impl SunsetSettings {
    /// The end of OAuth 1.0a, if anything of it is planned.
    pub fn planned(&self, brown_outs: &[BrownOutSettings], clock: &Clock) -> Option<Sunset> {
        let is_written = self.deprecation.is_some() || self.date.is_some() || self.link.is_some();
        let goes_on = self.new_consumers && self.new_grants && self.signatures;
        if !is_written && goes_on && self.consumers.is_empty() && brown_outs.is_empty() {
            return None;
        }
        let link = self.link.as_ref();
        let date = self.date.map(|date| date.0);
        // OAuth 1.0a is deprecated at its end at the latest.
        let now = clock.now().min(date.unwrap_or(UnixTime(u64::MAX)));
        let deprecation = self.deprecation.and_then(|since| Some(since.0?.0));
        let deprecation = format!("@{}", deprecation.unwrap_or(now).0);
        // A date is a text of letters and digits, and a link is a URL that has been checked: none of them is left out.
        let value = |text: String| HeaderValue::try_from(text).ok();
        let http_date = |date: UnixTime| fmt_http_date(UNIX_EPOCH + Duration::from_secs(date.0));
        Some(Sunset {
            written: self.clone(),
            brown_outs: brown_outs.to_vec(),
            clock: clock.clone(),
            deprecation: value(deprecation).unwrap_or(HeaderValue::from_static("@0")),
            sunset: date.and_then(|date| value(http_date(date))),
            link: link.and_then(|WebUrl(page)| value(format!("<{page}>; rel=\"sunset\""))),
        })
    }
}

/// A moment from 2000 to 9999: an RFC 3339 text, or a TOML date-time with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct WrittenTime(pub UnixTime);

/// The beginning of a deprecation; `None`: the time at which the configuration was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation(pub Option<WrittenTime>);

fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Datetime(moment) => moment.to_string(),
        _ => String::new(),
    })
}

fn moment<E: Error>(text: &str) -> Result<WrittenTime, E> {
    let has_offset = OffsetDateTime::parse(text, &Rfc3339).is_ok();
    let time = UnixTime::from_written(text).ok().filter(|_| has_offset);
    time.map(WrittenTime).ok_or_else(|| {
        E::custom("expected a date and a time with an offset, such as 2027-03-31T00:00:00Z, from 2000 to 9999")
    })
}

impl<'de> Deserialize<'de> for WrittenTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        moment(&written(deserializer)?)
    }
}

impl<'de> Deserialize<'de> for Deprecation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = written(deserializer)?;
        Ok(Self(match text.as_str() {
            "now" => None,
            text => Some(moment(text)?),
        }))
    }
}

plain_values!(Deprecation, WrittenTime);
