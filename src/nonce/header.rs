//! The first page of the window's file: what it is, its key, and the few numbers that outlive the process.
//!
//! Each number is one word, written by one store, and sealed: 40 bits of value and 24 bits of keyed checksum. A crash
//! between two stores can therefore leave no half number, and damage does not read as a number.

use std::{ops::RangeInclusive, sync::atomic::Ordering};

use siphasher::sip::SipHasher13;

use super::{
    boot::BootId,
    bucket::SHARD_BITS,
    map::{BLOCK_BYTES, Block, WORDS, put},
};

/// The version of the layout that this program reads and writes.
pub(super) const FORMAT_VERSION: u64 = 1;
/// The largest number that a sealed word holds; in seconds the year 36,812.
pub(super) const MAX_VALUE: u64 = (1 << VALUE_BITS) - 1;
/// Blocks of the header: one page, so that it is synced and replaced as one.
pub(super) const HEADER_BLOCKS: usize = 4096 / BLOCK_BYTES;

const VALUE_BITS: u32 = 40;
const MAGIC: [u8; 16] = *b"countersignonce\n";

// Words that never change.
const VERSION: usize = 2;
const GEOMETRY: usize = 3;
const KEY: usize = 4;
const CHECKSUM: usize = 6;
const BOOT: usize = 16;

const THIS_GEOMETRY: u64 = (BLOCK_BYTES as u64) << 8 | SHARD_BITS as u64;

/// A sealed word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// [`Stage`], as a number.
    Stage = 8,
    /// Up to which timestamp requests may have been accepted whose nonces are lost; 0: none.
    Lost = 9,
    /// Nothing at or below this second is accepted any more: it was dropped, or had left a window that became wider.
    Floor = 10,
    /// The highest second that ever held a nonce.
    Highest = 11,
    /// The highest high-water mark in the store that the runs on this file account for.
    Mark = 12,
    /// The window in seconds, as it is or was last.
    Window = 13,
    /// 1: closed, and on the disk whole.
    Clean = 14,
    /// Blocks that the file has at least; if it is shorter, somebody cut it.
    Blocks = 15,
}

/// The words of all fields.
const FIELDS: RangeInclusive<usize> = Field::Stage as usize..=Field::Blocks as usize;

/// How far the start of a file's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Made where none was, and no run has settled yet what may have been lost.
    New = 0,
    /// Emptied because it could not be relied on, and not settled yet.
    Untrusted = 1,
    /// A run has started on it.
    Settled = 2,
}

/// Why the first page cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// Somebody else's file.
    Foreign,
    /// Ours, by a later program.
    Newer(u64),
    /// Ours, and broken.
    Damaged,
}

/// A part of the file does not carry its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// The keys of a file: one drawn for it, used for fingerprints and checksums.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileKey(pub(super) [u64; 2]);

impl FileKey {
    /// A checksum over a few words; the place of the words is the first of them.
    pub(super) fn checksum<const N: usize>(&self, words: [u64; N]) -> u64 {
        let mut bytes = [[0; 8]; N];
        for (bytes, word) in bytes.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        SipHasher13::new_with_keys(self.0[0], self.0[1]).hash(bytes.as_flattened())
    }

    /// Seals a value for the word of this number.
    fn seal(&self, at: usize, value: u64) -> u64 {
        let value = value.min(MAX_VALUE);
        let check = self.checksum([at as u64, value]) >> VALUE_BITS;
        value << (64 - VALUE_BITS) | check
    }

    fn unseal(&self, at: usize, word: u64) -> Result<u64, Damaged> {
        let value = word >> (64 - VALUE_BITS);
        if self.seal(at, value) == word {
            Ok(value)
        } else {
            Err(Damaged)
        }
    }
}

/// The header as read from a file, before anything of it is mapped.
pub(super) struct Header {
    words: [u64; WORDS],
    pub(super) key: FileKey,
}

impl Header {
    /// A header of a new file, without a single nonce.
    pub(super) fn fresh(key: [u64; 2], boot: BootId) -> Self {
        let mut words = [0; WORDS];
        let (magic, _) = MAGIC.as_chunks();
        words[0] = u64::from_ne_bytes(magic[0]);
        words[1] = u64::from_ne_bytes(magic[1]);
        words[VERSION] = FORMAT_VERSION;
        words[GEOMETRY] = THIS_GEOMETRY;
        words[KEY..KEY + 2].copy_from_slice(&key);
        words[CHECKSUM] = checksum(&words);
        words[BOOT..BOOT + 2].copy_from_slice(&boot.words());
        let mut header = Self {
            words,
            key: FileKey(key),
        };
        // `Stage::New` is 0 too.
        for at in FIELDS {
            header.words[at] = header.key.seal(at, 0);
        }
        header
    }

    /// Sets a number in this copy.
    pub(super) fn set(&mut self, field: Field, value: u64) {
        self.words[field as usize] = self.key.seal(field as usize, value);
    }

