//! moka in front of any store: consumers and access tokens ready for use, HMAC states kept with them.
//!
//! A hit costs a lookup of the token and one of its consumer, and allocates nothing; one after another hit in the same second
//! and thread costs none. Unknown keys cannot evict good entries: they are remembered in a smaller cache of their own. Nothing
//! that was read before a change was announced is used after it, whether it is cached, still being read, or held by another
//! entry. No record that was announced as changed is answered from here while the store fails.

mod access;
mod at_hand;
mod bearer;
mod cache;
mod consumer;
pub mod feed;
mod field_values;
mod last_use;
mod stamp;
#[cfg(test)]
mod tests;

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;

pub use access::AccessCredentials;
pub use at_hand::{LocalAccess, LookupTime};
pub use bearer::{BearerClaims, BearerCredentials, BearerToken};
pub use cache::Counts;
use cache::{CacheEntry, RecordCache};
pub use consumer::{ConsumerCredentials, SecretAge};
pub use field_values::{CachedAssertion, FieldValues};
use stamp::{Announced, Stamp};

use crate::{
    base::{
        clock::{Clock, UnixTime},
        secret::Secret,
        settings::{LONGEST, duration, section},
        text::names::ConsumerKey,
    },
    oauth::{SignatureMethod, SigningKey},
    records::{
        store::Store,
        values::{Result, record::Dialect, use_cases::Change},
    },
};

/// More than most services have in use at once: an entry that is evicted costs a read of the store. Only entries in use
/// take memory.
const MAX_ENTRIES: &str = "1_000_000";
/// A pair in use costs two reads of the store a minute. Changes arrive by the feed; this bounds the age of records that another
/// program changed without a report, such as those of `store.lookup`.
const TTL: &str = "\"60s\"";
/// A caller who repeats an unknown key costs one read of the store in this time. A record that another program adds is
/// found after it.
const NEGATIVE_TTL: &str = "\"5s\"";
/// Most restarts and failovers of a store end sooner. A longer time would delay revocations by as much.
const STALE_IF_ERROR: &str = "\"10s\"";

section! {
    /// Consumers and tokens in memory.
    #[derive(Copy)]
    CacheSettings["cache"] {
        /// The maximum of consumers, and of tokens. One of each takes about 2 KB together.
        max_entries: u64 [default MAX_ENTRIES], restart;
        /// Time to use one without asking the store; revocations made through countersign arrive within a second.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")]
        ttl: Duration [default TTL], restart;
        /// Time for which an unknown name stays unknown.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")]
        negative_ttl: Duration [default NEGATIVE_TTL], restart;
        /// Time for which a credential may be used after the store last answered, also beyond ttl; at least 2s. Revocations
        /// cannot arrive then.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")]
        stale_if_error: Duration [default STALE_IF_ERROR], restart;
    }
}

/// The longest token, ours or another system's, in bytes.
const MAX_TOKEN_BYTES: usize = 1024;

/// Credentials of a store, cached.
pub struct Cached {
    store: Arc<Store>,
    clock: Clock,
    consumers: RecordCache<ConsumerCredentials>,
    access: RecordCache<AccessCredentials>,
    bearers: RecordCache<BearerToken>,
    announced: Arc<Announced>,
    dummy: SigningKey,
    uses: UseList<AccessCredentials>,
    consumer_uses: UseList<ConsumerCredentials>,
}

impl Cached {
    /// An empty cache in front of `store`.
    pub fn new(store: Arc<Store>, settings: &CacheSettings, clock: Clock) -> Self {
        let announced = Arc::<Announced>::default();
        Self {
            store,
            clock,
            consumers: RecordCache::new(settings, Arc::clone(&announced)),
            access: RecordCache::new(settings, Arc::clone(&announced)),
            bearers: bearer::cache(settings, Arc::clone(&announced)),
            announced,
            // Its secrets are as long as issued ones, so that it takes as much time. It verifies no request.
            dummy: SigningKey::new(&Secret::from("u".repeat(43)), &Secret::from("u".repeat(43))),
            uses: UseList(Mutex::default()),
            consumer_uses: UseList(Mutex::default()),
        }
    }

    /// The key that is used instead of an unknown one.
    pub const fn dummy(&self) -> &SigningKey {
        &self.dummy
    }

    /// The outcomes of lookups: of consumers, and of access tokens.
    pub const fn counts(&self) -> (&Counts, &Counts) {
        (&self.consumers.counts, &self.access.counts)
    }

