//! Periodic work, whether or not there are requests.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    base::{memory, secret::random},
    operator::manage::{Actor, Tool},
    provider::pages::settings::PermissionSettings,
    records::{
        nonce::MARK_EVERY,
        values::{
            StoreError, is_disk_full, is_logged_outage,
            record::{Consumer, Registration},
            use_cases::{Ended, ResealFrom, Updated},
        },
    },
    run::app::services::{self, Services},
    telemetry::{
        audit::CommandRecord, charts::SAMPLE_EVERY, conditions::Condition, log::causes::causes,
    },
};

/// The longest time between two reads of the feed, if the store reports no change.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);
/// The shortest time between two reads of the feed, so that many reports cause one read.
const FOLLOW_PAUSE: Duration = Duration::from_millis(20);
/// The time between two checks of readiness.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time between two writes of the last uses of tokens.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// The time between two counts of the consumers on which an operator has to decide.
const REGISTRATIONS_EVERY: Duration = Duration::from_secs(15);
/// The time between two returns of memory of idle connections to the system.
const TRIM_EVERY: Duration = Duration::from_secs(5);
/// The time between two checks of a batch of secrets for a missing key.
const KEYS_EVERY: Duration = Duration::from_secs(5);
/// The time between two deletions of records that are no longer in use.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// The time between two removals of tokens and sessions that have ended, each with an audit record if there were any.
const REMOVE_EVERY: Duration = Duration::from_secs(3600);
/// The time between two checks whether the high-water mark is due, which it is at once after a jump of the clock. Each
/// check also drops the seconds that have left the nonce window.
const MARK_CHECK: Duration = Duration::from_secs(1);

/// Starts all of it on the current local set. Dropping the returned value stops it.
pub(crate) fn start(services: &Arc<Services>) -> JoinSet<()> {
    let mut upkeep = Upkeep {
        services: Arc::clone(services),
        tasks: JoinSet::new(),
    };
    upkeep.every(FOLLOW_PAUSE, Condition::StoreChanges, async |services| {
        // The feed is read regularly as well: a report may be lost, and not every store reports changes.
        let _ = timeout(FOLLOW_EVERY, services.store.notified()).await;
        Ok(services.feed.follow().await?)
    });
    upkeep.every(LOOK_EVERY, Condition::Imports, async |services| {
        let noted = services::note_imported(&services.nonces, &services.store).await;
        services.readiness.check().await;
        Ok(noted?)
    });
    upkeep.every(LOOK_EVERY, NONE, async |services| {
        if let Some(lookup) = &services.lookup {
            let trouble = lookup.trouble().await;
            services.conditions.set(Condition::Lookup, trouble);
        }
        Ok(())
    });
    upkeep.every(LOOK_EVERY, NONE, async |services| {
        let trouble = match services.bearer.load_full() {
            Some(tokens) => tokens.trouble().await,
            None => None,
        };
        services.conditions.set(Condition::Issuer, trouble);
        Ok(())
    });
    upkeep.every(FLUSH_EVERY, Condition::LastUses, async |services| {
        Ok(services.credentials.flush_uses().await?)
    });
    upkeep.every(REGISTRATIONS_EVERY, NONE, async |services| {
        let waiting = services.store.count_undecided().await?;
        let waiting = waiting.try_into().unwrap_or(i64::MAX);
        services.metrics.registrations_waiting.set(waiting);
        Ok(())
    });
    upkeep.every(PURGE_EVERY, Condition::Purge, async |services| {
        let now = services.clock.now();
        Ok(services.store.purge(now, services.keep_audit).await?)
    });
    upkeep.every(REMOVE_EVERY, Condition::Purge, remove_ended);
    upkeep.every(SAMPLE_EVERY, NONE, async |services| {
        let (charts, metrics) = (&services.charts, &services.metrics);
        let now = services.clock.now();
        charts.sample(metrics.counts(), now);
        charts.consumers.last_day(now, metrics.accepted_calls());
        charts.by_bearer.last_day(now, metrics.bearer_calls());
        Ok(())
    });
    upkeep.every(TRIM_EVERY, NONE, async |_| {
        Ok(spawn_blocking(memory::return_free_pages).await?)
    });
    let mut from = None;
    upkeep.every(KEYS_EVERY, NONE, async move |services| {
        let now = services.clock.now();
        let (begun, next) = from.take().unwrap_or((now, ResealFrom::default()));
        let batch = services.store.reseal(next, true).await?;
        if let Some((_, error)) = batch.unopened {
            let cause = Some(error.to_string());
            services.conditions.set(Condition::KeyMissing, cause);
        }
        match batch.next {
            Some(next) => from = Some((begun, next)),
            // Requests note it too, also for a secret that this look had passed.
            None => services
                .conditions
                .end_unless_noted_since(Condition::KeyMissing, begun),
        }
        Ok(())
    });
    let mut due = 0;
    let checks = MARK_EVERY.as_secs() / MARK_CHECK.as_secs();
    upkeep.every(MARK_CHECK, Condition::NonceMark, async move |services| {
        let now = services.clock.now();
        // Deleting files may take long; no request waits for this thread.
        let nonces = Arc::clone(&services.nonces);
        let maintained = spawn_blocking(move || nonces.window().maintain(now)).await?;
        services.nonces.maintain_shared(now).await;
        let is_full = services.conditions.lasts(Condition::DiskFull);
        if due == 0 || is_full || !services.nonces.is_recovered(now) {
            services::write_high_water_mark(&services.nonces, &services.store, &services.clock)
                .await?;
            services.conditions.end_if_quiet(Condition::DiskFull);
            due = checks;
        }
        due -= 1;
        Ok(maintained?)
    });
    let services = Arc::clone(services);
    upkeep.tasks.spawn_local(async move {
        let about = CommandRecord {
            changes: Some(format!("version {}", env!("CARGO_PKG_VERSION"))),
            ..CommandRecord::counting("process_started", [])
        };
        record(&services, about).await;
    });
    upkeep.tasks
}