    /// Reads the first bytes of a file, fewer than a page if the file is shorter.
    pub(super) fn parse(page: &[u8]) -> Result<Self, HeaderError> {
        if !page.starts_with(&MAGIC) {
            return Err(HeaderError::Foreign);
        }
        let (chunks, _) = page.as_chunks::<8>();
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(chunks) {
            *word = u64::from_ne_bytes(*bytes);
        }
        if words[CHECKSUM] != checksum(&words) {
            return Err(HeaderError::Damaged);
        }
        // Only under a right checksum: a flipped bit must not pass for a later version.
        if words[VERSION] > FORMAT_VERSION {
            return Err(HeaderError::Newer(words[VERSION]));
        }
        if words[VERSION] != FORMAT_VERSION || words[GEOMETRY] != THIS_GEOMETRY || page.len() < 4096
        {
            return Err(HeaderError::Damaged);
        }
        let key = FileKey([words[KEY], words[KEY + 1]]);
        // All of them, also what a start does not need: one that is broken puts the rest in doubt.
        let is_whole = |at: usize| key.unseal(at, words[at]).is_ok();
        let header = Self { words, key };
        if FIELDS.into_iter().all(is_whole) && header.get(Field::Stage) <= Stage::Settled as u64 {
            Ok(header)
        } else {
            Err(HeaderError::Damaged)
        }
    }

    /// A number of this copy.
    pub(super) fn get(&self, field: Field) -> u64 {
        // Its seal held when it was read, or was made here.
        self.words[field as usize] >> (64 - VALUE_BITS)
    }

    /// How far the start of the file's life has come.
    pub(super) fn stage(&self) -> Stage {
        match self.get(Field::Stage) {
            0 => Stage::New,
            1 => Stage::Untrusted,
            _ => Stage::Settled,
        }
    }

    /// The boot of the machine that wrote the file last.
    pub(super) fn boot(&self) -> BootId {
        BootId::from_words([self.words[BOOT], self.words[BOOT + 1]])
    }

    /// The page as it is written to the file.
    pub(super) fn page(&self) -> [u8; 4096] {
        let mut page = [0; 4096];
        for (bytes, word) in page.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *bytes = word.to_ne_bytes();
        }
        page
    }

    /// Copies the header into the mapped block, for memory that has no file.
    pub(super) fn write_to(&self, block: &Block) {
        for (word, value) in block.iter().zip(self.words) {
            put(word, value, Ordering::Release);
        }
    }
}

/// Reads a number from the mapped header.
pub(super) fn read(block: &Block, key: &FileKey, field: Field) -> Result<u64, Damaged> {
    key.unseal(
        field as usize,
        block[field as usize].load(Ordering::Acquire),
    )
}

/// Writes a number to the mapped header.
pub(super) fn write(block: &Block, key: &FileKey, field: Field, value: u64) {
    put(
        &block[field as usize],
        key.seal(field as usize, value),
        Ordering::Release,
    );
}

/// Writes which boot of the machine the file is used in.
pub(super) fn write_boot(block: &Block, boot: BootId) {
    for (word, value) in block[BOOT..].iter().zip(boot.words()) {
        put(word, value, Ordering::Release);
    }
}

fn checksum(words: &[u64; WORDS]) -> u64 {
    FileKey([0; 2]).checksum::<CHECKSUM>(std::array::from_fn(|at| words[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header::fresh([1, 2], BootId::from_words([3, 4]))
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let mut written = header();
        written.set(Field::Floor, 1_700_000_000);
        let read = Header::parse(&written.page()).ok().unwrap();
        assert_eq!(read.get(Field::Floor), 1_700_000_000);
        assert_eq!(read.get(Field::Clean), 0);
        assert_eq!(read.stage(), Stage::New);
        assert_eq!(read.boot(), BootId::from_words([3, 4]));
    }

    #[test]
    fn notices_every_flipped_bit_of_what_matters() {
        let page = header().page();
        let words = (0..=CHECKSUM).chain(FIELDS);
        for bit in words.flat_map(|word| word * 64..(word + 1) * 64) {
            let mut flipped = page;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = Header::parse(&flipped).err();
            assert!(
                matches!(error, Some(HeaderError::Damaged | HeaderError::Foreign)),
                "bit {bit}: {error:?}"
            );
        }
    }

    #[test]
    fn refuses_what_is_not_ours_and_what_is_newer() {
        assert_eq!(
            Header::parse(b"SQLite format 3\0").err(),
            Some(HeaderError::Foreign)
        );
        assert_eq!(Header::parse(&MAGIC).err(), Some(HeaderError::Damaged));
        let mut newer = header();
        newer.words[VERSION] = FORMAT_VERSION + 1;
        newer.words[CHECKSUM] = checksum(&newer.words);
        assert_eq!(
            Header::parse(&newer.page()).err(),
            Some(HeaderError::Newer(FORMAT_VERSION + 1))
        );
        assert_eq!(
            Header::parse(&header().page()[..1000]).err(),
            Some(HeaderError::Damaged)
        );
    }

    #[test]
    fn a_seal_holds_for_its_own_field_only() {
        let key = FileKey([5, 6]);
        let (floor, highest) = (Field::Floor as usize, Field::Highest as usize);
        let word = key.seal(floor, 7);
        assert_eq!(key.unseal(floor, word), Ok(7));
        assert_eq!(key.unseal(highest, word), Err(Damaged));
        assert_eq!(key.unseal(floor, key.seal(floor, u64::MAX)), Ok(MAX_VALUE));
    }
}
