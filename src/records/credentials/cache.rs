//! The cache of one kind of record: moka, and the check that an entry may still be used.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use moka::{future, policy::EvictionPolicy, sync};

use super::{
    CacheSettings,
    stamp::{Announced, Stamp, in_32_bits, is_within},
};
use crate::{
    base::{clock::UnixTime, secret::hashed::Hashed, text::names::ConsumerKey},
    records::values::{Result, StoreError},
    telemetry::metrics::per_thread::Counter,
};

/// Unknown keys have a tenth of the room for themselves, so invented keys evict only each other.
const NEGATIVE_SHARE: u64 = 10;
/// The time for which a stale entry is used before the store is tried again after a failure.
const BACK_OFF: Duration = Duration::from_secs(1);
/// The most shared reads for one lookup; it needs another one if a change is announced during the read.
const ATTEMPTS: usize = 3;
/// The shortest `stale_if_error`: the feed is read four times a second, and time is counted in whole seconds.
const SHORTEST_STALE: Duration = Duration::from_secs(2);
/// moka rejects more than a thousand years.
const LONGEST_TTL: Duration = Duration::from_secs(365 * 86_400);

/// The outcomes of the lookups of one kind.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answered from the cache.
    pub hits: Counter,
    /// Answered from the cache: unknown.
    pub negative_hits: Counter,
    /// Asked of the store.
    pub misses: Counter,
    /// Answered from an expired entry while the store failed.
    pub stale: Counter,
    /// The store failed and nothing could be answered.
    pub errors: Counter,
}

/// A cached entry.
pub(super) trait CacheEntry: Send + Sync + 'static {
    /// Its key.
    fn key(&self) -> &[u8];
    /// The read that it is from.
    fn stamp(&self) -> &Stamp;
    /// Notes that its last use has not been written; `true` if it has to be put on the list again.
    fn put_use_back(&self) -> bool;
    /// Takes over the state that `old`, the former entry of the same key, has gathered since; `true` if both are
    /// otherwise the same, so that `old` may stay.
    fn inherit_from(&self, old: &Self) -> bool;
}

/// The outcome of a read. It is used again only if the record is unknown, for `negative_ttl`.
struct Outcome<V> {
    stamp: Stamp,
    /// The consumer for which the record was looked up.
    asker: Option<ConsumerKey>,
    found: Option<Arc<V>>,
}

impl<V> Outcome<V> {
    fn is_unknown_to(&self, asker: Option<&ConsumerKey>) -> bool {
        self.found.is_none() && self.asker.as_ref() == asker
    }
}

/// The cache of one kind of record.
pub(super) struct RecordCache<V: CacheEntry> {
    /// The entries, by the hash of the key, which takes less memory than the key.
    entries: sync::Cache<u64, Arc<V>, Hashed>,
    /// The reads under way, one for all who wait for the same record, and the keys that are unknown.
    reads: future::Cache<Arc<[u8]>, Arc<Outcome<V>>>,
    // Keyed at random, so that keys of one hash cannot be chosen.
    hasher: RandomState,
    announced: Arc<Announced>,
    settings: CacheSettings,
    pub(super) counts: Counts,
}

impl<V: CacheEntry> RecordCache<V> {
    pub(super) fn new(settings: &CacheSettings, announced: Arc<Announced>) -> Self {
        let stale_if_error = settings.stale_if_error.max(SHORTEST_STALE);
        // An entry is read again after `ttl`; it is used until then and while the store fails.
        let keep = settings.ttl.saturating_add(stale_if_error);
        Self {
            entries: sync::Cache::builder()
                .max_capacity(settings.max_entries)
                .time_to_idle(keep.min(LONGEST_TTL))
                // Unauthenticated callers insert nothing here, so the frequencies that other policies count are not needed.
                .eviction_policy(EvictionPolicy::lru())
                .build_with_hasher(Hashed::default()),
            reads: future::Cache::builder()
                .max_capacity((settings.max_entries / NEGATIVE_SHARE).max(1))
                .time_to_live(settings.negative_ttl.min(LONGEST_TTL))
                .build(),
            hasher: RandomState::new(),
            announced,
            settings: CacheSettings {
                stale_if_error,
                ..*settings
            },
            counts: Counts::default(),
        }
    }

