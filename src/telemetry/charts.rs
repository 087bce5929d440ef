//! The counts of the metrics in each of the last 60 minutes and 96 quarters of an hour, in memory. A task samples the
//! counters once a minute, so no request pays for it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use crate::{
    base::clock::UnixTime,
    telemetry::calls::{consumer_calls::ConsumerCalls, last_day::SampledDay},
};

/// The interval at which the counters are to be sampled.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(MINUTE);

const MINUTE: u64 = 60;
const QUARTER: u64 = 15 * MINUTE;
const DAY: Duration = Duration::from_secs(24 * 60 * MINUTE);
/// The most times that are kept in which calls were only observed.
const MOST_TIMES: usize = 100;
/// The number of whole minutes that are kept.
pub const MINUTES: usize = 60;
/// The number of quarters of an hour that are kept, with the current one.
pub const QUARTERS: usize = 96;

/// Counters at one moment, or what they counted in a period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests by verdict, in the order of [`Verdict::VARIANTS`](strum::VariantArray).
    pub verdicts: Vec<u64>,
    /// Requests that did not fail, by duration: one number for each bound of the histogram, and one for those above all.
    pub latency: Vec<u64>,
    /// Requests that observe let through and enforcing would reject.
    pub would_be_rejected: u64,
}

impl RequestCounts {
    /// The counts since `before`.
    fn since(&self, before: &Self) -> Self {
        let minus = |now: &[u64], before: &[u64]| {
            let before = before.iter().chain(std::iter::repeat(&0));
            let pairs = now.iter().zip(before);
            pairs
                .map(|(now, before)| now.saturating_sub(*before))
                .collect()
        };
        Self {
            verdicts: minus(&self.verdicts, &before.verdicts),
            latency: minus(&self.latency, &before.latency),
            would_be_rejected: self
                .would_be_rejected
                .saturating_sub(before.would_be_rejected),
        }
    }

    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.verdicts, &other.verdicts),
            (&mut self.latency, &other.latency),
        ];
        for (sums, counts) in pairs {
            sums.resize(sums.len().max(counts.len()), 0);
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        self.would_be_rejected += other.would_be_rejected;
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.verdicts.iter().sum()
    }

    /// The index of the bound below which this part of the requests was served; `None` without requests.
    pub fn percentile(&self, percent: u64) -> Option<usize> {
        let total: u64 = self.latency.iter().sum();
        let wanted = (total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        self.latency.iter().position(|count| {
            seen += count;
            seen >= wanted
        })
    }
}

/// The counts of one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The time at which it ended, or for the last one, now.
    pub end: UnixTime,
    /// The counts.
    pub counts: RequestCounts,
}

/// The samples of a day.
#[derive(Debug, Default)]
pub struct Charts {
    samples: Mutex<Samples>,
    /// The times in which calls were only observed.
    observing: Mutex<Observing>,
    /// The calls of each consumer.
    pub consumers: ConsumerCalls,
    /// Those of them that came with a Bearer token.
    pub by_bearer: ConsumerCalls,
}

/// When calls were only observed.
#[derive(Debug, Default)]
struct Observing {
    /// Beginnings and ends, the oldest first; `None`: it lasts.
    times: Vec<(UnixTime, Option<UnixTime>)>,
    /// The requests while it lasted.
    requests: SampledDay,
    /// The first of these times is the start of the process.
    is_from_start: bool,
    /// It is known whether calls are observed.
    is_known: bool,
    /// The accepted calls of each consumer before the first of these times.
    accepted: HashMap<Arc<str>, u64>,
}

impl Observing {
    fn lasts(&self) -> bool {
        self.times.last().is_some_and(|(_, end)| end.is_none())
    }

    fn sample(&mut self, now: UnixTime, requests: u64) {
        match self.lasts() {
            true => self.requests.sample(now, requests),
            false => self.requests.skip(requests),
        }
    }
}

/// The times of the last day in which calls were only observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTime {
    /// The beginning of the first one.
    pub since: UnixTime,
    /// It is the start of the process.
    pub is_from_start: bool,
    /// The end of the last one; `None`: it lasts.
    pub until: Option<UnixTime>,
    /// How long they lasted.
    pub lasted: Duration,
    /// The requests in them, counted by the hour.
    pub requests: u64,
}

