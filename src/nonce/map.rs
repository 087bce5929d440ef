//! The memory that the window lives in: a mapped file, or anonymous memory that dies with the process.
//!
//! Address space for the largest window is reserved once, so nothing ever moves and a block can be handed out as a
//! plain reference. The mapped file grows in chunks, and a chunk is *allocated* before the first page of it is touched:
//! a full disk is then an error of [`Map::grow`] and never a SIGBUS in the middle of a request.
#![expect(
    unsafe_code,
    reason = "views into a memory-mapped file cannot be had otherwise; this is the only file that makes them"
)]

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use super::lock;

/// Words in a block.
pub(super) const WORDS: usize = 64;
/// Bytes in a block: the unit in which memory is handed out.
pub(super) const BLOCK_BYTES: usize = WORDS * size_of::<u64>();
/// Blocks that the file grows by: 1 MiB, which file systems allocate in well under a millisecond.
pub(super) const GROWTH_BLOCKS: usize = (1 << 20) / BLOCK_BYTES;

/// One block: words that other threads, and after a crash another process, see.
pub(super) type Block = [AtomicU64; WORDS];

/// Blocks of zeros at first, numbered from 0, of which the first [`Map::blocks`] may be touched.
pub(super) struct Map {
    raw: MmapRaw,
    /// `None`: anonymous memory.
    file: Option<File>,
    reserved: usize,
    committed: AtomicUsize,
    growth: Mutex<()>,
}

impl Map {
    /// Reserves anonymous memory for `reserved` blocks; pages cost nothing until touched.
    pub(super) fn anonymous(blocks: usize, reserved: usize) -> io::Result<Self> {
        let reserved = reserved.max(blocks);
        let raw = MmapOptions::new()
            .len(bytes(reserved)?)
            .no_reserve_swap()
            .map_anon()
            .map(MmapMut::into)?;
        Ok(Self::over(raw, None, blocks, reserved))
    }

    /// Maps `file`, whose first `blocks` blocks are allocated if they are not (a copied file may have holes),
    /// with room to grow to `reserved`.
    pub(super) fn of_file(file: File, blocks: usize, reserved: usize) -> io::Result<Self> {
        let reserved = reserved.max(blocks);
        allocate(&file, 0, blocks)?;
        let raw = MmapOptions::new().len(bytes(reserved)?).map_raw(&file)?;
        Ok(Self::over(raw, Some(file), blocks, reserved))
    }

    fn over(raw: MmapRaw, file: Option<File>, blocks: usize, reserved: usize) -> Self {
        Self {
            raw,
            file,
            reserved,
            committed: AtomicUsize::new(blocks),
            growth: Mutex::new(()),
        }
    }

    /// The block of this number, or `None` beyond [`Map::blocks`].
    #[inline]
    pub(super) fn block(&self, number: usize) -> Option<&Block> {
        if number >= self.committed.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: `committed <= reserved` blocks of BLOCK_BYTES lie inside the mapping, which stays where it is until
        // `self` is dropped; the pointer is page-aligned plus a multiple of 512, so it is aligned for u64. Memory is
        // shared, but this process only ever makes `&AtomicU64` of it, and no other process writes: the file has mode
        // 0600 and an exclusive lock. Blocks below `committed` have file behind them; if somebody truncates the file
        // all the same, the access ends the process by SIGBUS, which is not undefined behaviour and fails closed.
        Some(unsafe {
            &*self
                .raw
                .as_mut_ptr()
                .add(number * BLOCK_BYTES)
                .cast::<Block>()
        })
    }

    /// How many blocks there are.
    pub(super) fn blocks(&self) -> usize {
        self.committed.load(Ordering::Acquire)
    }

