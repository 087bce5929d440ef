//! What `/metrics` tells.
//!
//! Each worker counts on cache lines of its own; a scrape adds them up and asks whoever keeps the rest (nonce window,
//! caches, store). Every label value is a constant of the program.

mod histogram;
mod store;
mod text;
mod verdict;
mod worker;

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::Ordering::Relaxed},
    time::Instant,
};

use self::{histogram::Histogram, text::Text};
pub use self::{store::StoreMetrics, verdict::Verdict, worker::WorkerMetrics};

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Asked at each scrape for a number.
pub type Reading = Box<dyn Fn() -> u64 + Send + Sync>;

/// One counter of a cache: how often it answered in one way.
pub struct CacheCounter {
    /// Which cache: `consumer`, `access_token`, …
    pub cache: &'static str,
    /// Which answer: `hit`, `miss`, …
    pub result: &'static str,
    /// How often so far.
    pub reading: Reading,
}

impl fmt::Debug for CacheCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheCounter({}, {})", self.cache, self.result)
    }
}

/// All metrics of the process.
pub struct Metrics {
    workers: Box<[WorkerMetrics]>,
    started: Instant,
    nonces: OnceLock<Reading>,
    nonce_window_bytes: OnceLock<Reading>,
    caches: OnceLock<Vec<CacheCounter>>,
    store: OnceLock<Arc<StoreMetrics>>,
}

impl Metrics {
    /// Metrics for that many workers, at least one.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers.max(1)).map(|_| WorkerMetrics::new()).collect(),
            started: Instant::now(),
            nonces: OnceLock::new(),
            nonce_window_bytes: OnceLock::new(),
            caches: OnceLock::new(),
            store: OnceLock::new(),
        }
    }

    /// The counters of a worker, counted from 0; numbers past the last begin again.
    #[must_use]
    pub fn worker(&self, index: usize) -> &WorkerMetrics {
        &self.workers[index % self.workers.len()]
    }

    /// Says who knows the number of nonces in the window and its size in bytes. The first to say so stays.
    pub fn watch_nonces(&self, nonces: Reading, window_bytes: Reading) {
        let _ = self.nonces.set(nonces);
        let _ = self.nonce_window_bytes.set(window_bytes);
    }

    /// Says who counts the answers of the caches. The first to say so stays.
    pub fn watch_caches(&self, counters: Vec<CacheCounter>) {
        let _ = self.caches.set(counters);
    }

    /// Says who times the store. The first to say so stays.
    pub fn watch_store(&self, store: Arc<StoreMetrics>) {
        let _ = self.store.set(store);
    }

    /// The connections that are open now, on all workers.
    #[must_use]
    pub fn connections(&self) -> u64 {
        let open = self
            .workers
            .iter()
            .map(|worker| worker.connections.load(Relaxed));
        open.sum()
    }

    /// Everything in the Prometheus text format ([`CONTENT_TYPE`]).
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = Text::default();
        self.render_requests(&mut text);
        self.render_times(&mut text);
        self.render_gauges(&mut text);
        self.render_caches(&mut text);
        self.render_store(&mut text);
        text.finish()
    }

    fn render_requests(&self, text: &mut Text) {
        let name = "countersign_requests_total";
        text.family(name, "counter", "Requests by what became of them.");
        for verdict in Verdict::ALL {
            let of_worker = |worker: &WorkerMetrics| worker.requests[verdict.index()].load(Relaxed);
            let total: u64 = self.workers.iter().map(of_worker).sum();
            text.sample(name, &[("verdict", verdict.as_str())], total);
        }
        let name = "countersign_observed_total";
        let help = "Requests let through by observe, by what they would have been refused with.";
        text.family(name, "counter", help);
        for verdict in Verdict::ALL {
            let of_worker = |worker: &WorkerMetrics| worker.observed[verdict.index()].load(Relaxed);
            let total: u64 = self.workers.iter().map(of_worker).sum();
            // Few of these words can occur at all; the others would only fill the page.
            if total > 0 {
                text.sample(name, &[("verdict", verdict.as_str())], total);
            }
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
                "Time from the request sent to the API to the head of its answer.",
                |worker| &worker.upstream,
            ),
            (
                "countersign_request_seconds",
                "Time from the head of a request to the end of its answer.",
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
        text.family(name, "gauge", "Open connections of callers.");
        text.sample(name, &[], self.connections());
        let readings = [
            ("countersign_nonces", "Nonces in the window.", &self.nonces),
            (
                "countersign_nonce_window_bytes",
                "Memory of the nonce window.",
                &self.nonce_window_bytes,
            ),
        ];
        for (name, help, reading) in readings {
            if let Some(reading) = reading.get() {
                text.family(name, "gauge", help);
                text.sample(name, &[], reading());
            }
        }
        let name = "countersign_uptime_seconds";
        text.family(name, "gauge", "Time since the process started.");
        text.sample(name, &[], self.started.elapsed().as_secs_f64());
        let name = "countersign_build_info";
        text.family(name, "gauge", "Which version this is; always 1.");
        text.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }

    fn render_caches(&self, text: &mut Text) {
        let Some(counters) = self.caches.get() else {
            return;
        };
        let name = "countersign_cache_requests_total";
        text.family(name, "counter", "Look-ups in the caches by their result.");
        for counter in counters {
            let labels = [("cache", counter.cache), ("result", counter.result)];
            text.sample(name, &labels, (counter.reading)());
        }
    }

    fn render_store(&self, text: &mut Text) {
        let Some(store) = self.store.get() else {
            return;
        };
        let name = "countersign_store_seconds";
        text.family(name, "histogram", "Time that the store took, by operation.");
        for (operation, snapshot, _) in store.snapshots() {
            text.histogram(name, &[("operation", operation)], &snapshot);
        }
        let name = "countersign_store_errors_total";
        text.family(name, "counter", "Faults of the store, by operation.");
        for (operation, _, errors) in store.snapshots() {
            text.sample(name, &[("operation", operation)], errors);
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
