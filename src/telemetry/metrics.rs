//! The metrics of `/metrics`, in the Prometheus text format.
//!
//! Every label value is a constant of the program, an operation of the configuration, or the key of a consumer that has
//! signed correctly, of which there are at most [`MAX_CONSUMERS`]. No caller can add one.

mod verdict;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
    time::Instant,
};

use arc_swap::ArcSwap;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, PullingGauge, Registry, Result,
    TextEncoder, core::Collector as _, histogram_opts, opts, process_collector::ProcessCollector,
    register_histogram_vec_with_registry, register_histogram_with_registry,
    register_int_counter_vec_with_registry, register_int_counter_with_registry,
    register_int_gauge_vec_with_registry, register_int_gauge_with_registry,
};
use strum::VariantArray as _;

pub use self::verdict::{Outcome, Verdict};
use super::charts::Counts;

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

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

/// The label of all other consumers; no key has a space in it.
const OTHER_CONSUMERS: &str = "all others";

/// Requests of a consumer that were accepted, and those that were rejected.
type ConsumerCounters = [IntCounter; 2];

/// Why a TLS handshake of a caller failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum HandshakeFailure {
    /// The caller has no certificate that `listen.tls.client_ca` accepts.
    CallerCertificate,
    /// The caller does not accept our certificate.
    OurCertificate,
    /// It took longer than `limits.handshake_timeout`.
    TooSlow,
    /// Anything else, such as plain HTTP or no common version.
    Other,
}

/// All metrics of the process.
pub struct Metrics {
    /// The registry of all metrics.
    pub registry: Registry,
    /// Sets the metrics that others count, before each scrape.
    pub refresh: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// In the order of [`Verdict::VARIANTS`].
    requests: Vec<IntCounter>,
    observed: IntCounterVec,
    diagnoses: IntCounterVec,
    deviations: IntCounterVec,
    operations: IntCounterVec,
    handshakes: IntCounterVec,
    consumers: IntCounterVec,
    /// The counters of `consumers`, found without a lock.
    shown_consumers: ArcSwap<HashMap<Arc<str>, ConsumerCounters>>,
    other_consumers: ConsumerCounters,
    reloads: IntCounterVec,
    reloaded: IntGauge,
    clock_skew: Histogram,
    store_seconds: HistogramVec,
    store_errors: IntCounterVec,
    /// Calls signed with a previous secret during its grace.
    pub previous_secrets: IntCounter,
    /// Seconds that verification took.
    pub verify: Histogram,
    /// Seconds from the request sent to the API to the head of its response.
    pub upstream: Histogram,
    /// Seconds from the head of a request to the end of its response.
    pub request: Histogram,
    /// Callers' connections that are open.
    pub connections: IntGauge,
    /// Connections without a request that were closed to make room for others.
    pub connections_evicted: IntCounter,
    /// Connections that were too many.
    pub connections_refused: IntCounter,
    /// 1 while `/readyz` is 200.
    pub ready: IntGauge,
    /// Requests whose spans were `exported`, `dropped` or `failed`.
    pub traces: IntCounterVec,
}