    /// The time after which an entry is read again.
    pub(super) const fn ttl(&self) -> Duration {
        self.settings.ttl
    }

    fn known(&self, key: &[u8]) -> Option<Arc<V>> {
        let found = self.entries.get(&self.hasher.hash_one(key));
        found.filter(|entry| entry.key() == key && self.announced.is_current(entry.stamp()))
    }

    /// The entry under `key` that may be used without asking the store. Not counted.
    pub(super) fn fresh(&self, key: &[u8], now: UnixTime) -> Option<Arc<V>> {
        self.known(key).filter(|entry| {
            let stamp = entry.stamp();
            is_within(&stamp.read_at, self.settings.ttl, now)
                && (self.is_feed_read(now) || self.is_within_stale_limit(entry, now))
        })
    }

    /// Whether this entry, which another one refers to, may be used without asking the store.
    pub(super) fn is_fresh(&self, entry: &Arc<V>, now: UnixTime) -> bool {
        let found = self.fresh(entry.key(), now);
        found.is_some_and(|found| Arc::ptr_eq(&found, entry))
    }

    /// Whether the end of the feed was read less than `stale_if_error` ago. A revocation may have been missed since.
    fn is_feed_read(&self, now: UnixTime) -> bool {
        let span = self.settings.stale_if_error;
        is_within(&self.announced.feed_read_at, span, now)
    }

    /// Whether less than `stale_if_error` has passed since the record was last known: by a read of it, or of the feed.
    fn is_within_stale_limit(&self, entry: &V, now: UnixTime) -> bool {
        let (span, stamp) = (self.settings.stale_if_error, entry.stamp());
        !stamp.is_external && self.is_feed_read(now) || is_within(&stamp.read_at, span, now)
    }

    /// Whether this entry, which another one refers to, may be used while the store fails.
    pub(super) fn may_serve_stale(&self, entry: &Arc<V>, now: UnixTime) -> bool {
        let found = self.known(entry.key());
        found.is_some_and(|found| Arc::ptr_eq(&found, entry))
            && self.is_within_stale_limit(entry, now)
    }

    /// Finds a record that [`Self::fresh`] did not find: it is remembered as unknown, or read with `read`, whose second
    /// argument says whether it was known before. `may_serve_stale` says whether the entries that an entry depends on may
    /// be used while the store fails. A record that is unknown to one `asker` may exist for another.
    pub(super) async fn find<F>(
        &self,
        key: &[u8],
        asker: Option<&ConsumerKey>,
        now: UnixTime,
        may_serve_stale: impl Fn(&V) -> bool,
        read: impl Fn(Stamp, bool) -> F,
    ) -> Result<Option<Arc<V>>>
    where
        F: Future<Output = Result<Option<V>>>,
    {
        match self.reads.get(key).await {
            Some(outcome) if !outcome.is_unknown_to(asker) => self.reads.invalidate(key).await,
            Some(outcome) if self.announced.is_current(&outcome.stamp) => {
                self.counts.negative_hits.inc();
                return Ok(None);
            }
            _ => {}
        }
        let may_serve_stale =
            |entry: &V| self.is_within_stale_limit(entry, now) && may_serve_stale(entry);
        if let Some(entry) = self.known(key)
            && is_within(&entry.stamp().failed_at, BACK_OFF, now)
            && may_serve_stale(&entry)
        {
            self.counts.stale.inc();
            return Ok(Some(entry));
        }
        self.counts.misses.inc();
        let stamp = || self.stamp(now);
        for _ in 0..ATTEMPTS {
            let outcome = self.reads.try_get_with(Arc::from(key), async {
                let (stamp, old) = (stamp(), self.known(key));
                let generation = stamp.generation;
                let found = match read(stamp, old.is_some()).await {
                    Ok(Some(new)) => Some(self.keep(new, old, now)),
                    Ok(None) => {
                        self.drop_entry(key);
                        None
                    }
                    Err(error) => match old.filter(|old| may_serve_stale(old)) {
                        Some(old) => {
                            old.stamp().failed_at.store(in_32_bits(now), SeqCst);
                            self.counts.stale.inc();
                            Some(old)
                        }
                        None => return Err(error),
                    },
                };
                let stamp = Stamp::new(generation, now);
                let asker = asker.cloned();
                Ok(Arc::new(Outcome {
                    stamp,
                    asker,
                    found,
                }))
            });
            let outcome = outcome.await.map_err(|error| {
                self.counts.errors.inc();
                shared(error)
            })?;
            let is_current = self.announced.is_unchanged_since(&outcome.stamp)
                && (outcome.found.is_some() || outcome.is_unknown_to(asker));
            // A record that was found is in the cache. An outcome that is not current may be older than a change before
            // this call.
            if !is_current || outcome.found.is_some() {
                self.reads.invalidate(key).await;
            }
            if is_current {
                return Ok(outcome.found.clone());
            }
        }
        // A change was announced during each shared read. A read of this call alone is at least as new as the call.
        let found = read(stamp(), self.known(key).is_some()).await;
        found
            .map(|found| found.map(Arc::new))
            .inspect_err(|_| self.counts.errors.inc())
    }

