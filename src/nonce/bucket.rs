//! A bucket: the nonces of one second, in 16 shards, each under a lock of its own.
//!
//! The first bits of a fingerprint choose the shard. In a shard, segments are found by extendible hashing: a directory,
//! in ordinary memory, leads from a fingerprint's next bits to its segment; a segment without a free slot is replaced
//! by two. Dropping a bucket hands its directories to [`Memory::reuse`], so it costs the same however many nonces there
//! were.

use std::sync::{Mutex, MutexGuard, atomic::Ordering};

use super::{
    Insertion, lock,
    memory::Memory,
    segment::{Label, Probe, Segment, prefix, shard_of},
};

/// Bits of a fingerprint that choose the shard.
pub(super) const SHARD_BITS: u32 = 4;
/// Shards: enough that a few dozen workers rarely wait for each other, few enough that a quiet second stays small.
pub(super) const SHARDS: usize = 1 << SHARD_BITS;
/// The longest prefix of a segment; 2^32 times a segment's worth in one second, so never reached.
pub(super) const MAX_DEPTH: u32 = 28;

/// The nonces of one second.
#[derive(Default)]
pub(super) struct Bucket {
    shards: [CacheLine; SHARDS],
}

/// Keeps neighbours off each other's cache lines.
#[derive(Default)]
#[repr(align(64))]
struct CacheLine(Mutex<Shard>);

/// The nonces of one second whose fingerprints begin with the same bits. Empty until the first insertion.
#[derive(Default)]
pub(super) struct Shard {
    /// The segment of each prefix of `depth` bits; a segment with a shorter prefix is listed several times in a row.
    pub(super) directory: Vec<u32>,
    pub(super) depth: u32,
    pub(super) entries: u64,
    /// The tick of the last insertion, see [`super::idle`].
    pub(super) touched: u64,
}

impl Bucket {
    /// Locks the shard of this number, which is below [`SHARDS`].
    #[inline]
    pub(super) fn shard(&self, number: usize) -> MutexGuard<'_, Shard> {
        lock(&self.shards[number].0)
    }

    /// Locks each shard in turn.
    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(|shard| lock(&shard.0))
    }

    /// Forgets all nonces; their segments are used again.
    ///
    /// The labels stay as they are until then: the caller has raised the floor, so they count no more.
    pub(super) fn drain(&self, memory: &Memory) {
        for mut shard in self.shards() {
            let shard = std::mem::take(&mut *shard);
            memory.entries.fetch_sub(shard.entries, Ordering::Relaxed);
            memory.reuse(shard.directory);
        }
    }
}

impl Shard {
    /// Inserts a fingerprint if it is not there.
    #[inline]
    pub(super) fn insert(&mut self, memory: &Memory, second: u64, fingerprint: u64) -> Insertion {
        loop {
            let Some(segment) = self.segment(memory, fingerprint) else {
                match self.begin(memory, second, fingerprint) {
                    Some(()) => continue,
                    None => return Insertion::Full,
                }
            };
            match segment.probe(fingerprint) {
                Probe::Present => return Insertion::Used,
                Probe::Vacant(slot) => {
                    if !memory.reserve() {
                        return Insertion::Full;
                    }
                    segment.set(slot, fingerprint);
                    self.entries += 1;
                    let tick = memory.tick.load(Ordering::Relaxed);
                    if self.touched != tick {
                        self.touched = tick;
                        segment.touch(tick);
                    }
                    return Insertion::Fresh;
                }
                Probe::Full => {
                    if self.split(memory, second, fingerprint).is_none() {
                        return Insertion::Full;
                    }
                }
            }
        }
    }

    #[inline]
    fn segment<'a>(&self, memory: &'a Memory, fingerprint: u64) -> Option<Segment<'a>> {
        let block = *self.directory.get(prefix(fingerprint, self.depth))?;
        memory.segment(block)
    }

    /// Begins with one empty segment, which counts already. `None`: there is no room.
    #[cold]
    fn begin(&mut self, memory: &Memory, second: u64, fingerprint: u64) -> Option<()> {
        let block = memory.take()?;
        let segment = memory.segment(block)?;
        self.touched = memory.tick.load(Ordering::Relaxed);
        let label = Label::new(second, fingerprint, 0);
        segment.clear();
        segment.publish(&memory.key, block as usize, &label, self.touched);
        self.directory.push(block);
        Some(())
    }

    /// Replaces the full segment of `fingerprint` by two. `None`: there is no room, and nothing has changed.
    ///
    /// In the file both halves count before the whole ceases to. If the process dies in between, the whole is still
    /// there, and nothing has gone into the halves yet: opening the file keeps the whole.
    #[cold]
    fn split(&mut self, memory: &Memory, second: u64, fingerprint: u64) -> Option<()> {
        let parent_block = *self.directory.get(prefix(fingerprint, self.depth))?;
        let parent = memory.segment(parent_block)?;
        let depth = parent.depth();
        if depth >= MAX_DEPTH {
            return None;
        }
        let low_block = memory.take()?;
        let Some(high_block) = memory.take() else {
            memory.reuse(vec![low_block]);
            return None;
        };
        let low = memory.segment(low_block)?;
        let high = memory.segment(high_block)?;
        low.clear();
        high.clear();
        for held in parent.fingerprints() {
            let child = if prefix(held, depth + 1) & 1 == 0 {
                low
            } else {
                high
            };
            // Always vacant: a child has as many slots as its parent, and no fingerprint is there twice.
            if let Probe::Vacant(slot) = child.probe(held) {
                child.set(slot, held);
            }
        }
        let parent_label = Label::new(second, fingerprint, depth);
        for (half, child, block) in [(0, low, low_block), (1, high, high_block)] {
            let label = Label {
                depth: depth + 1,
                prefix: parent_label.prefix << 1 | half,
                ..parent_label
            };
            child.publish(&memory.key, block as usize, &label, self.touched);
        }
        parent.retire();
        memory.reuse(vec![parent_block]);

        if depth == self.depth {
            self.directory = self
                .directory
                .iter()
                .flat_map(|block| [*block, *block])
                .collect();
            self.depth += 1;
        }
        let span = 1 << (self.depth - depth - 1);
        let from = (parent_label.prefix as usize) << (self.depth - depth);
        self.directory.get_mut(from..from + span)?.fill(low_block);
        self.directory
            .get_mut(from + span..from + 2 * span)?
            .fill(high_block);
        Some(())
    }
}

impl Label {
    /// The label of the segment that holds `fingerprint` at `depth`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a shard's number has 4 bits, a prefix at most MAX_DEPTH = 28"
    )]
    fn new(second: u64, fingerprint: u64, depth: u32) -> Self {
        Self {
            second,
            shard: shard_of(fingerprint) as u8,
            depth,
            prefix: prefix(fingerprint, depth) as u32,
        }
    }
}
