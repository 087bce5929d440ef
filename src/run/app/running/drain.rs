//! The end: the process reports that it is not ready, finishes what is running, and hands over what only one process can have.

use std::{sync::atomic::Ordering, time::Duration};

use sd_notify::NotifyState;
use tokio::{
    sync::watch as channel,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    gateway::live::Phase,
    records::values::StoreError,
    run::app::{App, listeners::workers::Common, services, system::manager},
    wire::server::{bounds::Bounds, handler::LAST_REQUEST},
};

/// While draining, connections that wait for a request are closed after [`LAST_REQUEST`]; a request that came last may take
/// this much longer to arrive.
const LAST_ARRIVAL: Duration = Duration::from_millis(100);

/// The time for which the hand-over waits for the last decisions of workers, and for the store.
const LAST_SYNC: Duration = Duration::from_secs(1);

/// The time for which the shutdown waits for a collector.
const LAST_TRACES: Duration = Duration::from_secs(2);

/// The time between two checks whether all connections have ended.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// The time in which the last requests must be decided, such as those whose signed form is slow to arrive, before the
/// nonce window is given up. Later ones get 503.
const LAST_DECISION: Duration = Duration::from_secs(2);

impl App {
    /// Reports not ready, and after the delay no longer accepts connections. Once requests no longer come, gives up the
    /// resources that only one process can have, and waits for the connections that are still open.
    pub(crate) async fn drain(&mut self, upkeep: JoinSet<()>) {
        let (drain, delay) = (self.config.listen.drain, self.config.listen.drain_delay);
        tracing::info!(?delay, limit = ?drain, "draining");
        manager::tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
        self.common.shared.enter(Phase::NotReady, &self.phase);
        if !delay.is_zero() {
            tokio::select! {
                () = sleep(delay) => {}
                () = self.signals.ended() => {}
            }
        }
        let deadline = Instant::now() + drain;
        self.common.shared.enter(Phase::Draining, &self.phase);
        // The operator who sends a second signal does not want to wait.
        let mut is_urgent = tokio::select! {
            () = decide_last(&self.common, &self.phase, deadline) => false,
            () = self.signals.ended() => true,
        };
        // Undecided requests end here, while the changes of the store are still followed.
        self.common.shared.enter(Phase::HandedOver, &self.phase);
        all_decided(&self.common, Instant::now() + LAST_SYNC).await;
        drop(upkeep);
        self.hand_over().await;
        let connections = self.common.open_connections();
        if !is_urgent && connections > 0 {
            tracing::info!(
                connections,
                "finishing what is running: another process may serve already"
            );
            manager::tell(&[NotifyState::Status("finishing what is running")]);
            tokio::select! {
                () = emptied(&self.common, deadline) => {
                    let connections = self.common.open_connections();
                    if connections > 0 {
                        tracing::warn!(connections, "drain timeout: closing remaining connections");
                    }
                }
                () = self.signals.ended() => is_urgent = true,
            }
        }
        if is_urgent {
            tracing::warn!("second signal: exiting immediately");
        }
        if let Some(traces) = self.common.shared.traces.as_ref().filter(|_| !is_urgent) {
            let _ = timeout(LAST_TRACES, traces.flush()).await;
        }
        self.common.shared.enter(Phase::Ended, &self.phase);
    }

    /// Gives up the nonce window, so that another process can go on with it. By then no request is left that could use it, or
    /// the store; a signed one of a worker that hangs is rejected.
    async fn hand_over(&self) {
        // A store that hangs does not hold up the next process: only last uses would be lost. The high-water mark in the store
        // covers all that was accepted.
        let uses = self.services.credentials.flush_uses();
        last_sync("could not write the last uses of tokens", uses).await;
        if let Err(error) = self.services.nonces.window().close() {
            tracing::error!(%error, "could not close the nonce window cleanly");
        }
        // The next process may have begun by now, with files of this version or a later one.
        let noted = services::note_files(&self.services);
        last_sync("could not note the version of the nonce window", noted).await;
    }
}

/// Writes something to the store, unless that takes too long.
async fn last_sync(failed: &str, write: impl Future<Output = Result<(), StoreError>>) {
    match timeout(LAST_SYNC, write).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{failed}"),
        Err(_) => tracing::error!("{failed}: the store is too slow"),
    }
}

/// Waits until requests no longer come to this process and the last ones are decided, or until the time for both is over.
async fn decide_last(common: &Common, phase: &channel::Sender<Phase>, deadline: Instant) {
    let last = Instant::now() + LAST_REQUEST + LAST_ARRIVAL;
    emptied(common, deadline.min(last)).await;
    common.shared.enter(Phase::DecidingLast, phase);
    all_decided(common, deadline.min(Instant::now() + LAST_DECISION)).await;
}

/// Waits until no worker has a request that is not decided.
async fn all_decided(common: &Common, deadline: Instant) {
    while common.staying.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
        sleep(CHECK_EVERY).await;
    }
}

/// Waits until there are no connections. Each worker first accepts those that are still in the kernel's queue.
async fn emptied(common: &Common, deadline: Instant) {
    while !common.all_bounds().all(Bounds::is_over) && Instant::now() < deadline {
        sleep_until(deadline.min(Instant::now() + CHECK_EVERY)).await;
    }
}
