//! moka in front of any store: consumers and access tokens ready for use, HMAC states kept with them.
//!
//! A hit costs one look-up and allocates nothing: a token's entry holds its consumer's. Strangers cannot push good
//! entries out: what is unknown is remembered in a smaller cache of its own. Nothing that was read before a change
//! was announced is used after it, be it cached, still being read, or held by another entry; and a record that was
//! announced as changed is never answered from here while the store fails.

mod credentials;
mod epoch;
mod flight;
mod groups;
mod kind;
mod permissions;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub use credentials::{AccessCredentials, ConsumerCredentials};
pub use kind::Counts;
use kind::{RecordCache, count};
use permissions::PermissionLists;

use super::{Store, StoreError, port::Change};
use crate::{
    clock::{Clock, UnixTime},
    names::ConsumerKey,
    oauth::SigningKey,
    secret::Secret,
    telemetry::audit::CommandRecord,
};

/// How much is kept, and for how long. Times count in whole seconds.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// Entries of each kind at most; unknown keys get a tenth of that beside them.
    pub max_entries: u64,
    /// How long an entry is used without asking the store again.
    pub ttl: Duration,
    /// How long an unknown key stays unknown.
    pub negative_ttl: Duration,
    /// How long, from the moment when the store was last known to answer, an entry may be used, whatever `ttl` says; at
    /// least 2 seconds.
    pub stale_if_error: Duration,
}

/// What is longer is no token of ours, nor of a system whose tokens were taken over.
const MAX_TOKEN_BYTES: usize = 1024;
/// Consumers change seldom, access tokens with each one that is given out: a change takes one in this many entries
/// with it. Four bytes each.
const CONSUMER_CELLS: usize = 1 << 10;
const TOKEN_CELLS: usize = 1 << 16;
/// Uses in one write, so that other writes need not wait long for it.
const USES_AT_ONCE: usize = 5_000;
/// Answers of the feed that are worked off at once; the rest waits for the next time.
const ANSWERS_AT_ONCE: usize = 16;

/// Credentials of a store, cached.
pub struct Cached {
    store: Arc<dyn Store>,
    clock: Clock,
    consumers: RecordCache<ConsumerCredentials>,
    access: RecordCache<AccessCredentials>,
    permissions: PermissionLists,
    dummy: SigningKey,
    uses: Mutex<Vec<Arc<AccessCredentials>>>,
    /// Where the feed of changes was left.
    position: AtomicU64,
    /// When the last read of the feed that came to its end began, in seconds since 1970.
    answered_at: Arc<AtomicU64>,
    on_failed_login: OnFailedLogin,
}

/// Takes a failed login that the feed tells of.
type OnFailedLogin = Box<dyn Fn(&str) + Send + Sync>;

