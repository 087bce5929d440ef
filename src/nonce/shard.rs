//! A shard: the nonces whose fingerprints begin with the same bits, second by second, under one lock.
//!
//! Each second's fingerprints lie in segments found by extendible hashing: a directory, in ordinary memory, leads from a
//! fingerprint's next bits to its segment; a segment without a free slot is replaced by two. Dropping a second hands its
//! whole directory over to the spare segments, so it costs the same however many nonces there were.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    Insertion,
    header::FileKey,
    pool::Pool,
    segment::{Label, Probe, Segment, prefix},
};

/// Bits of a fingerprint that choose the shard.
pub(super) const SHARD_BITS: u32 = 4;
/// Shards: enough that a few dozen workers rarely wait for each other, few enough that a quiet second stays small.
pub(super) const SHARDS: usize = 1 << SHARD_BITS;
/// The longest prefix of a segment; 2^32 times a segment's worth in one second, so never reached.
pub(super) const MAX_DEPTH: u32 = 28;

/// What all shards share.
pub(super) struct Ground {
    pub(super) pool: Pool,
    pub(super) key: FileKey,
    /// Nonces held.
    pub(super) entries: AtomicU64,
    /// Nonces that may be held.
    pub(super) max_entries: u64,
    /// The time that an insertion notes, see [`super::quiet`].
    pub(super) tick: AtomicU64,
}

impl Ground {
    /// Reserves room for one nonce.
    #[inline]
    fn reserve(&self) -> bool {
        // Added first and taken back: the limit is never passed, also when many reach it at once.
        if self.entries.fetch_add(1, Ordering::Relaxed) < self.max_entries {
            return true;
        }
        self.entries.fetch_sub(1, Ordering::Relaxed);
        false
    }
}

/// The nonces of one shard.
pub(super) struct Shard {
    number: u8,
    buckets: HashMap<u64, Bucket, BuildHasherDefault<SecondHasher>>,
    spare: Spare,
}

/// The nonces of one second in one shard.
pub(super) struct Bucket {
    /// The segment of each prefix of `depth` bits; a segment with a shorter prefix stands there several times in a row.
    pub(super) directory: Vec<u32>,
    pub(super) depth: u32,
    pub(super) entries: u64,
    /// The tick of the last insertion.
    pub(super) touched: u64,
}

/// What became of an insertion.
pub(super) struct Outcome {
    pub(super) insertion: Insertion,
    /// The shard began to hold this second, which has to be dropped one day, whatever the insertion came to.
    pub(super) began_second: bool,
}

impl Shard {
    /// An empty shard.
    pub(super) fn new(number: u8) -> Self {
        Self {
            number,
            buckets: HashMap::default(),
            spare: Spare::default(),
        }
    }

    /// Inserts a fingerprint if it is not there.
    #[inline]
    pub(super) fn insert(&mut self, ground: &Ground, second: u64, fingerprint: u64) -> Outcome {
        let Self {
            number,
            buckets,
            spare,
        } = self;
        let (bucket, began_second) = match buckets.entry(second) {
            Entry::Occupied(entry) => (entry.into_mut(), false),
            Entry::Vacant(entry) => match Bucket::begin(ground, spare, *number, second) {
                Some(bucket) => (entry.insert(bucket), true),
                None => {
                    return Outcome {
                        insertion: Insertion::Full,
                        began_second: false,
                    };
                }
            },
        };
        let insertion = loop {
            let Some(segment) = bucket.segment(ground, fingerprint) else {
                break Insertion::Full;
            };
            match segment.probe(fingerprint) {
                Probe::Present => break Insertion::Used,
                Probe::Vacant(slot) => {
                    if !ground.reserve() {
                        break Insertion::Full;
                    }
                    segment.set(slot, fingerprint);
                    bucket.entries += 1;
                    let tick = ground.tick.load(Ordering::Relaxed);
                    if bucket.touched != tick {
                        bucket.touched = tick;
                        segment.touch(tick);
                    }
                    break Insertion::Fresh;
                }
                Probe::Crowded => {
                    if bucket
                        .split(ground, spare, *number, second, fingerprint)
                        .is_none()
                    {
                        break Insertion::Full;
                    }
                }
            }
        };
        Outcome {
            insertion,
            began_second,
        }
    }

    /// The tick of the last insertion into a second, if it has any.
    pub(super) fn touched(&self, second: u64) -> Option<u64> {
        self.buckets.get(&second).map(|bucket| bucket.touched)
    }

