//! The nonces of one second.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, AtomicU64},
};

use parking_lot::{Mutex, MutexGuard};

use crate::base::secret::hashed::Hashed;

/// Shards of a second: enough that a few dozen workers rarely wait for each other.
const SHARDS: usize = 16;

/// The nonces of one second.
pub(super) struct Bucket {
    pub(super) second: u64,
    shards: [Shard; SHARDS],
    /// There was an insertion since the last `maintain`.
    pub(super) is_used: AtomicBool,
    /// The time when `maintain` last found an insertion, in seconds since the open.
    pub(super) idle_since: AtomicU64,
}

/// Fingerprints with the same bits in one place. The alignment keeps shards off each other's cache lines.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<Fingerprints>);

/// The fingerprints of a shard.
pub(super) type Fingerprints = HashSet<u64, Hashed>;

impl Bucket {
    pub(super) fn new(second: u64) -> Self {
        Self {
            second,
            shards: Default::default(),
            is_used: AtomicBool::new(true),
            idle_since: AtomicU64::new(0),
        }
    }

    /// The shard of a fingerprint, locked.
    pub(super) fn shard(&self, fingerprint: u64) -> MutexGuard<'_, Fingerprints> {
        // The set uses the lowest and the highest bits.
        let number = (fingerprint >> 32) as usize % SHARDS;
        self.shards[number].0.lock()
    }

    /// The sum over its shards, each under its lock.
    pub(super) fn sum(&self, mut of: impl FnMut(&mut Fingerprints) -> u64) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| of(&mut shard.0.lock())).sum()
    }

    /// Bytes of memory that it takes, without the overhead of the allocator.
    pub(super) fn bytes(&self) -> u64 {
        // Each fingerprint takes one more byte, and one place in eight is free.
        self.sum(|held| (held.capacity() * 9 / 7 * 8 + size_of::<Shard>()) as u64)
    }

    /// Returns once the insertions of now have ended.
    pub(super) fn wait_for_insertions(&self) {
        for shard in &self.shards {
            drop(shard.0.lock());
        }
    }
}
