//! The cache of one kind of record.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;

use super::{
    Params,
    epoch::{Epoch, Epochs},
    flight::Flights,
    groups::Groups,
};
use crate::{clock::UnixTime, store::StoreError};

/// Unknown keys have a tenth of the room, and it is their own: strangers push out one another and nothing else.
const NEGATIVE_SHARE: u64 = 10;
/// How long a stale entry is used without trying the store again, once that has failed.
const BACK_OFF: Duration = Duration::from_secs(1);
/// How often a read is done again because the record was changed during it.
const ATTEMPTS: usize = 3;
/// The shortest `stale_if_error`: the feed is read four times a second, and time is counted in whole seconds.
const SHORTEST_STALE: Duration = Duration::from_secs(2);
/// moka refuses more than a thousand years.
const LONGEST_TTL: Duration = Duration::from_secs(365 * 86_400);

/// How look-ups of one kind went.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answered from the cache.
    pub hits: AtomicU64,
    /// Answered from the cache: unknown.
    pub negative_hits: AtomicU64,
    /// Asked of the store.
    pub misses: AtomicU64,
    /// Answered from an expired entry while the store failed.
    pub stale: AtomicU64,
    /// The store failed and nothing could be answered.
    pub errors: AtomicU64,
}

/// When an entry was read.
#[derive(Debug)]
pub(super) struct ReadStamp {
    /// The record's state from before the read.
    epoch: Epoch,
    /// When the read began, or the last one that found the same.
    read_at: AtomicU64,
    /// When the store last failed to tell whether it is still so.
    failed_at: AtomicU64,
}

impl ReadStamp {
    fn new(epoch: Epoch, read_at: UnixTime) -> Self {
        Self {
            epoch,
            read_at: AtomicU64::new(read_at.0),
            failed_at: AtomicU64::new(0),
        }
    }

    /// Whether at `now` less than `span` has gone by. A clock that was set back makes everything old.
    fn is_within(&self, span: Duration, now: UnixTime) -> bool {
        let read_at = UnixTime(self.read_at.load(Ordering::Relaxed));
        read_at <= now && now < read_at.after(span)
    }
}

/// What is cached.
pub(super) trait CacheEntry: Send + Sync + 'static {
    /// Its key.
    fn key(&self) -> &[u8];
    /// When it was read.
    fn stamp(&self) -> &ReadStamp;
    /// Takes over what `old`, the entry of the same key before, has gathered since; `true` if both are otherwise the
    /// same, so that `old` may stay.
    fn succeed(&self, old: &Self) -> bool;
}

type Outcome<V> = Result<Option<Arc<V>>, Arc<StoreError>>;

/// The cache of one kind of record.
pub(super) struct RecordCache<V: CacheEntry> {
    known: Groups<V>,
    unknown: Cache<Arc<[u8]>, Arc<ReadStamp>>,
    flights: Flights<Outcome<V>>,
    epochs: Epochs,
    params: Params,
    answered_at: Arc<AtomicU64>,
    pub(super) counts: Counts,
}

impl<V: CacheEntry> RecordCache<V> {
    /// `answered_at` is when the store was last known to report every change, in seconds since 1970.
    pub(super) fn new(params: &Params, cells: usize, answered_at: Arc<AtomicU64>) -> Self {
        // moka's own expiry only frees memory; what may be used is decided by the stamps.
        let keep = params
            .ttl
            .saturating_add(params.stale_if_error)
            .min(LONGEST_TTL);
        Self {
            known: Groups::new(params.max_entries, keep),
            unknown: Cache::builder()
                .max_capacity((params.max_entries / NEGATIVE_SHARE).max(1))
                .time_to_live(params.negative_ttl.min(LONGEST_TTL))
                .build(),
            flights: Flights::new(),
            epochs: Epochs::new(cells),
            params: Params {
                stale_if_error: params.stale_if_error.max(SHORTEST_STALE),
                ..*params
            },
            answered_at,
            counts: Counts::default(),
        }
    }

    fn known(&self, key: &[u8]) -> Option<Arc<V>> {
        let found = self.known.get(self.epochs.hash(key));
        found.filter(|entry| entry.key() == key)
    }

    /// The entry under `key` that may be used without asking the store. Not counted.
    pub(super) fn fresh(&self, key: &[u8], now: UnixTime) -> Option<Arc<V>> {
        self.known(key).filter(|entry| self.is_fresh(entry, now))
    }

    /// Whether the entry may be used without asking the store.
    pub(super) fn is_fresh(&self, entry: &V, now: UnixTime) -> bool {
        self.is_bearable(entry, now) && entry.stamp().is_within(self.params.ttl, now)
    }

    /// Whether no change of the entry's record is known.
    pub(super) fn is_current(&self, entry: &V) -> bool {
        self.epochs.is_current(entry.stamp().epoch)
    }

    /// Whether the entry may be used while the store fails: until `stale_if_error` after the store was last known to
    /// answer, for this record or with the end of its feed. A revocation may have been missed since.
    pub(super) fn is_bearable(&self, entry: &V, now: UnixTime) -> bool {
        let answered_at = UnixTime(self.answered_at.load(Ordering::Relaxed));
        let span = self.params.stale_if_error;
        let has_answered = answered_at <= now && now < answered_at.after(span);
        self.is_current(entry) && (has_answered || entry.stamp().is_within(span, now))
    }

