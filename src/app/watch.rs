//! The metrics of the services, read at each scrape.

use std::sync::{Arc, atomic::Ordering};

use arc_swap::ArcSwap;

use super::certificates::Certificate;
use crate::{
    clock::Clock,
    store::cached::Cached,
    telemetry::{
        conditions::{Condition, Conditions},
        metrics::{Metrics, StoreMetrics},
    },
    verify::nonces::Nonces,
};

/// What is read at each scrape.
pub(super) struct Watched {
    /// Times of the store.
    pub(super) store: Arc<StoreMetrics>,
    /// Used nonces.
    pub(super) nonces: Arc<Nonces>,
    /// The caches.
    pub(super) credentials: Arc<Cached>,
    /// What is wrong at present.
    pub(super) conditions: Arc<Conditions>,
    /// The certificates that are shown.
    pub(super) certificates: Arc<ArcSwap<Vec<Certificate>>>,
    /// Tells the time.
    pub(super) clock: Clock,
}

/// Lets `metrics` render what is watched.
pub(super) fn watch(metrics: &Metrics, watched: Watched) {
    let Watched {
        store,
        nonces,
        credentials,
        conditions,
        certificates,
        clock,
    } = watched;
    metrics.watch(Box::new(move |text| {
        let window = nonces.window();
        let name = "countersign_nonces";
        text.gauge(name, "Nonces in the window.", window.entries());
        let name = "countersign_nonce_window_bytes";
        text.gauge(name, "Memory of the nonce window.", window.bytes());
        let name = "countersign_cache_requests_total";
        text.family(name, "counter", "Look-ups in the caches by their result.");
        let (consumers, tokens) = credentials.counts();
        for (cache, counts) in [("consumer", consumers), ("access_token", tokens)] {
            for (result, count) in [
                ("hit", &counts.hits),
                ("negative_hit", &counts.negative_hits),
                ("miss", &counts.misses),
                ("stale", &counts.stale),
                ("error", &counts.errors),
            ] {
                let labels = [("cache", cache), ("result", result)];
                text.sample(name, &labels, count.load(Ordering::Relaxed));
            }
        }
        let (stops, degrades) = ("countersign_not_ready", "countersign_degraded");
        text.family(stops, "gauge", "1 while this cause stops signed calls.");
        for &condition in Condition::ALL {
            let name = match condition.stops_signed_calls() {
                true => stops,
                false => degrades,
            };
            if condition == Condition::NonceWindowFilling {
                text.family(
                    degrades,
                    "gauge",
                    "1 while this is wrong without stopping signed calls.",
                );
            }
            let lasts = u8::from(conditions.lasts(condition));
            text.sample(name, &[("cause", condition.as_str())], lasts);
        }
        let name = "countersign_certificate_remaining_seconds";
        text.family(name, "gauge", "Time until a certificate ends, by its file.");
        for one in certificates.load().iter() {
            let left = one.seconds_left(clock.now());
            text.sample(name, &[("file", &one.path.display().to_string())], left);
        }
        store.render(text);
    }));
}
