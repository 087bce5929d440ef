//! Maps whose keys are keyed hashes: the hash of a key is itself.

use std::{
    array,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use parking_lot::{Mutex, MutexGuard};

/// For maps whose keys are keyed hashes of 64 bits. Any other key has the hash 0.
pub type Hashed = BuildHasherDefault<IdentityHasher>;

/// The hash of a `u64`: itself.
#[derive(Debug, Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map by keyed hashes of 64 bits. Two keys with the same hash have the same entry.
pub type HashedMap<V> = HashMap<u64, V, Hashed>;

/// The parts of a [`Sharded`] map.
const SHARDS: usize = 64;

/// A map in parts with a lock each, so that threads rarely wait for each other.
#[derive(Debug)]
pub struct Sharded<V>(Box<[Shard<V>; SHARDS]>);

#[derive(Debug)]
#[repr(align(64))]
struct Shard<V>(Mutex<HashedMap<V>>);

impl<V> Default for Sharded<V> {
    fn default() -> Self {
        Self(Box::new(array::from_fn(|_| Shard(Mutex::default()))))
    }
}

impl<V> Sharded<V> {
    /// The part with the entry of `hash`, locked.
    #[inline]
    pub fn lock(&self, hash: u64) -> MutexGuard<'_, HashedMap<V>> {
        // The maps themselves use the highest and the lowest bits.
        self.part((hash >> 40) as usize)
    }

    /// The part of this number, modulo the number of parts, locked.
    #[inline]
    pub fn part(&self, number: usize) -> MutexGuard<'_, HashedMap<V>> {
        self.0[number % SHARDS].0.lock()
    }

    /// All parts, each locked in turn.
    pub fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, HashedMap<V>>> {
        self.0.iter().map(|shard| shard.0.lock())
    }
}

/// Drops the entries that `is_needed` rejects before the map grows. At least half of the room is free then, so that most
/// insertions cost nothing for this.
pub fn make_room<V>(map: &mut HashedMap<V>, is_needed: impl Fn(&V) -> bool) {
    if map.len() == map.capacity() {
        map.retain(|_, value| is_needed(value));
        map.reserve(map.len().max(4));
    }
}