    /// Forgets a second; its segments are used again. Returns how many nonces it had.
    ///
    /// Their labels stay as they are until then: whoever calls has raised the floor, so they count no more.
    pub(super) fn drop_second(&mut self, second: u64) -> u64 {
        match self.buckets.remove(&second) {
            Some(bucket) => {
                self.spare.dropped.push(bucket.directory);
                bucket.entries
            }
            None => 0,
        }
    }

    /// Takes over a second that was found in the file.
    pub(super) fn adopt(&mut self, second: u64, bucket: Bucket) {
        self.buckets.insert(second, bucket);
    }

    /// Takes over a block that was found free.
    pub(super) fn adopt_spare(&mut self, block: u32) {
        self.spare.free.push(block);
    }
}

impl Bucket {
    /// A bucket with one empty segment, which counts already.
    fn begin(ground: &Ground, spare: &mut Spare, shard: u8, second: u64) -> Option<Self> {
        let block = spare.take(&ground.pool)?;
        let segment = ground.pool.segment(block)?;
        let touched = ground.tick.load(Ordering::Relaxed);
        let label = Label {
            second,
            shard,
            depth: 0,
            prefix: 0,
        };
        segment.clear();
        segment.publish(&ground.key, block as usize, &label, touched);
        Some(Self {
            directory: vec![block],
            depth: 0,
            entries: 0,
            touched,
        })
    }

    #[inline]
    fn segment<'a>(&self, ground: &'a Ground, fingerprint: u64) -> Option<Segment<'a>> {
        let block = *self.directory.get(prefix(fingerprint, self.depth))?;
        ground.pool.segment(block)
    }

    /// Replaces the full segment of `fingerprint` by two. `None`: there is no room, and nothing has changed.
    ///
    /// In the file both halves count before the whole ceases to. If the process dies in between, the whole is still
    /// there, and nothing has gone into the halves yet: opening the file keeps the whole.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "prefixes have at most MAX_DEPTH = 28 bits"
    )]
    fn split(
        &mut self,
        ground: &Ground,
        spare: &mut Spare,
        shard: u8,
        second: u64,
        fingerprint: u64,
    ) -> Option<()> {
        let parent_block = *self.directory.get(prefix(fingerprint, self.depth))?;
        let parent = ground.pool.segment(parent_block)?;
        let depth = parent.depth();
        if depth >= MAX_DEPTH {
            return None;
        }
        let low_block = spare.take(&ground.pool)?;
        let Some(high_block) = spare.take(&ground.pool) else {
            spare.free.push(low_block);
            return None;
        };
        let low = ground.pool.segment(low_block)?;
        let high = ground.pool.segment(high_block)?;
        low.clear();
        high.clear();
        for held in parent.fingerprints() {
            let child = if prefix(held, depth + 1) & 1 == 0 {
                low
            } else {
                high
            };
            // Always vacant: a child has as many slots as its parent, and no fingerprint stands there twice.
            if let Probe::Vacant(slot) = child.probe(held) {
                child.set(slot, held);
            }
        }
        let parent_prefix = prefix(fingerprint, depth);
        for (half, child, block) in [(0, low, low_block), (1, high, high_block)] {
            let label = Label {
                second,
                shard,
                depth: depth + 1,
                prefix: (parent_prefix << 1 | half) as u32,
            };
            child.publish(&ground.key, block as usize, &label, self.touched);
        }
        parent.retire();
        spare.free.push(parent_block);

        if depth == self.depth {
            self.directory = self
                .directory
                .iter()
                .flat_map(|block| [*block, *block])
                .collect();
            self.depth += 1;
        }
        let span = 1 << (self.depth - depth - 1);
        let from = parent_prefix << (self.depth - depth);
        self.directory.get_mut(from..from + span)?.fill(low_block);
        self.directory
            .get_mut(from + span..from + 2 * span)?
            .fill(high_block);
        Some(())
    }
}

/// Segments of this shard to be used again. Fingerprints spread evenly, so no shard hoards what another lacks.
#[derive(Default)]
struct Spare {
    free: Vec<u32>,
    /// Directories of dropped seconds, taken apart one segment at a time.
    dropped: Vec<Vec<u32>>,
}

impl Spare {
    fn take(&mut self, pool: &Pool) -> Option<u32> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        while let Some(directory) = self.dropped.last_mut() {
            if let Some(block) = directory.pop() {
                while directory.last() == Some(&block) {
                    directory.pop();
                }
                return Some(block);
            }
            self.dropped.pop();
        }
        pool.take()
    }
}

/// Hashes a second for the map of buckets: seconds come in a row, and a multiplication spreads them.
#[derive(Default)]
pub(super) struct SecondHasher(u64);

impl Hasher for SecondHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, second: u64) {
        self.0 = second.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
