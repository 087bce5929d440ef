//! Notifications to the service manager (`sd_notify`): ready, reloading, stopping, and that all threads still run.

use std::{sync::Arc, time::Duration};

use sd_notify::NotifyState;
use tokio::{
    task::spawn_local,
    time::{MissedTickBehavior, interval},
};
use tokio_util::task::AbortOnDropHandle;

use crate::telemetry::heartbeats::Heartbeats;

/// The longest interval at which workers show that they run; a watchdog may need a shorter one.
const BEAT: Duration = Duration::from_secs(1);

/// Notifies the service manager, if there is one.
pub(crate) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager: NOTIFY_SOCKET");
    }
}

/// Reports that a reload begins; [`NotifyState::Ready`] ends it.
pub(crate) fn tell_reloading() {
    let now = NotifyState::monotonic_usec_now();
    tell(&[
        NotifyState::Reloading,
        now.unwrap_or(NotifyState::MonotonicUsec(0)),
    ]);
}

/// The interval at which workers have to show that they run: at most a quarter of the watchdog's period.
pub(crate) fn beat() -> Duration {
    let watchdog = sd_notify::watchdog_enabled().map(|period| period / 4);
    watchdog
        .unwrap_or(BEAT)
        .clamp(Duration::from_millis(1), BEAT)
}

/// Feeds the watchdog, if there is one, while each worker has a heartbeat: the service manager ends a process in which one
/// hangs, and starts it again. Dropping the result ends it.
pub(crate) fn feed_watchdog(heartbeats: Arc<Heartbeats>) -> Option<AbortOnDropHandle<()>> {
    let period = sd_notify::watchdog_enabled()?;
    let feeding = spawn_local(async move {
        let half = (period / 2).max(Duration::from_millis(1));
        let mut ticks = interval(half);
        // Workers need this time between two checks, also after this thread had to wait.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match heartbeats.hung(half) {
                None => tell(&[NotifyState::Watchdog]),
                Some(hung) => tracing::warn!(
                    worker = hung.worker,
                    "a worker did not run for half the period of the watchdog"
                ),
            }
        }
    });
    Some(AbortOnDropHandle::new(feeding))
}
