//! Responses by operation and by the class of their status.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use super::text::Text;

/// The classes of status codes; a request without a response counts as `none`.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counts the responses of one operation.
#[derive(Debug)]
pub struct OperationMetrics {
    label: String,
    workers: Box<[Classes]>,
}

/// The counts of one worker, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Classes([AtomicU64; CLASSES.len()]);

/// The operations of a configuration, in its order. Their labels come from the program and from the configuration alone.
pub type AllOperations = Arc<[Arc<OperationMetrics>]>;

impl OperationMetrics {
    fn new(label: &str, workers: usize) -> Self {
        Self {
            label: label.to_owned(),
            workers: (0..workers).map(|_| Classes::default()).collect(),
        }
    }

    /// Counts a request that is done, on the thread of its worker; `status` is 0 if there is no response.
    pub fn count(&self, worker: usize, status: u16) {
        let class = match status / 100 {
            class @ 1..=5 => usize::from(class),
            _ => 0,
        };
        let counter = &self.workers[worker % self.workers.len()].0[class];
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    fn total(&self, class: usize) -> u64 {
        let counts = self.workers.iter().map(|worker| &worker.0[class]);
        counts.map(|count| count.load(Relaxed)).sum()
    }
}

/// Metrics for these labels; an operation that is among `known` goes on counting.
pub(super) fn with_labels<'l>(
    labels: impl Iterator<Item = &'l str>,
    known: &AllOperations,
    workers: usize,
) -> AllOperations {
    labels
        .map(|label| {
            let same = known.iter().find(|operation| operation.label == label);
            let new = || Arc::new(OperationMetrics::new(label, workers));
            same.map_or_else(new, Arc::clone)
        })
        .collect()
}

pub(super) fn render(operations: &AllOperations, text: &mut Text) {
    let name = "countersign_operation_requests_total";
    let help = "Requests by operation and class of the status; none is no response.";
    text.family(name, "counter", help);
    for operation in operations.iter() {
        for (class, status) in CLASSES.iter().enumerate() {
            let total = operation.total(class);
            // Most operations have responses of few classes.
            if total > 0 {
                let labels = [("operation", operation.label.as_str()), ("status", status)];
                text.sample(name, &labels, total);
            }
        }
    }
}
