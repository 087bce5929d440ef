//! The hub of the store's feed of changes: it informs the cache, the audit log, the list of rejections and the throttle of
//! logins.

use std::{fmt, sync::Arc};

use tokio::sync::Mutex;

use crate::{
    base::{clock::Clock, text::names::ConsumerKey},
    records::{
        credentials::Cached,
        store::Store,
        values::{Result, use_cases::Change},
    },
    telemetry::{audit::CommandRecord, calls::rejections::Rejections},
};

/// The most answers of the feed in one call; further ones wait for the next call.
const ANSWERS_AT_ONCE: usize = 16;

/// Follows what this and all other processes change.
pub struct ChangeHub {
    store: Arc<Store>,
    clock: Clock,
    credentials: Arc<Cached>,
    rejections: Arc<Rejections>,
    on_failed_login: Box<dyn Fn(&str) + Send + Sync>,
    /// The position after the last change that was read; 0: the feed was not read yet.
    position: Mutex<u64>,
}

impl ChangeHub {
    /// Reports changes to `credentials`, commands to the audit log, removed consumers to `rejections`, and failed logins to
    /// `on_failed_login`, each once.
    pub fn new(
        store: Arc<Store>,
        clock: Clock,
        credentials: Arc<Cached>,
        rejections: Arc<Rejections>,
        on_failed_login: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            store,
            clock,
            credentials,
            rejections,
            on_failed_login: Box::new(on_failed_login),
            position: Mutex::new(0),
        }
    }

    /// Reads the changes since the last call and passes them on. The first call reads the current position of the feed,
    /// and the cache forgets everything.
    ///
    /// # Errors
    /// The store's; the next call starts from the same place.
    ///
    /// # Cancel safety
    /// Changes that were read and not passed on are read again. The cache may get a change twice.
    pub async fn follow(&self) -> Result<()> {
        let mut position = self.position.lock().await;
        for _ in 0..ANSWERS_AT_ONCE {
            let began = self.clock.now();
            let answer = self.store.changes_since(*position).await?;
            if answer.incomplete {
                tracing::warn!(
                    "changes of the store were missed, and with them perhaps audit records of commands"
                );
            }
            if answer.incomplete || *position == 0 {
                self.credentials.forget_everything();
            }
            if !answer.changes.is_empty() {
                self.credentials.forget(&answer.changes).await;
            }
            *position = answer.position;
            for change in &answer.changes {
                match change {
                    Change::Command(record) => CommandRecord::log_text(record),
                    Change::FailedLogin(report) => (self.on_failed_login)(report),
                    Change::Consumer(key) => self.forget_removed(key).await,
                    Change::AccessToken(_) | Change::User(_) => {}
                }
            }
            if answer.changes.is_empty() {
                self.credentials.feed_read_at(began);
                break;
            }
        }
        Ok(())
    }

    /// The rejections of a consumer that is no longer registered are of no use, and no later call brings them down.
    async fn forget_removed(&self, key: &ConsumerKey) {
        let is_kept = self.rejections.has(key.as_str());
        if is_kept && matches!(self.store.has_lost_consumer(key).await, Ok(true)) {
            self.rejections.forget(key.as_str());
        }
    }
}

impl fmt::Debug for ChangeHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeHub").finish_non_exhaustive()
    }
}
