//! How many calls there were in the last day, by the hour.

use crate::base::clock::UnixTime;

const HOUR: u64 = 60 * 60;

/// The hours that are kept: the running one and 24 whole ones.
pub const HOURS: usize = 25;

/// Counts of the running hour and of the 24 hours before it.
#[derive(Debug, Clone, Default)]
pub struct LastDay {
    /// The number of the last hour in which calls were counted.
    hour: u64,
    /// The count of each hour, in the place of its number.
    counts: [u32; HOURS],
}

impl LastDay {
    /// Counts calls.
    pub fn add(&mut self, now: UnixTime, calls: u64) {
        if calls == 0 {
            return;
        }
        let now = now.0 / HOUR;
        if self.hour > now + 1 {
            // The clock was ahead: what was counted then is of no day.
            *self = Self::default();
        }
        let hour = self.hour.max(now);
        for passed in (self.hour + 1..=hour).rev().take(HOURS) {
            *self.place(passed) = 0;
        }
        self.hour = hour;
        self.add_to(hour, calls);
    }

    /// Adds the calls of another count.
    pub fn merge(&mut self, mut other: Self) {
        if other.hour > self.hour {
            std::mem::swap(self, &mut other);
        }
        for hour in other.hours() {
            if hour + HOURS as u64 > self.hour {
                self.add_to(hour, other.count(hour));
            }
        }
    }

    /// The calls of the last 24 hours, and of the part of an hour before them.
    pub fn sum(&self, now: UnixTime) -> u64 {
        let now = now.0 / HOUR;
        let day = now.saturating_sub(HOURS as u64 - 1)..=now + 1;
        let kept = self.hours().filter(|hour| day.contains(hour));
        kept.map(|hour| self.count(hour)).sum()
    }

    /// The calls of each hour, from 24 hours ago to the running one.
    pub fn by_hour(&self, now: UnixTime) -> [u64; HOURS] {
        let first = (now.0 / HOUR).saturating_sub(HOURS as u64 - 1);
        let mut counts = [0; HOURS];
        for hour in self.hours() {
            let place = hour.checked_sub(first).map(usize::try_from);
            if let Some(count) = place.and_then(|place| counts.get_mut(place.ok()?)) {
                *count = self.count(hour);
            }
        }
        counts
    }

    /// The hours that have a count.
    fn hours(&self) -> impl Iterator<Item = u64> + use<> {
        let last = self.hour;
        (0..HOURS as u64).filter_map(move |ago| last.checked_sub(ago))
    }

    fn count(&self, hour: u64) -> u64 {
        self.counts[Self::index(hour)].into()
    }

    fn add_to(&mut self, hour: u64, calls: u64) {
        let count = self.place(hour);
        *count = count.saturating_add(calls.try_into().unwrap_or(u32::MAX));
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

/// The last day of a counter that only grows and is read at times, so that no call pays for it.
#[derive(Debug, Default)]
pub struct SampledDay {
    /// The counter when it was last read.
    seen: u64,
    day: LastDay,
}

impl SampledDay {
    /// Notes what the counter is now.
    pub fn sample(&mut self, now: UnixTime, count: u64) {
        self.day.add(now, count.saturating_sub(self.seen));
        self.seen = self.seen.max(count);
    }

    /// Leaves out what was counted up to now.
    pub fn skip(&mut self, count: u64) {
        self.seen = self.seen.max(count);
    }

    /// The calls of the last day, of a counter that is this now.
    pub fn sum(&mut self, now: UnixTime, count: u64) -> u64 {
        self.by_hour(now, count).sum(now)
    }

    /// The last day, of a counter that is this now.
    pub fn by_hour(&mut self, now: UnixTime, count: u64) -> &LastDay {
        self.sample(now, count);
        &self.day
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
            day.add(at(hour), 1 + hour % 2);
            // One in each hour, and another in each odd one.
            let hours = hour.saturating_sub(24)..=hour;
            let expected: u64 = hours.map(|hour| 1 + hour % 2).sum();
            assert_eq!(day.sum(at(hour)), expected, "{hour}");
            let by_hour = day.by_hour(at(hour));
            assert_eq!(by_hour.iter().sum::<u64>(), expected, "{hour}");
            assert_eq!(by_hour[HOURS - 1], 1 + hour % 2);
        }
        assert_eq!(day.sum(at(99 + 24)), 2);
        let later = day.by_hour(at(99 + 20));
        assert_eq!((later[3], later[4], later[5]), (1, 2, 0));
        assert_eq!(day.sum(at(99 + 25)), 0);
        day.add(at(1_000), 1);
        assert_eq!(day.sum(at(1_000)), 1);
        // The clock is set back, by less than an hour and by many.
        day.add(at(999), 1);
        assert_eq!(day.sum(at(999)), 2);
        assert_eq!(day.sum(at(10)), 0);
        day.add(at(10), 1);
        assert_eq!(day.sum(at(10)), 1);
    }

    #[test]
    fn counts_that_are_merged_are_those_of_both_whichever_is_later() {
        let at = |hour: u64| UnixTime(1_790_164_800 + hour * HOUR);
        let day = |hours: &[u64]| {
            let mut day = LastDay::default();
            hours.iter().for_each(|hour| day.add(at(*hour), 1));
            day
        };
        let (early, late) = (&[0, 10, 20][..], &[10, 30][..]);
        for (mut one, other) in [(day(early), day(late)), (day(late), day(early))] {
            one.merge(other);
            // The call of hour 0 is more than a day old.
            assert_eq!(one.sum(at(30)), 4);
            assert_eq!(one.sum(at(40)), 2);
        }
    }

    #[test]
    fn a_sampled_counter_has_the_calls_of_a_day() {
        let mut calls = SampledDay::default();
        // One call in each minute.
        for minute in 0..=60 * 48 {
            calls.sample(UnixTime(minute * 60), minute);
        }
        // 24 whole hours, the running minute, and half an hour after the last sample.
        assert_eq!(calls.sum(UnixTime(48 * HOUR), 48 * 60), 24 * 60 + 1);
        let later = UnixTime(48 * HOUR + HOUR / 2);
        assert_eq!(calls.sum(later, 48 * 60 + 30), 24 * 60 + 31);
        assert_eq!(calls.sum(later, 48 * 60 + 30), 24 * 60 + 31, "again");
    }
}