#[derive(Debug, Default)]
struct Samples {
    /// The counters at the end of the last minute.
    before: RequestCounts,
    /// The oldest first.
    minutes: VecDeque<Sample>,
    quarters: VecDeque<Sample>,
}

impl Charts {
    /// Notes whether calls may be only observed from now on; `requests` and the `accepted` ones of each consumer were before.
    pub fn observes(
        &self,
        is_observing: bool,
        now: UnixTime,
        requests: u64,
        accepted: HashMap<Arc<str>, u64>,
    ) {
        let mut observing = self.observing.lock();
        observing.sample(now, requests);
        let is_in_day = |end: &Option<UnixTime>| end.is_none_or(|end| end.after(DAY) > now);
        observing.times.retain(|(_, end)| is_in_day(end));
        match (is_observing, observing.lasts()) {
            (true, false) => {
                if observing.times.is_empty() {
                    observing.accepted = accepted;
                    observing.is_from_start = !observing.is_known;
                }
                observing.times.push((now, None));
            }
            (false, true) => {
                if let Some((_, end)) = observing.times.last_mut() {
                    *end = Some(now);
                }
            }
            _ => {}
        }
        observing.is_known = true;
        // A service that is reloaded all the time.
        let many = observing.times.len().saturating_sub(MOST_TIMES);
        observing.times.drain(..many);
    }

    /// The times of the last day in which calls were only observed, if there are any.
    pub fn observed(&self, now: UnixTime, requests: u64) -> Option<ObservedTime> {
        let mut observing = self.observing.lock();
        observing.sample(now, requests);
        let begin = now.before(DAY);
        let times = observing.times.iter();
        let times = times.filter(|(_, end)| end.is_none_or(|end| end > begin));
        let times = Vec::from_iter(times.copied());
        let seconds = times.iter().map(|(since, end)| {
            let end = end.unwrap_or(now);
            end.0.saturating_sub(since.0.max(begin.0))
        });
        let ((since, _), (_, until)) = (times.first()?, times.last()?);
        Some(ObservedTime {
            since: *since,
            is_from_start: observing.is_from_start,
            until: *until,
            lasted: Duration::from_secs(seconds.sum()),
            requests: observing
                .requests
                .sum(now, if until.is_none() { requests } else { 0 }),
        })
    }

    /// The accepted calls of a consumer before calls were observed.
    pub fn accepted_before(&self, consumer: &str) -> u64 {
        let observing = self.observing.lock();
        observing
            .accepted
            .get(consumer)
            .copied()
            .unwrap_or_default()
    }

    /// Ends a minute, at whose end the counters are `now`. The first call begins the first minute.
    pub fn sample(&self, now: RequestCounts, end: UnixTime) {
        self.observing.lock().sample(end, now.total());
        let mut samples = self.samples.lock();
        if samples.before.verdicts.is_empty() {
            // No minute has ended: the counting begins.
            samples.before = now;
            return;
        }
        let counts = now.since(&samples.before);
        samples.before = now;
        let sample = Sample { end, counts };
        add_to_quarters(&mut samples.quarters, &sample);
        samples.minutes.push_back(sample);
        if samples.minutes.len() > MINUTES {
            samples.minutes.pop_front();
        }
    }

    /// The last 60 minutes and the current one, the oldest first.
    pub fn minutes(&self, now: &RequestCounts, end: UnixTime) -> Vec<Sample> {
        let samples = self.samples.lock();
        let counts = now.since(&samples.before);
        let running = Sample { end, counts };
        samples.minutes.iter().cloned().chain([running]).collect()
    }

    /// The last 96 quarters of an hour, the oldest first; the last one is the current one.
    pub fn quarters(&self, now: &RequestCounts, end: UnixTime) -> Vec<Sample> {
        let samples = self.samples.lock();
        let counts = now.since(&samples.before);
        let mut quarters = samples.quarters.clone();
        drop(samples);
        add_to_quarters(&mut quarters, &Sample { end, counts });
        quarters.into()
    }
}

