//! Where segments come from: memory never used before, got from the file in chunks.

use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tracing::{error, info};

use super::{
    header::{self, Field, FileKey},
    lock,
    map::{GROWTH_BLOCKS, Map},
    segment::Segment,
};

/// The most chunks that are got ahead of need in one go: each may take a quarter of a millisecond.
const MAX_CHUNKS_AHEAD: usize = 2;

/// The map, and how much of it is given out.
pub(super) struct Pool {
    pub(super) map: Map,
    key: FileKey,
    /// The first block that was never given out.
    next: AtomicUsize,
    /// Growing failed. It is tried again by [`Pool::grow_ahead`], once a second, and not by every request: a full disk
    /// must not cost a system call a request.
    stuck: AtomicBool,
    /// `next` at the last [`Pool::grow_ahead`].
    seen: Mutex<usize>,
    /// For the log.
    path: Option<PathBuf>,
}

impl Pool {
    /// A pool that gives out blocks from number `next` on.
    pub(super) fn new(map: Map, key: FileKey, next: usize, path: Option<PathBuf>) -> Self {
        Self {
            map,
            key,
            next: AtomicUsize::new(next),
            stuck: AtomicBool::new(false),
            seen: Mutex::new(next),
            path,
        }
    }

    /// The segment in a block.
    #[inline]
    pub(super) fn segment(&self, block: u32) -> Option<Segment<'_>> {
        self.map.block(block as usize).map(Segment)
    }

    /// A block that was never given out; `None` if the disk or the reserved space is full.
    pub(super) fn take(&self) -> Option<u32> {
        loop {
            let next = self.next.load(Ordering::Relaxed);
            if next < self.map.blocks() {
                let taken = self.next.compare_exchange_weak(
                    next,
                    next + 1,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if taken.is_ok() {
                    return u32::try_from(next).ok();
                }
            } else if self.stuck.load(Ordering::Relaxed) || !self.grow(next) {
                return None;
            }
        }
    }

    /// Gets memory for about as much as was needed since the last call, twice over, so that a request seldom waits for
    /// the file system. Call it once a second; it also tries again what failed.
    pub(super) fn grow_ahead(&self) {
        let next = self.next.load(Ordering::Relaxed);
        let needed = {
            let mut seen = lock(&self.seen);
            2 * (next - std::mem::replace(&mut *seen, next))
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
        let path = self
            .path
            .as_ref()
            .map(|path| tracing::field::display(path.display()));
        match self.map.grow(seen) {
            Ok(()) => {
                if let Some(block) = self.map.block(0) {
                    let blocks = self.map.blocks() as u64;
                    header::write(block, &self.key, Field::Blocks, blocks);
                }
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
                        "the nonce window cannot grow: signed requests are refused until old nonces expire or there is room"
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

    #[test]
    fn gives_each_block_out_once_and_then_none() {
        let pool = Pool::new(
            Map::anonymous(8, 12).unwrap(),
            FileKey::new([1, 2]),
            8,
            None,
        );
        let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, [8, 9, 10, 11]);
        assert!(pool.stuck.load(Ordering::Relaxed));
    }

    #[test]
    fn grows_ahead_of_what_is_needed_and_stays_small_without_need() {
        let pool = Pool::new(
            Map::anonymous(8, 1_000_000).unwrap(),
            FileKey::new([1, 2]),
            8,
            None,
        );
        pool.grow_ahead();
        assert_eq!(pool.map.blocks(), 8);
        for _ in 0..5_000 {
            pool.take().unwrap();
        }
        pool.grow_ahead();
        assert!(pool.map.blocks() >= 5_008 + 2 * GROWTH_BLOCKS);
        let blocks = pool.map.blocks();
        pool.grow_ahead();
        assert_eq!(pool.map.blocks(), blocks);
    }
}
