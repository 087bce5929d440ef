//! The order of the normalized parameters: by encoded name, then by encoded value (RFC 5849 §3.4.1.3.2).

use std::cmp::Ordering;

use super::{Entry, compare};
use crate::oauth::name::ProtocolParameter;

/// The first eight bytes of a name, as a number that sorts as they do; shorter names are filled up with zeros, which sort before
/// every byte that a name can have.
///
/// Eight are enough to tell nearly all names apart: of the protocol parameters only `oauth_version` and `oauth_verifier` share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix(u64);

const PREFIX_BYTES: usize = size_of::<Prefix>();

impl Prefix {
    /// The rank of the name in the first `length` bytes of `text`; more bytes may follow.
    #[inline]
    pub(super) const fn new(text: &[u8], length: usize) -> Self {
        let bytes = if length < PREFIX_BYTES {
            length
        } else {
            PREFIX_BYTES
        };
        let leading = match text.first_chunk() {
            Some(block) => u64::from_be_bytes(*block),
            None => {
                let mut leading = 0;
                let mut at = 0;
                while at < bytes {
                    leading |= (text[at] as u64) << (8 * (PREFIX_BYTES - 1 - at));
                    at += 1;
                }
                leading
            }
        };
        // Shifted in two steps, since a shift by all 64 bits would overflow.
        Self(leading & !(u64::MAX >> (4 * bytes) >> (4 * bytes)))
    }

    /// Of a protocol parameter's name.
    #[inline]
    pub(super) fn of(parameter: ProtocolParameter) -> Self {
        const PREFIXES: [Prefix; ProtocolParameter::ALL.len()] = {
            let mut prefixes = [Prefix(0); ProtocolParameter::ALL.len()];
            let mut at = 0;
            while at < prefixes.len() {
                let name = ProtocolParameter::ALL[at].as_str().as_bytes();
                prefixes[ProtocolParameter::ALL[at] as usize] = Prefix::new(name, name.len());
                at += 1;
            }
            prefixes
        };
        PREFIXES[parameter as usize]
    }
}

/// An entry's number with its name's [`Prefix`] in front, so that sorting mostly compares numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) prefix: Prefix,
    pub(super) entry: u32,
}

/// Up to this many parameters are put in their place as they come, which is cheapest for few; more are sorted at the end.
const FEW: usize = 24;

/// Adds `rank`, in its place while there are few.
#[inline]
pub(super) fn add(ranks: &mut Vec<Rank>, rank: Rank, arena: &[u8], entries: &[Entry]) {
    let mut at = ranks.len();
    if at < FEW {
        for placed in ranks.iter().rev() {
            let follows = placed.prefix < rank.prefix
                || placed.prefix == rank.prefix && order(placed, &rank, arena, entries).is_le();
            if follows {
                break;
            }
            at -= 1;
        }
    }
    // Each is taken on by one place rather than with a call to move a few bytes.
    ranks.push(rank);
    for place in (at + 1..ranks.len()).rev() {
        ranks.swap(place - 1, place);
    }
}

/// Sorts what [`add`] has not.
pub(super) fn finish(ranks: &mut [Rank], arena: &[u8], entries: &[Entry]) {
    if ranks.len() > FEW {
        // Equal names and values are equal bytes: which of them comes first cannot be told from the base string.
        ranks.sort_unstable_by(|left, right| order(left, right, arena, entries));
    }
}

#[inline]
fn order(left: &Rank, right: &Rank, arena: &[u8], entries: &[Entry]) -> Ordering {
    let by_prefix = left.prefix.cmp(&right.prefix);
    by_prefix.then_with(|| {
        compare(
            arena,
            &entries[left.entry as usize],
            &entries[right.entry as usize],
        )
    })
}
