//! The access tokens that a thread has just verified, in front of moka: a lookup writes nothing that other threads read.
//!
//! An entry counts only within the second and the generation of announced changes in which it was found in moka. Nothing
//! that decides there whether it may be used can have changed since, so no rule of age or revocation is weaker here.
//! Only a right signature makes one: a lookup is not faster for a token that somebody guesses. Entries that no longer count are
//! dropped soon, so that secrets which the cache has dropped do not stay in memory.

use std::{
    cell::RefCell,
    ops::Deref,
    rc::Rc,
    sync::{Arc, Weak, atomic::Ordering::SeqCst},
};

use super::{AccessCredentials, stamp::Announced};
use crate::{base::clock::UnixTime, records::credentials::cache::CacheEntry as _};

/// The number of entries of a thread. Tokens whose last bytes choose the same one replace each other.
const ENTRIES: usize = 256;

/// The time at which a lookup begins: what it finds is current in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupTime {
    second: UnixTime,
    generation: u64,
}

/// An access token as one thread uses it: a clone writes nothing that other threads read.
#[derive(Debug, Clone)]
pub struct LocalAccess(Rc<SharedAccess>);

#[derive(Debug)]
struct SharedAccess(Arc<AccessCredentials>);

impl From<Arc<AccessCredentials>> for LocalAccess {
    fn from(access: Arc<AccessCredentials>) -> Self {
        Self(Rc::new(SharedAccess(access)))
    }
}

impl Deref for LocalAccess {
    type Target = Arc<AccessCredentials>;

    fn deref(&self) -> &Self::Target {
        &self.0.0
    }
}

struct AtHand {
    moment: LookupTime,
    /// The changes of the cache that has the token.
    announced: Weak<Announced>,
    access: LocalAccess,
}

thread_local! {
    static AT_HAND: RefCell<[Option<AtHand>; ENTRIES]> = const { RefCell::new([const { None }; ENTRIES]) };
}

impl LookupTime {
    pub(super) fn at(now: UnixTime, announced: &Announced) -> Self {
        Self {
            second: now,
            generation: announced.generation.load(SeqCst),
        }
    }
}

/// The token, if this thread has found it at this `moment`.
pub(super) fn find(
    token: &[u8],
    moment: LookupTime,
    announced: &Arc<Announced>,
) -> Option<LocalAccess> {
    AT_HAND.with_borrow(|entries| {
        let entry = entries[place(token)].as_ref()?;
        let is_current =
            entry.moment == moment && Weak::as_ptr(&entry.announced) == Arc::as_ptr(announced);
        (is_current && entry.access.key() == token).then(|| entry.access.clone())
    })
}

/// Keeps a token that a lookup which began at `moment` has found.
pub(super) fn keep(access: &LocalAccess, moment: LookupTime, announced: &Arc<Announced>) {
    let entry = AtHand {
        moment,
        announced: Arc::downgrade(announced),
        access: access.clone(),
    };
    AT_HAND.with_borrow_mut(|entries| entries[place(access.key())] = Some(entry));
}

/// Drops the entries of this thread that do not count at `moment`.
pub(super) fn drop_old(moment: LookupTime) {
    AT_HAND.with_borrow_mut(|entries| {
        for entry in entries {
            entry.take_if(|entry| entry.moment != moment);
        }
    });
}

/// The place of a token. Tokens are random, so that their last bytes are.
fn place(token: &[u8]) -> usize {
    let last = token
        .last_chunk::<4>()
        .map_or(0, |last| u32::from_le_bytes(*last));
    // The middle of the product depends on all bytes.
    (last.wrapping_mul(0x9e37_79b9) >> 20) as usize % ENTRIES
}
