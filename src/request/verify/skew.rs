//! Decides whether the consumer's clock or ours is wrong when timestamps are rejected.
//!
//! One consumer with a wrong clock says nothing about ours. Several that agree do, if few others have a clock like ours.
//! A consumer counts only under a right signature, once, by its latest call, so that no caller can speak for another one. An
//! attacker who has recorded calls of several consumers can send them again later; they stop counting as soon as calls of
//! others are accepted.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    base::{clock::UnixTime, text::names::ConsumerKey},
    oauth::Credentials,
};

/// The number of consumers that have to agree.
const AGREEING: usize = 3;
/// The most seconds that their clocks may be apart.
const SPREAD: i64 = 30;
/// The time for which a call counts.
const COUNTS_FOR: Duration = Duration::from_secs(300);
/// The most consumers that are remembered.
const MAX_CONSUMERS: usize = 256;
/// The most signatures under rejected timestamps that are verified in a second.
const MAX_IN_A_SECOND: u64 = 50;

/// The clocks of consumers, by their latest calls.
#[derive(Debug, Default)]
pub(super) struct Skews {
    latest: Mutex<HashMap<ConsumerKey, Skew>>,
    /// Some timestamp was rejected lately, so accepted calls are noted as well.
    is_watching: AtomicBool,
    /// A second in the lower half, and the number of signatures verified in it in the upper half.
    verified: AtomicU64,
}

#[derive(Debug)]
struct Skew {
    at: Instant,
    /// Seconds that the consumer's clock is ahead of ours; `None`: its timestamp was accepted.
    rejected: Option<i64>,
}

impl Skews {
    /// Whether one more signature may be verified in this second.
    pub(super) fn may_verify(&self, now: UnixTime) -> bool {
        let second = now.0 & u64::from(u32::MAX);
        let counted = |state: u64| {
            let same = state & u64::from(u32::MAX) == second;
            let count = if same { state >> 32 } else { 0 };
            (count < MAX_IN_A_SECOND).then_some((count + 1) << 32 | second)
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.verified.fetch_update(set, fetch, counted).is_ok()
    }

    /// Notes a rejected timestamp under a right signature, `skew` seconds ahead of our clock.
    pub(super) fn rejected(&self, consumer: &ConsumerKey, skew: i64, at: Instant) {
        self.is_watching.store(true, Ordering::Relaxed);
        self.note(consumer, Some(skew), at);
    }

    /// Notes an accepted call. Costs one load while no timestamp was rejected lately.
    #[inline]
    pub(super) fn accepted(&self, consumer: &ConsumerKey) {
        if self.is_watching.load(Ordering::Relaxed) {
            self.note(consumer, None, Instant::now());
        }
    }

    fn note(&self, consumer: &ConsumerKey, rejected: Option<i64>, at: Instant) {
        let mut latest = self.latest.lock();
        if latest.len() >= MAX_CONSUMERS && !latest.contains_key(consumer) {
            let oldest = latest.iter().min_by_key(|(_, skew)| skew.at);
            if let Some(oldest) = oldest.map(|(consumer, _)| consumer.clone()) {
                latest.remove(&oldest);
            }
        }
        latest.insert(consumer.clone(), Skew { at, rejected });
    }

    /// The seconds that the clocks of consumers are ahead of ours, if enough of them agree that ours is wrong.
    pub(super) fn consensus(&self, now: Instant) -> Option<i64> {
        let mut latest = self.latest.lock();
        latest.retain(|_, skew| now.duration_since(skew.at) <= COUNTS_FOR);
        let mut skews: Vec<i64> = latest.values().filter_map(|skew| skew.rejected).collect();
        if skews.is_empty() {
            latest.clear();
            self.is_watching.store(false, Ordering::Relaxed);
            return None;
        }
        let accepted = latest.len() - skews.len();
        drop(latest);
        skews.sort_unstable();
        let agreeing = |from: usize| {
            let within = |skew: &&i64| skew.abs_diff(skews[from]) <= SPREAD.unsigned_abs();
            skews[from..].iter().take_while(within).count()
        };
        let (from, count) = (0..skews.len())
            .map(|from| (from, agreeing(from)))
            .max_by_key(|(_, count)| *count)?;
        (count >= AGREEING && count > 2 * accepted).then(|| skews[from + count / 2])
    }
}

/// The seconds that the timestamp is ahead of our clock.
pub(super) fn skew(named: &Credentials<'_>, now: UnixTime) -> Option<i64> {
    let timestamp = named.freshness.as_ref()?.timestamp.seconds();
    let timestamp = i64::try_from(timestamp).unwrap_or(i64::MAX);
    Some(timestamp.saturating_sub_unsigned(now.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> ConsumerKey {
        format!("consumer-{number}").parse().unwrap()
    }

    /// The consensus after these calls of consumers with these clocks; `None` is an accepted call.
    fn consensus(calls: &[(usize, Option<i64>)]) -> Option<i64> {
        let (skews, now) = (Skews::default(), Instant::now());
        for (consumer, skew) in calls {
            match skew {
                Some(skew) => skews.rejected(&key(*consumer), *skew, now),
                None => skews.note(&key(*consumer), None, now),
            }
        }
        skews.consensus(now)
    }

    #[test]
    fn three_agreeing_consumers_are_right_unless_others_match_us() {
        let off = Some(-3_600);
        for (calls, found) in [
            (&[(1, off), (2, Some(-3_590)), (3, Some(-3_610))][..], true),
            (&[(1, off), (2, off)], false),
            // One consumer is not enough, however often it calls.
            (&[(1, off), (1, off), (1, off), (1, off)], false),
            // They do not agree.
            (&[(1, off), (2, Some(600)), (3, Some(-7_200))], false),
            (&[(1, off), (2, off), (3, off), (4, Some(9_000))], true),
            (&[(1, off), (2, off), (3, off), (4, None)], true),
            (&[(1, off), (2, off), (3, off), (4, None), (5, None)], false),
            // The latest call of a consumer counts.
            (&[(1, off), (2, off), (3, off), (3, None)], false),
        ] {
            let ahead = consensus(calls);
            assert_eq!(ahead.is_some(), found, "{calls:?}: {ahead:?}");
            assert!(ahead.is_none_or(|ahead| (-3_610..=-3_590).contains(&ahead)));
        }
    }

    #[test]
    fn calls_are_forgotten_and_consumers_are_bounded() {
        let (skews, now) = (Skews::default(), Instant::now());
        for number in 0..2 * MAX_CONSUMERS {
            skews.rejected(&key(number), 1_000, now);
        }
        assert_eq!(skews.latest.lock().len(), MAX_CONSUMERS);
        assert_eq!(skews.consensus(now + COUNTS_FOR), Some(1_000));
        let later = now + COUNTS_FOR + Duration::from_secs(1);
        assert_eq!(skews.consensus(later), None);
        skews.accepted(&key(1));
        assert!(skews.latest.lock().is_empty(), "nothing is noted");
    }

    #[test]
    fn verifies_this_many_signatures_in_a_second() {
        let skews = Skews::default();
        for second in [1_000, 1_001] {
            let allowed = (0..200).filter(|_| skews.may_verify(UnixTime(second)));
            assert_eq!(allowed.count() as u64, MAX_IN_A_SECOND);
        }
    }
}
