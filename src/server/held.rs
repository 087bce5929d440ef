//! Bodies that are held back until they are proved, and how much memory all of them may take together.
//!
//! Whoever may connect may send a form before it is known who he is. Each is bounded, and so is the number of connections;
//! their product is more memory than any machine should lend to strangers.

use std::{
    ops::Deref,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use zeroize::Zeroize;

use crate::refusal::Refusal;

/// The bytes of all held bodies of this process.
static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A body that is held back. Its bytes count until it is dropped.
#[derive(Debug, Default)]
pub struct HeldBody {
    bytes: Vec<u8>,
    counted: usize,
}

impl HeldBody {
    /// An empty body with room for `expected` bytes, which take no memory before they are there.
    pub(super) fn with_room(expected: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(expected),
            counted: 0,
        }
    }

    /// Where to append what arrives; [`HeldBody::count`] follows.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Counts what has arrived.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if all held bodies together would have more than `limit` bytes.
    pub(super) fn count(&mut self, limit: usize) -> Result<(), Refusal> {
        let more = self.bytes.len() - self.counted;
        if HELD_BYTES.fetch_add(more, Relaxed) + more > limit {
            HELD_BYTES.fetch_sub(more, Relaxed);
            return Err(Refusal::Busy);
        }
        self.counted += more;
        Ok(())
    }

    /// Takes other bytes in place of these, no more than they were.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        debug_assert!(bytes.len() <= self.bytes.len());
        self.wipe();
        self.bytes = bytes;
    }

    /// A form may hold a password. Its bytes alone are wiped: the rest of the room was never touched.
    fn wipe(&mut self) {
        self.bytes.as_mut_slice().zeroize();
    }
}

impl Deref for HeldBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.wipe();
        HELD_BYTES.fetch_sub(self.counted, Relaxed);
    }
}
