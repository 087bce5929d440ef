//! Counters and histograms of which each thread has a copy, so that workers that count do not wait for each other's cache
//! lines. A scrape adds the copies up.

use std::{
    cell::Cell,
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::available_parallelism,
};

use arc_swap::ArcSwap;
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

/// Counts in several copies: each of the threads that count first has its own, and all others share one.
struct Counts(Box<[Box<[Line]>]>);

impl Counts {
    /// Zeros. Twice as many threads as workers usually have copies of their own.
    fn new(length: usize) -> Self {
        let threads = available_parallelism().map_or(1, usize::from);
        let copy = |_| {
            (0..length.div_ceil(LINE))
                .map(|_| Line::default())
                .collect()
        };
        Self((0..=2 * threads).map(copy).collect())
    }

    /// Changes the count of this thread.
    fn change(&self, at: usize, change: impl Fn(u64) -> u64) {
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
        let shared = self.0.len() - 1;
        let count = count(&self.0[number.min(shared)], at);
        if number < shared {
            // No other thread writes it, so that the processor need not lock its line.
            count.store(change(count.load(Relaxed)), Relaxed);
        } else {
            // It never fails, since there always is a result.
            let _ = count.fetch_update(Relaxed, Relaxed, |count| Some(change(count)));
        }
    }

    fn add(&self, at: usize, number: u64) {
        self.change(at, |count| count.wrapping_add(number));
    }

    /// The counts of all threads.
    fn all(&self, at: usize) -> impl Iterator<Item = u64> {
        self.0.iter().map(move |copy| count(copy, at).load(Relaxed))
    }

    fn total(&self, at: usize) -> u64 {
        // A thread may have counted more down than up, so that its part is below zero.
        self.all(at).fold(0, u64::wrapping_add)
    }
}

fn count(copy: &[Line], at: usize) -> &AtomicU64 {
    &copy[at / LINE].0[at % LINE]
}

/// A counter, or with [`Counter::dec`] a gauge.
pub struct Counter(Counts);

impl Counter {
    /// Counts one more.
    pub fn inc(&self) {
        self.0.add(0, 1);
    }

    /// Counts one less, in the thread that has counted it or in another one.
    pub fn dec(&self) {
        self.0.add(0, 1_u64.wrapping_neg());
    }

    /// What all threads have counted.
    pub fn get(&self) -> u64 {
        self.0.total(0)
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self(Counts::new(1))
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The second label of [`NamedCounters`].
pub(super) trait SecondLabel: Send + Sync + 'static {
    /// Its values.
    const VALUES: &'static [&'static str];
    /// Whether zeros are shown.
    const SHOWS_ZEROS: bool;
}

/// Counters by a name, which is known while the process runs, and by one of a few other values.
pub(super) struct NamedCounters<L>(Arc<Named>, PhantomData<L>);

struct Named {
    desc: Desc,
    /// Found without a lock.
    by_name: ArcSwap<HashMap<Arc<str>, Series>>,
}

/// The counters of one name.
#[derive(Clone)]
pub struct Series(Arc<Counts>);

impl Series {
    /// Counts one more with the second label at this position.
    pub(super) fn inc(&self, at: usize) {
        self.0.add(at, 1);
    }
}

impl<L: SecondLabel> NamedCounters<L> {
    pub(super) fn new(options: Opts, labels: &[&str]) -> Result<Self> {
        let labels = labels.iter().map(ToString::to_string).collect();
        let named = Named {
            desc: options.variable_labels(labels).describe()?,
            by_name: ArcSwap::default(),
        };
        Ok(Self(Arc::new(named), PhantomData))
    }

    /// Counts one more for a name that has counters; `false`: it has none.
    pub(super) fn inc(&self, name: &str, at: usize) -> bool {
        let by_name = self.0.by_name.load();
        let series = by_name.get(name);
        series.inspect(|series| series.inc(at)).is_some()
    }

