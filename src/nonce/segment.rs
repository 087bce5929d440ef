//! A segment: one block with a label and 61 slots of fingerprints, filled by open addressing and never deleted from.
//!
//! The label says which second, shard and prefix of fingerprints the segment holds. Its first word is written last and
//! makes the segment count; written as 0 it makes the segment free. Nothing else of a free segment matters.

use std::sync::atomic::{Ordering, fence};

use super::{
    bucket::{MAX_DEPTH, SHARD_BITS, SHARDS},
    header::{Damaged, FileKey},
    map::{Block, WORDS, put},
};

const IDENTITY: usize = 0;
const SECOND: usize = 1;
const TOUCHED: usize = 2;
const FIRST_SLOT: usize = 3;

// The first word, from its low end: prefix, shard, depth, checksum.
const DEPTH_SHIFT: u32 = MAX_DEPTH + SHARD_BITS;
const PLACE: u64 = (1 << (DEPTH_SHIFT + 5)) - 1;

/// Fingerprints that a segment holds at most.
pub(super) const SLOTS: usize = WORDS - FIRST_SLOT;

/// What a segment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    pub(super) second: u64,
    pub(super) shard: u8,
    /// How many bits of a fingerprint, after those of the shard, that all entries share.
    pub(super) depth: u32,
    /// Those bits.
    pub(super) prefix: u32,
}

impl Label {
    /// The first word: where in the shard in 37 bits, and a checksum over everything and the block's number in the
    /// rest.
    fn identity(&self, key: &FileKey, block: usize) -> u64 {
        let place = u64::from(self.depth) << DEPTH_SHIFT
            | u64::from(self.shard) << MAX_DEPTH
            | u64::from(self.prefix);
        let check = key.checksum([block as u64, self.second, place]);
        // The top bit is always set, so that no identity is 0.
        (check | 1 << 63) & !PLACE | place
    }

    /// Whether a fingerprint belongs here.
    pub(super) fn covers(&self, fingerprint: u64) -> bool {
        shard_of(fingerprint) == usize::from(self.shard)
            && prefix(fingerprint, self.depth) == self.prefix as usize
    }
}

fn depth_of(identity: u64) -> u32 {
    (identity >> DEPTH_SHIFT & 0x1f) as u32
}

/// The shard of a fingerprint: its first bits.
#[inline]
pub(super) fn shard_of(fingerprint: u64) -> usize {
    (fingerprint >> (64 - SHARD_BITS)) as usize
}

/// The first `depth` bits after those of the shard.
#[inline]
pub(super) fn prefix(fingerprint: u64, depth: u32) -> usize {
    // Shifted in two steps, because a shift by 64 (depth 0) is not defined.
    (((fingerprint << SHARD_BITS) >> 1) >> (63 - depth)) as usize
}

/// Where a fingerprint is in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// It is there.
    Present,
    /// It is not there, and belongs into this slot.
    Vacant(usize),
    /// It is not there, and there is no slot left.
    Full,
}

/// A view of one block as a segment. The writer holds the lock of the shard.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a>(pub(super) &'a Block);

