//! The metrics of `/metrics`, in the Prometheus text format.
//!
//! Every label value is a constant of the program, an operation of the configuration, or the key of a consumer that has
//! signed correctly, of which there are at most [`MAX_CONSUMERS`]. No caller can add one.

mod api_health;
pub mod per_thread;
mod process;

use std::{
    sync::{Arc, OnceLock, atomic::AtomicU64},
    time::{Duration, Instant},
};

/// The media type of [`Metrics::render`].
pub use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use prometheus_client::{
    encoding::prometheus_text,
    metrics::{counter::Counter, family, gauge::Gauge},
    registry::Registry,
};

use self::{
    api_health::ApiHealth,
    per_thread::{Counts, Histogram, NamedCounters, VerdictCounters},
};
pub use super::calls::verdict::{Outcome, Verdict};
use super::{
    calls::{
        facts::{Door, OtherSecret},
        record::CallRecord,
    },
    charts::RequestCounts,
};
use crate::{base::clock::UnixTime, telemetry::calls::consumer_calls::AcceptedCalls};

/// Upper bounds in seconds, from below a cache hit to a store that hangs.
const VERIFY_BOUNDS: &[f64] = &[
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2.5e-4, 1e-3, 5e-3, 2.5e-2, 0.1, 0.5, 2.0,
];

/// Upper bounds of [`Metrics::request`], in seconds, from an API on the same machine to the longest time-outs.
pub const REQUEST_BOUNDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
];

/// Upper bounds in seconds: below zero the consumer's clock is slow, above it fast.
const SKEW_BOUNDS: &[f64] = &[
    -3600.0, -600.0, -300.0, -120.0, -30.0, -5.0, -1.0, 0.0, 1.0, 5.0, 30.0, 120.0, 300.0, 600.0,
    3600.0,
];

/// The classes of status codes; a request without a response counts as `none`.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The most consumers with series of their own: the first that sign correctly in the life of the process.
pub const MAX_CONSUMERS: usize = 1_000;

/// The label of all other consumers; a consumer with this key is counted among them.
const OTHER_CONSUMERS: &str = "all others";

/// The results of a consumer's requests.
const RESULTS: [&str; 2] = ["accepted", "rejected"];

/// The doors of consumers, in the order of [`Door`].
const DOORS: [&str; 2] = ["signature", "bearer"];

/// The place of accepted requests in [`RESULTS`].
const ACCEPTED: usize = 0;

/// The counters of an operation, once they were found.
#[derive(Default)]
pub struct KnownOperation(Option<Arc<Counts<{ CLASSES.len() }>>>);

/// The name and value of a label.
type Label = (&'static str, &'static str);
/// Metrics by labels whose values the program names.
pub type Family<const LABELS: usize, M> = family::Family<[Label; LABELS], M>;

