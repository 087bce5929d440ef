//! How long the store takes and how often it fails, by operation.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    histogram::{Histogram, REQUEST_BOUNDS, clamped},
    text::Text,
};

/// Times and faults of the store's operations; filled from any thread.
#[derive(Debug)]
pub struct StoreMetrics {
    operations: Box<[StoreOperation]>,
}

#[derive(Debug)]
struct StoreOperation {
    name: &'static str,
    seconds: Histogram,
    errors: AtomicU64,
}

impl StoreMetrics {
    /// Counts these operations; their names are the values of the label `operation`.
    #[must_use]
    pub fn new(operations: &[&'static str]) -> Self {
        let operation = |name: &&'static str| StoreOperation {
            name,
            seconds: Histogram::new(REQUEST_BOUNDS),
            errors: AtomicU64::new(0),
        };
        Self {
            operations: operations.iter().map(operation).collect(),
        }
    }

    /// Counts one run of `operation`, which is one that [`StoreMetrics::new`] was given.
    pub fn record(&self, operation: &str, nanoseconds: u64, failed: bool) {
        let Some(operation) = self.operations.iter().find(|known| known.name == operation) else {
            debug_assert!(false, "{operation} is not counted");
            return;
        };
        operation.seconds.record_shared(clamped(nanoseconds));
        if failed {
            operation.errors.fetch_add(1, Relaxed);
        }
    }

    /// Writes the times and faults of every operation.
    pub fn render(&self, text: &mut Text) {
        let name = "countersign_store_seconds";
        text.family(name, "histogram", "Time that the store took, by operation.");
        for operation in &self.operations {
            let labels = [("operation", operation.name)];
            text.histogram(name, &labels, &operation.seconds.snapshot());
        }
        let name = "countersign_store_errors_total";
        text.family(name, "counter", "Faults of the store, by operation.");
        for operation in &self.operations {
            let labels = [("operation", operation.name)];
            text.sample(name, &labels, operation.errors.load(Relaxed));
        }
    }
}
