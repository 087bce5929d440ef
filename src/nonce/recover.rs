//! Reads a file back: checks every segment and builds the buckets.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    bucket::{Bucket, MAX_DEPTH, Shard},
    header::{Damaged, FileKey, HEADER_BLOCKS},
    map::Map,
    segment::{Label, Segment},
};

/// A segment that counts, and its block.
type LabelledBlock = (Label, u32);

/// What a file holds.
pub(super) struct Recovered {
    pub(super) buckets: BTreeMap<u64, Arc<Bucket>>,
    pub(super) entries: u64,
    /// Blocks up to the last one in use.
    pub(super) used_blocks: usize,
    /// Those below it that are free; the highest first, so that the lowest are used first and the file can shrink
    /// again.
    pub(super) free: Vec<u32>,
}

impl Default for Recovered {
    fn default() -> Self {
        Self {
            buckets: BTreeMap::new(),
            entries: 0,
            used_blocks: HEADER_BLOCKS,
            free: Vec::new(),
        }
    }
}

/// Reads the segments of a file that no process writes any more.
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
    let mut recovered = Recovered::default();
    let mut labelled = Vec::new();
    for block in HEADER_BLOCKS..map.blocks() {
        let number = u32::try_from(block).map_err(|_| Damaged)?;
        match segment(map, number)?.label(key, block)? {
            Some(label) if label.second > floor => labelled.push((label, number)),
            _ => recovered.free.push(number),
        }
    }
    labelled.sort_unstable_by_key(|(label, block)| {
        (label.second, label.shard, start(label), label.depth, *block)
    });

    let same_shard = |one: &LabelledBlock, other: &LabelledBlock| {
        (one.0.second, one.0.shard) == (other.0.second, other.0.shard)
    };
    for group in labelled.chunk_by(same_shard) {
        let Some((label, _)) = group.first() else {
            continue;
        };
        let (parts, halves) = cover(group)?;
        for block in halves {
            segment(map, block)?.retire();
            recovered.free.push(block);
        }
        let mut shard = shard(map, &parts)?;
        shard.touched = ticks(shard.touched);
        recovered.entries += shard.entries;
        let used = parts.iter().map(|(_, block)| *block as usize + 1).max();
        recovered.used_blocks = recovered.used_blocks.max(used.unwrap_or(0));
        let bucket = recovered.buckets.entry(label.second).or_default();
        *bucket.shard(label.shard.into()) = shard;
    }

    let used = recovered.used_blocks;
    recovered.free.retain(|block| (*block as usize) < used);
    recovered.free.sort_unstable_by(|one, other| other.cmp(one));
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
fn cover(group: &[LabelledBlock]) -> Result<(Vec<LabelledBlock>, Vec<u32>), Damaged> {
    let mut parts: Vec<LabelledBlock> = Vec::with_capacity(group.len());
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

/// Builds a shard, and checks that each fingerprint is where it belongs.
fn shard(map: &Map, parts: &[LabelledBlock]) -> Result<Shard, Damaged> {
    let depth = parts
        .iter()
        .map(|(label, _)| label.depth)
        .max()
        .unwrap_or(0);
    let mut shard = Shard {
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
            shard.entries += 1;
        }
        shard.touched = shard.touched.max(segment.touched());
        let places = 1 << (depth - label.depth);
        shard.directory.extend(std::iter::repeat_n(*block, places));
    }
    Ok(shard)
}
