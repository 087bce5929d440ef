//! Last uses of consumers and tokens, until they are written to the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::clock::UnixTime;

/// The last use of a consumer or a token, written with others in batches; `F` is what is kept of the caller.
#[derive(Debug, Default)]
pub(super) struct LastUse<F> {
    /// The seconds since 1970, with the kind of use in the lowest byte; 0: no use.
    packed: AtomicU64,
    /// The caller. The use changes only while this is locked, so that both are of one call.
    from: Mutex<F>,
    /// It has not been taken for writing yet.
    is_unwritten: AtomicBool,
}

impl<F: Copy> LastUse<F> {
    /// A use that the store knows, if there was one.
    pub(super) fn written(at: Option<UnixTime>, from: F) -> Self {
        Self {
            packed: AtomicU64::new(at.map_or(0, |at| at.0 << 8)),
            from: Mutex::new(from),
            is_unwritten: AtomicBool::new(false),
        }
    }

    /// Takes over a use that only `other` knows.
    pub(super) fn learn_from(&self, other: &Self) {
        let (packed, from) = other.both();
        self.set_if_later(packed, from);
    }

    fn both(&self) -> (u64, F) {
        let from = self.from.lock();
        (self.packed.load(Ordering::SeqCst), *from)
    }

    fn set_if_later(&self, packed: u64, from: F) {
        let mut last_from = self.from.lock();
        if self.packed.fetch_max(packed, Ordering::SeqCst) < packed {
            *last_from = from;
        }
    }

    /// Notes a use; `true` if it has to be put on the list of those to write. Only the first use in a second counts.
    pub(super) fn note(&self, now: UnixTime, how: u8, from: F) -> bool {
        // The first call that noted this second has put it on the list, or is about to.
        if self.packed.load(Ordering::SeqCst) >> 8 >= now.0 {
            return false;
        }
        let packed = now.0 << 8 | u64::from(how);
        self.set_if_later(packed, from);
        self.put_back()
    }

    /// Takes the use for writing, unless it is written. Clears the flag before it reads the time: a use in between is put on the
    /// list again.
    pub(super) fn take(&self) -> Option<(UnixTime, u8, F)> {
        let is_unwritten = self.is_unwritten.swap(false, Ordering::SeqCst);
        is_unwritten.then(|| self.get()).flatten()
    }

    /// The time, the kind and the address of the last use.
    pub(super) fn get(&self) -> Option<(UnixTime, u8, F)> {
        let (packed, from) = self.both();
        let [how, ..] = packed.to_le_bytes();
        (packed > 0).then_some((UnixTime(packed >> 8), how, from))
    }

    /// The time of the last use.
    pub(super) fn at(&self) -> Option<UnixTime> {
        let packed = self.packed.load(Ordering::SeqCst);
        (packed > 0).then_some(UnixTime(packed >> 8))
    }

    /// Notes that it has not been written; `true` if it has to be put on the list again.
    pub(super) fn put_back(&self) -> bool {
        !self.is_unwritten.swap(true, Ordering::SeqCst)
    }
}
