//! The nonces of one second.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, AtomicU64},
};

use parking_lot::{Mutex, MutexGuard};

use crate::base::secret::hashed::Hashed;

/// Shards of a second: enough that a few dozen workers rarely wait for each other.
pub(super) const SHARDS: usize = 16;

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
struct Shard(Mutex<Held>);

/// The content of a shard.
#[derive(Default)]
pub(super) struct Held {
    pub(super) fingerprints: HashSet<u64, Hashed>,
    /// Insertions that the window has already counted, so that few of them write what all workers share. `maintain` returns
    /// them.
    pub(super) room: u64,
}

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
    pub(super) fn shard(&self, fingerprint: u64) -> MutexGuard<'_, Held> {
        // The set uses the lowest and the highest bits.
        let number = (fingerprint >> 32) as usize % SHARDS;
        self.shards[number].0.lock()
    }

    /// The sum over its shards, each under its lock.
    pub(super) fn sum(&self, mut of: impl FnMut(&mut Held) -> u64) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| of(&mut shard.0.lock())).sum()
    }

    /// Returns once the insertions of now have ended.
    pub(super) fn wait_for_insertions(&self) {
        for shard in &self.shards {
            drop(shard.0.lock());
        }
    }
}

impl Held {
    /// Bytes of memory that they take, without the overhead of the allocator.
    pub(super) fn bytes(&self) -> u64 {
        // Each fingerprint takes one more byte, and one place in eight is free.
        (self.fingerprints.capacity() * 9 / 7 * 8 + size_of::<Shard>()) as u64
    }
}
