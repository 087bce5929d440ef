//! What metrics read from the services when they are scraped.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    store::cached::{Cached, Counts},
    telemetry::metrics::{CacheCounter, Metrics},
    verify::nonces::Nonces,
};

/// Lets `metrics` read the nonce window and the caches.
pub(super) fn watch(metrics: &Metrics, nonces: &Arc<Nonces>, credentials: &Arc<Cached>) {
    let (entries, bytes) = (Arc::clone(nonces), Arc::clone(nonces));
    metrics.watch_nonces(
        Box::new(move || entries.window().entries()),
        Box::new(move || bytes.window().bytes()),
    );
    type Which = fn(&Counts) -> &AtomicU64;
    let results: [(&str, Which); 5] = [
        ("hit", |counts| &counts.hits),
        ("negative_hit", |counts| &counts.negative_hits),
        ("miss", |counts| &counts.misses),
        ("stale", |counts| &counts.stale),
        ("error", |counts| &counts.errors),
    ];
    let mut counters = Vec::new();
    for (result, which) in results {
        for (cache, access) in [("consumer", false), ("access_token", true)] {
            let credentials = Arc::clone(credentials);
            counters.push(CacheCounter {
                cache,
                result,
                reading: Box::new(move || {
                    let (consumers, tokens) = credentials.counts();
                    which(if access { tokens } else { consumers }).load(Ordering::Relaxed)
                }),
            });
        }
    }
    metrics.watch_caches(counters);
}
