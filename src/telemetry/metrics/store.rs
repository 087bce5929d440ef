//! How long the store takes and how often it fails, by operation.

use super::histogram::{Histogram, REQUEST_BOUNDS, Snapshot, clamped};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Times and faults of the store's operations; filled from any thread.
#[derive(Debug)]
pub struct StoreMetrics {
    operations: Box<[Operation]>,
}

#[derive(Debug)]
struct Operation {
    name: &'static str,
    seconds: Histogram,
    errors: AtomicU64,
}

impl StoreMetrics {
    /// Counts these operations; their names are the values of the label `operation`.
    #[must_use]
    pub fn new(operations: &[&'static str]) -> Self {
        let operation = |name: &&'static str| Operation {
            name,
            seconds: Histogram::new(REQUEST_BOUNDS),
            errors: AtomicU64::new(0),
        };
        Self {
            operations: operations.iter().map(operation).collect(),
        }
    }

    /// Counts one run of `operation`; of one that [`StoreMetrics::new`] was not told, nothing.
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

    /// Each operation with its times and its faults.
    pub(super) fn snapshots(&self) -> impl Iterator<Item = (&'static str, Snapshot, u64)> {
        self.operations.iter().map(|operation| {
            let errors = operation.errors.load(Relaxed);
            (operation.name, operation.seconds.snapshot(), errors)
        })
    }
}
