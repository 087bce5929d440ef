//! Counts of which each thread has its own, so that workers that count do not wait for each other's cache lines. A scrape
//! adds them up.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};
use strum::VariantArray as _;
use thread_local::ThreadLocal;

use super::Verdict;

/// `N` counts of each thread.
#[derive(Debug, Default)]
pub(super) struct Counts<const N: usize>(ThreadLocal<ThreadCounts<N>>);

/// The counts of one thread, on cache lines of their own.
#[derive(Debug)]
#[repr(align(64))]
struct ThreadCounts<const N: usize>([AtomicU64; N]);

impl<const N: usize> Counts<N> {
    /// Changes a count of this thread.
    fn change(&self, at: usize, change: impl FnOnce(u64) -> u64) {
        let ThreadCounts(counts) = self
            .0
            .get_or(|| ThreadCounts([const { AtomicU64::new(0) }; N]));
        // No other thread writes it, so that the processor need not lock its line.
        counts[at].store(change(counts[at].load(Relaxed)), Relaxed);
    }

    /// Counts one more.
    pub(super) fn inc(&self, at: usize) {
        self.change(at, |count| count + 1);
    }

    /// The count of each thread.
    fn each(&self, at: usize) -> impl Iterator<Item = u64> {
        let threads = self.0.iter();
        threads.map(move |ThreadCounts(counts)| counts[at].load(Relaxed))
    }

    /// The count of all threads.
    fn total(&self, at: usize) -> u64 {
        self.each(at).sum()
    }

    fn totals(&self) -> impl Iterator<Item = u64> {
        (0..N).map(|at| self.total(at))
    }
}

/// A counter.
#[derive(Debug, Default)]
pub struct Counter(Counts<1>);

impl Counter {
    /// Counts one more.
    pub fn inc(&self) {
        self.0.inc(0);
    }

    /// What all threads have counted.
    pub fn get(&self) -> u64 {
        self.0.total(0)
    }
}

/// A counter for each [`Verdict`].
#[derive(Debug, Clone)]
pub(super) struct VerdictCounters {
    counts: Arc<Counts<{ Verdict::VARIANTS.len() }>>,
    shows_zeros: bool,
}

impl VerdictCounters {
    pub(super) fn new(shows_zeros: bool) -> Self {
        let counts = Arc::default();
        Self {
            counts,
            shows_zeros,
        }
    }

    /// Counts one more.
    pub(super) fn inc(&self, verdict: Verdict) {
        self.counts.inc(verdict as usize);
    }

    /// The counts, in the order of [`Verdict::VARIANTS`].
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.counts.totals()
    }
}

impl EncodeMetric for VerdictCounters {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (verdict, count) in Verdict::VARIANTS.iter().zip(self.counts()) {
            if count > 0 || self.shows_zeros {
                encode_counter(&mut encoder, [("verdict", verdict.as_str())], count)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }

