//! The last minute on the overview: its numbers, and the warning that many of its calls were rejected.

use crate::{
    operator::admin::console::{chart, parts::Number},
    telemetry::{
        charts::{SAMPLE_EVERY, Sample},
        metrics::{Outcome, Verdict},
    },
};

/// The share of rejected calls in the last minute from which the overview warns, in percent.
const ALARM_PERCENT: f64 = 5.0;

/// A share that is twice that of the hour is no reason to warn below this many rejected calls.
const ALARM_CALLS: u64 = 10;

/// The numbers of the last minute, and the fill level of the nonce window.
pub(crate) struct Tiles {
    pub(crate) rate: String,
    pub(crate) requests: Number,
    /// The share and the number of the calls that failed, if any did.
    pub(crate) failed: Option<(String, String)>,
    /// The name of the share: of rejected calls, or of those that enforcing would reject.
    pub(crate) wrong: &'static str,
    pub(crate) share: String,
    pub(crate) counts: String,
    pub(crate) half: String,
    pub(crate) most: String,
    pub(crate) nonce_share: String,
    pub(crate) nonces: Number,
    pub(crate) max_nonces: Number,
}

impl Tiles {
    /// The tiles, where signatures are enforced or only observed.
    pub(crate) fn new(
        minutes: &[Sample],
        enforces: bool,
        (nonces, max_nonces): (u64, u64),
    ) -> Self {
        let minute = MinuteCalls::from_samples(last_minute(minutes));
        let latency = |percent| {
            let last = last_minute(minutes);
            last.map_or_else(|| "–".to_owned(), |last| chart::latency(last, percent))
        };
        let answered = Number(minute.answered());
        let (rejected, observed) = (Number(minute.rejected), Number(minute.would_be_rejected));
        let (wrong, counts) = match (minute.rejected, minute.would_be_rejected) {
            (0, _) if !enforces => (
                "Would be rejected",
                format!("{observed} of {answered}; none was rejected"),
            ),
            // Some are rejected in any case, such as those for no URL of this service.
            (_, 0) => ("Rejected", format!("{rejected} of {answered}")),
            (_, _) => (
                "Rejected, or would be",
                format!("{rejected} rejected, {observed} would be, of {answered}"),
            ),
        };
        let percent = nonces as f64 * 100.0 / max_nonces.max(1) as f64;
        Self {
            rate: format!("{:.1}", minute.all as f64 / SAMPLE_EVERY.as_secs_f64()),
            requests: Number(minute.all),
            failed: (minute.failed > 0).then(|| {
                let share = format!("{:.1} %", percent_of(minute.failed, minute.all));
                (share, minute.failures())
            }),
            wrong,
            share: match minute.answered() {
                0 => "–".to_owned(),
                _ => format!("{:.1} %", minute.percent()),
            },
            counts: match minute.answered() {
                0 => "no request was answered".to_owned(),
                _ => counts,
            },
            half: latency(50),
            most: latency(95),
            nonce_share: format!("{percent:.2} %"),
            nonces: Number(nonces),
            max_nonces: Number(max_nonces),
        }
    }
}

/// The last whole minute; the current one has only begun.
fn last_minute(minutes: &[Sample]) -> Option<&Sample> {
    minutes.iter().rev().nth(1).or_else(|| minutes.last())
}

/// The calls of some time, by outcome.
#[derive(Default)]
struct MinuteCalls {
    all: u64,
    rejected: u64,
    /// The calls that were only observed, and that enforcing would reject.
    would_be_rejected: u64,
    /// The calls that this program or the API has failed.
    failed: u64,
    /// The calls whose caller had gone.
    aborted: u64,
}

impl MinuteCalls {
    fn from_samples<'s>(samples: impl IntoIterator<Item = &'s Sample>) -> Self {
        let mut calls = Self::default();
        for sample in samples {
            calls.all += sample.counts.total();
            calls.rejected += chart::outcome(sample, Outcome::Rejected);
            calls.would_be_rejected += sample.counts.would_be_rejected;
            let aborted = sample.counts.verdicts.get(Verdict::Aborted as usize);
            let aborted = aborted.copied().unwrap_or_default();
            calls.aborted += aborted;
            calls.failed += chart::outcome(sample, Outcome::Failed) - aborted;
        }
        calls
    }

    const fn wrong(&self) -> u64 {
        self.rejected + self.would_be_rejected
    }

    const fn answered(&self) -> u64 {
        self.all - self.failed - self.aborted
    }

    fn percent(&self) -> f64 {
        percent_of(self.wrong(), self.answered())
    }

    fn failures(&self) -> String {
        format!("{} of {}", Number(self.failed), Number(self.all))
    }
}

fn percent_of(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}

