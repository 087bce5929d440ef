//! Charts: bars that the server draws as SVG, with a table for those who do not see them.

use strum::VariantArray as _;

use super::parts::{Number, time};
use crate::{
    base::clock::UnixTime,
    telemetry::{
        calls::last_day::HOURS,
        charts::{MINUTES, QUARTERS, Sample},
        metrics::{Outcome, REQUEST_BOUNDS, Verdict},
    },
};

const HEIGHT: u64 = 100;
/// The width of a bar, and of the gap after it.
const BAR: usize = 8;
const GAP: usize = 2;

/// A chart of bars, from the oldest to now.
pub(super) struct Chart {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) width: usize,
    pub(super) height: u64,
    pub(super) bars: Vec<Bar>,
    pub(super) begin: &'static str,
    /// The value at the top of the highest bar.
    pub(super) top: String,
    /// Classes of the style sheet, and the meaning of each colour.
    pub(super) legend: Vec<(&'static str, &'static str)>,
    /// The table of the same values, the newest first.
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A rectangle.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: usize,
    pub(super) y: u64,
    pub(super) width: usize,
    pub(super) height: u64,
}

/// The parts of a bar from the bottom up: class and value.
type Parts = Vec<(&'static str, u64)>;

const OUTCOMES: [(Outcome, &str, &str); 4] = [
    (Outcome::Served, "c-served", "served"),
    (Outcome::Observed, "c-observed", "observed"),
    (Outcome::Rejected, "c-rejected", "rejected"),
    (Outcome::Failed, "c-failed", "failed"),
];

const PERCENTILES: [(u64, &str, &str); 2] = [
    (50, "c-half", "half of the requests"),
    (95, "c-most", "95 % of the requests"),
];

/// The number of requests of a sample with this outcome.
pub(super) fn outcome(sample: &Sample, wanted: Outcome) -> u64 {
    let verdicts = Verdict::VARIANTS.iter().zip(&sample.counts.verdicts);
    let wanted = verdicts.filter(|(verdict, _)| verdict.outcome() == wanted);
    wanted.map(|(_, count)| count).sum()
}

/// The bound below which this part of the requests was served.
pub(super) fn latency(sample: &Sample, percent: u64) -> String {
    match sample.counts.percentile(percent) {
        None => "–".to_owned(),
        Some(index) => bound(index),
    }
}

fn bound(index: usize) -> String {
    match (REQUEST_BOUNDS.get(index), REQUEST_BOUNDS.last()) {
        (Some(seconds), _) if *seconds < 1.0 => format!("≤ {} ms", seconds * 1e3),
        (Some(seconds), _) => format!("≤ {seconds} s"),
        (None, last) => format!("> {} s", last.unwrap_or(&0.0)),
    }
}

/// The time that a chart shows: the length of a bar, the number of bars, and the beginning of the first one.
pub(super) struct Span {
    period: &'static str,
    bars: usize,
    begin: &'static str,
}

/// The last hour by minute; the current minute is the last bar.
pub(super) const HOUR: Span = Span {
    period: "minute",
    bars: MINUTES + 1,
    begin: "60 minutes ago",
};

/// The last day by quarter of an hour.
pub(super) const DAY: Span = Span {
    period: "quarter of an hour",
    bars: QUARTERS,
    begin: "24 hours ago",
};

/// The last day by hour; the running hour is the last bar.
const HOURS_OF_DAY: Span = Span {
    period: "hour",
    bars: HOURS,
    begin: "24 hours ago",
};

/// The accepted and the rejected calls of one consumer by hour; `wrong` says what the latter are.
pub(super) fn for_consumer(
    now: UnixTime,
    (accepted, rejected): ([u64; HOURS], [u64; HOURS]),
    wrong: &'static str,
) -> Chart {
    let begins = (0..HOURS as u64).rev();
    let begins = begins.map(|ago| UnixTime((now.0 / 3_600).saturating_sub(ago) * 3_600));
    let hours = begins.zip(accepted).zip(rejected);
    let hours = Vec::from_iter(hours.map(|((begin, right), wrong)| (begin, right, wrong)));
    let most = hours.iter().map(|(_, right, wrong)| right + wrong).max();
    let most = most.unwrap_or_default();
    let row = |(begin, right, wrong): &(UnixTime, u64, u64)| {
        let counts = [*right, *wrong].map(|count| Number(count).to_string());
        [time(*begin)].into_iter().chain(counts).collect()
    };
    let parts = |(_, right, wrong): &(UnixTime, u64, u64)| -> Parts {
        vec![("c-served", *right), ("c-rejected", *wrong)]
    };
    let [right, bad] = [accepted, rejected].map(|counts| counts.iter().sum::<u64>());
    Chart {
        description: format!("{right} accepted, {bad} {wrong}. Each bar is an hour."),
        top: Number(most).to_string(),
        legend: vec![("c-served", "accepted"), ("c-rejected", wrong)],
        title: "Calls by hour".to_owned(),
        head: vec!["from", "accepted", wrong],
        ..Chart::new(&HOURS_OF_DAY, "by-hour", &hours, most, parts, row)
    }
}

/// Requests by outcome.
pub(super) fn requests(span: &Span, samples: &[Sample]) -> Chart {
    let period = span.period;
    let parts = |sample: &Sample| -> Parts {
        (OUTCOMES.map(|(kind, class, _)| (class, outcome(sample, kind)))).into()
    };
    let most = samples.iter().map(|sample| sample.counts.total()).max();
    let most = most.unwrap_or_default();
    let sums = OUTCOMES.map(|(kind, _, name)| {
        let sum: u64 = samples.iter().map(|sample| outcome(sample, kind)).sum();
        format!("{sum} {name}")
    });
    let row = |sample: &Sample| -> Vec<String> {
        let counts = OUTCOMES.map(|(kind, ..)| Number(outcome(sample, kind)).to_string());
        [time(sample.end)].into_iter().chain(counts).collect()
    };
    Chart {
        description: format!("{}. Each bar is a {period}.", sums.join(", ")),
        top: Number(most).to_string(),
        legend: OUTCOMES.map(|(_, class, name)| (class, name)).into(),
        title: format!("Requests by {period}"),
        head: vec!["until", "served", "observed", "rejected", "failed"],
        ..Chart::new(span, "requests", samples, most, parts, row)
    }
}

/// The latency of requests.
pub(super) fn latencies(span: &Span, samples: &[Sample]) -> Chart {
    let period = span.period;
    let highest = REQUEST_BOUNDS.len() as u64 + 1;
    let step = |sample: &Sample, percent| {
        let index = sample.counts.percentile(percent);
        index.map_or(0, |index| index as u64 + 1)
    };
    let parts = |sample: &Sample| -> Parts {
        let (half, most) = (step(sample, 50), step(sample, 95));
        vec![("c-half", half), ("c-most", most - half)]
    };
    let row = |sample: &Sample| -> Vec<String> {
        let took = PERCENTILES.map(|(percent, ..)| latency(sample, percent));
        [time(sample.end)].into_iter().chain(took).collect()
    };
    let now = samples.iter().rfind(|sample| sample.counts.total() > 0);
    let now = now.map_or_else(
        || "no calls".to_owned(),
        |last| {
            let [half, most] = [50, 95].map(|percent| latency(last, percent));
            format!("last: half in {half}, 95 % in {most}")
        },
    );
    Chart {
        description: format!("{now}. Each bar is a {period}; its height is logarithmic."),
        top: bound(REQUEST_BOUNDS.len()),
        legend: PERCENTILES.map(|(_, class, name)| (class, name)).into(),
        title: format!("Latency by {period}"),
        head: vec!["until", "half in", "95 % in"],
        ..Chart::new(span, "latency", samples, highest, parts, row)
    }
}

impl Chart {
    /// Draws a bar for each sample; `full` is the value of the whole height.
    fn new<S>(
        span: &Span,
        id: &'static str,
        samples: &[S],
        full: u64,
        parts: impl Fn(&S) -> Parts,
        row: impl Fn(&S) -> Vec<String>,
    ) -> Self {
        let mut bars = Vec::new();
        // The last bar is at the right end.
        let first = span.bars.saturating_sub(samples.len());
        for (index, sample) in (first..).zip(samples) {
            let mut below = 0;
            for (class, value) in parts(sample) {
                // A value above zero is visible, however small it is.
                let least = u64::from(value > 0);
                let height = (value * HEIGHT / full.max(1)).max(least);
                let height = height.min(HEIGHT - below);
                below += height;
                if height > 0 {
                    bars.push(Bar {
                        class,
                        x: index * (BAR + GAP),
                        y: HEIGHT - below,
                        width: BAR,
                        height,
                    });
                }
            }
        }
        Self {
            id,
            description: String::new(),
            width: span.bars * (BAR + GAP),
            height: HEIGHT,
            bars,
            begin: span.begin,
            top: String::new(),
            legend: Vec::new(),
            head: Vec::new(),
            rows: samples.iter().rev().map(row).collect(),
            title: String::new(),
        }
    }
}

/// A sample with this many calls that were served at once, and that were rejected late.
#[cfg(test)]
pub(super) fn sample(served: u64, rejected: u64) -> Sample {
    let mut verdicts = vec![0; Verdict::VARIANTS.len()];
    verdicts[Verdict::Forwarded as usize] = served;
    verdicts[Verdict::NonceUsed as usize] = rejected;
    let latency = vec![served, 0, rejected];
    Sample {
        end: UnixTime(1_000),
        counts: crate::telemetry::charts::RequestCounts {
            verdicts,
            latency,
            would_be_rejected: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_end_at_now_and_stay_within_the_height() {
        let samples = [sample(0, 0), sample(1, 1_000), sample(300, 100)];
        for span in [HOUR, DAY] {
            let chart = requests(&span, &samples);
            let bars = chart.bars.iter();
            let bars = bars.map(|bar| (bar.class, bar.x, bar.y, bar.height));
            let last = (span.bars - 1) * (BAR + GAP);
            assert_eq!(
                Vec::from_iter(bars),
                [
                    ("c-served", last - BAR - GAP, 99, 1),
                    ("c-rejected", last - BAR - GAP, 0, 99),
                    ("c-served", last, 71, 29),
                    ("c-rejected", last, 62, 9),
                ]
            );
            assert_eq!(chart.width, last + BAR + GAP);
            assert!(
                chart
                    .description
                    .starts_with("301 served, 0 observed, 1100 rejected")
            );
            assert_eq!(chart.rows.len(), samples.len());
        }
        let chart = latencies(&HOUR, &[sample(0, 0)]);
        assert!(chart.bars.is_empty() && chart.description.starts_with("no calls."));
        let chart = latencies(&HOUR, &samples);
        let last = "last: half in ≤ 0.5 ms, 95 % in ≤ 2.5 ms.";
        assert!(chart.description.starts_with(last), "{}", chart.description);
        assert_eq!(chart.top, "> 60 s");
    }
}
