//! What is kept of a nonce: 64 keyed bits of consumer, token and nonce.
//!
//! Nobody outside knows the key, so nobody can look for two nonces with the same fingerprint; and if chance makes two,
//! the second is rejected (its consumer retries with another nonce); a used nonce is never accepted.
//!
//! The bits are SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"). It is written out here because
//! nothing else in an insertion takes as long: whole words instead of bytes, and four plain variables that the compiler
//! keeps in registers, take a third off the time of the `siphasher` crate, which the tests compare it with.

use super::header::FileKey;

/// The fingerprint; never 0, which means an empty slot.
///
/// Each part is filled up to whole words; the lengths, first, keep different triples different messages.
#[inline]
pub(super) fn fingerprint(key: &FileKey, consumer: &[u8], token: &[u8], nonce: &[u8]) -> u64 {
    let mut hash = SipHash13::new(key.0);
    let lengths = [consumer, token, nonce].map(|part| part.len() as u64);
    hash.word(lengths[0] << 42 ^ lengths[1] << 21 ^ lengths[2]);
    let mut words = 1;
    for part in [consumer, token, nonce] {
        let (whole, rest) = part.as_chunks();
        for word in whole {
            hash.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let bytes = rest.iter().rev();
            hash.word(bytes.fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        words += part.len().div_ceil(8) as u64;
    }
    hash.finish(words * 8).max(1)
}

/// The state of a hash over whole words.
struct SipHash13 {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl SipHash13 {
    #[inline]
    fn new([k0, k1]: [u64; 2]) -> Self {
        // The initial state spells "somepseudorandomlygeneratedbytes".
        Self {
            v0: k0 ^ 0x736f_6d65_7073_6575,
            v1: k1 ^ 0x646f_7261_6e64_6f6d,
            v2: k0 ^ 0x6c79_6765_6e65_7261,
            v3: k1 ^ 0x7465_6462_7974_6573,
        }
    }

    #[inline]
    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.v0 ^= word;
    }

    /// Ends with the message's length in bytes, of which the hash takes the low eight bits.
    #[inline]
    fn finish(mut self, length: u64) -> u64 {
        self.word(length << 56);
        self.v2 ^= 0xff;
        for _ in 0..3 {
            self.round();
        }
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }
}

#[cfg(test)]
mod tests {
    use siphasher::sip::SipHasher13;

    use super::*;

    #[test]
    fn depends_on_each_part_and_where_it_ends() {
        let key = FileKey([1, 2]);
        let of = |consumer: &str, token: &str, nonce: &str| {
            fingerprint(
                &key,
                consumer.as_bytes(),
                token.as_bytes(),
                nonce.as_bytes(),
            )
        };
        let all = [
            of("a", "b", "c"),
            of("ab", "", "c"),
            of("", "ab", "c"),
            of("a", "", "bc"),
            of("", "", "abc"),
            of("b", "a", "c"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
        assert_eq!(of("a", "b", "c"), all[0]);
        assert_ne!(fingerprint(&FileKey([1, 3]), b"a", b"b", b"c"), all[0]);
    }

    #[test]
    fn zeros_at_the_end_count() {
        let key = FileKey([3, 4]);
        let all: Vec<u64> = (0..20)
            .map(|length| fingerprint(&key, b"c", b"t", &vec![0; length]))
            .collect();
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
    }

    proptest::proptest! {
        #[test]
        fn is_the_siphash_of_lengths_and_whole_words(
            words: [u64; 2],
            parts: [Vec<u8>; 3],
        ) {
            let [consumer, token, nonce] = &parts;
            let [first, second, third] = parts.each_ref().map(|part| part.len() as u64);
            let mut message = (first << 42 | second << 21 | third).to_le_bytes().to_vec();
            for part in &parts {
                message.extend_from_slice(part);
                message.resize(message.len().next_multiple_of(8), 0);
            }
            let expected = SipHasher13::new_with_keys(words[0], words[1]).hash(&message);
            let key = FileKey(words);
            proptest::prop_assert_eq!(fingerprint(&key, consumer, token, nonce), expected.max(1));
        }
    }
}