impl Metrics {
    /// Everything at zero.
    ///
    /// # Errors
    /// Two metrics have one name.
    pub fn new() -> Result<Self> {
        let registry = Registry::new();
        let counters = |name, help, labels: &[&str]| {
            register_int_counter_vec_with_registry!(opts!(name, help), labels, registry)
        };
        let histogram = |name, help, bounds: &[f64]| {
            let options = histogram_opts!(name, help, bounds.to_vec());
            register_histogram_with_registry!(options, registry)
        };
        let gauge = |name, help| register_int_gauge_with_registry!(name, help, registry);
        let counter = |name, help| register_int_counter_with_registry!(name, help, registry);
        registry.register(Box::new(ProcessCollector::for_self()))?;
        let started = Instant::now();
        registry.register(Box::new(PullingGauge::new(
            "countersign_uptime_seconds",
            "Time since the process started.",
            Box::new(move || started.elapsed().as_secs_f64()),
        )?))?;
        register_int_gauge_vec_with_registry!(
            "countersign_build_info",
            "Which version this is; always 1.",
            &["version"],
            registry
        )?
        .with_label_values(&[env!("CARGO_PKG_VERSION")])
        .set(1);
        let requests = counters(
            "countersign_requests_total",
            "Requests by their outcome.",
            &["verdict"],
        )?;
        let handshakes = counters(
            "countersign_tls_handshake_failures_total",
            "TLS handshakes of callers that failed, by the reason.",
            &["reason"],
        )?;
        for failure in HandshakeFailure::VARIANTS {
            handshakes.with_label_values(&[<&str>::from(failure)]);
        }
        let consumers = counters(
            "countersign_consumer_requests_total",
            "Signed requests by consumer and result: accepted or rejected.",
            &["consumer", "result"],
        )?;
        let reloads = counters(
            "countersign_reloads_total",
            "Reloads of configuration or certificates by their result: applied or failed.",
            &["result"],
        )?;
        for result in ["applied", "failed"] {
            reloads.with_label_values(&[result]);
        }
        let reloaded = gauge(
            "countersign_last_reload_successful",
            "1 if the last reload was applied, or there was none; 0 if the files have a mistake.",
        )?;
        reloaded.set(1);
        let traces = counters(
            "countersign_traces_total",
            "Traces by result: exported, dropped because too many waited, or failed at the collector.",
            &["result"],
        )?;
        for result in ["exported", "dropped", "failed"] {
            traces.with_label_values(&[result]);
        }
        Ok(Self {
            traces,
            requests: Verdict::VARIANTS
                .iter()
                .map(|verdict| requests.with_label_values(&[verdict.as_str()]))
                .collect(),
            observed: counters(
                "countersign_observed_total",
                "Requests that observe let through, by what would have rejected them.",
                &["verdict"],
            )?,
            deviations: counters(
                "countersign_deviations_total",
                "Verified calls that deviate from RFC 5849, by the deviation that their consumer is allowed.",
                &["deviation"],
            )?,
            diagnoses: counters(
                "countersign_signature_diagnoses_total",
                "Wrong signatures by the known mistake that makes them.",
                &["diagnosis"],
            )?,
            operations: counters(
                "countersign_operation_requests_total",
                "Requests by operation and class of the status; none is no response.",
                &["operation", "status"],
            )?,
            handshakes,
            other_consumers: counters_of(&consumers, OTHER_CONSUMERS),
            consumers,
            shown_consumers: ArcSwap::default(),
            reloads,
            reloaded,
            clock_skew: histogram(
                "countersign_clock_skew_seconds",
                "How far consumers' clocks are ahead; below zero they are behind.",
                SKEW_BOUNDS,
            )?,
            store_seconds: register_histogram_vec_with_registry!(
                histogram_opts!(
                    "countersign_store_seconds",
                    "Time that the store took, by operation.",
                    REQUEST_BOUNDS.to_vec()
                ),
                &["operation"],
                registry
            )?,
            store_errors: counters(
                "countersign_store_errors_total",
                "Faults of the store, by operation.",
                &["operation"],
            )?,
            previous_secrets: counter(
                "countersign_previous_secret_total",
                "Calls signed with the previous secret of a consumer, during its grace.",
            )?,
            verify: histogram(
                "countersign_verify_seconds",
                "Time that verification took.",
                VERIFY_BOUNDS,
            )?,
            upstream: histogram(
                "countersign_upstream_seconds",
                "Time from the request sent to the API to the head of its response.",
                REQUEST_BOUNDS,
            )?,
            request: histogram(
                "countersign_request_seconds",
                "Time from the head of a request to the end of its response.",
                REQUEST_BOUNDS,
            )?,
            connections: gauge("countersign_connections", "Open connections of callers.")?,
            connections_evicted: counter(
                "countersign_connections_evicted_total",
                "Connections without a request that were closed to make room for others.",
            )?,
            connections_refused: counter(
                "countersign_connections_refused_total",
                "Connections that got 503 because there were too many.",
            )?,
            ready: gauge(
                "countersign_ready",
                "1 while signed calls can be served and the process does not drain, as /readyz.",
            )?,
            registry,
            refresh: OnceLock::new(),
        })
    }

    /// Counts a request that is done.
    pub fn request(&self, verdict: Verdict) {
        if let Some(counter) = self.requests.get(verdict as usize) {
            counter.inc();
        }
    }

    /// Counts the verdict that would have rejected a request that `observe` let through. The request itself counts as
    /// [`Verdict::Observed`].
    pub fn observed(&self, verdict: Verdict) {
        self.observed.with_label_values(&[verdict.as_str()]).inc();
    }

    /// Counts a deviation that was accepted.
    pub fn deviated(&self, deviation: &'static str) {
        self.deviations.with_label_values(&[deviation]).inc();
    }

    /// Counts the known mistake that makes a wrong signature.
    pub fn diagnosed(&self, mistake: &'static str) {
        self.diagnoses.with_label_values(&[mistake]).inc();
    }

    /// Counts a TLS handshake that failed.
    pub fn handshake_failed(&self, failure: HandshakeFailure) {
        self.handshakes
            .with_label_values(&[<&str>::from(failure)])
            .inc();
    }

    /// Counts a signed request of `consumer`, a key that anyone may have written unless `is_verified`. Only a verified one
    /// begins a series.
    pub fn consumer(&self, consumer: &str, is_verified: bool, is_rejected: bool) {
        let begins = |shown: &HashMap<Arc<str>, ConsumerCounters>| {
            is_verified && shown.len() < MAX_CONSUMERS && !shown.contains_key(consumer)
        };
        let mut shown = self.shown_consumers.load();
        if begins(&shown) {
            self.shown_consumers.rcu(|shown| {
                let mut shown = HashMap::clone(shown);
                if begins(&shown) {
                    let counters = counters_of(&self.consumers, consumer);
                    shown.insert(consumer.into(), counters);
                }
                shown
            });
            shown = self.shown_consumers.load();
        }
        let counters = shown.get(consumer).unwrap_or(&self.other_consumers);
        counters[usize::from(is_rejected)].inc();
    }

