//! Histograms with fixed buckets, counted in nanoseconds and rendered in seconds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most bounds that a histogram can have; one more bucket takes what lies above the last.
const MAX_BOUNDS: usize = 16;

const MICROSECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;

/// From below a cache hit to a store that hangs.
pub(super) const VERIFY_BOUNDS: &[i64] = &scaled(
    MICROSECOND,
    [
        1, 2, 5, 10, 20, 50, 100, 250, 1_000, 5_000, 25_000, 100_000, 500_000, 2_000_000,
    ],
);

/// From an API on the same machine to the longest time-outs.
pub(super) const REQUEST_BOUNDS: &[i64] = &scaled(
    100 * MICROSECOND,
    [
        5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000,
        300_000, 600_000,
    ],
);

/// Both ways: below zero the consumer's clock is behind, above it ahead.
pub(super) const SKEW_BOUNDS: &[i64] = &scaled(
    SECOND,
    [
        -3_600, -600, -300, -120, -30, -5, -1, 0, 1, 5, 30, 120, 300, 600, 3_600,
    ],
);

const fn scaled<const N: usize>(unit: i64, mut bounds: [i64; N]) -> [i64; N] {
    let mut index = 0;
    while index < N {
        bounds[index] *= unit;
        index += 1;
    }
    bounds
}

/// A histogram that one writer fills at the cost of a few plain stores, or several by [`Histogram::record_shared`].
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [i64],
    /// By magnitude: how many bounds are below each value of it.
    first: [u8; MAGNITUDES],
    buckets: [AtomicU64; MAX_BOUNDS + 1],
    /// The bits of an `f64`: an integer of nanoseconds would run over within days of ten thousand slow requests.
    sum: AtomicU64,
}

/// How many magnitudes there are.
const MAGNITUDES: usize = 64;

/// How many bits a value has; 0 for 0 and everything below.
fn magnitude(value: i64) -> usize {
    (u64::BITS - value.max(0).leading_zeros()) as usize
}

/// What a histogram holds at one moment.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) bounds: &'static [i64],
    /// Not cumulative; the last one is above every bound.
    pub(super) buckets: Vec<u64>,
    pub(super) sum_seconds: f64,
}

impl Histogram {
    /// `bounds` are upper bounds, inclusive, ascending, at most [`MAX_BOUNDS`] of them; more would share the last bucket.
    pub(super) fn new(bounds: &'static [i64]) -> Self {
        debug_assert!(bounds.len() <= MAX_BOUNDS && bounds.is_sorted());
        let bounds = &bounds[..bounds.len().min(MAX_BOUNDS)];
        let below = |bits: usize| match bits {
            0 => 0,
            bits => bounds
                .iter()
                .filter(|&&bound| bound < 1 << (bits - 1))
                .count(),
        };
        Self {
            bounds,
            first: std::array::from_fn(|bits| u8::try_from(below(bits)).unwrap_or(u8::MAX)),
            buckets: Default::default(),
            sum: AtomicU64::new(0f64.to_bits()),
        }
    }

    /// Counts a value, in nanoseconds. One thread at a time: of two, one count may be lost.
    pub(super) fn record(&self, nanoseconds: i64) {
        let bucket = &self.buckets[self.bucket(nanoseconds)];
        bucket.store(bucket.load(Relaxed) + 1, Relaxed);
        let sum = f64::from_bits(self.sum.load(Relaxed)) + nanoseconds as f64;
        self.sum.store(sum.to_bits(), Relaxed);
    }

    /// Counts a value, in nanoseconds, from any thread.
    pub(super) fn record_shared(&self, nanoseconds: i64) {
        self.buckets[self.bucket(nanoseconds)].fetch_add(1, Relaxed);
        self.sum.update(Relaxed, Relaxed, |bits| {
            (f64::from_bits(bits) + nanoseconds as f64).to_bits()
        });
    }

    /// The bucket of a value: no bound before the first of its magnitude can be the one.
    fn bucket(&self, nanoseconds: i64) -> usize {
        let mut bucket = usize::from(self.first[magnitude(nanoseconds)]);
        while self
            .bounds
            .get(bucket)
            .is_some_and(|&bound| nanoseconds > bound)
        {
            bucket += 1;
        }
        bucket
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let buckets = &self.buckets[..=self.bounds.len()];
        Snapshot {
            bounds: self.bounds,
            buckets: buckets.iter().map(|bucket| bucket.load(Relaxed)).collect(),
            sum_seconds: seconds(f64::from_bits(self.sum.load(Relaxed))),
        }
    }
}

impl Snapshot {
    /// Adds what another histogram of the same bounds holds.
    pub(super) fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.sum_seconds += other.sum_seconds;
    }
}

/// Nanoseconds as seconds.
pub(super) fn seconds(nanoseconds: f64) -> f64 {
    nanoseconds / 1e9
}

/// Nanoseconds as they are recorded, at most what fits.
pub(super) fn clamped(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn counts_a_bound_into_its_own_bucket() {
        let histogram = Histogram::new(&[-10, 0, 10]);
        for value in [i64::MIN, -11, -10, -9, 0, 1, 10, 11, i64::MAX] {
            histogram.record(value);
        }
        assert_eq!(histogram.snapshot().buckets, [3, 2, 2, 2]);
    }

    #[test]
    fn loses_nothing_between_threads_when_shared() {
        let histogram = Arc::new(Histogram::new(VERIFY_BOUNDS));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let histogram = Arc::clone(&histogram);
                thread::spawn(move || (0..1_000).for_each(|_| histogram.record_shared(1_000)))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.buckets[0], 4_000);
        assert!((snapshot.sum_seconds - 0.004).abs() < 1e-12);
    }

    #[test]
    fn keeps_every_set_of_bounds_in_order() {
        for bounds in [VERIFY_BOUNDS, REQUEST_BOUNDS, SKEW_BOUNDS] {
            assert!(bounds.len() <= MAX_BOUNDS);
            assert!(bounds.is_sorted_by(|low, high| low < high));
        }
    }
}
