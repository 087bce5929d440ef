//! The metrics of the services, read at each scrape.

use std::sync::{Arc, atomic::Ordering};

use prometheus::{
    register_gauge_vec_with_registry, register_gauge_with_registry,
    register_int_counter_vec_with_registry, register_int_counter_with_registry,
};
use strum::VariantArray as _;

use super::services::Services;
use crate::telemetry::{conditions::Condition, log};

/// Lets the metrics show what the services count.
///
/// # Errors
/// Two metrics have one name.
pub(super) fn watch(services: &Services) -> prometheus::Result<()> {
    let registry = &services.metrics.registry;
    let held =
        register_gauge_with_registry!("countersign_nonces", "Nonces in the window.", registry)?;
    let bytes = register_gauge_with_registry!(
        "countersign_nonce_window_bytes",
        "Memory of the nonce window.",
        registry
    )?;
    let lookups = register_int_counter_vec_with_registry!(
        "countersign_cache_requests_total",
        "Look-ups in the caches by their result.",
        &["cache", "result"],
        registry
    )?;
    let stops = register_gauge_vec_with_registry!(
        "countersign_not_ready",
        "1 while this cause stops signed calls.",
        &["cause"],
        registry
    )?;
    let degrades = register_gauge_vec_with_registry!(
        "countersign_degraded",
        "1 while this is wrong without stopping signed calls.",
        &["cause"],
        registry
    )?;
    let dropped = register_int_counter_with_registry!(
        "countersign_log_lines_dropped_total",
        "Lines of the log that were dropped because standard error was not read.",
        registry
    )?;
    let remaining = register_gauge_vec_with_registry!(
        "countersign_certificate_remaining_seconds",
        "Time until a certificate expires, by its file.",
        &["file"],
        registry
    )?;
    let nonces = Arc::clone(&services.nonces);
    let credentials = Arc::clone(&services.credentials);
    let conditions = Arc::clone(&services.conditions);
    let certificates = Arc::clone(&services.certificates);
    let clock = services.clock.clone();
    let _ = services.metrics.refresh.set(Box::new(move || {
        held.set(nonces.window().entries() as f64);
        bytes.set(nonces.window().bytes() as f64);
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
        for &condition in Condition::VARIANTS {
            let family = if condition.stops_signed_calls() {
                &stops
            } else {
                &degrades
            };
            let gauge = family.with_label_values(&[condition.as_str()]);
            gauge.set(u8::from(conditions.lasts(condition)).into());
        }
        dropped.inc_by(log::dropped_lines().saturating_sub(dropped.get()));
        // A reload may have removed one.
        remaining.reset();
        for one in certificates.load().iter() {
            let left = one.seconds_left(clock.now());
            let gauge = remaining.with_label_values(&[&one.path.display().to_string()]);
            gauge.set(left as f64);
        }
    }));
    Ok(())
}
