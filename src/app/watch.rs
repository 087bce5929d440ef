//! The metrics of the services, read at each scrape.

use std::sync::{Arc, atomic::Ordering};

use super::services::Services;
use crate::telemetry::conditions::Condition;

/// Lets the metrics show what the services count.
///
/// # Errors
/// Two metrics have one name.
pub(super) fn watch(services: &Services) -> prometheus::Result<()> {
    let metrics = &services.metrics;
    let nonces = Arc::clone(&services.nonces);
    let entries = move || nonces.window().entries();
    metrics.add_gauge("countersign_nonces", "Nonces in the window.", entries)?;
    let nonces = Arc::clone(&services.nonces);
    let bytes = move || nonces.window().bytes();
    let help = "Memory of the nonce window.";
    metrics.add_gauge("countersign_nonce_window_bytes", help, bytes)?;
    let lookups = metrics.add_counters(
        "countersign_cache_requests_total",
        "Look-ups in the caches by their result.",
        &["cache", "result"],
    )?;
    let stops = metrics.add_gauges(
        "countersign_not_ready",
        "1 while this cause stops signed calls.",
        "cause",
    )?;
    let degrades = metrics.add_gauges(
        "countersign_degraded",
        "1 while this is wrong without stopping signed calls.",
        "cause",
    )?;
    let remaining = metrics.add_gauges(
        "countersign_certificate_remaining_seconds",
        "Time until a certificate ends, by its file.",
        "file",
    )?;
    let credentials = Arc::clone(&services.credentials);
    let conditions = Arc::clone(&services.conditions);
    let certificates = Arc::clone(&services.certificates);
    let clock = services.clock.clone();
    metrics.on_scrape(Box::new(move || {
        let (consumers, tokens) = credentials.counts();
        for (cache, counts) in [("consumer", consumers), ("access_token", tokens)] {
            for (result, count) in [
                ("hit", &counts.hits),
                ("negative_hit", &counts.negative_hits),
                ("miss", &counts.misses),
                ("stale", &counts.stale),
                ("error", &counts.errors),
            ] {
                let shown = lookups.with_label_values(&[cache, result]);
                shown.inc_by(count.load(Ordering::Relaxed).saturating_sub(shown.get()));
            }
        }
        for &condition in Condition::ALL {
            let family = if condition.stops_signed_calls() {
                &stops
            } else {
                &degrades
            };
            let gauge = family.with_label_values(&[condition.as_str()]);
            gauge.set(u8::from(conditions.lasts(condition)).into());
        }
        // A reload may have taken one away.
        remaining.reset();
        for one in certificates.load().iter() {
            let left = one.seconds_left(clock.now());
            let gauge = remaining.with_label_values(&[&one.path.display().to_string()]);
            gauge.set(left as f64);
        }
    }));
    Ok(())
}
