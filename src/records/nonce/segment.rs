//! One file of the log: records in memory that is a file, so that they survive the process and an append makes no system
//! call.
//!
//! All of the file is allocated on the disk when it is made, and has its pages in memory: a full disk is an error of
//! [`Segment::create`], and not a SIGBUS in the middle of a request.
//!
//! The first page is the head: a record of the file's number and capacity, then two counts of records, those that have
//! their place and those that are written. The counts show a start any page that the file system has lost, even the
//! last one and the head.
#![expect(
    unsafe_code,
    reason = "a view into a memory-mapped file cannot be had otherwise; this is the only file that makes one"
)]

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileExt,
    path::Path,
    slice,
    sync::atomic::{AtomicU64, Ordering},
};

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use super::key::{Key, Record};
use crate::base::file::new_file::{create_new, open_kept};

/// Bytes of a record.
pub(super) const RECORD_BYTES: usize = size_of::<Record>();
/// The head, in records: a page, so that no page has both a count and the records that it counts.
pub(super) const HEAD_RECORDS: usize = 4096 / RECORD_BYTES;
/// The index in the head of the count of records that have their place; from the capacity on there is no room.
const PLACED: usize = 2;
/// The index in the head of the count of records that are written.
const WRITTEN: usize = 3;
/// Bytes of the pages that are filled in one system call: meanwhile no other thread can map memory.
const FILLED_AT_ONCE: usize = 256 << 10;
/// A bit of the count of places, beyond any file's capacity.
const SEALED: u64 = 1 << 62;

/// A file that records are appended to.
pub(super) struct Segment {
    /// Its place in the log.
    pub(super) number: u64,
    map: MmapRaw,
    /// The highest timestamp that was appended.
    highest: AtomicU64,
}

impl Segment {
    /// Makes a file for this many records, with mode 0600.
    ///
    /// # Errors
    ///
    /// The system's, or it has no room for a page, although it allocated the file; no file is left then.
    pub(super) fn create(path: &Path, number: u64, capacity: usize, key: Key) -> io::Result<Self> {
        let bytes = (HEAD_RECORDS + capacity) * RECORD_BYTES;
        // A log that a start has left before it noted it. It is not opened: another account may have put a link there.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = create_new(path)?;
        let map = allocate(&file, bytes as u64)
            .and_then(|()| MmapOptions::new().len(bytes).map_raw(&file))
            .and_then(|map| populate(&map).map(|()| map))
            .inspect_err(|_| _ = fs::remove_file(path))?;
        let segment = Self {
            number,
            map,
            highest: AtomicU64::new(0),
        };
        // This record reveals a misplaced or cut file.
        segment.write(0, key.seal(number, capacity as u64));
        Ok(segment)
    }

    /// Appends the record of a nonce with this timestamp; `false` if there is no room.
    #[inline]
    pub(super) fn append(&self, second: u64, record: Record) -> bool {
        // Before the record has its place, so that `seal` returns it.
        if self.highest.load(Ordering::Relaxed) < second {
            self.highest.fetch_max(second, Ordering::Relaxed);
        }
        let words = self.words();
        let at = usize::try_from(words[PLACED].fetch_add(1, Ordering::AcqRel));
        let is_inside = at.is_ok_and(|at| self.write(HEAD_RECORDS + at, record));
        if is_inside {
            // After the record: the count is never ahead of the records, wherever the process is killed.
            words[WRITTEN].fetch_add(1, Ordering::Release);
        }
        is_inside
    }

    /// Writes a record if it is inside the file. A killed process leaves a beginning of these two stores, and without
    /// the second one the record is not there.
    #[inline]
    fn write(&self, at: usize, record: Record) -> bool {
        let (places, _) = self.words().as_chunks::<2>();
        let Some([fingerprint, sealed]) = places.get(at) else {
            return false;
        };
        fingerprint.store(record[0], Ordering::Relaxed);
        sealed.store(record[1], Ordering::Release);
        true
    }

    fn words(&self) -> &[AtomicU64] {
        let length = self.map.len() / size_of::<u64>();
        // SAFETY: the mapping has this many words, begins at a page and stays where it is until `self` is dropped. It is
        // shared memory, but this process only ever makes `&AtomicU64` of it, and no other process writes: the file has
        // mode 0600 and its window an exclusive lock. The whole file is allocated; if somebody truncates it all the
        // same, the access ends the process by SIGBUS, which is not undefined behaviour and fails closed.
        unsafe { slice::from_raw_parts(self.map.as_mut_ptr().cast(), length) }
    }

    /// The number of records that have their place, and the capacity; a sealed file has no place.
    pub(super) fn fill(&self) -> (usize, usize) {
        let capacity = self.map.len() / RECORD_BYTES - HEAD_RECORDS;
        let placed = self.words()[PLACED].load(Ordering::Relaxed);
        (
            usize::try_from(placed).map_or(capacity, |placed| placed.min(capacity)),
            capacity,
        )
    }

