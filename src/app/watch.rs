//! The metrics of the services, read at each scrape.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    store::cached::Cached,
    telemetry::metrics::{Metrics, StoreMetrics},
    verify::nonces::Nonces,
};

/// Lets `metrics` render the nonce window, the caches and the store.
pub(super) fn watch(
    metrics: &Metrics,
    store: Arc<StoreMetrics>,
    nonces: &Arc<Nonces>,
    credentials: &Arc<Cached>,
) {
    let (nonces, credentials) = (Arc::clone(nonces), Arc::clone(credentials));
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
        store.render(text);
    }));
}
