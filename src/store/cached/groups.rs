//! moka, with many entries in each of its own: one of moka's costs 250 to 350 bytes, whatever is in it.
//!
//! The hash of a key chooses a group, and moka evicts whole groups. No group is ever changed: a new one takes its place.

use std::{sync::Arc, time::Duration};

use moka::{ops::compute::Op, sync::Cache};

/// Entries of a group when the cache is full, on average. Looking through as many takes one or two lines of memory; each
/// insertion copies them.
const MEAN: u64 = 32;
/// Entries of a group at most. As hashes fall, one of four million full groups would have more.
const MOST: u64 = 2 * MEAN;

/// Entries by the hash of their keys.
pub(super) struct Groups<V> {
    groups: Cache<u64, Group<V>>,
    count: u64,
    most: usize,
}

/// In the order of the hashes.
type Group<V> = Arc<[(u64, Arc<V>)]>;

impl<V: Send + Sync + 'static> Groups<V> {
    /// Room for `max_entries`. A group is dropped when nothing was inserted into it for `keep`.
    pub(super) fn new(max_entries: u64, keep: Duration) -> Self {
        Self {
            groups: Cache::builder()
                .max_capacity(max_entries)
                .weigher(|_, group: &Group<V>| u32::try_from(group.len()).unwrap_or(u32::MAX))
                .time_to_live(keep)
                .build(),
            count: (max_entries / MEAN).max(1),
            most: usize::try_from(MOST.min(max_entries)).unwrap_or(1).max(1),
        }
    }

    /// The entry of a key with this hash. Another key may have it too.
    pub(super) fn get(&self, hash: u64) -> Option<Arc<V>> {
        let group = self.groups.get(&self.group(hash))?;
        let place = group.binary_search_by_key(&hash, |(hash, _)| *hash).ok()?;
        group.get(place).map(|(_, entry)| Arc::clone(entry))
    }

    /// Keeps an entry in place of the one with this hash. Entries beside it that are not `worth` keeping are dropped.
    pub(super) fn insert(&self, hash: u64, entry: Arc<V>, worth: impl Fn(&V) -> bool) {
        self.groups
            .entry(self.group(hash))
            .and_upsert_with(|group| {
                let group = group.map(moka::Entry::into_value);
                let beside = group.iter().flat_map(|group| group.iter());
                let mut kept: Vec<(u64, Arc<V>)> = beside
                    .filter(|(other, entry)| *other != hash && worth(entry))
                    .take(self.most - 1)
                    .cloned()
                    .collect();
                let place = kept.partition_point(|(other, _)| *other < hash);
                kept.insert(place, (hash, entry));
                kept.into()
            });
    }

    /// Drops the entry with this hash.
    pub(super) fn remove(&self, hash: u64) {
        if self.get(hash).is_none() {
            return;
        }
        let selector = self.groups.entry(self.group(hash));
        selector.and_compute_with(|group| {
            let group = group.map(moka::Entry::into_value);
            let beside = group.iter().flat_map(|group| group.iter());
            let kept: Group<V> = beside
                .filter(|(other, _)| *other != hash)
                .cloned()
                .collect();
            if kept.is_empty() {
                Op::Remove
            } else {
                Op::Put(kept)
            }
        });
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        self.groups.invalidate_all();
    }

    const fn group(&self, hash: u64) -> u64 {
        hash % self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(max_entries: u64) -> Groups<u64> {
        Groups::new(max_entries, Duration::from_secs(60))
    }

    /// Everything in it, in the order of the hashes.
    fn all(groups: &Groups<u64>, hashes: std::ops::Range<u64>) -> Vec<u64> {
        groups.groups.run_pending_tasks();
        hashes
            .filter_map(|hash| groups.get(hash).map(|entry| *entry))
            .collect()
    }

    #[test]
    fn finds_what_was_inserted_last_and_not_what_was_removed() {
        let groups = groups(1_000);
        for hash in 0..500 {
            groups.insert(hash, Arc::new(hash), |_| true);
        }
        groups.insert(7, Arc::new(70), |_| true);
        groups.remove(8);
        groups.remove(900);
        let mut expected: Vec<u64> = (0..500).filter(|hash| *hash != 8).collect();
        expected[7] = 70;
        assert_eq!(all(&groups, 0..1_000), expected);
        groups.clear();
        assert!(all(&groups, 0..1_000).is_empty());
    }

    #[test]
    fn holds_as_many_as_there_is_room_for() {
        for max_entries in [0, 1, 10, 100, 1_000] {
            let groups = groups(max_entries);
            for hash in 0..5_000 {
                groups.insert(hash, Arc::new(hash), |_| true);
                if hash % 50 == 0 {
                    groups.groups.run_pending_tasks();
                }
            }
            let held = all(&groups, 0..5_000).len() as u64;
            assert!(
                held <= max_entries && held * 2 >= max_entries,
                "{held} of {max_entries}"
            );
        }
    }

    #[test]
    fn an_insertion_drops_what_is_not_worth_its_place_beside_it() {
        let groups = groups(10);
        for hash in 0..4 {
            groups.insert(hash, Arc::new(hash), |_| true);
        }
        groups.insert(4, Arc::new(4), |entry| entry % 2 == 1);
        assert_eq!(all(&groups, 0..10), [1, 3, 4]);
    }
}