    /// The number of records that were appended.
    pub(super) fn written(&self) -> usize {
        let written = self.words()[WRITTEN].load(Ordering::Relaxed);
        usize::try_from(written).unwrap_or(usize::MAX)
    }

    /// Rejects further records, and returns the highest timestamp of those that were appended.
    pub(super) fn seal(&self) -> u64 {
        self.words()[PLACED].fetch_or(SEALED, Ordering::AcqRel);
        self.highest.load(Ordering::Relaxed)
    }
}

/// Calls `each` with the timestamp and fingerprint of each record of a file. A process may append to it meanwhile.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if the file is not as it was written; and the system's.
pub(super) fn replay(
    path: &Path,
    number: u64,
    key: Key,
    mut each: impl FnMut(u64, u64),
) -> io::Result<()> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let (mut file, mut bytes, mut placed) = (
        open_kept(path, File::options().read(true))?,
        Vec::new(),
        [0; 8],
    );
    file.read_to_end(&mut bytes)?;
    // Read after the records, and the other count before them.
    file.read_exact_at(&mut placed, (PLACED * size_of::<u64>()) as u64)?;
    let placed = u64::from_ne_bytes(placed);
    let words = |record: &[u8; RECORD_BYTES]| {
        let (words, _) = record.as_chunks();
        [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
    };
    let (records, _) = bytes.as_chunks();
    let split = records.split_at_checked(HEAD_RECORDS);
    let (head, records) = split.ok_or_else(damaged)?;
    let [_, written] = words(&head[PLACED / 2]);
    if key.unseal(words(&head[0]))? != Some((number, records.len() as u64)) {
        return Err(damaged());
    }
    let mut found = 0;
    for (at, record) in (0..).zip(records) {
        if let Some((second, fingerprint)) = key.unseal(words(record))? {
            // A record without a place: the head is an old one.
            if at >= placed {
                return Err(damaged());
            }
            found += 1;
            each(second, fingerprint);
        }
    }
    if found < written {
        return Err(damaged());
    }
    Ok(())
}

/// Has every page in memory, so that an append need not wait for one. Where the system does not do that, the appends do.
///
/// # Errors
///
/// An access to a page would be a SIGBUS.
fn populate(map: &MmapRaw) -> io::Result<()> {
    for at in (0..map.len()).step_by(FILLED_AT_ONCE) {
        let bytes = FILLED_AT_ONCE.min(map.len() - at);
        match map.advise_range(Advice::PopulateWrite, at, bytes) {
            Ok(()) => {}
            Err(error) if Errno::from_io_error(&error).is_some_and(is_sigbus) => return Err(error),
            Err(_) => break,
        }
    }
    Ok(())
}

/// Whether an access to a page that was not filled with this error would be a SIGBUS. The system reports that by two errors.
/// All others say nothing about the disk, and the appends fill the pages: EINVAL is Linux before 5.14; EPERM, ENOSYS or
/// any other number is what a sandbox answers; with ENOMEM there is no memory at the moment, and an access waits for it.
fn is_sigbus(errno: Errno) -> bool {
    matches!(errno, Errno::FAULT | Errno::HWPOISON)
}