    /// Counts a reload of the configuration or of certificates.
    pub fn reloaded(&self, is_applied: bool) {
        let result = if is_applied { "applied" } else { "failed" };
        self.reloads.with_label_values(&[result]).inc();
        self.reloaded.set(is_applied.into());
    }

    /// Counts the seconds by which a consumer's clock is ahead of ours; below zero it is slow. Anybody can send any
    /// timestamp, so more than a day counts as a day: the sum stays useful.
    pub fn clock_skew(&self, seconds: i64) {
        let seconds = seconds.clamp(-86_400, 86_400);
        self.clock_skew.observe(seconds as f64);
    }

    /// Counts a request by its operation, which the program or the configuration names; `status` is 0 if there is no
    /// response.
    pub fn operation(&self, operation: &str, status: u16) {
        let class = CLASSES
            .get(usize::from(status / 100))
            .unwrap_or(&CLASSES[0]);
        self.operations.with_label_values(&[operation, class]).inc();
    }

    /// No longer shows an operation. A request to it that ends later brings its label back.
    pub fn forget_operation(&self, operation: &str) {
        for class in CLASSES {
            // Most operations have responses of few classes.
            let _ = self.operations.remove_label_values(&[operation, class]);
        }
    }

    /// Counts a use case of the store.
    pub fn store(&self, use_case: &'static str, took: Duration, failed: bool) {
        let labels = &[use_case];
        let seconds = self.store_seconds.with_label_values(labels);
        seconds.observe(took.as_secs_f64());
        let errors = self.store_errors.with_label_values(labels);
        errors.inc_by(failed.into());
    }

    /// The counters of requests as they are now.
    pub fn counts(&self) -> Counts {
        let families = self.request.collect();
        let metrics = families.first().map(|family| family.get_metric());
        let request = metrics
            .and_then(<[_]>::first)
            .map(|one| one.get_histogram());
        let mut below = 0;
        let mut apart = |sum: u64| sum - std::mem::replace(&mut below, sum);
        let latency = request.map_or_else(Vec::new, |request| {
            let sums = request
                .get_bucket()
                .iter()
                .map(|bucket| bucket.cumulative_count());
            sums.chain([request.get_sample_count()])
                .map(&mut apart)
                .collect()
        });
        Counts {
            verdicts: self.requests.iter().map(IntCounter::get).collect(),
            latency,
        }
    }

    /// Everything in the Prometheus text format ([`CONTENT_TYPE`]).
    pub fn render(&self) -> String {
        if let Some(refresh) = self.refresh.get() {
            refresh();
        }
        let families = self.registry.gather();
        // The metrics of a registry have names and samples, so they can be written.
        let text = TextEncoder::new().encode_to_string(&families);
        text.unwrap_or_default()
    }
}

fn counters_of(family: &IntCounterVec, consumer: &str) -> ConsumerCounters {
    ["accepted", "rejected"].map(|result| family.with_label_values(&[consumer, result]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the page has exactly this line.
    fn shows(metrics: &Metrics, line: &str) -> bool {
        metrics.render().lines().any(|shown| shown == line)
    }

    #[test]
    fn shows_every_verdict_before_anything_happens() {
        let metrics = Metrics::new().unwrap();
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
        let metrics = Metrics::new().unwrap();
        metrics.verify.observe(2e-6);
        metrics.clock_skew(-2);
        metrics.clock_skew(i64::MAX);
        metrics.store("exchange", Duration::from_secs(1), true);
        for line in [
            "countersign_verify_seconds_bucket{le=\"0.000001\"} 0",
            "countersign_verify_seconds_bucket{le=\"0.000002\"} 1",
            "countersign_clock_skew_seconds_bucket{le=\"-5\"} 0",
            "countersign_clock_skew_seconds_bucket{le=\"-1\"} 1",
            "countersign_clock_skew_seconds_sum 86398",
            "countersign_store_seconds_bucket{operation=\"exchange\",le=\"1\"} 1",
            "countersign_store_errors_total{operation=\"exchange\"} 1",
        ] {
            assert!(shows(&metrics, line), "{line}\n{}", metrics.render());
        }
    }

    #[test]
    fn counts_are_those_of_verdicts_and_of_each_bound_alone() {
        let metrics = Metrics::new().unwrap();
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
        let metrics = Metrics::new().unwrap();
        for status in [200, 204, 404, 0, 999] {
            metrics.operation("/a", status);
            metrics.operation("/b", status);
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
        let metrics = Metrics::new().unwrap();
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