    /// Adds a chunk of zeroed blocks, unless there are more than `seen` blocks already.
    ///
    /// # Errors
    ///
    /// The disk or a quota is full, or the reserved space is used up; nothing has changed then.
    pub(super) fn grow(&self, seen: usize) -> io::Result<()> {
        let _growing = lock(&self.growth);
        let from = self.blocks();
        if from > seen {
            return Ok(());
        }
        let to = (from + GROWTH_BLOCKS).min(self.reserved);
        if to == from {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                "the window has the largest size that nonce.max_entries allows",
            ));
        }
        if let Some(file) = &self.file
            && let Err(error) = allocate(file, from, to)
        {
            // What was allocated before the disk was full goes back. If even that fails, the next open trims it.
            _ = file.set_len(u64::try_from(from * BLOCK_BYTES).unwrap_or(u64::MAX));
            return Err(error);
        }
        self.committed.store(to, Ordering::Release);
        Ok(())
    }

    /// Gives back all blocks from number `blocks` on.
    pub(super) fn shrink(&mut self, blocks: usize) -> io::Result<()> {
        if blocks >= self.blocks() {
            return Ok(());
        }
        // `&mut self`: no reference to a block is alive, and the limit falls before the file does.
        self.committed.store(blocks, Ordering::Release);
        match &self.file {
            Some(file) => file.set_len(u64::try_from(blocks * BLOCK_BYTES).unwrap_or(u64::MAX)),
            None => Ok(()),
        }
    }

    /// Waits until the first `blocks` blocks are on the disk; nothing to do for anonymous memory.
    pub(super) fn sync(&self, blocks: usize) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let blocks = blocks.min(self.blocks());
        self.raw.flush_range(0, blocks * BLOCK_BYTES)?;
        file.sync_data()
    }
}

/// Writes a word.
///
/// All writes go through here, so that a test can record them and replay any beginning of them: what a crash leaves
/// behind is always a beginning.
#[inline]
pub(super) fn put(word: &AtomicU64, value: u64, order: Ordering) {
    #[cfg(test)]
    super::tests::journal::record(word, value);
    word.store(value, order);
}

fn bytes(blocks: usize) -> io::Result<usize> {
    blocks
        .checked_mul(BLOCK_BYTES)
        .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// Makes sure that blocks `from..to` of the file have room on the disk; what is there stays.
fn allocate(file: &File, from: usize, to: usize) -> io::Result<()> {
    let offset = u64::try_from(bytes(from)?).map_err(io::Error::other)?;
    let length = u64::try_from(bytes(to)?).map_err(io::Error::other)? - offset;
    loop {
        match fallocate(file, FallocateFlags::empty(), offset, length) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, offset + length),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Where the file system cannot allocate (NFS, some FUSE): zeros from the file's end to `end`, and the answer of the
/// disk.
fn write_zeros(file: &File, end: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = file.metadata()?.len();
    while at < end {
        let part = usize::try_from(end - at).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        file.write_all_at(&ZEROS[..part], at)?;
        at += part as u64;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(blocks: usize) -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(directory.path().join("map"))
            .unwrap();
        file.set_len((blocks * BLOCK_BYTES) as u64).unwrap();
        (directory, file)
    }

    #[test]
    fn hands_out_only_blocks_that_have_file_behind_them() {
        let (_directory, file) = file_of(8);
        let map = Map::of_file(file.try_clone().unwrap(), 8, 10_000).unwrap();
        assert!(map.block(7).is_some());
        assert!(map.block(8).is_none());
        map.grow(8).unwrap();
        assert_eq!(map.blocks(), 8 + GROWTH_BLOCKS);
        let last = map.block(7 + GROWTH_BLOCKS).unwrap();
        put(&last[WORDS - 1], 42, Ordering::Release);
        assert_eq!(
            file.metadata().unwrap().len(),
            ((8 + GROWTH_BLOCKS) * BLOCK_BYTES) as u64
        );
    }

    #[test]
    fn grows_once_for_two_who_saw_the_same_size() {
        let map = Map::anonymous(8, 100_000).unwrap();
        map.grow(8).unwrap();
        map.grow(8).unwrap();
        assert_eq!(map.blocks(), 8 + GROWTH_BLOCKS);
    }

    #[test]
    fn stops_at_the_reserved_size() {
        let map = Map::anonymous(8, 9).unwrap();
        map.grow(8).unwrap();
        assert_eq!(map.blocks(), 9);
        assert_eq!(map.grow(9).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn shrinks_the_file_and_the_limit() {
        let (_directory, file) = file_of(64);
        let mut map = Map::of_file(file.try_clone().unwrap(), 64, 64).unwrap();
        map.shrink(16).unwrap();
        assert!(map.block(16).is_none());
        assert_eq!(file.metadata().unwrap().len(), 16 * BLOCK_BYTES as u64);
    }

    #[test]
    fn writes_zeros_where_allocation_is_not_supported() {
        let (_directory, file) = file_of(1);
        file.write_all_at(&[7; BLOCK_BYTES], 0).unwrap();
        write_zeros(&file, 200_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 200_000);
        let mut first = [0; BLOCK_BYTES];
        file.read_exact_at(&mut first, 0).unwrap();
        assert_eq!(first, [7; BLOCK_BYTES]);
    }
}