    fn is_empty(&self) -> bool {
        !self.shows_zeros && self.counts().all(|count| count == 0)
    }
}

/// Counters by a name, which is known while the process runs, and by one of `N` other values.
#[derive(Debug, Clone)]
pub(super) struct NamedCounters<const N: usize>(Arc<Named<N>>);

#[derive(Debug)]
struct Named<const N: usize> {
    labels: [&'static str; 2],
    /// The values of the second label.
    values: [&'static str; N],
    shows_zeros: bool,
    /// Found without a lock.
    by_name: ArcSwap<HashMap<Arc<str>, Series<N>>>,
}

/// The counters of one name.
type Series<const N: usize> = Arc<Counts<N>>;

impl<const N: usize> NamedCounters<N> {
    pub(super) fn new(
        labels: [&'static str; 2],
        values: [&'static str; N],
        shows_zeros: bool,
    ) -> Self {
        Self(Arc::new(Named {
            labels,
            values,
            shows_zeros,
            by_name: ArcSwap::default(),
        }))
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
        by_name.get(name).map_or(0, |series| series.total(at))
    }

    /// The counts of all names with the second label at this position.
    pub(super) fn counts(&self, at: usize) -> HashMap<Arc<str>, u64> {
        let by_name = self.0.by_name.load();
        let counts = by_name.iter();
        counts
            .map(|(name, series)| (Arc::clone(name), series.total(at)))
            .collect()
    }

    /// Gives a name counters unless more than `most` have some.
    pub(super) fn begin(&self, name: &str, most: usize) {
        let is_new =
            |known: &HashMap<Arc<str>, Series<N>>| known.len() <= most && !known.contains_key(name);
        if is_new(&self.0.by_name.load()) {
            self.0.by_name.rcu(|known| {
                let mut known = HashMap::clone(known);
                if is_new(&known) {
                    known.insert(name.into(), Series::default());
                }
                known
            });
        }
    }

    /// The counters of a name, which is shown from now on.
    pub(super) fn series(&self, name: &str) -> Series<N> {
        self.begin(name, usize::MAX);
        // It may have been forgotten just now.
        let found = self.0.by_name.load().get(name).cloned();
        found.unwrap_or_default()
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

impl<const N: usize> EncodeMetric for NamedCounters<N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Named { labels, values, .. } = &*self.0;
        for (name, series) in self.0.by_name.load().iter() {
            for (value, count) in values.iter().zip(series.totals()) {
                if count > 0 || self.0.shows_zeros {
                    let labels = [(labels[0], &**name), (labels[1], *value)];
                    encode_counter(&mut encoder, labels, count)?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }

    fn is_empty(&self) -> bool {
        self.0.by_name.load().is_empty()
    }
}

fn encode_counter<const L: usize>(
    encoder: &mut MetricEncoder<'_>,
    labels: [(&str, &str); L],
    count: u64,
) -> fmt::Result {
    let mut encoder = encoder.encode_family(&labels)?;
    encoder.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

/// The most bounds of a histogram.
const MAX_BOUNDS: usize = 16;
/// The place of the sum, as the bits of a float.
const SUM: usize = MAX_BOUNDS + 1;

/// A histogram.
#[derive(Debug, Clone)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, one for values above all of them, and at [`SUM`] the sum.
    counts: Arc<Counts<{ SUM + 1 }>>,
}

impl Histogram {
    /// A histogram with at most [`MAX_BOUNDS`].
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        debug_assert!(bounds.len() <= MAX_BOUNDS);
        let counts = Arc::default();
        Self { bounds, counts }
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let Self { bounds, counts } = self;
        let bucket = bounds.iter().position(|bound| value <= *bound);
        counts.inc(bucket.unwrap_or(bounds.len()));
        counts.change(SUM, |sum| (f64::from_bits(sum) + value).to_bits());
    }

    /// The number of values of each bound alone, and of those above all bounds.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.counts.totals().take(self.bounds.len() + 1).collect()
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets = Vec::from_iter(bounds.zip(self.counts()));
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sums = self.counts.each(SUM).map(f64::from_bits);
        let sum = sums.fold(0.0, |sum, of_thread| sum + of_thread);
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::prometheus_text, registry::Registry};

    use super::*;

    #[test]
    fn adds_up_what_threads_count_at_once() {
        let histogram = Histogram::new(&[1.0, 2.0]);
        let counters = VerdictCounters::new(true);
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for value in [0.5, 1.0, 1.5, 3.0, 4.0] {
                        histogram.observe(value);
                        counters.inc(Verdict::Forwarded);
                    }
                    (0..3).for_each(|_| counter.inc());
                });
            }
        });
        assert_eq!(histogram.counts(), [40, 20, 40]);
        assert_eq!(counter.get(), 60);
        let counted = counters.counts().nth(Verdict::Forwarded as usize);
        assert_eq!(counted, Some(100));
        assert_eq!(counters.counts().sum::<u64>(), 100);
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register("seconds", "help", histogram);
        prometheus_text::encode(&mut text, &registry).unwrap();
        for line in [
            "seconds_bucket{le=\"1\"} 40",
            "seconds_bucket{le=\"2\"} 60",
            "seconds_bucket{le=\"+Inf\"} 100",
            "seconds_sum 200.0",
            "seconds_count 100",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
    }
}