    /// Whether `key` is known to be unknown.
    fn is_unknown(&self, key: &[u8], now: UnixTime) -> bool {
        self.unknown.get(key).is_some_and(|stamp| {
            self.epochs.is_current(stamp.epoch) && stamp.is_within(self.params.negative_ttl, now)
        })
    }

    /// Finds what [`Self::fresh`] did not: remembers that it is unknown, or reads it with `read`. `holds` says whether
    /// the entries that an entry stands on are current, and within `bears` whether they may be used while the store fails.
    pub(super) async fn find<F>(
        &self,
        key: &[u8],
        now: UnixTime,
        holds: impl Fn(&V) -> bool,
        bears: impl Fn(&V) -> bool,
        read: impl Fn(ReadStamp) -> F,
    ) -> Result<Option<Arc<V>>, StoreError>
    where
        F: Future<Output = Result<Option<V>, StoreError>>,
    {
        if self.is_unknown(key, now) {
            count(&self.counts.negative_hits);
            return Ok(None);
        }
        if let Some(entry) = self.known(key)
            && self.is_bearable(&entry, now)
            && bears(&entry)
            && UnixTime(entry.stamp().failed_at.load(Ordering::Relaxed)).after(BACK_OFF) > now
        {
            count(&self.counts.stale);
            return Ok(Some(entry));
        }
        count(&self.counts.misses);
        for _ in 0..ATTEMPTS {
            let epoch = self.epochs.of(key);
            let passenger = self.flights.join(key, epoch);
            let outcome = passenger
                .outcome(|| self.read_and_keep(passenger.key(), epoch, now, &bears, &read))
                .await;
            match outcome {
                Ok(found) => {
                    // Changed while it was read: what was read is of before, and this call may be of after.
                    let current = self.epochs.is_current(epoch);
                    if current && found.as_deref().is_none_or(&holds) {
                        return Ok(found);
                    }
                }
                Err(error) => {
                    count(&self.counts.errors);
                    return Err(shared(error));
                }
            }
        }
        // It changes faster than it can be read. What this call reads by itself is no older than this call.
        let found = read(ReadStamp::new(self.epochs.of(key), now)).await;
        found
            .map(|found| found.map(Arc::new))
            .inspect_err(|_| count(&self.counts.errors))
    }

    async fn read_and_keep<F>(
        &self,
        key: Arc<[u8]>,
        epoch: Epoch,
        now: UnixTime,
        bears: impl Fn(&V) -> bool,
        read: impl Fn(ReadStamp) -> F,
    ) -> Outcome<V>
    where
        F: Future<Output = Result<Option<V>, StoreError>>,
    {
        let outcome = read(ReadStamp::new(epoch, now)).await;
        let (old, hash) = (self.known(&key), self.epochs.hash(&key));
        match outcome {
            Ok(Some(new)) => {
                let entry = match old {
                    // The same, so what stands on the old one need not be read again.
                    Some(old) if new.succeed(&old) && old.stamp().epoch == epoch => {
                        old.stamp().read_at.store(now.0, Ordering::Relaxed);
                        old
                    }
                    _ => Arc::new(new),
                };
                self.unknown.invalidate(&key);
                let worth = |beside: &V| self.is_bearable(beside, now);
                self.known.insert(hash, Arc::clone(&entry), worth);
                Ok(Some(entry))
            }
            Ok(None) => {
                self.known.remove(hash);
                self.unknown
                    .insert(key, Arc::new(ReadStamp::new(epoch, now)));
                Ok(None)
            }
            Err(error) => match old.filter(|old| self.is_bearable(old, now) && bears(old)) {
                Some(old) => {
                    old.stamp().failed_at.store(now.0, Ordering::Relaxed);
                    count(&self.counts.stale);
                    Ok(Some(old))
                }
                None => Err(Arc::new(error)),
            },
        }
    }

    /// Forgets `key`, also where it is being read or held elsewhere.
    pub(super) fn forget(&self, key: &[u8]) {
        self.epochs.advance(key);
        self.known.remove(self.epochs.hash(key));
        self.unknown.invalidate(key);
    }

    /// Forgets everything.
    pub(super) fn forget_all(&self) {
        self.epochs.advance_all();
        self.known.clear();
        self.unknown.invalidate_all();
    }

    /// Drops an entry as if it had been pushed out.
    #[cfg(test)]
    pub(super) fn drop_quietly(&self, key: &[u8]) {
        self.known.remove(self.epochs.hash(key));
    }

    /// Makes a change known of another key that shares the cell.
    #[cfg(test)]
    pub(super) fn collide(&self, key: &[u8]) {
        self.epochs.advance(key);
    }

    #[cfg(test)]
    pub(super) fn reads_under_way(&self) -> usize {
        self.flights.len()
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The failure of one read, told to each who waited for it.
#[derive(Debug, thiserror::Error)]
#[error("a read that several calls waited for failed")]
struct SharedFailure(#[source] Arc<StoreError>);

fn shared(error: Arc<StoreError>) -> StoreError {
    match *error {
        StoreError::Broken(what) => StoreError::Broken(what),
        StoreError::Unavailable(_) | StoreError::Unopened(_) => {
            StoreError::Unavailable(Box::new(SharedFailure(error)))
        }
    }
}
