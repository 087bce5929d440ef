//! What `/metrics` shows.
//!
//! Each worker counts on cache lines of its own; a scrape adds them up and asks the services for the rest (nonce window,
//! caches, store). Every label value is a constant of the program or an operation of the configuration.

mod histogram;
mod operations;
mod store;
mod text;
mod verdict;
mod worker;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use arc_swap::ArcSwap;

use self::histogram::Histogram;
pub use self::{
    operations::AllOperations,
    store::StoreMetrics,
    text::Text,
    verdict::Verdict,
    worker::{HandshakeFailure, WorkerMetrics},
};
use crate::oauth::diagnosis::Mistake;

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders at each scrape what others count.
pub type ServiceMetrics = Box<dyn Fn(&mut Text) + Send + Sync>;

/// All metrics of the process.
pub struct Metrics {
    workers: Box<[WorkerMetrics]>,
    started: Instant,
    operations: ArcSwap<AllOperations>,
    source: OnceLock<ServiceMetrics>,
}

impl Metrics {
    /// Metrics for that many workers, at least one.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers.max(1)).map(|_| WorkerMetrics::new()).collect(),
            started: Instant::now(),
            operations: ArcSwap::from_pointee(AllOperations::default()),
            source: OnceLock::new(),
        }
    }

    /// The counters of a worker, counted from 0; numbers past the last begin again.
    #[must_use]
    pub fn worker(&self, index: usize) -> &WorkerMetrics {
        &self.workers[index % self.workers.len()]
    }

    /// The metrics of operations with these labels; those that are shown now go on counting.
    #[must_use]
    pub fn operations<'l>(&self, labels: impl Iterator<Item = &'l str>) -> AllOperations {
        operations::with_labels(labels, &self.operations.load(), self.workers.len())
    }

    /// Shows these operations from now on, and no others.
    pub fn show_operations(&self, operations: &AllOperations) {
        self.operations.store(Arc::new(Arc::clone(operations)));
    }

    /// Sets what renders the metrics of the services. Only the first call counts.
    pub fn watch(&self, source: ServiceMetrics) {
        let _ = self.source.set(source);
    }

    /// The connections that are open now, on all workers.
    #[must_use]
    pub fn connections(&self) -> u64 {
        let workers = self.workers.iter();
        workers.map(|worker| worker.connections.load(Relaxed)).sum()
    }

    /// Everything in the Prometheus text format ([`CONTENT_TYPE`]).
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = Text::default();
        self.render_requests(&mut text);
        self.render_previous_secrets(&mut text);
        operations::render(&self.operations.load(), &mut text);
        self.render_handshakes(&mut text);
        self.render_times(&mut text);
        self.render_gauges(&mut text);
        if let Some(source) = self.source.get() {
            source(&mut text);
        }
        text.finish()
    }

    fn render_requests(&self, text: &mut Text) {
        let total = |counter: &dyn Fn(&WorkerMetrics) -> &AtomicU64| -> u64 {
            let workers = self.workers.iter();
            workers.map(|worker| counter(worker).load(Relaxed)).sum()
        };
        let name = "countersign_requests_total";
        text.family(name, "counter", "Requests by what became of them.");
        for verdict in Verdict::ALL {
            let total = total(&|worker| &worker.requests[verdict.index()]);
            text.sample(name, &[("verdict", verdict.as_str())], total);
        }
        let name = "countersign_observed_total";
        let help = "Requests that observe let through, by what would have rejected them.";
        text.family(name, "counter", help);
        for verdict in Verdict::ALL {
            let total = total(&|worker| &worker.observed[verdict.index()]);
            // Few of these words can occur at all; the others would only fill the page.
            if total > 0 {
                text.sample(name, &[("verdict", verdict.as_str())], total);
            }
        }
        let name = "countersign_signature_diagnoses_total";
        let help = "Wrong signatures by the known mistake that makes them.";
        text.family(name, "counter", help);
        for mistake in Mistake::all() {
            let total = total(&|worker| &worker.diagnoses[mistake.index()]);
            if total > 0 {
                text.sample(name, &[("diagnosis", mistake.word())], total);
            }
        }
    }

    fn render_previous_secrets(&self, text: &mut Text) {
        let workers = self.workers.iter();
        let total = workers
            .map(|worker| worker.previous_secrets.load(Relaxed))
            .sum::<u64>();
        let name = "countersign_previous_secret_total";
        let help = "Calls signed with a secret that rotate-secret replaced, during its grace.";
        text.family(name, "counter", help);
        text.sample(name, &[], total);
    }

    fn render_handshakes(&self, text: &mut Text) {
        let name = "countersign_tls_handshake_failures_total";
        let help = "TLS handshakes of callers that failed, by the reason.";
        text.family(name, "counter", help);
        for (failure, word) in HandshakeFailure::ALL {
            let workers = self.workers.iter();
            let counts = workers.map(|worker| worker.handshakes[failure as usize].load(Relaxed));
            text.sample(name, &[("reason", word)], counts.sum::<u64>());
        }
    }

    fn render_times(&self, text: &mut Text) {
        type Pick = fn(&WorkerMetrics) -> &Histogram;
        let families: [(&str, &str, Pick); 4] = [
            (
                "countersign_verify_seconds",
                "Time that verification took.",
                |worker| &worker.verify,
            ),
            (
                "countersign_upstream_seconds",
                "Time from the request sent to the API to the head of its response.",
                |worker| &worker.upstream,
            ),
            (
                "countersign_request_seconds",
                "Time from the head of a request to the end of its response.",
                |worker| &worker.request,
            ),
            (
                "countersign_clock_skew_seconds",
                "How far consumers' clocks are ahead; below zero they are behind.",
                |worker| &worker.clock_skew,
            ),
        ];
        for (name, help, pick) in families {
            text.family(name, "histogram", help);
            let mut snapshots = self.workers.iter().map(|worker| pick(worker).snapshot());
            if let Some(mut total) = snapshots.next() {
                snapshots.for_each(|snapshot| total.add(&snapshot));
                text.histogram(name, &[], &total);
            }
        }
    }

    fn render_gauges(&self, text: &mut Text) {
        let name = "countersign_connections";
        text.gauge(name, "Open connections of callers.", self.connections());
        let name = "countersign_uptime_seconds";
        let uptime = self.started.elapsed().as_secs_f64();
        text.gauge(name, "Time since the process started.", uptime);
        let name = "countersign_build_info";
        text.family(name, "gauge", "Which version this is; always 1.");
        text.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

#[cfg(test)]
mod tests;