/// Gives the file this many bytes of zeros that have room on the disk.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // NFS, some FUSE.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, bytes),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key([1, 2]);

    fn records(path: &Path) -> io::Result<Vec<(u64, u64)>> {
        let mut records = Vec::new();
        replay(path, 7, KEY, |second, fingerprint| {
            records.push((second, fingerprint));
        })?;
        Ok(records)
    }

    /// A file of `capacity` records of which `count` are written, and its bytes.
    fn file(capacity: usize, count: u64) -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let segment = Segment::create(&path, 7, capacity, KEY).unwrap();
        for number in 0..count {
            let second = 1_000 + number;
            assert!(segment.append(second, KEY.seal(second, number)));
        }
        let bytes = fs::read(&path).unwrap();
        (directory, path, bytes)
    }

    const PAGE: usize = 4096;

    fn set_count(bytes: &mut [u8], word: usize, count: u64) {
        bytes[word * 8..][..8].copy_from_slice(&count.to_ne_bytes());
    }

    #[test]
    fn every_prefix_of_the_written_bytes_is_a_valid_shorter_log() {
        let (_directory, path, bytes) = file(100, 60);
        // One thread takes a place, stores two words, and counts the record.
        for steps in 0..=4 * 60_usize {
            let mut stopped = bytes.clone();
            let (whole, step) = (steps / 4, steps % 4);
            let words = 2 * whole + step.saturating_sub(1);
            stopped[PAGE + words * 8..].fill(0);
            set_count(&mut stopped, PLACED, (whole + step.min(1)) as u64);
            set_count(&mut stopped, WRITTEN, whole as u64);
            fs::write(&path, &stopped).unwrap();
            let written: Vec<_> = (0..(words / 2) as u64)
                .map(|number| (1_000 + number, number))
                .collect();
            assert_eq!(records(&path).unwrap(), written, "after {steps} steps");
        }
    }

    #[test]
    fn threads_that_were_stopped_leave_gaps() {
        let (_directory, path, bytes) = file(1_000, 1_000);
        for gap in [1, 2, 300] {
            let mut holed = bytes.clone();
            holed[PAGE + 16 * 500..][..16 * gap].fill(0);
            set_count(&mut holed, WRITTEN, 1_000 - gap as u64);
            fs::write(&path, &holed).unwrap();
            assert_eq!(records(&path).unwrap().len(), 1_000 - gap);
            set_count(&mut holed, WRITTEN, 1_001 - gap as u64);
            fs::write(&path, &holed).unwrap();
            assert!(records(&path).is_err(), "{gap}");
        }
    }

    #[test]
    fn notices_each_page_that_is_lost_or_old() {
        for count in [1, 200, 256, 257, 600] {
            let (_directory, path, bytes) = file(1_000, count);
            let (_directory, _, before) = file(1_000, count - 1);
            for page in 0..bytes.len() / PAGE {
                let page = page * PAGE..(page + 1) * PAGE;
                for old in [&before[page.clone()], &[0; PAGE]] {
                    let mut lost = bytes.clone();
                    lost[page.clone()].copy_from_slice(old);
                    fs::write(&path, &lost).unwrap();
                    let is_changed = lost != bytes;
                    assert_eq!(records(&path).is_err(), is_changed, "{count}: {page:?}");
                }
            }
        }
    }

    #[test]
    fn notices_a_broken_bit_a_cut_and_another_file_of_the_log() {
        let (_directory, path, bytes) = file(100, 100);
        let (head, records_begin) = (0..RECORD_BYTES, PAGE);
        for (turn, byte) in head
            .chain(records_begin..bytes.len())
            .step_by(3)
            .enumerate()
        {
            let mut broken = bytes.clone();
            broken[byte] ^= 1 << (turn % 8);
            fs::write(&path, &broken).unwrap();
            assert!(records(&path).is_err(), "byte {byte}");
        }
        for length in [0, 1, 16, PAGE, PAGE + 800, bytes.len() - 16] {
            fs::write(&path, &bytes[..length]).unwrap();
            assert!(records(&path).is_err(), "{length}");
        }
        fs::write(&path, &bytes).unwrap();
        assert!(replay(&path, 8, KEY, |_, _| ()).is_err());
        assert_eq!(records(&path).unwrap().len(), 100);
    }

    #[test]
    fn takes_what_fits_and_nothing_once_it_is_sealed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let segment = Segment::create(&path, 7, 2, KEY).unwrap();
        assert!(segment.append(5, KEY.seal(5, 1)));
        assert_eq!(segment.fill(), (1, 2));
        assert_eq!(segment.seal(), 5);
        assert_eq!((segment.written(), segment.fill()), (1, (2, 2)));
        assert!(!segment.append(6, KEY.seal(6, 1)));
        assert_eq!(records(&path).unwrap(), [(5, 1)]);
        let segment = Segment::create(&path, 7, 2, KEY).unwrap();
        assert!((1..=2).all(|second| segment.append(second, KEY.seal(second, 1))));
        assert!(!segment.append(3, KEY.seal(3, 1)));
        assert_eq!(segment.fill(), (2, 2));
        assert_eq!(records(&path).unwrap(), [(1, 1), (2, 1)]);
    }

    #[test]
    fn a_page_without_room_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        allocate(&file, 100_000).unwrap();
        let map = MmapOptions::new().len(100_000).map_raw(&file).unwrap();
        populate(&map).unwrap();
        // As a disk without room for a page: an access to it would be a SIGBUS.
        file.set_len(4096).unwrap();
        let error = populate(&map).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::FAULT.raw_os_error()));
        // A system that fills no pages leaves them to the appends.
        for errno in [Errno::INVAL, Errno::PERM, Errno::NOSYS, Errno::NOMEM] {
            assert!(!is_sigbus(errno), "{errno}");
        }
    }

    #[test]
    fn link_instead_of_a_file_is_replaced_and_its_target_kept() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["log", "other"].map(|name| directory.path().join(name));
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let segment = Segment::create(&path, 7, 2, KEY).unwrap();
        assert!(segment.append(5, KEY.seal(5, 1)));
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        assert_eq!(records(&path).unwrap(), [(5, 1)]);
        // What is read is not followed either.
        fs::rename(&path, &other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(records(&path).is_err());
    }

    #[test]
    fn writes_zeros_where_allocation_is_not_supported() {
        let file = tempfile::tempfile().unwrap();
        write_zeros(&file, 10_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 10_000);
    }
}
