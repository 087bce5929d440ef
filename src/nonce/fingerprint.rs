//! What is kept of a nonce: 64 keyed bits of consumer, token and nonce.
//!
//! Nobody outside knows the key, so nobody can look for two nonces with the same fingerprint. If two are the same by
//! chance, the second is rejected, and its consumer retries with another nonce; a used nonce is never accepted.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use super::header::FileKey;

/// The fingerprint; never 0, which means an empty slot.
///
/// Each part is filled up to whole words; the lengths, first, keep different triples different messages. Files have
/// fingerprints of earlier versions, so that the message must stay the same.
#[inline]
pub(super) fn fingerprint(key: &FileKey, consumer: &[u8], token: &[u8], nonce: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key.0[0], key.0[1]);
    let lengths = [consumer, token, nonce].map(|part| part.len() as u64);
    hasher.write(&(lengths[0] << 42 ^ lengths[1] << 21 ^ lengths[2]).to_le_bytes());
    for part in [consumer, token, nonce] {
        hasher.write(part);
        hasher.write(&[0; 8][..part.len().next_multiple_of(8) - part.len()]);
    }
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_each_part_and_where_it_ends() {
        let key = FileKey([1, 2]);
        let of = |consumer: &str, token: &str, nonce: &str| {
            let [consumer, token, nonce] = [consumer, token, nonce].map(str::as_bytes);
            fingerprint(&key, consumer, token, nonce)
        };
        let all = [
            of("a", "b", "c"),
            of("ab", "", "c"),
            of("", "ab", "c"),
            of("a", "", "bc"),
            of("", "", "abc"),
            of("b", "a", "c"),
            of("b", "a", "c\0"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
        assert_eq!(of("a", "b", "c"), all[0]);
        assert_ne!(fingerprint(&FileKey([1, 3]), b"a", b"b", b"c"), all[0]);
    }

    proptest::proptest! {
        /// What files of earlier versions have.
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
