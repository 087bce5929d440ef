//! Counters and histograms of which each thread has a copy, so that workers that count do not wait for each other's cache
//! lines. A scrape adds the copies up.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::available_parallelism,
};

use prometheus::{
    HistogramOpts, Opts, Result,
    core::{Collector, Desc, Describer as _},
    proto::{self, MetricFamily, MetricType},
};
use strum::VariantArray as _;

use super::Verdict;

/// A cache line of counts.
#[derive(Default)]
#[repr(align(64))]
struct Line([AtomicU64; LINE]);

const LINE: usize = 8;

/// Counts of which each thread writes its own.
struct Counts(Box<[Box<[Line]>]>);

impl Counts {
    /// Zeros. Twice as many copies as workers usually, so that other threads that count rarely share one with them.
    fn new(length: usize) -> Self {
        let threads = available_parallelism().map_or(1, usize::from);
        let copy = |_| {
            (0..length.div_ceil(LINE))
                .map(|_| Line::default())
                .collect()
        };
        Self((0..2 * threads.next_power_of_two()).map(copy).collect())
    }

    /// The count of this thread.
    fn own(&self, at: usize) -> &AtomicU64 {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let number = NUMBER.get();
        let number = if number == usize::MAX {
            let number = THREADS.fetch_add(1, Relaxed);
            NUMBER.set(number);
            number
        } else {
            number
        };
        count(&self.0[number & (self.0.len() - 1)], at)
    }

    /// The counts of all threads.
    fn all(&self, at: usize) -> impl Iterator<Item = u64> {
        self.0.iter().map(move |copy| count(copy, at).load(Relaxed))
    }

    fn total(&self, at: usize) -> u64 {
        self.all(at).sum()
    }
}

fn count(copy: &[Line], at: usize) -> &AtomicU64 {
    &copy[at / LINE].0[at % LINE]
}

/// A histogram.
#[derive(Clone)]
pub struct Histogram(Arc<HistogramCounts>);

struct HistogramCounts {
    desc: Desc,
    bounds: Vec<f64>,
    /// One for each bound, one for values above all of them, and the sum as the bits of a float.
    counts: Counts,
}

impl Histogram {
    pub(super) fn with_opts(options: HistogramOpts) -> Result<Self> {
        Ok(Self(Arc::new(HistogramCounts {
            desc: options.describe()?,
            counts: Counts::new(options.buckets.len() + 2),
            bounds: options.buckets,
        })))
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let HistogramCounts { bounds, counts, .. } = &*self.0;
        let bucket = bounds.iter().position(|bound| value <= *bound);
        let bucket = bucket.unwrap_or(bounds.len());
        counts.own(bucket).fetch_add(1, Relaxed);
        let sum = counts.own(bounds.len() + 1);
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        // It never fails, since `add` always has a result.
        let _ = sum.fetch_update(Relaxed, Relaxed, add);
    }

    /// The number of values of each bound alone, and of those above all bounds.
    pub(super) fn counts(&self) -> Vec<u64> {
        let buckets = 0..=self.0.bounds.len();
        buckets.map(|at| self.0.counts.total(at)).collect()
    }
}

impl Collector for Histogram {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let HistogramCounts { bounds, counts, .. } = &*self.0;
        let mut below = 0;
        let buckets = bounds.iter().enumerate().map(|(at, bound)| {
            below += counts.total(at);
            let mut bucket = proto::Bucket::default();
            bucket.set_cumulative_count(below);
            bucket.set_upper_bound(*bound);
            bucket
        });
        let mut histogram = proto::Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(below + counts.total(bounds.len()));
        let sums = counts.all(bounds.len() + 1).map(f64::from_bits);
        histogram.set_sample_sum(sums.sum());
        let mut metric = proto::Metric::default();
        metric.set_histogram(histogram);
        vec![family(&self.0.desc, MetricType::HISTOGRAM, vec![metric])]
    }
}

/// A counter for each [`Verdict`].
#[derive(Clone)]
pub(super) struct VerdictCounters(Arc<(Desc, Counts)>);

impl VerdictCounters {
    pub(super) fn new(options: Opts, labels: &[&str]) -> Result<Self> {
        let labels = labels.iter().map(ToString::to_string).collect();
        let desc = options.variable_labels(labels).describe()?;
        let counts = Counts::new(Verdict::VARIANTS.len());
        Ok(Self(Arc::new((desc, counts))))
    }

    /// Counts one more.
    pub(super) fn inc(&self, verdict: Verdict) {
        self.0.1.own(verdict as usize).fetch_add(1, Relaxed);
    }

    /// The counts, in the order of [`Verdict::VARIANTS`].
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        (0..Verdict::VARIANTS.len()).map(|at| self.0.1.total(at))
    }
}

impl Collector for VerdictCounters {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.0]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let desc = &self.0.0;
        let metric = |(verdict, count): (&Verdict, u64)| {
            let mut label = proto::LabelPair::default();
            label.set_name(desc.variable_labels.concat());
            label.set_value(verdict.as_str().to_owned());
            let mut counter = proto::Counter::default();
            counter.set_value(count as f64);
            let mut metric = proto::Metric::from_label(vec![label]);
            metric.set_counter(counter);
            metric
        };
        let metrics = Verdict::VARIANTS.iter().zip(self.counts()).map(metric);
        vec![family(desc, MetricType::COUNTER, metrics.collect())]
    }
}

fn family(desc: &Desc, kind: MetricType, metrics: Vec<proto::Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(desc.fq_name.clone());
    family.set_help(desc.help.clone());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_what_threads_count_at_once() {
        let options = HistogramOpts::new("seconds", "help").buckets(vec![1.0, 2.0]);
        let histogram = Histogram::with_opts(options).unwrap();
        let counters = VerdictCounters::new(Opts::new("total", "help"), &["verdict"]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for value in [0.5, 1.0, 1.5, 3.0, 4.0] {
                        histogram.observe(value);
                        counters.inc(Verdict::Forwarded);
                    }
                });
            }
        });
        assert_eq!(histogram.counts(), [40, 20, 40]);
        let families = histogram.collect();
        let shown = families[0].get_metric()[0].get_histogram();
        assert_eq!(shown.get_sample_count(), 100);
        assert!((shown.get_sample_sum() - 200.0).abs() < 1e-9);
        let below = shown
            .get_bucket()
            .iter()
            .map(proto::Bucket::cumulative_count);
        assert!(below.eq([40, 60]));
        let counted = counters.counts().nth(Verdict::Forwarded as usize);
        assert_eq!(counted, Some(100));
        assert_eq!(counters.counts().sum::<u64>(), 100);
    }
}