    /// Finds a consumer by its key as sent; bytes that are not a valid key are unknown.
    ///
    /// # Errors
    /// The store's, where nothing usable is cached.
    ///
    /// # Cancel safety
    /// Others who wait for the same record are not disturbed.
    pub async fn consumer(&self, key: &[u8]) -> Result<Option<Arc<ConsumerCredentials>>> {
        self.consumer_at(key, self.clock.now()).await
    }

    async fn consumer_at(
        &self,
        key: &[u8],
        now: UnixTime,
    ) -> Result<Option<Arc<ConsumerCredentials>>> {
        if let Some(found) = self.consumers.fresh(key, now) {
            self.consumers.counts.hits.inc();
            return Ok(Some(found));
        }
        // Boxed: nearly every call is a hit, and its future need not have the size of a read's.
        Box::pin(self.consumer_from_store(key, now)).await
    }

    /// Finds a consumer that the cache does not have.
    async fn consumer_from_store(
        &self,
        key: &[u8],
        now: UnixTime,
    ) -> Result<Option<Arc<ConsumerCredentials>>> {
        let Some(name) = text(key).and_then(|key| key.parse::<ConsumerKey>().ok()) else {
            return Ok(None);
        };
        let name = &name;
        let read = |stamp: Stamp, is_refresh| async move {
            let found = self.store.consumer_from(name, is_refresh).await?;
            Ok(found.map(|(consumer, source)| {
                ConsumerCredentials::new(consumer, stamp.found_in(source))
            }))
        };
        self.consumers.find(key, None, now, |_| true, read).await
    }

    /// Finds an access token as sent, with its consumer. The caller checks whether that consumer signed. `key` is the
    /// consumer key that was sent with it: only for a known one is an application asked.
    ///
    /// # Errors
    /// The store's, where nothing usable is cached.
    ///
    /// # Cancel safety
    /// Others who wait for the same record are not disturbed.
    pub async fn access(&self, token: &[u8], key: &[u8]) -> Result<Option<Arc<AccessCredentials>>> {
        let now = self.clock.now();
        if let Some(found) = self.access.fresh(token, now) {
            let is_current = self.consumers.is_fresh(&found.consumer, now) || {
                // The same one unless it has changed; then the token's entry is out of date too.
                let key = found.consumer.key.as_str().as_bytes();
                let consumer = Box::pin(self.consumer_at(key, now)).await?;
                consumer.is_some_and(|consumer| Arc::ptr_eq(&consumer, &found.consumer))
            };
            if is_current {
                self.access.counts.hits.inc();
                return Ok(Some(found));
            }
        }
        Box::pin(self.access_from_store(token, key, now)).await
    }

    /// Finds an access token that the cache does not have.
    async fn access_from_store(
        &self,
        token: &[u8],
        key: &[u8],
        now: UnixTime,
    ) -> Result<Option<Arc<AccessCredentials>>> {
        let Some(name) = text(token).filter(|token| token.len() <= MAX_TOKEN_BYTES) else {
            return Ok(None);
        };
        let asker = match self.store.has_external() {
            true => match self.consumer_at(key, now).await? {
                Some(consumer) => Some(consumer.key.clone()),
                None => return Ok(None),
            },
            false => None,
        };
        let asker = asker.as_ref();
        let read = |stamp: Stamp, is_refresh| async move {
            let found = self.store.access_token_from(name, asker, is_refresh);
            let Some((token, source)) = found.await? else {
                return Ok(None);
            };
            let stamp = stamp.found_in(source);
            let consumer = token.consumer.as_str().as_bytes();
            let consumer = self.consumer_at(consumer, now).await?;
            Ok(consumer.map(|consumer| AccessCredentials::new(token, consumer, stamp)))
        };
        let may_serve_stale =
            |found: &AccessCredentials| self.consumers.may_serve_stale(&found.consumer, now);
        let find = self.access.find(token, asker, now, may_serve_stale, read);
        find.await
    }

    /// The moment of a lookup that begins now.
    pub fn moment(&self, now: UnixTime) -> LookupTime {
        LookupTime::at(now, &self.announced)
    }

    /// The access token as sent, with its consumer, if this thread has verified a call with it at this moment.
    pub fn at_hand(&self, token: &[u8], moment: LookupTime) -> Option<LocalAccess> {
        let found = at_hand::find(token, moment, &self.announced)?;
        self.access.counts.hits.inc();
        Some(found)
    }

