//! The accepted calls of each consumer in the last day, in memory. A task reads what the metrics have counted, so no request pays
//! for it.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;

use super::last_day::{LastDay, SampledDay};
use crate::base::clock::UnixTime;

/// The accepted calls of each consumer since the process started.
pub type AcceptedCalls = HashMap<Arc<str>, u64>;

/// The accepted calls of each consumer in the last day, by their doors.
pub struct DoorsOfDay {
    /// All of them.
    pub accepted: AcceptedCalls,
    /// Those with a Bearer token.
    pub by_bearer: AcceptedCalls,
}

/// The calls of one consumer by each door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DoorCalls {
    /// The signed ones.
    pub signature: u64,
    /// Those with a Bearer token.
    pub bearer: u64,
}

impl DoorsOfDay {
    /// Those of this consumer.
    pub fn of(&self, key: &str) -> DoorCalls {
        let count = |calls: &AcceptedCalls| calls.get(key).copied().unwrap_or_default();
        let bearer = count(&self.by_bearer);
        DoorCalls {
            signature: count(&self.accepted).saturating_sub(bearer),
            bearer,
        }
    }
}

/// The last day of each consumer that has series in the metrics, so it takes less than 1 MiB.
#[derive(Debug, Default)]
pub struct ConsumerCalls(Mutex<HashMap<Arc<str>, SampledDay>>);

impl ConsumerCalls {
    /// The accepted calls in the last day, by the hour. `counts` are those of this moment.
    pub fn last_day(&self, now: UnixTime, mut counts: AcceptedCalls) -> AcceptedCalls {
        let mut days = self.0.lock();
        for (key, count) in &mut counts {
            let day = days.entry(Arc::clone(key)).or_default();
            *count = day.sum(now, *count);
        }
        counts
    }

    /// The accepted calls of one consumer in the last day, of a counter that is this now.
    pub fn day_of(&self, key: &str, now: UnixTime, count: u64) -> LastDay {
        // A consumer without a series has no count, and takes no memory here.
        if count == 0 {
            return LastDay::default();
        }
        let mut days = self.0.lock();
        let day = days.entry(Arc::from(key)).or_default();
        day.by_hour(now, count).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumer_has_the_calls_of_a_day_and_a_new_one_all_its_own() {
        let (calls, hour) = (ConsumerCalls::default(), 60 * 60);
        let counts = |counts: &[(&str, u64)]| -> AcceptedCalls {
            let counts = counts.iter();
            counts
                .map(|(key, count)| (Arc::from(*key), *count))
                .collect()
        };
        calls.last_day(UnixTime(hour), counts(&[("shop", 5)]));
        let shown = calls.last_day(UnixTime(10 * hour), counts(&[("shop", 7)]));
        assert_eq!(shown, counts(&[("shop", 7)]));
        let both = counts(&[("shop", 8), ("bank", 3)]);
        let shown = calls.last_day(UnixTime(26 * hour), both);
        assert_eq!(shown, counts(&[("shop", 3), ("bank", 3)]));
    }
}