fn add_to_quarters(quarters: &mut VecDeque<Sample>, sample: &Sample) {
    // A minute belongs to the quarter in which its last second is.
    let quarter = |end: UnixTime| end.0.saturating_sub(1) / QUARTER;
    match quarters.back_mut() {
        Some(last) if quarter(last.end) == quarter(sample.end) => {
            last.counts.add(&sample.counts);
            last.end = sample.end;
        }
        _ => quarters.push_back(sample.clone()),
    }
    if quarters.len() > QUARTERS {
        quarters.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(requests: u64) -> RequestCounts {
        RequestCounts {
            verdicts: vec![requests, 0],
            latency: vec![0, requests, 0],
            would_be_rejected: requests / 2,
        }
    }

    #[test]
    fn keeps_an_hour_by_minutes_and_a_day_by_quarters() {
        let charts = Charts::default();
        // One request more in each minute than in the one before.
        let sums = (1..=2_000_u64).scan(0, |sum, minute| {
            *sum += minute;
            Some((minute, *sum))
        });
        for (minute, sum) in sums {
            charts.sample(counts(sum), UnixTime(minute * MINUTE));
        }
        let (sum, now) = (2_000 * 2_001 / 2, UnixTime(2_000 * MINUTE + 30));
        let minutes = charts.minutes(&counts(sum + 7), now);
        let totals: Vec<u64> = minutes.iter().map(|one| one.counts.total()).collect();
        assert_eq!(totals.len(), MINUTES + 1);
        assert_eq!((totals[0], totals[59], totals[60]), (1_941, 2_000, 7));
        let quarters = charts.quarters(&counts(sum + 7), now);
        assert_eq!(quarters.len(), QUARTERS);
        // Minutes 1,996 to 2,000 are of the last quarter.
        let last = (1_996..=2_000).sum::<u64>() + 7;
        assert_eq!(quarters[95].counts, counts(last));
        let before = (1_981..=1_995).sum::<u64>();
        assert_eq!(quarters[94].counts.total(), before);
        assert_eq!(quarters[94].end, UnixTime(1_995 * MINUTE));
    }

    #[test]
    fn requests_count_only_while_calls_are_observed() {
        let charts = Charts::default();
        let at = |minute: u64| UnixTime(1_790_164_800 + minute * MINUTE);
        assert_eq!(charts.observed(at(0), 5), None);
        charts.observes(false, at(0), 10, HashMap::new());
        charts.sample(counts(40), at(1));
        let accepted = HashMap::from([(Arc::from("shop"), 7)]);
        charts.observes(true, at(2), 100, accepted);
        assert_eq!(charts.accepted_before("shop"), 7);
        charts.sample(counts(130), at(3));
        let observed = charts.observed(at(4), 140).unwrap();
        assert_eq!((observed.requests, observed.until), (40, None));
        charts.observes(false, at(5), 150, HashMap::new());
        charts.sample(counts(900), at(6));
        let mut expected = ObservedTime {
            since: at(2),
            is_from_start: false,
            until: Some(at(5)),
            lasted: Duration::from_secs(3 * MINUTE),
            requests: 50,
        };
        assert_eq!(charts.observed(at(7), 950), Some(expected.clone()));
        // With a break: both times, and the calls of both.
        charts.observes(true, at(10), 1_000, HashMap::new());
        expected.until = None;
        expected.lasted = Duration::from_secs(4 * MINUTE);
        expected.requests = 57;
        assert_eq!(charts.observed(at(11), 1_007), Some(expected));
        charts.observes(false, at(12), 1_010, HashMap::new());
        assert!(charts.observed(at(12 + 1_439), 2_000).is_some());
        assert_eq!(charts.observed(at(12 + 1_440), 2_000), None);
    }

    #[test]
    fn finds_the_bound_of_a_percentile() {
        let of = |latency: &[u64], percent| {
            let latency = latency.to_vec();
            let verdicts = Vec::new();
            let counts = RequestCounts {
                verdicts,
                latency,
                ..RequestCounts::default()
            };
            counts.percentile(percent)
        };
        assert_eq!(of(&[0, 0], 50), None);
        assert_eq!(of(&[50, 50], 50), Some(0));
        assert_eq!(of(&[49, 51], 50), Some(1));
        assert_eq!(of(&[94, 5, 1], 95), Some(1));
        assert_eq!(of(&[94, 5, 1], 100), Some(2));
        assert_eq!(of(&[0, 1], 1), Some(1));
    }
}
