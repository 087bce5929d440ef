//! Finds again what a file holds: reads every segment, checks it, and builds the directories.

use std::collections::BTreeSet;

use super::{
    header::{Damaged, FileKey, HEADER_BLOCKS},
    map::Map,
    segment::{Label, Segment},
    shard::{Bucket, MAX_DEPTH, SHARDS, Shard},
};

/// A segment that counts, and its block.
type Part = (Label, u32);

/// What a file holds.
pub(super) struct Recovered {
    pub(super) shards: Vec<Shard>,
    pub(super) seconds: BTreeSet<u64>,
    pub(super) entries: u64,
    /// Blocks up to the last one in use.
    pub(super) used_blocks: usize,
}

impl Recovered {
    /// Nothing yet.
    pub(super) fn empty() -> Self {
        Self {
            shards: (0..).take(SHARDS).map(Shard::new).collect(),
            seconds: BTreeSet::new(),
            entries: 0,
            used_blocks: HEADER_BLOCKS,
        }
    }
}

/// Reads the segments of a file whose writer is gone.
///
/// `ticks` turns the tick that was noted for a second into the one to go on with. Seconds up to `floor` were dropped.
///
/// # Errors
///
/// A segment is not as it was written, or one is missing.
pub(super) fn recover(
    map: &Map,
    key: &FileKey,
    floor: u64,
    ticks: impl Fn(u64) -> u64,
) -> Result<Recovered, Damaged> {
    let mut recovered = Recovered::empty();
    let mut labelled = Vec::new();
    let mut free = Vec::new();
    for block in HEADER_BLOCKS..map.blocks() {
        let number = u32::try_from(block).map_err(|_| Damaged)?;
        match segment(map, number)?.label(key, block)? {
            Some(label) if label.second > floor => labelled.push((label, number)),
            _ => free.push(number),
        }
    }
    labelled.sort_unstable_by_key(|(label, block)| {
        (label.second, label.shard, start(label), label.depth, *block)
    });

    let same_bucket =
        |one: &Part, other: &Part| (one.0.second, one.0.shard) == (other.0.second, other.0.shard);
    for group in labelled.chunk_by(same_bucket) {
        let Some((Label { second, shard, .. }, _)) = group.first() else {
            continue;
        };
        let (parts, halves) = cover(group)?;
        for block in halves {
            segment(map, block)?.retire();
            free.push(block);
        }
        let mut bucket = bucket(map, &parts)?;
        bucket.touched = ticks(bucket.touched);
        recovered.entries += bucket.entries;
        recovered.seconds.insert(*second);
        let used = parts.iter().map(|(_, block)| *block as usize + 1).max();
        recovered.used_blocks = recovered.used_blocks.max(used.unwrap_or(0));
        recovered
            .shards
            .get_mut(usize::from(*shard))
            .ok_or(Damaged)?
            .adopt(*second, bucket);
    }

    // Dealt out in turn; the highest first, so that the lowest are used first and the file can shrink again.
    let used = recovered.used_blocks;
    free.retain(|block| (*block as usize) < used);
    free.sort_unstable_by(|one, other| other.cmp(one));
    for (at, block) in free.into_iter().enumerate() {
        if let Some(shard) = recovered.shards.get_mut(at % SHARDS) {
            shard.adopt_spare(block);
        }
    }
    Ok(recovered)
}

fn segment(map: &Map, block: u32) -> Result<Segment<'_>, Damaged> {
    map.block(block as usize).map(Segment).ok_or(Damaged)
}

/// Where the prefixes of a label begin, and how many there are, in units of the longest prefix.
fn start(label: &Label) -> u64 {
    u64::from(label.prefix) << (MAX_DEPTH - label.depth)
}

fn span(label: &Label) -> u64 {
    1 << (MAX_DEPTH - label.depth)
}

/// Picks the segments that together hold all prefixes, and apart from them the halves of a split that was not finished:
/// the whole is still there and holds all that they do.
fn cover(group: &[Part]) -> Result<(Vec<Part>, Vec<u32>), Damaged> {
    let mut parts: Vec<Part> = Vec::with_capacity(group.len());
    let mut halves = Vec::new();
    let mut covered = 0;
    for (label, block) in group {
        if start(label) == covered {
            covered += span(label);
            parts.push((*label, *block));
        } else if start(label) < covered
            && parts
                .last()
                .is_some_and(|(whole, _)| whole.depth + 1 == label.depth)
        {
            halves.push(*block);
        } else {
            return Err(Damaged);
        }
    }
    if covered == 1 << MAX_DEPTH {
        Ok((parts, halves))
    } else {
        Err(Damaged)
    }
}

/// Builds the directory, and checks that each fingerprint is where it belongs.
fn bucket(map: &Map, parts: &[Part]) -> Result<Bucket, Damaged> {
    let depth = parts
        .iter()
        .map(|(label, _)| label.depth)
        .max()
        .unwrap_or(0);
    let mut bucket = Bucket {
        directory: Vec::with_capacity(1 << depth),
        depth,
        entries: 0,
        touched: 0,
    };
    for (label, block) in parts {
        let segment = segment(map, *block)?;
        for fingerprint in segment.fingerprints() {
            if !label.covers(fingerprint) {
                return Err(Damaged);
            }
            bucket.entries += 1;
        }
        bucket.touched = bucket.touched.max(segment.touched());
        let places = 1 << (depth - label.depth);
        bucket.directory.extend(std::iter::repeat_n(*block, places));
    }
    Ok(bucket)
}
