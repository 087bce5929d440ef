//! Readiness: checked every second and by each `/readyz`.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::{
    records::{
        nonce::{Nonces, Outage},
        store::Store,
        values::is_logged_outage,
    },
    request::verify::Verifier,
    telemetry::{
        conditions::{Condition, Conditions, WINDOW_FULL},
        heartbeats::{HUNG_AFTER, Heartbeats},
        log::{self, causes::causes},
        metrics::Metrics,
    },
};

/// The time in which the store must respond; otherwise the process is not ready.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks for the conditions that nothing else notices without requests.
pub struct Readiness {
    /// The store.
    pub store: Arc<Store>,
    /// Knows outages of nonces and the clocks of consumers.
    pub verifier: Arc<Verifier>,
    /// Used nonces.
    pub nonces: Arc<Nonces>,
    /// The most nonces that the window holds.
    pub max_nonces: u64,
    /// The last heartbeats of the workers.
    pub heartbeats: Arc<Heartbeats>,
    /// Knows whether the API answers.
    pub metrics: Arc<Metrics>,
    /// The findings are noted here.
    pub conditions: Arc<Conditions>,
}

impl Readiness {
    /// Checks workers, log, store, nonces and clock.
    pub async fn check(&self) {
        let conditions = &*self.conditions;
        let hung = self.heartbeats.hung(HUNG_AFTER);
        let cause =
            hung.map(|hung| format!("{hung}, and its connections hang; restart the process"));
        conditions.set(Condition::WorkerHung, cause);
        if log::is_stalled() {
            let cause = "standard error is not read fast enough, and access lines are dropped; check its reader, such as \
                         journald or the container runtime, or set log.access = false";
            conditions.set(Condition::LogStalled, Some(cause.to_owned()));
        } else {
            conditions.end_if_quiet(Condition::LogStalled);
        }
        match timeout(PING_TIMEOUT, self.store.ping()).await {
            Ok(Ok(())) => conditions.set(Condition::Store, None),
            Ok(Err(error)) if is_logged_outage(&error) => {
                conditions.set_logged_elsewhere(Condition::Store, causes(&error));
            }
            Ok(Err(error)) => conditions.set(Condition::Store, Some(causes(&error))),
            Err(_) => {
                let cause = format!("no response within {PING_TIMEOUT:?}");
                conditions.set(Condition::Store, Some(cause));
            }
        }
        match self.verifier.outage() {
            // It was logged when it was noticed.
            Some(outage @ Outage::Unavailable { .. }) => {
                conditions.set_logged_elsewhere(Condition::Nonces, outage.to_string());
            }
            outage => conditions.set(Condition::Nonces, outage.map(|outage| outage.to_string())),
        }
        if self.metrics.api_answers(conditions.now()) {
            conditions.end_if_quiet(Condition::Upstream);
        }
        self.check_window();
        let cause = self.verifier.clock_consensus().map(|ahead| {
            let (seconds, side) = (ahead.unsigned_abs(), if ahead < 0 { "ahead of" } else { "behind" });
            format!(
                "the clock of this machine is {seconds} s {side} the clocks of several consumers, whose calls are \
                 rejected; set it"
            )
        });
        conditions.set(Condition::Clock, cause);
    }

    fn check_window(&self) {
        let conditions = &*self.conditions;
        let (entries, max) = (self.nonces.window().entries(), self.max_nonces);
        if entries >= max {
            conditions.set(Condition::NonceWindowFull, Some(WINDOW_FULL.to_owned()));
        } else {
            // It is noted by requests too: without disk space the window is full before it has this many entries.
            conditions.end_if_quiet(Condition::NonceWindowFull);
        }
        // It ends at a lower level, so that it does not come and go.
        let percent = match conditions.lasts(Condition::NonceWindowFilling) {
            true => 75,
            false => 80,
        };
        let is_filling = entries.saturating_mul(100) >= max.saturating_mul(percent);
        let cause = is_filling.then(|| {
            format!(
                "{entries} of {max} nonces are in the window, and signed calls get 503 once it is full; raise \
                 nonce.max_entries or lower signature.timestamp_window"
            )
        });
        conditions.set(Condition::NonceWindowFilling, cause);
    }
}

/// The conditions that last, one a line, and whether none of them stops signed calls.
pub fn report(conditions: &Conditions) -> (bool, String) {
    let (mut is_ready, mut lines) = (true, String::new());
    for (condition, active) in conditions.active() {
        let stops = condition.stops_signed_calls();
        is_ready &= !stops;
        let what = if stops { "not ready" } else { "degraded" };
        let (name, since, cause) = (condition.as_str(), active.since, active.cause);
        // Writing to a `String` never fails.
        let _ = writeln!(lines, "{what}: {name} since {since}: {cause}");
    }
    if is_ready {
        lines.insert_str(0, "ready\n");
    }
    (is_ready, lines)
}
