//! A limit on the requests of one consumer, as a token bucket (GCRA) of one number.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::PolicyRejection;
use crate::{
    base::{
        rate::Rate,
        secret::hashed::{Sharded, make_room},
        settings::section,
        text::names::ConsumerKey,
    },
    records::credentials::ConsumerCredentials,
};

section! {
    /// The limit on the requests of one consumer.
    #[derive(Copy)]
    RateSettings["limits"] {
        /// Requests and token calls of a consumer, which can have a rate of its own; 429 past it.
        requests_per_consumer: Option<Rate> [else "no limit": "100 per 1s"], reload;
    }
}

/// The fields of a response that tell a consumer its rate (draft-ietf-httpapi-ratelimit-headers).
static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// See [`RATE_LIMIT`].
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Counts requests by consumer. Only verified requests are counted, so no caller can use up another consumer's rate.
#[derive(Debug, Clone)]
pub struct ConsumerRates {
    /// The rate of a consumer that has none of its own.
    default: Option<Rate>,
    started: Instant,
    /// By the hash of the consumer's key, keyed at random, so that keys of one hash cannot be chosen. A million consumers
    /// have a million buckets, which take 50 bytes each here.
    buckets: Arc<Sharded<Bucket>>,
    hasher: RandomState,
}

/// The requests of one consumer.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// The period of the rate by which they are counted, in nanoseconds.
    period: u64,
    /// The requests of that rate.
    count: NonZeroU32,
    /// The time when the bucket would be empty again, in nanoseconds since the start.
    empty_at: u64,
}

/// The rate of a consumer, and what was left of it after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    rate: Rate,
    /// The requests that may follow at once.
    remaining: u64,
    /// The time until the whole rate is there again.
    full_in: Duration,
}

impl ConsumerRates {
    /// This limit for every consumer that has none of its own.
    pub fn new(default: Option<Rate>) -> Self {
        Self {
            default,
            started: Instant::now(),
            buckets: Arc::default(),
            hasher: RandomState::new(),
        }
    }

    /// This limit with the counts of `before`: those of a consumer whose rate is another one begin at zero.
    pub fn with_counts_of(&self, before: &Self) -> Self {
        Self {
            default: self.default,
            ..before.clone()
        }
    }

    /// Counts a request that is made now, and notes the quota if the consumer has a rate.
    ///
    /// # Errors
    /// [`PolicyRejection::TooManyRequests`]; the request is not counted then.
    pub fn pass(
        &self,
        consumer: &ConsumerCredentials,
        noted: &mut Option<Quota>,
    ) -> Result<(), PolicyRejection> {
        let Some(rate) = consumer.rate.or(self.default) else {
            return Ok(());
        };
        let (quota, counted) = self.count_at(&consumer.key, rate, self.started.elapsed());
        *noted = Some(quota);
        counted.map_err(|retry_after| PolicyRejection::TooManyRequests { retry_after })
    }

    /// Counts a request of a consumer that is made now, by this rate.
    ///
    /// # Errors
    /// [`PolicyRejection::TooManyRequests`]; the request is not counted then.
    pub fn count(&self, consumer: &ConsumerKey, rate: Rate) -> Result<(), PolicyRejection> {
        let (_, counted) = self.count_at(consumer, rate, self.started.elapsed());
        counted.map_err(|retry_after| PolicyRejection::TooManyRequests { retry_after })
    }

    /// Counts a request at `now`, the time since the start, or returns the time until the next one is allowed.
    fn count_at(
        &self,
        consumer: &ConsumerKey,
        rate: Rate,
        now: Duration,
    ) -> (Quota, Result<(), Duration>) {
        let period = nanoseconds(rate.period);
        let cost = (period / u64::from(rate.count.get())).max(1);
        let now = nanoseconds(now);
        let count = rate.count;
        let hash = self.hasher.hash_one(consumer);
        let mut buckets = self.buckets.lock(hash);
        let known = buckets.get(&hash);
        let known = known.filter(|known| (known.period, known.count) == (period, count));
        let before = known.map_or(0, |known| known.empty_at);
        let next = before.max(now) + cost;
        let is_allowed = next <= now + period;
        let empty_at = if is_allowed { next } else { before };
        if is_allowed {
            // Buckets of consumers that have their full rate again change nothing for them.
            make_room(&mut buckets, |bucket| bucket.empty_at > now);
            let bucket = Bucket {
                period,
                count,
                empty_at,
            };
            buckets.insert(hash, bucket);
        }
        drop(buckets);
        let full_in = empty_at.saturating_sub(now);
        let quota = Quota {
            rate,
            remaining: period.saturating_sub(full_in) / cost,
            full_in: Duration::from_nanos(full_in),
        };
        let counted = match is_allowed {
            true => Ok(()),
            false => Err(Duration::from_nanos(next - (now + period))),
        };
        (quota, counted)
    }
}

