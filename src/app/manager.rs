//! Notifications to the service manager (`sd_notify`): ready, reloading, stopping, and that all threads still run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sd_notify::NotifyState;
use tokio::{
    task::spawn_local,
    time::{MissedTickBehavior, interval},
};

/// The longest interval at which workers show that they run; a watchdog may need a shorter one.
const BEAT: Duration = Duration::from_secs(1);

/// Notifies the service manager, if there is one.
pub(super) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager: NOTIFY_SOCKET");
    }
}

/// Reports that a reload begins; [`NotifyState::Ready`] ends it.
pub(super) fn tell_reloading() {
    let now = NotifyState::monotonic_usec_now();
    tell(&[
        NotifyState::Reloading,
        now.unwrap_or(NotifyState::MonotonicUsec(0)),
    ]);
}

/// The interval at which workers have to show that they run: at most a quarter of the watchdog's period.
pub(super) fn beat() -> Duration {
    let watchdog = sd_notify::watchdog_enabled().map(|period| period / 4);
    watchdog
        .unwrap_or(BEAT)
        .clamp(Duration::from_millis(1), BEAT)
}

/// Feeds the watchdog, if there is one, for as long as each worker sets its beat: a process in which one hangs is ended and
/// started again by the service manager.
pub(super) fn feed_watchdog(beats: Arc<[AtomicBool]>) {
    let Some(period) = sd_notify::watchdog_enabled() else {
        return;
    };
    spawn_local(async move {
        let mut ticks = interval((period / 2).max(Duration::from_millis(1)));
        // Workers need a whole period between two checks, also after this thread had to wait.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let missing = beats
                .iter()
                .position(|beat| !beat.swap(false, Ordering::Relaxed));
            match missing {
                None => tell(&[NotifyState::Watchdog]),
                Some(worker) => tracing::warn!(
                    worker,
                    "a worker did not run for half the period of the watchdog"
                ),
            }
        }
    });
}