/// Records what this process did, for the operators of all replicas.
pub(crate) async fn record(services: &Services, about: CommandRecord) {
    if let Err(error) = try_record(services, about).await {
        tracing::warn!(%error, "the audit record of this process is not kept");
    }
}

async fn try_record(services: &Services, about: CommandRecord) -> Result<(), TaskError> {
    let record = CommandRecord {
        id: random::identifier()?,
        actor: Actor::of_process(Tool::Serve.name()),
        ..about
    };
    let now = services.clock.now();
    Ok(services.store.record_command(now, &record).await?)
}

/// Lets consumers wait for an operator that users registered, that no operator has approved, and that have a permission which
/// the configuration marks as sensitive, as if they were registered under this configuration.
pub(crate) async fn hold_unapproved(services: &Services, permissions: &[PermissionSettings]) {
    let hold = |consumer: &mut Consumer| {
        let mut sensitive = permissions.iter().filter(|it| it.sensitive);
        // One that an operator disabled stays so, and needs an approval before it can be enabled.
        let is_held = consumer.enabled
            && consumer.registration == Some(Registration::Unchecked)
            && sensitive.any(|it| consumer.permissions.contains(&it.name));
        if is_held {
            consumer.registration = Some(Registration::Waiting);
            consumer.enabled = false;
        }
        is_held
    };
    let held = async {
        for mut consumer in services.store.unchecked_consumers().await? {
            if hold(&mut consumer)
                && let Updated::Updated(held) =
                    services.store.update_consumer(&consumer.key, &hold).await?
            {
                tracing::warn!(consumer = %held.key, "waits for an operator: a permission of it is sensitive now");
                let about = CommandRecord {
                    consumer: Some(held.key.to_string()),
                    members: Some("enabled registration".to_owned()),
                    ..CommandRecord::counting("consumer_held", [])
                };
                record(services, about).await;
            }
        }
        Ok::<_, StoreError>(())
    };
    if let Err(error) = held.await {
        let error = causes(&error);
        tracing::error!(
            error,
            "registration: consumers with a sensitive permission are looked for at the next start or reload"
        );
    }
}

/// Removes tokens and sessions that have ended. The audit record says how many, also if an error came between; a crash loses it.
async fn remove_ended(services: &Services) -> Result<(), TaskError> {
    let now = services.clock.now();
    let mut ended = Ended::default();
    let (store, keep) = (&services.store, services.keep_expired);
    let removed = store.remove_ended(now, keep, &mut ended).await;
    if ended != Ended::default() {
        let counts = [
            ("access_tokens", ended.access_tokens),
            ("request_tokens", ended.request_tokens),
            ("sessions", ended.sessions),
        ];
        try_record(services, CommandRecord::counting("ended_removed", counts)).await?;
    }
    Ok(removed?)
}

type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// No condition of its own: a failure is of no consequence, or is noted by the task.
const NONE: Option<Condition> = None;

/// Tasks that run again and again.
struct Upkeep {
    services: Arc<Services>,
    tasks: JoinSet<()>,
}

impl Upkeep {
    /// Runs `task` at each tick. A failure sets `condition`, or the one of a full disk.
    fn every(
        &mut self,
        period: Duration,
        condition: impl Into<Option<Condition>>,
        mut task: impl AsyncFnMut(&Services) -> Result<(), TaskError> + 'static,
    ) {
        let (services, condition) = (Arc::clone(&self.services), condition.into());
        self.tasks.spawn_local(async move {
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let failed = task(&services).await.err();
                let failure = failed.as_deref();
                if failure.is_some_and(|error| is_logged_outage(error)) {
                    continue;
                }
                let cause = failure.map(|error| causes(error));
                if failure.is_some_and(|error| is_disk_full(error)) {
                    services.conditions.set(Condition::DiskFull, cause);
                } else if let Some(condition) = condition {
                    services.conditions.set(condition, cause);
                }
            }
        });
    }
}