    /// The stamp of an entry that is made from now on.
    pub(super) fn stamp(&self, now: UnixTime) -> Stamp {
        Stamp::new(self.announced.generation.load(SeqCst), now)
    }

    /// Keeps an entry that was not read with [`Self::find`].
    pub(super) fn keep_new(&self, new: V, now: UnixTime) -> Arc<V> {
        let old = self.known(new.key());
        self.keep(new, old, now)
    }

    /// Keeps what was read, or the old entry if it is the same: entries that depend on it need not be read again.
    fn keep(&self, new: V, old: Option<Arc<V>>, now: UnixTime) -> Arc<V> {
        if let Some(old) = old
            && new.inherit_from(&old)
        {
            // It is not inserted: a change may have removed it meanwhile.
            old.stamp().read_at.store(in_32_bits(now), SeqCst);
            return old;
        }
        let entry = Arc::new(new);
        let hash = self.hasher.hash_one(entry.key());
        self.entries.insert(hash, Arc::clone(&entry));
        // A change that is announced from now on removes it.
        if !self.announced.is_current(entry.stamp()) {
            self.entries.invalidate(&hash);
        }
        entry
    }

    /// Removes `key`, whose change has been announced.
    pub(super) async fn remove(&self, key: &[u8]) {
        self.drop_entry(key);
        self.reads.invalidate(key).await;
    }

    /// Drops an entry, as moka may at any time.
    pub(super) fn drop_entry(&self, key: &[u8]) {
        self.entries.invalidate(&self.hasher.hash_one(key));
    }

    /// Evicts what is more than the maximum, which moka does some operations later.
    #[cfg(test)]
    pub(super) fn evict_now(&self) {
        self.entries.run_pending_tasks();
    }

    /// Removes everything.
    pub(super) fn clear(&self) {
        self.entries.invalidate_all();
        self.reads.invalidate_all();
    }
}

/// The failure of one read, shared by all calls that waited for it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct SharedFailure(Arc<StoreError>);

fn shared(error: Arc<StoreError>) -> StoreError {
    match &*error {
        StoreError::Broken(what) => StoreError::Broken(what),
        StoreError::Unopened(unopened) => StoreError::Unopened(Arc::clone(unopened)),
        StoreError::External(fault) => StoreError::External(Arc::clone(fault)),
        StoreError::Unavailable(_) => StoreError::Unavailable(Box::new(SharedFailure(error))),
    }
}
