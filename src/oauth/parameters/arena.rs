//! A buffer that is appended to and cleared, and that keeps its memory.

use std::ops::Deref;

use crate::oauth::percent;

/// The longest block that is appended at once.
const SLACK_BYTES: usize = 32;

/// Bytes, as a `Vec<u8>` holds them, with a faster way to copy unreserved ones.
///
/// Copying is done in blocks of fixed size, which is one instruction each, and what was too much is overwritten. That needs room
/// after the end, so the vector's own length is the room that there is, and only grows.
#[derive(Default)]
pub(super) struct Arena {
    room: Vec<u8>,
    used: usize,
}

impl Arena {
    /// Forgets all bytes, and gives memory back down to `kept` bytes.
    pub(super) fn clear(&mut self, kept: usize) {
        self.used = 0;
        if self.room.len() > kept {
            self.room.truncate(kept);
            self.room.shrink_to(kept);
        }
    }

    /// How many bytes are held in memory.
    pub(super) fn capacity(&self) -> usize {
        self.room.capacity()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.used = self.used.min(length);
    }

    /// Makes room for this many bytes and a block after them.
    #[inline]
    pub(super) fn reserve(&mut self, bytes: usize) {
        if self.room.len() - self.used < bytes + SLACK_BYTES {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        // By half at least, so that growing step by step costs no more than the bytes do.
        let needed = self.used + bytes + SLACK_BYTES;
        self.room.resize(needed + needed / 2, 0);
    }

    /// Appends the first `length` bytes of `block`.
    #[inline(always)]
    pub(super) fn extend_block<const N: usize>(&mut self, block: &[u8; N], length: usize) {
        const { assert!(N <= SLACK_BYTES) };
        self.reserve(0);
        if let Some(room) = self.room[self.used..].first_chunk_mut() {
            *room = *block;
            self.used += length;
        }
    }

    /// Copies what is unreserved at the start of `bytes`, and returns what follows it.
    #[inline(always)]
    pub(super) fn extend_unreserved<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        self.reserve(bytes.len());
        let mut length = 0;
        for (&byte, into) in bytes.iter().zip(&mut self.room[self.used..]) {
            if !percent::is_unreserved(byte) {
                break;
            }
            *into = byte;
            length += 1;
        }
        self.used += length;
        &bytes[length..]
    }
}

impl Deref for Arena {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.room[..self.used]
    }
}