    /// The count of a name with the second label at this position; 0 if it has no counters.
    pub(super) fn count_of(&self, name: &str, at: usize) -> u64 {
        let by_name = self.0.by_name.load();
        by_name.get(name).map_or(0, |series| series.0.total(at))
    }

    /// The counts of all names with the second label at this position.
    pub(super) fn counts(&self, at: usize) -> HashMap<Arc<str>, u64> {
        let by_name = self.0.by_name.load();
        let counts = by_name.iter();
        counts
            .map(|(name, series)| (Arc::clone(name), series.0.total(at)))
            .collect()
    }

    /// Gives a name counters unless more than `most` have some.
    pub(super) fn begin(&self, name: &str, most: usize) {
        let is_new =
            |known: &HashMap<Arc<str>, Series>| known.len() <= most && !known.contains_key(name);
        if is_new(&self.0.by_name.load()) {
            self.0.by_name.rcu(|known| {
                let mut known = HashMap::clone(known);
                if is_new(&known) {
                    let counts = Counts::new(L::VALUES.len());
                    known.insert(name.into(), Series(counts.into()));
                }
                known
            });
        }
    }

    /// The counters of a name, which is shown from now on.
    pub(super) fn series(&self, name: &str) -> Series {
        self.begin(name, usize::MAX);
        let found = self.0.by_name.load().get(name).cloned();
        // It may have been forgotten just now.
        found.unwrap_or_else(|| Series(Counts::new(L::VALUES.len()).into()))
    }

    /// Shows a name no longer.
    pub(super) fn forget(&self, name: &str) {
        self.0.by_name.rcu(|known| {
            let mut known = HashMap::clone(known);
            known.remove(name);
            known
        });
    }
}

impl<L> Clone for NamedCounters<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), PhantomData)
    }
}

impl<L: SecondLabel> Collector for NamedCounters<L> {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let desc = &self.0.desc;
        let by_name = self.0.by_name.load();
        let mut metrics = Vec::new();
        for (name, series) in by_name.iter() {
            for (at, value) in L::VALUES.iter().enumerate() {
                let count = series.0.total(at);
                if count > 0 || L::SHOWS_ZEROS {
                    metrics.push(counter(desc, &[name, value], count));
                }
            }
        }
        // A family without metrics is not valid.
        match metrics.is_empty() {
            true => Vec::new(),
            false => vec![family(desc, MetricType::COUNTER, metrics)],
        }
    }
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
        counts.add(bucket, 1);
        let sum = bounds.len() + 1;
        counts.change(sum, |sum| (f64::from_bits(sum) + value).to_bits());
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
        self.0.1.add(verdict as usize, 1);
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
        let metric = |(verdict, count): (&Verdict, u64)| counter(desc, &[verdict.as_str()], count);
        let metrics = Verdict::VARIANTS.iter().zip(self.counts()).map(metric);
        vec![family(desc, MetricType::COUNTER, metrics.collect())]
    }
}

/// A counter with these values of its labels.
fn counter(desc: &Desc, values: &[&str], count: u64) -> proto::Metric {
    let label = |(name, value): (&String, &&str)| {
        let mut label = proto::LabelPair::default();
        label.set_name(name.clone());
        label.set_value((*value).to_owned());
        label
    };
    let labels = desc.variable_labels.iter().zip(values).map(label);
    let mut counter = proto::Counter::default();
    counter.set_value(count as f64);
    let mut metric = proto::Metric::from_label(labels.collect());
    metric.set_counter(counter);
    metric
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
        let gauge = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for value in [0.5, 1.0, 1.5, 3.0, 4.0] {
                        histogram.observe(value);
                        counters.inc(Verdict::Forwarded);
                    }
                    (0..3).for_each(|_| gauge.inc());
                    gauge.dec();
                });
            }
        });
        assert_eq!(histogram.counts(), [40, 20, 40]);
        assert_eq!(gauge.get(), 40);
        // Another thread ends what those have begun.
        (0..40).for_each(|_| gauge.dec());
        assert_eq!(gauge.get(), 0);
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
