//! Charts: bars that the server draws as SVG, with a table for those who do not see them.

use strum::VariantArray as _;

use super::page::{Line, Table, line, time};
use crate::telemetry::{
    charts::Sample,
    metrics::{Outcome, REQUEST_BOUNDS, Verdict},
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
    pub(super) begin: String,
    pub(super) scale: String,
    /// Classes of the style sheet, and what each colour is.
    pub(super) legend: Vec<(&'static str, &'static str)>,
    pub(super) table: Table,
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

/// How many requests of a sample ended so.
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

/// Requests by how they ended; `period` is the length of a bar in words.
pub(super) fn requests(id: &'static str, period: &str, samples: &[Sample]) -> Chart {
    let parts = |sample: &Sample| -> Parts {
        let parts = OUTCOMES.map(|(kind, class, _)| (class, outcome(sample, kind)));
        parts.into()
    };
    let most = samples.iter().map(|sample| sample.counts.total()).max();
    let most = most.unwrap_or_default();
    let sums = OUTCOMES.map(|(kind, _, name)| {
        let sum: u64 = samples.iter().map(|sample| outcome(sample, kind)).sum();
        format!("{sum} {name}")
    });
    let row = |sample: &Sample| -> Vec<Line> {
        let counts = OUTCOMES.map(|(kind, ..)| line(outcome(sample, kind).to_string()));
        [line(time(sample.end))].into_iter().chain(counts).collect()
    };
    Chart {
        description: format!("{}. Each bar is {period}.", sums.join(", ")),
        scale: format!("full height: {most} in {period}"),
        legend: OUTCOMES.map(|(_, class, name)| (class, name)).into(),
        ..Chart::new(
            id,
            format!("Requests by {period}"),
            samples,
            most,
            parts,
            (
                vec!["until", "served", "observed", "rejected", "failed"],
                row,
            ),
        )
    }
}

/// How long requests took.
pub(super) fn latencies(id: &'static str, period: &str, samples: &[Sample]) -> Chart {
    let highest = REQUEST_BOUNDS.len() as u64 + 1;
    let step = |sample: &Sample, percent| {
        let index = sample.counts.percentile(percent);
        index.map_or(0, |index| index as u64 + 1)
    };
    let parts = |sample: &Sample| -> Parts {
        let (half, most) = (step(sample, 50), step(sample, 95));
        vec![("c-half", half), ("c-most", most - half)]
    };
    let row = |sample: &Sample| -> Vec<Line> {
        let took = PERCENTILES.map(|(percent, ..)| line(latency(sample, percent)));
        [line(time(sample.end))].into_iter().chain(took).collect()
    };
    let now = samples.iter().rfind(|sample| sample.counts.total() > 0);
    let now = now.map_or_else(
        || "no requests".to_owned(),
        |last| {
            let [half, most] = [50, 95].map(|percent| latency(last, percent));
            format!("last: half in {half}, 95 % in {most}")
        },
    );
    Chart {
        description: format!("{now}. Each bar is {period}; its height is logarithmic."),
        scale: now,
        legend: PERCENTILES.map(|(_, class, name)| (class, name)).into(),
        ..Chart::new(
            id,
            format!("Latency by {period}"),
            samples,
            highest,
            parts,
            (vec!["until", "half in", "95 % in"], row),
        )
    }
}

impl Chart {
    /// Draws a bar for each sample; `full` is the value of the whole height.
    fn new(
        id: &'static str,
        title: String,
        samples: &[Sample],
        full: u64,
        parts: impl Fn(&Sample) -> Parts,
        (head, row): (Vec<&'static str>, impl Fn(&Sample) -> Vec<Line>),
    ) -> Self {
        let mut bars = Vec::new();
        for (index, sample) in samples.iter().enumerate() {
            let mut below = 0;
            for (class, value) in parts(sample) {
                // What is there is seen, however little it is.
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
            width: (samples.len() * (BAR + GAP)).max(1),
            height: HEIGHT,
            bars,
            begin: samples
                .first()
                .map_or_else(String::new, |first| time(first.end)),
            scale: String::new(),
            legend: Vec::new(),
            table: Table {
                caption: title.clone(),
                head,
                rows: samples.iter().rev().map(row).collect(),
                ..Table::default()
            },
            title,
        }
    }
}