impl Quota {
    /// Adds the fields to the response to a verified request. Those of the API stay: each of them is a list.
    pub fn announce(&self, headers: &mut HeaderMap) {
        let (rate, full_in) = (self.rate, self.full_in);
        let seconds = full_in.as_secs() + u64::from(full_in.subsec_nanos() > 0);
        // The window is in whole seconds, and may be left out.
        let window = match rate.period.subsec_nanos() {
            0 => format!(";w={}", rate.period.as_secs()),
            _ => String::new(),
        };
        let policy = format!("\"consumer\";q={}{window}", rate.count);
        let limit = format!("\"consumer\";r={};t={seconds}", self.remaining);
        for (name, value) in [(&RATE_LIMIT_POLICY, policy), (&RATE_LIMIT, limit)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.append(name, value);
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos())
        .unwrap_or(u64::MAX / 4)
        .min(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    fn announced(quota: Quota) -> [String; 2] {
        let mut headers = HeaderMap::new();
        quota.announce(&mut headers);
        [&RATE_LIMIT_POLICY, &RATE_LIMIT].map(|name| headers[name].to_str().unwrap().to_owned())
    }

    #[test]
    fn allows_the_count_and_refills_and_tells_what_is_left() {
        let rates = ConsumerRates::new(None);
        let consumer: ConsumerKey = "c".parse().unwrap();
        let start = Duration::from_secs(1000);
        let count = |after: u64| {
            let now = start + Duration::from_secs(after);
            let (quota, counted) = rates.count_at(&consumer, rate("3 per 3s"), now);
            (announced(quota)[1].clone(), counted)
        };
        let refused = Err(Duration::from_secs(1));
        for (after, left, counted) in [
            (0, r#""consumer";r=2;t=1"#, Ok(())),
            (0, r#""consumer";r=1;t=2"#, Ok(())),
            (0, r#""consumer";r=0;t=3"#, Ok(())),
            (0, r#""consumer";r=0;t=3"#, refused),
            (1, r#""consumer";r=0;t=3"#, Ok(())),
            (1, r#""consumer";r=0;t=3"#, refused),
        ] {
            assert_eq!(count(after), (left.to_owned(), counted));
        }
        let other = "d".parse().unwrap();
        let (_, counted) = rates.count_at(&other, rate("3 per 3s"), start);
        assert_eq!(counted, Ok(()));
    }

    #[test]
    fn a_consumer_with_another_rate_begins_at_zero() {
        let rates = ConsumerRates::new(None);
        let consumer: ConsumerKey = "c".parse().unwrap();
        let count = |text| {
            rates
                .count_at(&consumer, rate(text), Duration::from_secs(9))
                .1
        };
        assert_eq!(count("1 per 1h"), Ok(()));
        assert!(count("1 per 1h").is_err());
        assert_eq!(count("1 per 2h"), Ok(()));
        assert!(count("1 per 2h").is_err());
    }

    #[test]
    fn consumers_that_have_their_full_rate_again_take_no_room() {
        let rates = ConsumerRates::new(None);
        for round in 0..20 {
            let now = Duration::from_secs(2 * round);
            for number in 0..10_000 {
                let consumer = format!("{round}-{number}").parse().unwrap();
                let (_, counted) = rates.count_at(&consumer, rate("1 per 1s"), now);
                assert_eq!(counted, Ok(()));
            }
        }
        let kept: usize = rates.buckets.parts().map(|buckets| buckets.len()).sum();
        assert!((10_000..40_000).contains(&kept), "{kept}");
    }

    #[test]
    fn the_policy_has_a_window_of_whole_seconds() {
        let policy = |text| {
            let (quota, _) = ConsumerRates::new(None).count_at(
                &"c".parse().unwrap(),
                rate(text),
                Duration::ZERO,
            );
            announced(quota)[0].clone()
        };
        assert_eq!(policy("100 per 15m"), r#""consumer";q=100;w=900"#);
        assert_eq!(policy("100 per 1500ms"), r#""consumer";q=100"#);
    }
}