impl Cached {
    /// An empty cache in front of `store`. What other processes change is noticed from the first call of
    /// [`Self::follow_changes`] on, with each call.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, params: &Params, clock: Clock) -> Self {
        let answered_at = Arc::<AtomicU64>::default();
        Self {
            store,
            clock,
            consumers: RecordCache::new(params, CONSUMER_CELLS, Arc::clone(&answered_at)),
            access: RecordCache::new(params, TOKEN_CELLS, Arc::clone(&answered_at)),
            permissions: PermissionLists::default(),
            // As long as those that are given out, so that it takes as long to work with. Nothing is accepted by it.
            dummy: SigningKey::new(&Secret::from("u".repeat(43)), &Secret::from("u".repeat(43))),
            uses: Mutex::default(),
            position: AtomicU64::new(0),
            answered_at,
            on_failed_login: Box::new(|_| ()),
        }
    }

    /// Gives each failed login that the feed tells of to `on_failed_login`, once.
    #[must_use]
    pub fn on_failed_login(self, on_failed_login: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            on_failed_login: Box::new(on_failed_login),
            ..self
        }
    }

    /// The store behind.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The key that stands in for an unknown one.
    #[must_use]
    pub const fn dummy(&self) -> &SigningKey {
        &self.dummy
    }

    /// How look-ups went: of consumers, and of access tokens.
    #[must_use]
    pub const fn counts(&self) -> (&Counts, &Counts) {
        (&self.consumers.counts, &self.access.counts)
    }

    /// Finds a consumer by its key as sent; what cannot be a key is unknown.
    ///
    /// # Errors
    /// The store's, where nothing usable is cached.
    ///
    /// # Cancel safety
    /// Others who wait for the same record are not disturbed.
    pub async fn consumer(
        &self,
        key: &[u8],
    ) -> Result<Option<Arc<ConsumerCredentials>>, StoreError> {
        let now = self.clock.now();
        if let Some(found) = self.consumers.fresh(key, now) {
            count(&self.consumers.counts.hits);
            return Ok(Some(found));
        }
        let Some(name) = text(key).and_then(|key| key.parse::<ConsumerKey>().ok()) else {
            return Ok(None);
        };
        let name = &name;
        let read = |stamp| async move {
            let found = self.store.consumer(name).await?;
            Ok(found.map(|consumer| {
                let permissions = self.permissions.shared(&consumer.permissions);
                ConsumerCredentials::new(consumer, permissions, stamp)
            }))
        };
        // Boxed, here and below: a hit, which is what nearly every call is, need not carry the room that a read takes.
        Box::pin(self.consumers.find(key, now, |_| true, |_| true, read)).await
    }

    /// Finds an access token as sent, with its consumer. Whether that is the consumer who signed is for the caller to see.
    ///
    /// # Errors
    /// The store's, where nothing usable is cached.
    ///
    /// # Cancel safety
    /// Others who wait for the same record are not disturbed.
    pub async fn access(&self, token: &[u8]) -> Result<Option<Arc<AccessCredentials>>, StoreError> {
        let now = self.clock.now();
        if let Some(found) = self.access.fresh(token, now) {
            if self.consumers.is_fresh(&found.consumer, now) {
                count(&self.access.counts.hits);
                return Ok(Some(found));
            }
            // The same one, read again or borne while the store fails, or else the token's entry is out of date too.
            let consumer = Box::pin(self.consumer(key_of(&found))).await?;
            if consumer.is_some_and(|consumer| Arc::ptr_eq(&consumer, &found.consumer)) {
                count(&self.access.counts.hits);
                return Ok(Some(found));
            }
        }
        let Some(name) = text(token).filter(|token| token.len() <= MAX_TOKEN_BYTES) else {
            return Ok(None);
        };
        let read = |stamp| async move {
            let Some(token) = self.store.access_token(name).await? else {
                return Ok(None);
            };
            let permissions = self.permissions.shared(&token.permissions);
            let consumer = self.consumer(token.consumer.as_str().as_bytes()).await?;
            Ok(consumer
                .map(|consumer| AccessCredentials::new(&token, permissions, consumer, stamp)))
        };
        let holds = |found: &AccessCredentials| self.consumers.is_current(&found.consumer);
        let bears = |found: &AccessCredentials| self.consumers.is_bearable(&found.consumer, now);
        Box::pin(self.access.find(token, now, holds, bears, read)).await
    }

    /// Finds an access token in the store even if it is cached: for one that seems to have been idle for too long, and
    /// may have been used at another process.
    ///
    /// # Errors
    /// The store's.
    pub async fn access_anew(
        &self,
        token: &[u8],
    ) -> Result<Option<Arc<AccessCredentials>>, StoreError> {
        let known = self.access.fresh(token, self.clock.now());
        self.access.forget(token);
        let found = self.access(token).await?;
        if let (Some(known), Some(found)) = (known, &found)
            && let Some(used) = known.last_used()
            && found.touch(used)
        {
            self.uses().push(Arc::clone(found));
        }
        Ok(found)
    }

    /// Notes a use; it is written with the next [`Self::flush_uses`].
    pub fn touch(&self, access: &Arc<AccessCredentials>, now: UnixTime) {
        if access.touch(now) {
            self.uses().push(Arc::clone(access));
        }
    }

    /// Writes the uses noted since the last call.
    ///
    /// # Errors
    /// The store's; what was not written is kept for the next call then.
    ///
    /// # Cancel safety
    /// What was not written is kept for the next call.
    pub async fn flush_uses(&self) -> Result<(), StoreError> {
        let mut taken = TakenUses {
            cached: self,
            entries: std::mem::take(&mut *self.uses()),
        };
        while !taken.entries.is_empty() {
            let rest = taken.entries.len().saturating_sub(USES_AT_ONCE);
            let uses = taken
                .entries
                .iter()
                .skip(rest)
                .filter_map(|entry| entry.take_use())
                .collect();
            self.store.record_uses(uses).await?;
            taken.entries.truncate(rest);
        }
        Ok(())
    }

    fn uses(&self) -> MutexGuard<'_, Vec<Arc<AccessCredentials>>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets an access token that this process has changed; from here on nothing read before is used.
    pub fn forget_access(&self, token: &str) {
        self.access.forget(token.as_bytes());
    }

    /// Forgets a consumer that this process has changed; from here on nothing read before is used.
    pub fn forget_consumer(&self, key: &ConsumerKey) {
        self.consumers.forget(key.as_str().as_bytes());
    }

    /// Forgets what this or another process has changed since the last call. The first call finds out where the feed
    /// stands, and forgets everything.
    ///
    /// # Errors
    /// The store's; the next call starts from the same place.
    pub async fn follow_changes(&self) -> Result<(), StoreError> {
        for _ in 0..ANSWERS_AT_ONCE {
            let position = self.position.load(Ordering::Acquire);
            let began = self.clock.now();
            let answer = self.store.changes_since(position).await?;
            // What was read before the feed was first asked is in doubt as well.
            if answer.incomplete {
                tracing::warn!(
                    "changes of the store were missed, and with them perhaps audit records of commands"
                );
            }
            if answer.incomplete || position == 0 {
                self.consumers.forget_all();
                self.access.forget_all();
            }
            for change in &answer.changes {
                match change {
                    Change::Consumer(key) => self.forget_consumer(key),
                    Change::AccessToken(token) => self.forget_access(token),
                    // The tokens that ended with it are named one by one.
                    Change::User(_) | Change::Command(_) | Change::FailedLogin(_) => {}
                }
            }
            let moved = self.position.compare_exchange(
                position,
                answer.position,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            // Of two callers who read the same at once, one logs and counts it.
            for change in answer.changes.iter().filter(|_| moved.is_ok()) {
                match change {
                    Change::Command(record) => CommandRecord::log_text(record),
                    Change::FailedLogin(report) => (self.on_failed_login)(report),
                    _ => {}
                }
            }
            if answer.changes.is_empty() {
                self.answered_at.store(began.0, Ordering::Relaxed);
                break;
            }
        }
        Ok(())
    }
}

/// Uses that were taken from the list; those left when this is dropped go back.
struct TakenUses<'a> {
    cached: &'a Cached,
    entries: Vec<Arc<AccessCredentials>>,
}

impl Drop for TakenUses<'_> {
    fn drop(&mut self) {
        if !self.entries.is_empty() {
            let left = self.entries.drain(..).filter(|entry| entry.untake_use());
            self.cached.uses().extend(left);
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn key_of(access: &AccessCredentials) -> &[u8] {
    access.consumer.key.as_str().as_bytes()
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").finish_non_exhaustive()
    }
}
