//! The hash of what is a keyed hash already: itself.

use std::hash::{BuildHasherDefault, Hasher};

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