impl Segment<'_> {
    /// Looks for a fingerprint: from its own slot on, up to the first empty one.
    #[inline]
    pub(super) fn probe(&self, fingerprint: u64) -> Probe {
        // The low 32 bits, which no prefix uses, scaled to a slot.
        let start = ((fingerprint & 0xffff_ffff) * SLOTS as u64) >> 32;
        let (before, from) = self.0[FIRST_SLOT..].split_at(start as usize);
        for (at, slot) in from.iter().enumerate() {
            let held = slot.load(Ordering::Relaxed);
            if held == 0 {
                return Probe::Vacant(FIRST_SLOT + start as usize + at);
            }
            if held == fingerprint {
                return Probe::Present;
            }
        }
        for (at, slot) in before.iter().enumerate() {
            let held = slot.load(Ordering::Relaxed);
            if held == 0 {
                return Probe::Vacant(FIRST_SLOT + at);
            }
            if held == fingerprint {
                return Probe::Present;
            }
        }
        Probe::Full
    }

    /// Fills a slot that [`Segment::probe`] found vacant.
    #[inline]
    pub(super) fn set(&self, slot: usize, fingerprint: u64) {
        put(&self.0[slot], fingerprint, Ordering::Release);
    }

    /// The fingerprints held, in the order of the slots.
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = u64> {
        self.0[FIRST_SLOT..]
            .iter()
            .map(|slot| slot.load(Ordering::Relaxed))
            .filter(|held| *held != 0)
    }

    /// Makes a segment free and empty, whatever it was.
    pub(super) fn clear(&self) {
        put(&self.0[IDENTITY], 0, Ordering::Relaxed);
        // Not one slot may change while the old label still counts.
        fence(Ordering::Release);
        for slot in &self.0[FIRST_SLOT..] {
            put(slot, 0, Ordering::Relaxed);
        }
    }

    /// Makes a segment count that [`Segment::clear`] emptied and that may have been filled since.
    pub(super) fn publish(&self, key: &FileKey, block: usize, label: &Label, touched: u64) {
        put(&self.0[SECOND], label.second, Ordering::Relaxed);
        put(&self.0[TOUCHED], touched, Ordering::Relaxed);
        put(
            &self.0[IDENTITY],
            label.identity(key, block),
            Ordering::Release,
        );
    }

    /// Makes a segment free; all that was written before stays before.
    pub(super) fn retire(&self) {
        put(&self.0[IDENTITY], 0, Ordering::Release);
    }

    /// Notes when something was inserted last.
    pub(super) fn touch(&self, touched: u64) {
        put(&self.0[TOUCHED], touched, Ordering::Relaxed);
    }

    /// When something was inserted last, as noted.
    pub(super) fn touched(&self) -> u64 {
        self.0[TOUCHED].load(Ordering::Relaxed)
    }

    /// How many bits of the fingerprints the label fixes; 0 for a free segment.
    pub(super) fn depth(&self) -> u32 {
        depth_of(self.0[IDENTITY].load(Ordering::Relaxed))
    }

    /// The label, if the segment counts; `Err` if it is not what was once written.
    #[expect(clippy::cast_possible_truncation, reason = "fields are cut to size")]
    pub(super) fn label(&self, key: &FileKey, block: usize) -> Result<Option<Label>, Damaged> {
        let identity = self.0[IDENTITY].load(Ordering::Acquire);
        if identity == 0 {
            return Ok(None);
        }
        let label = Label {
            second: self.0[SECOND].load(Ordering::Relaxed),
            shard: (identity >> MAX_DEPTH) as u8 % SHARDS as u8,
            depth: depth_of(identity),
            prefix: identity as u32 % (1 << MAX_DEPTH),
        };
        let sound = label.identity(key, block) == identity
            && label.depth <= MAX_DEPTH
            && label.prefix < 1 << label.depth;
        if sound { Ok(Some(label)) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn block() -> Block {
        std::array::from_fn(|_| AtomicU64::new(u64::MAX))
    }

    fn insert(segment: Segment<'_>, fingerprint: u64) -> bool {
        match segment.probe(fingerprint) {
            Probe::Vacant(slot) => {
                segment.set(slot, fingerprint);
                true
            }
            Probe::Present | Probe::Full => false,
        }
    }

    #[test]
    fn holds_61_fingerprints_and_finds_each_again() {
        let block = block();
        let segment = Segment(&block);
        segment.clear();
        let key = FileKey([0, 1]);
        // All of the same start slot, near the end, so that probing wraps around.
        let fingerprints: Vec<u64> = (0..SLOTS as u64)
            .map(|at| key.checksum([at]) & !0xffff_ffff | 0xffff_0000)
            .collect();
        for fingerprint in &fingerprints {
            assert!(insert(segment, *fingerprint));
        }
        for fingerprint in &fingerprints {
            assert_eq!(segment.probe(*fingerprint), Probe::Present);
        }
        assert_eq!(segment.probe(1), Probe::Full);
        assert_eq!(segment.fingerprints().count(), SLOTS);
    }

    #[test]
    fn a_label_counts_only_in_its_own_block_and_unbroken() {
        let block = block();
        let segment = Segment(&block);
        let key = FileKey([0, 1]);
        let label = Label {
            second: 1_700_000_000,
            shard: 3,
            depth: 5,
            prefix: 17,
        };
        segment.clear();
        assert_eq!(segment.label(&key, 9), Ok(None));
        segment.publish(&key, 9, &label, 77);
        assert_eq!(segment.label(&key, 9), Ok(Some(label)));
        assert_eq!(segment.depth(), 5);
        assert_eq!(segment.touched(), 77);
        assert!(segment.label(&key, 10).is_err());
        block[SECOND].fetch_xor(1, Ordering::Relaxed);
        assert!(segment.label(&key, 9).is_err());
        segment.retire();
        assert_eq!(segment.label(&key, 9), Ok(None));
    }

    #[test]
    fn shard_and_prefix_are_the_first_bits_in_turn() {
        let fingerprint = 0xa5c3_0000_0000_0000;
        assert_eq!(shard_of(fingerprint), 0xa);
        assert_eq!(prefix(fingerprint, 0), 0);
        assert_eq!(prefix(fingerprint, 1), 0);
        assert_eq!(prefix(fingerprint, 4), 5);
        assert_eq!(prefix(fingerprint, 12), 0x5c3);
    }
}