    /// Keeps a token at hand that [`Self::access`] has found, since `moment`, and that has signed a call.
    pub fn keep_at_hand(&self, access: &LocalAccess, moment: LookupTime) {
        // A shorter time than the second of a moment is that of the cache alone.
        if self.access.ttl() >= Duration::from_secs(1) {
            at_hand::keep(access, moment, &self.announced);
        }
    }

    /// Drops what this thread has at hand and can no longer use.
    pub fn drop_old_at_hand(&self) {
        at_hand::drop_old(self.moment(self.clock.now()));
    }

    /// Finds an access token in the store even if it is cached: for one that seems to have been idle for too long, and
    /// may have been used at another process.
    ///
    /// # Errors
    /// The store's.
    pub async fn access_reloaded(
        &self,
        token: &[u8],
        key: &[u8],
    ) -> Result<Option<Arc<AccessCredentials>>> {
        let known = self.access.fresh(token, self.clock.now());
        self.announced.advance();
        self.access.remove(token).await;
        let found = self.access(token, key).await?;
        if let (Some(known), Some(found)) = (known, &found)
            && found.touch_as(&known)
        {
            self.uses.push(found);
        }
        Ok(found)
    }

    /// Notes a use of a token by a caller at an address; it is written with the next [`Self::flush_uses`].
    pub fn touch(&self, access: &Arc<AccessCredentials>, now: UnixTime, from: Option<IpAddr>) {
        if access.touch(now, from) {
            self.uses.push(access);
        }
    }

    /// Notes a verified call of a consumer; it is written in the same way.
    pub fn touch_consumer(
        &self,
        consumer: &Arc<ConsumerCredentials>,
        now: UnixTime,
        method: SignatureMethod,
        dialect: Dialect,
    ) {
        if consumer.touch(now, method, dialect) {
            self.consumer_uses.push(consumer);
        }
    }

    /// Writes the uses noted since the last call.
    ///
    /// # Errors
    /// The store's; uses that were not written are kept for the next call then.
    ///
    /// # Cancel safety
    /// Uses that were not written are kept for the next call.
    pub async fn flush_uses(&self) -> Result<()> {
        let mut taken = self.uses.take();
        let uses = taken.entries.iter().filter_map(|entry| entry.take_use());
        self.store.record_uses(uses.collect()).await?;
        taken.entries.clear();
        let mut taken = self.consumer_uses.take();
        let uses = taken.entries.iter().flat_map(|entry| entry.take_uses());
        self.store.record_consumer_uses(uses.collect()).await?;
        taken.entries.clear();
        Ok(())
    }

    /// Forgets changed records: no copy that was read before this call is used after it.
    pub async fn forget(&self, changes: &[Change]) {
        self.announced.advance();
        for change in changes {
            match change {
                Change::Consumer(key) => self.consumers.remove(key.as_str().as_bytes()).await,
                Change::AccessToken(token) => self.access.remove(token.as_bytes()).await,
                // The tokens that ended with a user are named one by one.
                Change::User(_) | Change::Command(_) | Change::FailedLogin(_) => {}
            }
        }
    }

    /// Forgets every record: no copy that was read before this call is used after it.
    pub fn forget_everything(&self) {
        self.announced.advance_everything();
        self.consumers.clear();
        self.access.clear();
        self.bearers.clear();
    }

    /// Notes that all changes up to `at` have been given to [`Self::forget`].
    pub fn feed_read_at(&self, at: UnixTime) {
        self.announced.set_feed_read_at(at);
    }
}

/// The entries with a use that is not written yet.
struct UseList<E>(Mutex<Vec<Arc<E>>>);

impl<E: CacheEntry> UseList<E> {
    fn push(&self, entry: &Arc<E>) {
        self.0.lock().push(Arc::clone(entry));
    }

    fn take(&self) -> TakenUses<'_, E> {
        TakenUses {
            entries: std::mem::take(&mut *self.0.lock()),
            list: self,
        }
    }
}

/// Uses that were taken from the list; those left when this is dropped go back.
struct TakenUses<'a, E: CacheEntry> {
    list: &'a UseList<E>,
    entries: Vec<Arc<E>>,
}

impl<E: CacheEntry> Drop for TakenUses<'_, E> {
    fn drop(&mut self) {
        if !self.entries.is_empty() {
            let entries = self.entries.drain(..);
            let entries = entries.filter(|entry| entry.put_use_back());
            self.list.0.lock().extend(entries);
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").finish_non_exhaustive()
    }
}
