//! Periodic work, whether or not there are requests.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{spawn_blocking, spawn_local},
    time::{MissedTickBehavior, interval, timeout},
};

use super::{services, services::Services};
use crate::{memory, nonce::MARK_EVERY, store::port::is_of_logged_outage, verify::nonces::Outage};

/// How soon a change that another process made in the store is noticed, if the store reports none.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);
/// The shortest time between two looks at what was changed, so that many reports are one look.
const FOLLOW_PAUSE: Duration = Duration::from_millis(20);
/// How often seconds that have left the nonce window are dropped.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// How often last uses of tokens are written.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// How often memory of connections that fell asleep is returned to the system.
const TRIM_EVERY: Duration = Duration::from_secs(5);
/// How often records that ended long ago are deleted.
const PURGE_EVERY: Duration = Duration::from_secs(3600);
/// How often it is checked whether the mark is due, which after a gap it is at once.
const MARK_CHECK: Duration = Duration::from_secs(1);

/// Starts all of it on the current local set.
pub(super) fn start(services: &Arc<Services>) {
    let what = "follow changes of the store";
    every(FOLLOW_PAUSE, services, what, async |services| {
        // Asked regularly as well: a report may be lost, and not every store reports changes.
        let _ = timeout(FOLLOW_EVERY, services.store.notified()).await;
        Ok(services.credentials.follow_changes().await?)
    });
    every(EXPIRE_EVERY, services, "expire nonces", async |services| {
        services.nonces.window().expire(services.clock.now());
        Ok(())
    });
    let what = "accept signed requests";
    every(EXPIRE_EVERY, services, what, async |services| {
        let now = services.clock.now();
        services::note_imported(&services.nonces, &*services.store, services.on_lost).await?;
        services.nonces.probe(now).await;
        match services.nonces.outage(now) {
            // Logged by the one that found it, and a mark that cannot be written is logged below.
            Some(Outage::Unavailable { .. } | Outage::Unmarked) | None => Ok(()),
            Some(outage) => Err(outage.into()),
        }
    });
    every(FLUSH_EVERY, services, "write last uses", async |services| {
        Ok(services.credentials.flush_uses().await?)
    });
    every(PURGE_EVERY, services, "purge the store", async |services| {
        Ok(services.store.purge(services.clock.now()).await?)
    });
    every(TRIM_EVERY, services, "return free pages", async |_| {
        Ok(spawn_blocking(memory::return_free_pages).await?)
    });
    let mut due = 0;
    let checks = MARK_EVERY.as_secs() / MARK_CHECK.as_secs();
    let what = "mark how far nonces are accepted";
    every(MARK_CHECK, services, what, async move |services| {
        let now = services.clock.now();
        if services.nonces.window().gap().rejects(now) {
            due = 0;
            return Ok(());
        }
        if due == 0 || !services.nonces.is_settled(now) {
            services::mark(&services.nonces, &*services.store, &services.clock).await?;
            due = checks;
        }
        due -= 1;
        Ok(())
    });
}

type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// Does `task` at each tick; a failure that lasts is logged once, and once more when it is over.
fn every(
    period: Duration,
    services: &Arc<Services>,
    what: &'static str,
    mut task: impl AsyncFnMut(&Services) -> Result<(), TaskError> + 'static,
) {
    let services = Arc::clone(services);
    spawn_local(async move {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            ticks.tick().await;
            match task(&services).await {
                Ok(()) if failing => {
                    failing = false;
                    tracing::info!(what, "works again");
                }
                Err(error) if !failing && !is_of_logged_outage(&*error) => {
                    failing = true;
                    tracing::error!(what, error = &*error as &dyn std::error::Error, "fails");
                }
                Ok(()) | Err(_) => {}
            }
        }
    });
}
