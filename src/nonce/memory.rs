//! What all buckets share: the segments, got from the file in chunks, and how many nonces there may be.

use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tracing::{error, info};

use super::{
    Params,
    header::{self, Field, FileKey},
    lock,
    map::{GROWTH_BLOCKS, Map},
    open::ANONYMOUS,
    recover::Recovered,
    segment::Segment,
};

/// The most chunks that are got ahead of need in one go: each may take a quarter of a millisecond.
const MAX_CHUNKS_AHEAD: usize = 2;

/// The map, what of it is in use, and the counts.
pub(super) struct Memory {
    pub(super) map: Map,
    pub(super) key: FileKey,
    /// Nonces held.
    pub(super) entries: AtomicU64,
    max_entries: u64,
    /// The time that an insertion notes, see [`super::idle`].
    pub(super) tick: AtomicU64,
    /// Taken once per segment, so about every thirtieth insertion.
    supply: Mutex<Supply>,
    /// Growing failed. It is tried again by [`Memory::grow_ahead`], once a second, and not by every request: a full
    /// disk must not cost a system call per request.
    stuck: AtomicBool,
    /// The file, for errors and the log.
    pub(super) path: PathBuf,
}

/// Blocks that may be used next.
struct Supply {
    /// Directories of blocks that are free, taken apart one block at a time.
    free: Vec<Vec<u32>>,
    /// The first block that was never given out.
    next: usize,
    /// `next` at the last [`Memory::grow_ahead`].
    seen: usize,
}

impl Memory {
    /// Memory with what was recovered in it.
    pub(super) fn new(map: Map, key: FileKey, recovered: &mut Recovered, params: &Params) -> Self {
        Self {
            map,
            key,
            entries: AtomicU64::new(recovered.entries),
            max_entries: params.max_entries,
            tick: AtomicU64::new(0),
            supply: Mutex::new(Supply {
                free: vec![std::mem::take(&mut recovered.free)],
                next: recovered.used_blocks,
                seen: recovered.used_blocks,
            }),
            stuck: AtomicBool::new(false),
            path: params.path.clone().unwrap_or_else(|| ANONYMOUS.into()),
        }
    }

    /// A number of the header.
    pub(super) fn header(&self, field: Field) -> u64 {
        // The header was whole at the open, and nobody else writes it.
        self.map
            .block(0)
            .and_then(|block| header::read(block, &self.key, field).ok())
            .unwrap_or(0)
    }

    /// Writes a number to the header.
    pub(super) fn write_header(&self, field: Field, value: u64) {
        if let Some(block) = self.map.block(0) {
            header::write(block, &self.key, field, value);
        }
    }

    /// The segment in a block.
    #[inline]
    pub(super) fn segment(&self, block: u32) -> Option<Segment<'_>> {
        self.map.block(block as usize).map(Segment)
    }

    /// Reserves room for one nonce.
    #[inline]
    pub(super) fn reserve(&self) -> bool {
        // Added first and taken back: the limit is never passed, also when many reach it at once.
        if self.entries.fetch_add(1, Ordering::Relaxed) < self.max_entries {
            return true;
        }
        self.entries.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// A block for a segment; `None` if the disk or the reserved space is full.
    pub(super) fn take(&self) -> Option<u32> {
        let mut supply = lock(&self.supply);
        while let Some(directory) = supply.free.last_mut() {
            if let Some(block) = directory.pop() {
                // A directory lists a segment with a short prefix several times in a row.
                while directory.last() == Some(&block) {
                    directory.pop();
                }
                return Some(block);
            }
            supply.free.pop();
        }
        let next = supply.next;
        if next >= self.map.blocks() && (self.stuck.load(Ordering::Relaxed) || !self.grow(next)) {
            return None;
        }
        supply.next += 1;
        u32::try_from(next).ok()
    }

    /// Takes back the blocks of a directory.
    pub(super) fn reuse(&self, directory: Vec<u32>) {
        lock(&self.supply).free.push(directory);
    }

    /// Gets memory for about as much as was needed since the last call, twice over, so that a request seldom waits for
    /// the file system. Call it once a second; it also tries again what failed.
    pub(super) fn grow_ahead(&self) {
        let (next, needed) = {
            let mut supply = lock(&self.supply);
            let needed = 2 * (supply.next - supply.seen);
            supply.seen = supply.next;
            (supply.next, needed)
        };
        let wanted = next + needed.min(MAX_CHUNKS_AHEAD * GROWTH_BLOCKS);
        loop {
            let blocks = self.map.blocks();
            let retry = self.stuck.load(Ordering::Relaxed) && blocks == next;
            if (blocks >= wanted && !retry) || !self.grow(blocks) {
                return;
            }
        }
    }

    fn grow(&self, seen: usize) -> bool {
        let path = tracing::field::display(self.path.display());
        match self.map.grow(seen) {
            Ok(()) => {
                self.write_header(Field::Blocks, self.map.blocks() as u64);
                if self.stuck.swap(false, Ordering::Relaxed) {
                    info!(path, "the nonce window grows again");
                }
                true
            }
            Err(error) => {
                if !self.stuck.swap(true, Ordering::Relaxed) {
                    error!(
                        path,
                        error = &error as &dyn std::error::Error,
                        "the nonce window cannot grow: signed requests are rejected until old nonces expire or there is room"
                    );
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(blocks: usize, reserved: usize) -> Memory {
        let params = Params {
            path: None,
            window: std::time::Duration::ZERO,
            max_entries: 0,
        };
        Memory::new(
            Map::anonymous(blocks, reserved).unwrap(),
            FileKey([1, 2]),
            &mut Recovered::default(),
            &params,
        )
    }

    #[test]
    fn gives_each_block_out_once_and_then_none() {
        let memory = memory(8, 12);
        let taken: Vec<_> = std::iter::from_fn(|| memory.take()).collect();
        assert_eq!(taken, [8, 9, 10, 11]);
        assert!(memory.stuck.load(Ordering::Relaxed));
    }

    #[test]
    fn grows_ahead_of_what_is_needed_and_stays_small_without_need() {
        let memory = memory(8, 1_000_000);
        memory.grow_ahead();
        assert_eq!(memory.map.blocks(), 8);
        for _ in 0..5_000 {
            memory.take().unwrap();
        }
        memory.grow_ahead();
        assert!(memory.map.blocks() >= 5_008 + 2 * GROWTH_BLOCKS);
        let blocks = memory.map.blocks();
        memory.grow_ahead();
        assert_eq!(memory.map.blocks(), blocks);
    }
}
