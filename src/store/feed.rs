//! The hub of the store's feed of changes: it tells the cache, the audit log and the throttle of logins.

use std::{fmt, sync::Arc};

use tokio::sync::Mutex;

use super::{Result, Store, cached::Cached, port::Change};
use crate::{clock::Clock, telemetry::audit::CommandRecord};

/// Answers of the feed in one call at most; what is left waits for the next one.
const ANSWERS_AT_ONCE: usize = 16;

/// Follows what this and all other processes change.
pub struct ChangeHub {
    store: Arc<dyn Store>,
    clock: Clock,
    credentials: Arc<Cached>,
    on_failed_login: Box<dyn Fn(&str) + Send + Sync>,
    /// Where the feed was left; 0: it was not asked yet.
    position: Mutex<u64>,
}

impl ChangeHub {
    /// Tells `credentials` of changes, the audit log of commands, and `on_failed_login` of failed logins, each once.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        credentials: Arc<Cached>,
        on_failed_login: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            store,
            clock,
            credentials,
            on_failed_login: Box::new(on_failed_login),
            position: Mutex::new(0),
        }
    }

    /// Reads what was changed since the last call and passes it on. The first call finds out where the feed stands, and
    /// the cache forgets everything.
    ///
    /// # Errors
    /// The store's; the next call starts from the same place.
    ///
    /// # Cancel safety
    /// Changes that were read and not passed on are read again. The cache may be told of a change twice.
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
                    Change::Consumer(_) | Change::AccessToken(_) | Change::User(_) => {}
                }
            }
            if answer.changes.is_empty() {
                self.credentials.answered(began);
                break;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ChangeHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeHub").finish_non_exhaustive()
    }
}
