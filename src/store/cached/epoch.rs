//! Tells whether what was read is older than the last change.
//!
//! A key has a cell that is counted up with each change of its record. What is read remembers the count from before
//! the read, and holds as long as the count is still that. So nothing that was read before a change was announced is
//! used after it, wherever it is kept or still on its way, and an entry that has left the cache is reached as well.
//! Keys share cells: a collision costs one more read.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU32, Ordering},
};

/// The cells of one kind of record.
pub(super) struct Epochs {
    cells: Box<[AtomicU32]>,
    // Keyed at random, so that nobody can choose which keys share a cell.
    hasher: RandomState,
}

/// The state of a record at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch {
    cell: u32,
    count: u32,
}

impl Epochs {
    /// `cells` cells of four bytes each, at least one.
    pub(super) fn new(cells: usize) -> Self {
        Self {
            cells: (0..cells.max(1)).map(|_| AtomicU32::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    /// The state now of the record that is about to be read.
    pub(super) fn of(&self, key: &[u8]) -> Epoch {
        let cell = self.cell(key);
        Epoch {
            cell,
            count: self.count(cell),
        }
    }

    /// Whether no change was announced since.
    pub(super) fn is_current(&self, epoch: Epoch) -> bool {
        self.count(epoch.cell) == epoch.count
    }

    /// Announces a change of one record.
    pub(super) fn advance(&self, key: &[u8]) {
        if let Some(cell) = self.cells.get(self.cell(key) as usize) {
            cell.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Announces that every record may have changed.
    pub(super) fn advance_all(&self) {
        for cell in &self.cells {
            cell.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A hash that nobody outside can foresee.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn cell(&self, key: &[u8]) -> u32 {
        // Half of the hash: the groups of the cache take the rest of the other's division.
        let cells = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        ((self.hash(key) >> 32) as u32) % cells
    }

    fn count(&self, cell: u32) -> u32 {
        self.cells
            .get(cell as usize)
            .map_or(0, |cell| cell.load(Ordering::SeqCst))
    }
}