/// How many calls of the last minute failed, else of the current one.
pub(crate) fn failures(minutes: &[Sample]) -> Option<String> {
    let of = |samples: Option<&Sample>, when: &str| {
        let calls = MinuteCalls::from_samples(samples);
        (calls.failed > 0).then(|| format!("{} calls of {when} failed.", calls.failures()))
    };
    let last = of(last_minute(minutes), "the last whole minute");
    last.or_else(|| of(minutes.last(), "this minute"))
}

/// The warning about the last minute: more than a twentieth of its answered calls were rejected, or would be, or twice the
/// share of the hour.
pub(crate) fn alarm(minutes: &[Sample]) -> Option<String> {
    let minute = MinuteCalls::from_samples(last_minute(minutes));
    let (share, of_hour) = (
        minute.percent(),
        MinuteCalls::from_samples(minutes).percent(),
    );
    let is_double = minute.wrong() >= ALARM_CALLS && share >= 2.0 * of_hour;
    let what = match (minute.rejected, minute.would_be_rejected) {
        (_, 0) => "were rejected",
        (0, _) => "would be rejected",
        _ => "were rejected, or would be",
    };
    (share > ALARM_PERCENT || is_double).then(|| {
        format!(
            "{share:.1} % of the last minute’s calls {what} ({} of {}).",
            Number(minute.wrong()),
            Number(minute.answered())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::admin::console::chart::sample as minute;

    #[test]
    fn warns_above_a_twentieth_or_twice_the_share_of_the_hour() {
        let running = || minute(0, 0);
        assert_eq!(alarm(&[minute(95, 5), running()]), None);
        let text = "12.7 % of the last minute’s calls were rejected (383 of 3,008).";
        assert_eq!(
            alarm(&[minute(2_625, 383), running()]).as_deref(),
            Some(text)
        );
        // 2 % of the hour's calls, and 4 % of the last minute's.
        let hour = [
            minute(980, 20),
            minute(1_980, 20),
            minute(960, 40),
            running(),
        ];
        assert!(alarm(&hour).is_some());
        // Few calls are no finding.
        assert_eq!(alarm(&[minute(10_000, 0), minute(100, 4), running()]), None);
    }

    #[test]
    fn where_signatures_are_only_observed_calls_would_be_rejected() {
        let observed = |rejected| {
            let mut observed = minute(90, rejected);
            observed.counts.would_be_rejected = 30;
            [observed, minute(0, 0)]
        };
        let text = "33.3 % of the last minute’s calls would be rejected (30 of 90).";
        assert_eq!(alarm(&observed(0)).as_deref(), Some(text));
        let text = "40.0 % of the last minute’s calls were rejected, or would be (40 of 100).";
        assert_eq!(alarm(&observed(10)).as_deref(), Some(text));
        let tiles = Tiles::new(&observed(0), false, (0, 1));
        assert_eq!(
            (tiles.wrong, &*tiles.share, &*tiles.counts),
            ("Would be rejected", "33.3 %", "30 of 90; none was rejected")
        );
        let tiles = Tiles::new(&observed(10), false, (0, 1));
        assert_eq!(
            (tiles.wrong, &*tiles.share, &*tiles.counts),
            (
                "Rejected, or would be",
                "40.0 %",
                "10 rejected, 30 would be, of 100"
            )
        );
        let tiles = Tiles::new(&[minute(90, 10), minute(0, 0)], false, (0, 1));
        assert_eq!(tiles.wrong, "Rejected");
        let tiles = Tiles::new(&[minute(90, 10), minute(0, 0)], true, (0, 1));
        assert_eq!(
            (tiles.wrong, &*tiles.share, &*tiles.counts),
            ("Rejected", "10.0 %", "10 of 100")
        );
    }

    #[test]
    fn failed_calls_have_a_tile_and_are_not_among_the_answered_ones() {
        let mut down = minute(4, 1);
        down.counts.verdicts[Verdict::BadGateway as usize] = 20;
        down.counts.verdicts[Verdict::Aborted as usize] = 5;
        let minutes = [down.clone(), minute(0, 0)];
        let tiles = Tiles::new(&minutes, true, (0, 1));
        let failed = tiles.failed.unwrap();
        assert_eq!((&*failed.0, &*failed.1), ("66.7 %", "20 of 30"));
        assert_eq!((&*tiles.share, &*tiles.counts), ("20.0 %", "1 of 5"));
        let text = "20 of 30 calls of the last whole minute failed.";
        assert_eq!(failures(&minutes).as_deref(), Some(text));
        let text = "20 of 30 calls of this minute failed.";
        assert_eq!(
            failures(&[minute(9, 0), down]).as_deref(),
            Some(text),
            "an outage begins"
        );
        assert_eq!(failures(&[minute(9, 0), minute(1, 0)]), None);
        assert!(
            Tiles::new(&[minute(9, 0), minute(1, 0)], true, (0, 1))
                .failed
                .is_none()
        );
    }
}
