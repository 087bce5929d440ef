//! The reader of the window's file, for the fuzz targets alone.

use std::collections::BTreeSet;

use super::{
    Insertion, Params,
    header::{FileKey, HEADER_BLOCKS, Header},
    map::{Map, put},
    memory::Memory,
    recover,
    segment::{Label, Probe, Segment, shard_of},
};

/// How deep a laid-out segment lies at most; all of its second and shard is then so many units.
const DEPTH: u32 = 2;

/// A segment as it is laid out before it is read back.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The second it is for.
    pub second: u64,
    /// The shard it is for, 0 to 15.
    pub shard: u8,
    /// How many bits its prefix has, 0 to 2.
    pub depth: u32,
    /// The prefix, below `1 << depth`.
    pub prefix: u32,
    /// A bit of the first two words that is flipped afterwards.
    pub flipped: Option<u32>,
}

impl Part {
    /// The quarters of its second and shard that it is for.
    #[must_use]
    pub fn quarters(&self) -> std::ops::Range<u32> {
        let span = 1 << (DEPTH - self.depth);
        self.prefix * span..(self.prefix + 1) * span
    }

    fn fingerprints(&self) -> impl Iterator<Item = u64> {
        let shard = u64::from(self.shard);
        let inside = move |quarter: u32| shard << 60 | u64::from(quarter) << 58;
        self.quarters()
            .flat_map(move |quarter| [inside(quarter) | 1, inside(quarter) | 0xffff_ffff])
    }
}

/// Lays out the segments, reads them back, and tells whether everything is there that was; `None` if the reader
/// finds the file damaged.
#[must_use]
pub fn read_back(parts: &[Part], floor: u64) -> Option<bool> {
    let key = FileKey([1, 2]);
    let blocks = HEADER_BLOCKS + parts.len();
    let map = Map::anonymous(blocks, blocks + 16).ok()?;
    for (block, part) in (HEADER_BLOCKS..).zip(parts) {
        let words = map.block(block)?;
        let segment = Segment(words);
        segment.clear();
        for fingerprint in part.fingerprints() {
            if let Probe::Vacant(slot) = segment.probe(fingerprint) {
                segment.set(slot, fingerprint);
            }
        }
        let label = Label {
            second: part.second,
            shard: part.shard,
            depth: part.depth,
            prefix: part.prefix,
        };
        segment.publish(&key, block, &label, 0);
        if let Some(bit) = part.flipped {
            use std::sync::atomic::Ordering::Relaxed;
            let word = &words[bit as usize / 64 % 2];
            put(word, word.load(Relaxed) ^ 1 << (bit % 64), Relaxed);
        }
    }
    let mut recovered = recover::recover(&map, &key, floor, |tick| tick).ok()?;
    let live = || parts.iter().filter(|part| part.second > floor);
    let expected: BTreeSet<(u64, u64)> = live()
        .flat_map(|part| part.fingerprints().map(|print| (part.second, print)))
        .collect();
    let entries = recovered.entries;
    let params = Params {
        path: None,
        window: std::time::Duration::ZERO,
        max_entries: u64::MAX,
    };
    let memory = Memory::new(map, key, &mut recovered, &params);
    let is_used = |&(second, fingerprint): &(u64, u64)| {
        recovered.buckets.get(&second).is_some_and(|bucket| {
            let mut shard = bucket.shard(shard_of(fingerprint));
            shard.insert(&memory, second, fingerprint) == Insertion::Used
        })
    };
    let all_used = expected.iter().all(is_used);
    Some(all_used && entries == expected.len() as u64)
}

/// Reads a header page, whatever it is.
pub fn read_header(page: &[u8]) {
    let _ = Header::parse(page);
}
