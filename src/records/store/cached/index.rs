//! The entries that other entries hold, by the hash of their key: a consumer that its tokens keep in memory needs no entry of moka.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use crate::base::hashed::{Sharded, make_room};

/// An entry of an [`Index`].
pub(super) trait Indexed {
    /// Notes that it is in the index, or no more. An entry that is not there may have changed.
    fn set_indexed(&self, is_indexed: bool);
}

/// An index of entries that are in memory as long as something else holds them.
pub(super) struct Index<V> {
    entries: Sharded<Weak<V>>,
    /// The part that is swept next.
    next: AtomicUsize,
}

impl<V> Default for Index<V> {
    fn default() -> Self {
        Self {
            entries: Sharded::default(),
            next: AtomicUsize::new(0),
        }
    }
}

impl<V: Indexed> Index<V> {
    pub(super) fn get(&self, hash: u64) -> Option<Arc<V>> {
        self.entries.lock(hash).get(&hash)?.upgrade()
    }

    /// Inserts an entry in place of the one with its key.
    pub(super) fn insert(&self, hash: u64, entry: &Arc<V>) {
        let mut entries = self.entries.lock(hash);
        entry.set_indexed(true);
        // A weak reference keeps the memory of the entry itself, without what it owns.
        make_room(&mut entries, |entry| entry.strong_count() > 0);
        removed(entries.insert(hash, Arc::downgrade(entry)));
    }

    pub(super) fn remove(&self, hash: u64) {
        let mut entries = self.entries.lock(hash);
        removed(entries.remove(&hash));
    }

    pub(super) fn clear(&self) {
        for mut entries in self.entries.parts() {
            entries.drain().for_each(|(_, entry)| removed(Some(entry)));
        }
    }

    /// Drops the entries of one part that nothing holds any more, to be called about once a second.
    pub(super) fn sweep(&self) {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.part(next);
        entries.retain(|_, entry| entry.strong_count() > 0);
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to_fit();
        }
    }

    /// The number of entries, some of which nothing holds any more.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.parts().map(|entries| entries.len()).sum()
    }
}

/// Notes, under the lock, that an entry is here no more.
fn removed<V: Indexed>(entry: Option<Weak<V>>) {
    if let Some(entry) = entry.and_then(|entry| entry.upgrade()) {
        entry.set_indexed(false);
    }
}
