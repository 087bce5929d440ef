//! Classifies bytes, sixteen at a time: one bit for each byte of a class.
//!
//! Reading parameters is mostly a search for the first byte that must be escaped. Byte by byte it takes several
//! instructions each; here it takes less than one.

/// How many bytes are classified together.
pub const BLOCK_BYTES: usize = 16;

#[cfg(not(target_arch = "x86_64"))]
use portable as lanes;
#[cfg(target_arch = "x86_64")]
use sse2 as lanes;

/// The block that fewer bytes make with `filler` behind them.
#[inline(always)]
#[must_use]
pub fn padded(bytes: &[u8], filler: u8) -> [u8; BLOCK_BYTES] {
    let mut block = [filler; BLOCK_BYTES];
    let length = bytes.len().min(BLOCK_BYTES);
    block[..length].copy_from_slice(&bytes[..length]);
    block
}

/// Sixteen bytes.
#[derive(Clone, Copy)]
pub struct Block(lanes::Bytes);

/// A class of bytes within a block.
#[derive(Clone, Copy)]
pub struct Class(lanes::Bytes);

impl Block {
    /// Loads the bytes.
    #[inline(always)]
    #[must_use]
    pub fn new(bytes: &[u8; BLOCK_BYTES]) -> Self {
        Self(lanes::load(bytes))
    }

    /// The bytes that are `byte`.
    #[inline(always)]
    #[must_use]
    pub fn equal(self, byte: u8) -> Class {
        Class(lanes::equal(self.0, byte))
    }

    /// The bytes from `first` to `last`.
    #[inline(always)]
    #[must_use]
    pub fn within(self, first: u8, last: u8) -> Class {
        Class(lanes::within(self.0, first, last))
    }

    /// The letters from `first` to `last` in either case; both are given in lower case.
    #[inline(always)]
    #[must_use]
    pub fn letters(self, first: u8, last: u8) -> Class {
        Class(lanes::within(lanes::with_bits(self.0, 0x20), first, last))
    }
}

impl Class {
    /// The bytes that are in either.
    #[inline(always)]
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(lanes::or(self.0, other.0))
    }

    /// The bytes that are in this class and not in the other.
    #[inline(always)]
    #[must_use]
    pub fn except(self, other: Self) -> Self {
        Self(lanes::and_not(self.0, other.0))
    }

    /// A bit for each byte of the class, the lowest for the first byte.
    #[inline(always)]
    #[must_use]
    pub fn bits(self) -> u32 {
        lanes::bits(self.0)
    }

    /// A bit for each byte that is not in the class, the lowest for the first byte.
    #[inline(always)]
    #[must_use]
    pub fn others(self) -> u32 {
        self.bits() ^ 0xffff
    }
}

/// With the instructions that every processor of this architecture has.
#[cfg(target_arch = "x86_64")]
#[allow(
    unsafe_code,
    reason = "the compiler takes these instructions for ones that a processor may lack, but SSE2 is part of x86_64"
)]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8,
        _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::BLOCK_BYTES;

    pub(super) type Bytes = __m128i;

    #[inline(always)]
    fn all(byte: u8) -> Bytes {
        // SAFETY: SSE2 is there.
        unsafe { _mm_set1_epi8(byte.cast_signed()) }
    }

    #[inline(always)]
    pub(super) fn load(bytes: &[u8; BLOCK_BYTES]) -> Bytes {
        // SAFETY: SSE2 is there, and sixteen bytes may be read, wherever they begin.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    pub(super) fn equal(bytes: Bytes, byte: u8) -> Bytes {
        // SAFETY: SSE2 is there.
        unsafe { _mm_cmpeq_epi8(bytes, all(byte)) }
    }

    #[inline(always)]
    pub(super) fn within(bytes: Bytes, first: u8, last: u8) -> Bytes {
        // SAFETY: SSE2 is there.
        unsafe {
            let from_first = _mm_sub_epi8(bytes, all(first));
            _mm_cmpeq_epi8(_mm_min_epu8(from_first, all(last - first)), from_first)
        }
    }

    #[inline(always)]
    pub(super) fn with_bits(bytes: Bytes, bits: u8) -> Bytes {
        or(bytes, all(bits))
    }

    #[inline(always)]
    pub(super) fn or(one: Bytes, other: Bytes) -> Bytes {
        // SAFETY: SSE2 is there.
        unsafe { _mm_or_si128(one, other) }
    }

    #[inline(always)]
    pub(super) fn and_not(one: Bytes, other: Bytes) -> Bytes {
        // SAFETY: SSE2 is there.
        unsafe { _mm_andnot_si128(other, one) }
    }

    #[inline(always)]
    pub(super) fn bits(class: Bytes) -> u32 {
        // SAFETY: SSE2 is there.
        unsafe { _mm_movemask_epi8(class) }.cast_unsigned()
    }
}

