//! The key of a window, with which its fingerprints and checksums are made.

use std::{hash::Hasher as _, io};

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use super::NonceUse;

/// The highest timestamp that a record holds; the year 36,812.
pub(super) const MAX_SECOND: u64 = (1 << SECOND_BITS) - 1;

const SECOND_BITS: u32 = 40;
const CHECK_BITS: u32 = u64::BITS - SECOND_BITS;

/// 128 random bits, drawn when the window is made.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key(pub(super) [u64; 2]);

/// A nonce as the log has it: its fingerprint, then its timestamp and a checksum.
pub(super) type Record = [u64; 2];

impl Key {
    /// The form in which a nonce is kept: 64 keyed bits of consumer, token and nonce.
    ///
    /// The key is secret, so that an attacker cannot search for two nonces with the same fingerprint. If two are the same
    /// by chance, the second is rejected, and its consumer retries with another nonce; a used nonce is never accepted.
    #[inline]
    pub(super) fn fingerprint(self, nonce: &NonceUse<'_>) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
        let parts = [nonce.consumer, nonce.token, nonce.nonce];
        // The lengths keep different triples different messages; whole words are hashed fastest.
        let [consumer, token, nonce] = parts.map(|part| part.len() as u64);
        hasher.write(&(consumer << 42 ^ token << 21 ^ nonce).to_le_bytes());
        for part in parts {
            hasher.write(part);
            hasher.write(&[0; 8][..part.len().next_multiple_of(8) - part.len()]);
        }
        hasher.finish()
    }

    /// A name of the window. It does not reveal the key.
    pub(super) fn id(self) -> String {
        let hash = SipHasher13::new_with_keys(self.0[0], self.0[1]).hash(b"nonce window");
        format!("{hash:016x}")
    }

    /// The record of a nonce whose timestamp is at most [`MAX_SECOND`].
    #[inline]
    pub(super) fn seal(self, second: u64, fingerprint: u64) -> Record {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&second.to_le_bytes());
        message[8..].copy_from_slice(&fingerprint.to_le_bytes());
        let check = SipHasher13::new_with_keys(self.0[0], self.0[1]).hash(&message);
        [fingerprint, second << CHECK_BITS | check >> SECOND_BITS]
    }

    /// Timestamp and fingerprint of a record; `None` if it was never written, or not to its end.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`]: the record is not as it was written.
    pub(super) fn unseal(self, record: Record) -> io::Result<Option<(u64, u64)>> {
        let [fingerprint, sealed] = record;
        let second = sealed >> CHECK_BITS;
        match sealed {
            0 => Ok(None),
            _ if self.seal(second, fingerprint) == record => Ok(Some((second, fingerprint))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key([1, 2]);

    #[test]
    fn a_fingerprint_depends_on_each_part_and_where_it_ends() {
        let of = |consumer: &str, token: &str, nonce: &str| {
            let [consumer, token, nonce] = [consumer, token, nonce].map(str::as_bytes);
            let nonce = NonceUse {
                timestamp: 0,
                consumer,
                token,
                nonce,
            };
            KEY.fingerprint(&nonce)
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
    }

    #[test]
    fn notices_every_flipped_bit_of_a_record() {
        let record = KEY.seal(1_700_000_000, 42);
        assert_eq!(KEY.unseal(record).unwrap(), Some((1_700_000_000, 42)));
        for bit in 0..128 {
            let mut flipped = record;
            flipped[bit / 64] ^= 1 << (bit % 64);
            assert!(KEY.unseal(flipped).is_err(), "bit {bit}");
        }
        assert!(Key([1, 3]).unseal(record).is_err());
        assert_eq!(KEY.unseal([42, 0]).unwrap(), None);
        assert_eq!(
            KEY.unseal(KEY.seal(MAX_SECOND, 1)).unwrap(),
            Some((MAX_SECOND, 1))
        );
    }
}
