//! The metrics of the services, read at each scrape.

use std::sync::Arc;

use strum::VariantArray as _;

use crate::{
    run::app::services::Services,
    telemetry::{
        conditions::{Condition, Conditions},
        log,
        metrics::Metrics,
    },
};

/// Lets the metrics show what the services count.
pub(crate) fn watch(services: &Services) {
    let nonces = Arc::clone(&services.nonces);
    let credentials = Arc::clone(&services.credentials);
    let conditions = Arc::clone(&services.conditions);
    let certificates = Arc::clone(&services.certificates);
    let clock = services.clock.clone();
    let _ = services.metrics.refresh.set(Box::new(move |metrics| {
        metrics.nonces.set(whole(nonces.window().entries()));
        metrics
            .nonce_window_bytes
            .set(whole(nonces.window().bytes()));
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
                let shown = metrics.cache_requests.get_or_create(&labels);
                shown.inc_by(count.get().saturating_sub(shown.get()));
            }
        }
        show_conditions(metrics, &conditions);
        let dropped = &metrics.dropped_lines;
        dropped.inc_by(log::dropped_lines().saturating_sub(dropped.get()));
        // A reload may have removed one.
        metrics.certificates.clear();
        for one in certificates.load().iter() {
            let file = one.path.display().to_string();
            let gauge = metrics.certificates.get_or_create(&[("file", file)]);
            gauge.set(whole(one.seconds_left(clock.now())));
        }
    }));
}

/// Shows the conditions that last.
pub(crate) fn show_conditions(metrics: &Metrics, conditions: &Conditions) {
    for &condition in Condition::VARIANTS {
        let family = if condition.stops_signed_calls() {
            &metrics.not_ready
        } else {
            &metrics.degraded
        };
        let gauge = family.get_or_create(&[("cause", condition.as_str())]);
        gauge.set(conditions.lasts(condition).into());
    }
}

fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
