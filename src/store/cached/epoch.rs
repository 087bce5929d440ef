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
    cell: usize,
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
        if let Some(cell) = self.cells.get(self.cell(key)) {
            cell.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Announces that every record may have changed.
    pub(super) fn advance_all(&self) {
        for cell in &self.cells {
            cell.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn cell(&self, key: &[u8]) -> usize {
        let hash = self.hasher.hash_one(key);
        let cells = self.cells.len() as u64;
        usize::try_from(hash % cells).unwrap_or(0)
    }

    fn count(&self, cell: usize) -> u32 {
        self.cells
            .get(cell)
            .map_or(0, |cell| cell.load(Ordering::SeqCst))
    }
}
