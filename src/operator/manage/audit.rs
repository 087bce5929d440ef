//! The audit records of operators' acts.

pub mod settings;

use std::sync::atomic::Ordering;

use super::{Management, Operator};
use crate::{
    base::secret::random,
    records::values::StoreError,
    telemetry::{audit::CommandRecord, log::causes::causes},
};

/// What an operator acts by.
#[derive(Debug, Clone, Copy, strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Tool {
    /// A command.
    Command,
    /// The admin API.
    Api,
    /// The console.
    Console,
    /// The page by which users ask for consumers.
    Page,
    /// The process itself, for its upkeep.
    Serve,
}

impl Tool {
    /// Its name in audit records.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Command => "a command",
            Self::Api => "the admin API",
            Self::Console => "the console",
            Self::Page => "a user’s page",
            Self::Serve => "countersign itself",
        }
    }
}

impl Operator<'_> {
    /// Records what the operator did, for the log of every `serve` on the store. `about` has the event and what it concerns.
    ///
    /// The change has happened by then, so a failure is kept for [`Management::take_unrecorded`]. Only use
    /// cases can record: the tests of the command line find a command that changes the store in another way.
    pub(super) async fn audit(&self, about: CommandRecord) {
        let record = CommandRecord {
            id: random::identifier().unwrap_or_default(),
            actor: self.actor.clone(),
            ..about
        };
        self.manage.has_changed.store(true, Ordering::Relaxed);
        if self.manage.feed.is_none() {
            record.log();
        }
        if let Err(error) = self
            .manage
            .store
            .record_command(self.manage.clock.now(), &record)
            .await
        {
            tracing::warn!(
                error = causes(&error),
                "the audit record is not kept for other processes"
            );
            if self.manage.feed.is_some() {
                record.log();
            }
            *self.manage.unrecorded.lock() = Some(error);
        }
        if let Some(feed) = &self.manage.feed
            && let Err(error) = feed.follow().await
        {
            tracing::debug!(%error, "the change is noticed a little later");
        }
    }
}

impl Management {
    /// Why the last change has no audit record, if it has none. Asking resets it.
    pub fn take_unrecorded(&self) -> Option<StoreError> {
        self.unrecorded.lock().take()
    }

    /// Whether anything was recorded as done, which nearly always is a change of the store.
    pub fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }
}