/// Eight bytes in a register: in each of them the highest bit tells the outcome of a comparison.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::BLOCK_BYTES;

    pub(super) type Bytes = [u64; 2];

    const HIGHEST: u64 = all(0x80);

    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }

    pub(super) fn load(bytes: &[u8; BLOCK_BYTES]) -> Bytes {
        let whole = u128::from_le_bytes(*bytes);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let halves = [whole as u64, (whole >> 64) as u64];
        halves
    }

    pub(super) fn equal(bytes: Bytes, byte: u8) -> Bytes {
        within(bytes, byte, byte)
    }

    pub(super) fn within(bytes: Bytes, first: u8, last: u8) -> Bytes {
        debug_assert!(first <= last && last < 0x80);
        bytes.map(|eight| {
            let low = eight & !HIGHEST;
            // No byte of either summand is above 0x80, nor is their sum above 0xff: nothing carries over into the next.
            let at_least = |bound: u8| low + all(0x80 - bound);
            let beyond = if last == 0x7f { 0 } else { at_least(last + 1) };
            at_least(first) & !beyond & !eight & HIGHEST
        })
    }

    pub(super) fn with_bits(bytes: Bytes, bits: u8) -> Bytes {
        bytes.map(|eight| eight | all(bits))
    }

    pub(super) fn or(one: Bytes, other: Bytes) -> Bytes {
        [one[0] | other[0], one[1] | other[1]]
    }

    pub(super) fn and_not(one: Bytes, other: Bytes) -> Bytes {
        [one[0] & !other[0], one[1] & !other[1]]
    }

    pub(super) fn bits(class: Bytes) -> u32 {
        // The highest bits of the eight bytes, brought together in the highest byte.
        let gathered =
            class.map(|eight| ((eight & HIGHEST) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56);
        #[expect(clippy::cast_possible_truncation, reason = "each is below 256")]
        let bits = gathered[0] as u32 | (gathered[1] as u32) << 8;
        bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected(bytes: &[u8; BLOCK_BYTES], is: impl Fn(u8) -> bool) -> u32 {
        (0..BLOCK_BYTES).fold(0, |bits, at| bits | u32::from(is(bytes[at])) << at)
    }

    proptest! {
        #[test]
        fn classes_are_what_byte_after_byte_says(
            bytes: [u8; BLOCK_BYTES], first in 0u8..0x80, length in 0u8..0x80, filled in 0..BLOCK_BYTES,
        ) {
            let last = (first + length).min(0x7f);
            let block = Block::new(&bytes);
            let range = expected(&bytes, |byte| (first..=last).contains(&byte));
            prop_assert_eq!(block.within(first, last).bits(), range);
            prop_assert_eq!(block.within(first, last).others(), !range & 0xffff);
            prop_assert_eq!(block.equal(first).bits(), expected(&bytes, |byte| byte == first));
            let letters = expected(&bytes, |byte| byte.is_ascii_alphabetic());
            prop_assert_eq!(block.letters(b'a', b'z').bits(), letters);
            let either = block.within(first, last).or(block.equal(b'a'));
            prop_assert_eq!(either.bits(), range | block.equal(b'a').bits());
            let except = block.within(first, last).except(block.equal(b'a'));
            prop_assert_eq!(except.bits(), range & !block.equal(b'a').bits());
            let mut filled_up = bytes;
            filled_up[filled..].fill(first);
            prop_assert_eq!(padded(&bytes[..filled], first), filled_up);
        }

        /// What other processors run.
        #[test]
        fn the_portable_lanes_say_the_same(
            bytes: [u8; BLOCK_BYTES], first in 0u8..0x80, length in 0u8..0x80,
        ) {
            let last = (first + length).min(0x7f);
            let block = portable::load(&bytes);
            let range = portable::within(block, first, last);
            let byte = portable::equal(block, b'a');
            let theirs = Block::new(&bytes);
            prop_assert_eq!(portable::bits(range), theirs.within(first, last).bits());
            prop_assert_eq!(portable::bits(byte), theirs.equal(b'a').bits());
            let letters = portable::within(portable::with_bits(block, 0x20), b'a', b'z');
            prop_assert_eq!(portable::bits(letters), theirs.letters(b'a', b'z').bits());
            prop_assert_eq!(
                portable::bits(portable::or(range, byte)),
                theirs.within(first, last).or(theirs.equal(b'a')).bits()
            );
            prop_assert_eq!(
                portable::bits(portable::and_not(range, byte)),
                theirs.within(first, last).except(theirs.equal(b'a')).bits()
            );
        }
    }
}
