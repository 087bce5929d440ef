//! A limit on the requests of one consumer, as a token bucket (GCRA) of one number.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use moka::sync::Cache;

use super::PolicyRejection;
use crate::base::{
    clock::parse_duration,
    names::ConsumerKey,
    settings::{deserialize_text, section, texts},
};

section! {
    /// The limit on the requests of one consumer.
    #[derive(Copy)]
    RateSettings["limits"] {
        /// Requests of one consumer, token calls included; 429 past it.
        requests_per_consumer: Option<Rate> [else "no limit": "100 per 1s"], reload;
    }
}

/// A number of requests in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The number of requests.
    pub count: NonZeroU32,
    /// The period, longer than zero.
    pub period: Duration,
}

texts! {
    Rate: "a rate such as \"10 per 15m\"" => parse_rate;
}
deserialize_text!(Rate);

fn parse_rate(text: &str) -> Result<Rate, &'static str> {
    let (count, period) = text.split_once(" per ").ok_or("write COUNT per PERIOD")?;
    let count: NonZeroU32 = count
        .parse()
        .map_err(|_| "the count is a whole number above 0")?;
    let period = parse_duration(period)?;
    if period.is_zero() {
        return Err("the period is above 0");
    }
    Ok(Rate { count, period })
}

/// Counts requests by consumer. Only verified requests are counted, so no caller can use up another consumer's rate.
#[derive(Debug)]
pub struct ConsumerRate {
    rate: Rate,
    started: Instant,
    /// The time when the bucket of a consumer would be empty again, in nanoseconds since `started`.
    buckets: Cache<ConsumerKey, Arc<AtomicU64>>,
}

impl ConsumerRate {
    /// The same limit for every consumer.
    pub fn new(rate: Rate) -> Self {
        // A consumer without requests for a period has its full rate again: dropping its entry changes nothing.
        let buckets = Cache::builder().time_to_idle(rate.period).build();
        Self {
            rate,
            started: Instant::now(),
            buckets,
        }
    }

    /// The limit `before` with its counts, if it is the same limit; else this one.
    pub fn or_before(self: Arc<Self>, before: Option<&Arc<Self>>) -> Arc<Self> {
        let before = before.filter(|before| before.rate == self.rate);
        before.map_or(self, Arc::clone)
    }

    /// Counts a request that is made now.
    ///
    /// # Errors
    /// [`PolicyRejection::TooManyRequests`]; the request is not counted then.
    pub fn pass(&self, consumer: &ConsumerKey) -> Result<(), PolicyRejection> {
        let counted = self.count_at(consumer, self.started.elapsed());
        counted.map_err(|retry_after| PolicyRejection::TooManyRequests { retry_after })
    }

    /// Counts a request at `now`, the time since the start, or returns the time until the next one is allowed.
    fn count_at(&self, consumer: &ConsumerKey, now: Duration) -> Result<(), Duration> {
        let bucket = self.buckets.get_with_by_ref(consumer, Default::default);
        let period = nanoseconds(self.rate.period);
        let cost = (period / u64::from(self.rate.count.get())).max(1);
        let now = nanoseconds(now);
        let next = |empty_at: u64| empty_at.max(now) + cost;
        let allowed = |empty_at| Some(next(empty_at)).filter(|next| *next <= now + period);
        match bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, allowed) {
            Ok(_) => Ok(()),
            Err(empty_at) => Err(Duration::from_nanos(next(empty_at) - (now + period))),
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

    #[test]
    fn reads_rates_exactly() {
        let rate = parse_rate("10 per 15m").unwrap();
        assert_eq!((rate.count.get(), rate.period.as_secs()), (10, 900));
        for text in [
            "10",
            "10/15m",
            "10 per 0s",
            "0 per 1s",
            "10x per 1s",
            "10 per s",
            "4294967296 per 1s",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn allows_the_count_and_refills() {
        let rate = ConsumerRate::new(Rate {
            count: NonZeroU32::MIN.saturating_add(2),
            period: Duration::from_secs(3),
        });
        let consumer: ConsumerKey = "c".parse().expect("a name");
        let start = Duration::from_secs(1000);
        for _ in 0..3 {
            assert_eq!(rate.count_at(&consumer, start), Ok(()));
        }
        assert_eq!(rate.count_at(&consumer, start), Err(Duration::from_secs(1)));
        assert_eq!(rate.count_at(&"d".parse().expect("a name"), start), Ok(()));
        assert_eq!(
            rate.count_at(&consumer, start + Duration::from_secs(1)),
            Ok(())
        );
        assert!(
            rate.count_at(&consumer, start + Duration::from_secs(1))
                .is_err()
        );
    }
}
