//! How many calls were rejected in the last day, by the hour.

use crate::base::clock::UnixTime;

const HOUR: u64 = 60 * 60;

/// The hours that are kept: the running one and 24 whole ones.
const HOURS: usize = 25;

/// Counts of the running hour and of the 24 hours before it.
#[derive(Debug, Default)]
pub(super) struct LastDay {
    /// The number of the hour in which the last call was counted.
    hour: u64,
    /// The count of each hour, in the place of its number.
    counts: [u32; HOURS],
}

impl LastDay {
    /// Counts a call.
    pub(super) fn count(&mut self, now: UnixTime) {
        // A clock that was set back counts into the hour that is the last one.
        let hour = self.hour.max(now.0 / HOUR);
        for passed in (self.hour + 1..=hour).rev().take(HOURS) {
            *self.place(passed) = 0;
        }
        self.hour = hour;
        let count = self.place(hour);
        *count = count.saturating_add(1);
    }

    /// The calls of the last 24 hours, and of the part of an hour before them.
    pub(super) fn sum(&self, now: UnixTime) -> u64 {
        let hours = (0..HOURS as u64).filter_map(|ago| self.hour.checked_sub(ago));
        let kept = hours.filter(|hour| hour + HOURS as u64 > now.0 / HOUR);
        kept.map(|hour| u64::from(self.counts[Self::index(hour)]))
            .sum()
    }

    fn place(&mut self, hour: u64) -> &mut u32 {
        &mut self.counts[Self::index(hour)]
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is below HOURS"
    )]
    const fn index(hour: u64) -> usize {
        (hour % HOURS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_for_a_day() {
        let mut day = LastDay::default();
        let at = |hour: u64| UnixTime(1_790_164_800 + hour * HOUR);
        for hour in 0..100 {
            for _ in 0..=hour % 2 {
                day.count(at(hour));
            }
            // One in each hour, and another in each odd one.
            let hours = hour.saturating_sub(24)..=hour;
            let expected: u64 = hours.map(|hour| 1 + hour % 2).sum();
            assert_eq!(day.sum(at(hour)), expected, "{hour}");
        }
        assert_eq!(day.sum(at(99 + 24)), 2);
        assert_eq!(day.sum(at(99 + 25)), 0);
        day.count(at(1_000));
        assert_eq!(day.sum(at(1_000)), 1);
        // The clock is set back.
        day.count(at(10));
        assert_eq!(day.sum(at(10)), 2);
    }
}
