//! The accepted calls of each consumer in the last day, in memory. A task keeps what the metrics have counted at the end of each hour,
//! so no request pays for it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::base::clock::UnixTime;

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// The accepted calls of each consumer since the process started.
pub type AcceptedCalls = HashMap<Arc<str>, u64>;

/// The counts at the ends of the last 24 hours, the oldest first. They are those of consumers that have series in the metrics,
/// so they take less than 2 MiB.
#[derive(Debug, Default)]
pub struct ConsumerCalls(Mutex<VecDeque<(UnixTime, AcceptedCalls)>>);

impl ConsumerCalls {
    /// Keeps the counts, if an hour has passed since the last ones were kept.
    pub fn sample(&self, now: UnixTime, counts: impl FnOnce() -> AcceptedCalls) {
        let mut hours = self.0.lock();
        if hours
            .back()
            .is_some_and(|(last, _)| now.0.saturating_sub(last.0) < HOUR)
        {
            return;
        }
        hours.push_back((now, counts()));
        // The first one that is left is the last of those that are a day old.
        while hours
            .get(1)
            .is_some_and(|(next, _)| is_a_day_old(*next, now))
        {
            hours.pop_front();
        }
    }

    /// The calls in the last day: 24 hours, or less than one more. `now` has the counts of this moment.
    pub fn last_day(&self, now: UnixTime, mut counts: AcceptedCalls) -> AcceptedCalls {
        let hours = self.0.lock();
        let before = hours.iter().rfind(|(end, _)| is_a_day_old(*end, now));
        if let Some((_, before)) = before {
            for (key, count) in &mut counts {
                let before = before.get(key).copied().unwrap_or_default();
                *count = count.saturating_sub(before);
            }
        }
        counts
    }
}

const fn is_a_day_old(end: UnixTime, now: UnixTime) -> bool {
    end.0 + DAY <= now.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(accepted: u64) -> AcceptedCalls {
        HashMap::from([(Arc::from("shop"), accepted)])
    }

    #[test]
    fn calls_of_more_than_a_day_ago_are_not_counted() {
        let calls = ConsumerCalls::default();
        // One call in each minute.
        for minute in 0..=60 * 48 {
            calls.sample(UnixTime(minute * 60), || counts(minute));
        }
        assert_eq!(calls.0.lock().len(), 25);
        let now = UnixTime(48 * HOUR);
        assert_eq!(calls.last_day(now, counts(48 * 60)), counts(24 * 60));
        // Half an hour later, and before the next sample.
        let later = UnixTime(now.0 + HOUR / 2);
        let shown = calls.last_day(later, counts(48 * 60 + 30));
        assert_eq!(shown, counts(24 * 60 + 30));
    }

    #[test]
    fn in_the_first_day_all_calls_are_counted() {
        let calls = ConsumerCalls::default();
        calls.sample(UnixTime(HOUR), || counts(5));
        let now = UnixTime(10 * HOUR);
        assert_eq!(calls.last_day(now, counts(7)), counts(7));
    }
}