/// Declares [`Metrics`]: a row for each metric, with its help text, field, type and name, and how it begins unless with its
/// default.
macro_rules! metrics {
    ($(
        #[doc = $help:literal]
        $visibility:vis $field:ident: $metric:ty = $name:literal $(with $first:expr)?;
    )+) => {
        /// All metrics of the process.
        pub struct Metrics {
            $(#[doc = $help] $visibility $field: $metric,)+
            registry: Registry,
            started: Instant,
            /// The durations of requests that failed.
            failed: Histogram,
            api: ApiHealth,
            /// Sets the metrics that others count, before each scrape.
            pub refresh: OnceLock<Box<dyn Fn(&Self) + Send + Sync>>,
        }

        impl Default for Metrics {
            /// Everything at zero.
            fn default() -> Self {
                let mut registry = Registry::default();
                $(
                    let $field: $metric = metrics!(@first $($first)?);
                    // The library adds the end of both.
                    let name = $name.strip_suffix("_total").unwrap_or($name);
                    let help = $help.trim_start().trim_end_matches('.');
                    registry.register(name, help, $field.clone());
                )+
                Self {
                    registry,
                    started: Instant::now(),
                    failed: Histogram::new(REQUEST_BOUNDS),
                    api: ApiHealth::default(),
                    refresh: OnceLock::new(),
                    $($field,)+
                }
                .with_first_values()
            }
        }
    };
    (@first) => { Default::default() };
    (@first $first:expr) => { $first };
}

metrics! {
    /// Which version this is; always 1.
    build: Family<1, Gauge> = "countersign_build_info";
    /// Time since the process started.
    uptime: Gauge<f64, AtomicU64> = "countersign_uptime_seconds";
    /// 1 while signed calls can be served and the process does not drain, as /readyz.
    pub ready: Gauge = "countersign_ready";
    /// 1 while this cause stops signed calls.
    pub not_ready: Family<1, Gauge> = "countersign_not_ready";
    /// 1 while this is wrong without stopping signed calls.
    pub degraded: Family<1, Gauge> = "countersign_degraded";
    /// Reloads of configuration or certificates by their result: applied or failed.
    reloads: Family<1, Counter> = "countersign_reloads_total";
    /// 1 if the last reload was applied, or there was none; 0 if the files have a mistake.
    reloaded: Gauge = "countersign_last_reload_successful";
    /// Time until a certificate expires, by its file.
    pub certificates: family::Family<[(&'static str, String); 1], Gauge> = "countersign_certificate_remaining_seconds";
    /// Lines of the log that were dropped because standard error was not read.
    pub dropped_lines: Counter = "countersign_log_lines_dropped_total";
    /// Traces by result: exported, dropped because too many waited, or failed at the collector.
    pub traces: Family<1, Counter> = "countersign_traces_total";

    /// Open connections of callers.
    pub connections: Gauge = "countersign_connections";
    /// Connections without a permitted request that were closed to make room for others.
    pub connections_evicted: Counter = "countersign_connections_evicted_total";
    /// Connections that got 503 because there were too many.
    pub connections_refused: Counter = "countersign_connections_refused_total";
    /// TLS handshakes of callers that failed, by the reason.
    pub handshakes: Family<1, Counter> = "countersign_tls_handshake_failures_total";

    /// Requests by their outcome.
    requests: VerdictCounters = "countersign_requests_total" with VerdictCounters::new(true);
    /// Requests that observe let through, by what would have rejected them.
    observed: VerdictCounters = "countersign_observed_total" with VerdictCounters::new(false);
    /// Requests by operation and class of the status; none is no response.
    operations: NamedCounters<{ CLASSES.len() }> = "countersign_operation_requests_total"
        // Most operations have responses of few classes.
        with NamedCounters::new(["operation", "status"], CLASSES, false);
    /// Signed requests by consumer and result: accepted or rejected.
    consumers: NamedCounters<{ RESULTS.len() }> = "countersign_consumer_requests_total"
        with NamedCounters::new(["consumer", "result"], RESULTS, true);
    /// Accepted requests by consumer and door: signature or bearer; only where Bearer tokens are accepted.
    doors: NamedCounters<{ DOORS.len() }> = "countersign_door_requests_total"
        with NamedCounters::new(["consumer", "door"], DOORS, true);
    /// Calls signed with the previous secret of a consumer, during its grace.
    pub previous_secrets: Counter = "countersign_previous_secret_total";
    /// Calls whose response named the end of their access token (tokens.announce).
    pub ending_tokens: Counter = "countersign_ending_tokens_total";
    /// Consumers on which an operator has to decide: users ask for them, or for other callbacks.
    pub registrations_waiting: Gauge = "countersign_registrations_waiting";
    /// Verified calls that deviate from RFC 5849, by the deviation that their consumer is allowed.
    deviations: Family<1, Counter> = "countersign_deviations_total";
    /// Wrong signatures by the known mistake that makes them.
    diagnoses: Family<1, Counter> = "countersign_signature_diagnoses_total";
    /// How far consumers' clocks are ahead; below zero they are behind.
    clock_skew: Histogram = "countersign_clock_skew_seconds" with Histogram::new(SKEW_BOUNDS);

    /// Time that verification took.
    pub verify: Histogram = "countersign_verify_seconds" with Histogram::new(VERIFY_BOUNDS);
    /// Time from the request sent to the API to the head of its response.
    pub upstream: Histogram = "countersign_upstream_seconds" with Histogram::new(REQUEST_BOUNDS);
    /// Time from the head of a request to the end of its response.
    pub request: Histogram = "countersign_request_seconds" with Histogram::new(REQUEST_BOUNDS);

    /// Time that the store took, by operation.
    store_seconds: Family<1, Histogram> = "countersign_store_seconds"
        with Family::new_with_constructor(|| Histogram::new(REQUEST_BOUNDS));
    /// Faults of the store, by operation.
    store_errors: Family<1, Counter> = "countersign_store_errors_total";
    /// Lookups in the caches by their result.
    pub cache_requests: Family<2, Counter> = "countersign_cache_requests_total";
    /// Nonces in the window.
    pub nonces: Gauge = "countersign_nonces";
    /// Memory of the nonce window.
    pub nonce_window_bytes: Gauge = "countersign_nonce_window_bytes";

    /// Total user and system CPU time spent in seconds.
    cpu: Counter<f64, AtomicU64> = "process_cpu_seconds_total";
    /// Number of open file descriptors.
    open_fds: Gauge = "process_open_fds";
    /// Maximum number of open file descriptors.
    max_fds: Gauge = "process_max_fds";
    /// Virtual memory size in bytes.
    virtual_memory: Gauge = "process_virtual_memory_bytes";
    /// Resident memory size in bytes.
    resident_memory: Gauge = "process_resident_memory_bytes";
    /// Start time of the process since unix epoch in seconds.
    start_time: Gauge = "process_start_time_seconds";
    /// Number of OS threads in the process.
    threads: Gauge = "process_threads";
}

impl Metrics {
    /// Shows the series whose labels are known from the start.
    fn with_first_values(self) -> Self {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        self.build.get_or_create(&version).set(1);
        self.start_time.set(process::started().unwrap_or_default());
        self.reloaded.set(1);
        self.consumers.begin(OTHER_CONSUMERS, 1);
        self.doors.begin(OTHER_CONSUMERS, 1);
        for (family, results) in [
            (&self.reloads, &["applied", "failed"][..]),
            (&self.traces, &["exported", "dropped", "failed"]),
        ] {
            for result in results {
                family.get_or_create_owned(&[("result", result)]);
            }
        }
        self
    }

    /// Counts a request that is done.
    pub fn request(&self, verdict: Verdict) {
        self.requests.inc(verdict);
    }

    /// Counts what few calls have: accepted deviations, a previous secret, a wrong clock or signature, and the verdict that
    /// would have rejected a call that `observe` let through, which itself counts as [`Verdict::Observed`].
    pub fn rare(&self, call: &CallRecord<'_>) {
        for deviation in call.deviation.iter() {
            let deviation = [("deviation", deviation.as_str())];
            self.deviations.get_or_create(&deviation).inc();
        }
        if call.secret == Some(OtherSecret::Previous) {
            self.previous_secrets.inc();
        }
        if let Some(seconds) = call.skew_seconds {
            self.clock_skew(seconds);
        }
        if let Some(word) = call.diagnosis.word() {
            self.diagnoses.get_or_create(&[("diagnosis", word)]).inc();
        }
        if let Some(verdict) = call.observed() {
            self.observed.inc(verdict);
        }
        if let (Outcome::Failed, Some(took)) = (call.verdict.outcome(), call.ms) {
            self.failed.observe(took.as_secs_f64());
        }
    }

    /// Notes a call that failed because of the API, and says whether the API is away (`ApiHealth`).
    pub fn api_failed(&self, is_unreachable: bool, now: UnixTime) -> bool {
        self.api.failed(self.answers(), is_unreachable, now)
    }

    /// Whether the API has answered since the last call that failed because of it.
    pub fn api_answers(&self, now: UnixTime) -> bool {
        self.api.answers(self.answers(), now)
    }

    fn answers(&self) -> u64 {
        self.upstream.counts().iter().sum()
    }

    /// The requests that `observe` let through and `enforce` would reject.
    pub fn all_observed(&self) -> u64 {
        self.observed.counts().sum()
    }

    /// Counts a signed request of `consumer`, a key that anyone may have written unless `is_verified`. Only a verified one
    /// begins a series.
    pub fn consumer(&self, consumer: &str, is_verified: bool, is_rejected: bool) {
        let at = usize::from(is_rejected);
        if self.consumers.inc(consumer, at) {
            return;
        }
        if is_verified {
            // One of the names is that of all others.
            self.consumers.begin(consumer, MAX_CONSUMERS);
        }
        let _ = self.consumers.inc(consumer, at) || self.consumers.inc(OTHER_CONSUMERS, at);
    }

    /// Counts an accepted request of a verified consumer by its door.
    pub fn door(&self, consumer: &str, door: Door) {
        let at = door as usize;
        if !self.doors.inc(consumer, at) {
            self.doors.begin(consumer, MAX_CONSUMERS);
            let _ = self.doors.inc(consumer, at) || self.doors.inc(OTHER_CONSUMERS, at);
        }
    }

    /// Counts a reload of the configuration or of certificates.
    pub fn reloaded(&self, is_applied: bool) {
        let result = if is_applied { "applied" } else { "failed" };
        self.reloads.get_or_create(&[("result", result)]).inc();
        self.reloaded.set(is_applied.into());
    }

    /// Counts the seconds by which a consumer's clock is ahead of ours; below zero it is slow. Anybody can send any
    /// timestamp, so more than a day counts as a day: the sum stays useful.
    pub fn clock_skew(&self, seconds: i64) {
        let seconds = seconds.clamp(-86_400, 86_400);
        self.clock_skew.observe(seconds as f64);
    }

    /// Counts a request by its operation, which the program or the configuration names; `status` is 0 if there is no
    /// response. `known` keeps the counters of the operation.
    pub fn operation(&self, operation: &str, status: u16, known: &mut KnownOperation) {
        let class = usize::from(status / 100);
        let class = if class < CLASSES.len() { class } else { 0 };
        let find = || self.operations.series(operation);
        known.0.get_or_insert_with(find).inc(class);
    }

    /// No longer shows an operation, nor what is counted for it with counters that are known already.
    pub fn forget_operation(&self, operation: &str) {
        self.operations.forget(operation);
    }

    /// Counts a use case of the store.
    pub fn store(&self, use_case: &'static str, took: Duration, failed: bool) {
        let labels = &[("operation", use_case)];
        let seconds = self.store_seconds.get_or_create(labels);
        seconds.observe(took.as_secs_f64());
        let errors = self.store_errors.get_or_create(labels);
        errors.inc_by(failed.into());
    }

    /// The counters of requests as they are now.
    pub fn counts(&self) -> RequestCounts {
        RequestCounts {
            verdicts: self.requests.counts().collect(),
            latency: (self.request.counts().iter().zip(self.failed.counts()))
                .map(|(all, failed)| all.saturating_sub(failed))
                .collect(),
            would_be_rejected: self.all_observed(),
        }
    }

    /// The accepted calls of a consumer since the process started; 0 for one that has no series of its own.
    pub fn accepted_of(&self, consumer: &str) -> u64 {
        self.consumers.count_of(consumer, ACCEPTED)
    }

    /// The accepted calls of each consumer that has a series of its own, since the process started.
    pub fn accepted_calls(&self) -> AcceptedCalls {
        self.consumers.counts(ACCEPTED)
    }

    /// The same of those that came with a Bearer token.
    pub fn bearer_calls(&self) -> AcceptedCalls {
        self.doors.counts(Door::Bearer as usize)
    }

    /// Everything in the Prometheus text format ([`CONTENT_TYPE`]).
    pub fn render(&self) -> String {
        if let Some(refresh) = self.refresh.get() {
            refresh(self);
        }
        process::refresh(self);
        self.uptime.set(self.started.elapsed().as_secs_f64());
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    /// Whether the page has exactly this line.
    fn shows(metrics: &Metrics, line: &str) -> bool {
        metrics.render().lines().any(|shown| shown == line)
    }

    #[test]
    fn shows_every_verdict_before_anything_happens() {
        let metrics = Metrics::default();
        for verdict in Verdict::VARIANTS {
            let verdict = verdict.as_str();
            let line = format!("countersign_requests_total{{verdict=\"{verdict}\"}} 0");
            assert!(shows(&metrics, &line), "{line}");
        }
        metrics.request(Verdict::NonceUsed);
        let line = "countersign_requests_total{verdict=\"nonce_used\"} 1";
        assert!(shows(&metrics, line), "{}", metrics.render());
    }

    #[test]
    fn histograms_are_in_seconds_and_a_bound_is_in_its_own_bucket() {
        let metrics = Metrics::default();
        metrics.verify.observe(2e-6);
        metrics.clock_skew(-2);
        metrics.clock_skew(i64::MAX);
        metrics.store("exchange", Duration::from_secs(1), true);
        for line in [
            "countersign_verify_seconds_bucket{le=\"1e-06\"} 0",
            "countersign_verify_seconds_bucket{le=\"2e-06\"} 1",
            "countersign_clock_skew_seconds_bucket{le=\"-5\"} 0",
            "countersign_clock_skew_seconds_bucket{le=\"-1\"} 1",
            "countersign_clock_skew_seconds_sum 86398.0",
            "countersign_store_seconds_bucket{operation=\"exchange\",le=\"1\"} 1",
            "countersign_store_errors_total{operation=\"exchange\"} 1",
        ] {
            assert!(shows(&metrics, line), "{line}\n{}", metrics.render());
        }
    }

    #[test]
    fn counts_are_those_of_verdicts_and_of_each_bound_alone() {
        let metrics = Metrics::default();
        metrics.request(Verdict::Anonymous);
        for seconds in [0.0001, 0.0005, 0.002, 100.0] {
            metrics.request.observe(seconds);
        }
        let counts = metrics.counts();
        assert_eq!(counts.verdicts[Verdict::Anonymous as usize], 1);
        assert_eq!(counts.total(), 1);
        assert_eq!(counts.latency.len(), REQUEST_BOUNDS.len() + 1);
        assert_eq!(counts.latency[..3], [2, 0, 1]);
        assert_eq!(counts.latency.last(), Some(&1));
        assert_eq!(counts.latency.iter().sum::<u64>(), 4);
    }

    #[test]
    fn forgets_an_operation_that_a_reload_removed() {
        let metrics = Metrics::default();
        for status in [200, 204, 404, 0, 999] {
            metrics.operation("/a", status, &mut KnownOperation::default());
            metrics.operation("/b", status, &mut KnownOperation::default());
        }
        metrics.forget_operation("/b");
        for (status, count) in [("2xx", 2), ("4xx", 1), ("none", 2)] {
            let labels = format!("{{operation=\"/a\",status=\"{status}\"}}");
            let line = format!("countersign_operation_requests_total{labels} {count}");
            assert!(shows(&metrics, &line), "{}", metrics.render());
        }
        assert!(!metrics.render().contains("/b"));
    }

    #[test]
    fn only_verified_consumers_have_series_and_only_so_many() {
        let metrics = Metrics::default();
        metrics.consumer("claimed", false, true);
        for number in 0..MAX_CONSUMERS + 5 {
            metrics.consumer(&number.to_string(), true, false);
        }
        metrics.consumer("0", false, true);
        for (labels, count) in [
            ("consumer=\"0\",result=\"accepted\"", 1),
            ("consumer=\"0\",result=\"rejected\"", 1),
            ("consumer=\"all others\",result=\"accepted\"", 5),
            ("consumer=\"all others\",result=\"rejected\"", 1),
        ] {
            let line = format!("countersign_consumer_requests_total{{{labels}}} {count}");
            assert!(shows(&metrics, &line), "{line}");
        }
        assert!(!metrics.render().contains("claimed"));
    }
}
