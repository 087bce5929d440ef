//! Last uses of consumers and tokens, until they are written to the store.

use std::{
    mem::{replace, take},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use parking_lot::{Mutex, MutexGuard};

use crate::base::clock::UnixTime;

/// The last use of a consumer or a token, written with others in batches; `F` is what is kept of the caller.
#[derive(Debug, Default)]
pub(super) struct LastUse<F> {
    /// The time in seconds, which most calls only read; 0: no use. It changes under the lock alone.
    at: AtomicU64,
    noted: Mutex<Noted<F>>,
}

#[derive(Debug, Default)]
struct Noted<F> {
    /// The kind of use.
    how: u8,
    /// The caller.
    from: F,
    /// It has not been taken for writing yet.
    is_unwritten: bool,
}

impl<F: Copy> LastUse<F> {
    /// A use that the store knows, if there was one.
    pub(super) fn written(at: Option<UnixTime>, from: F) -> Self {
        Self {
            at: AtomicU64::new(at.unwrap_or_default().0),
            noted: Mutex::new(Noted {
                how: 0,
                from,
                is_unwritten: false,
            }),
        }
    }

    /// Takes over a use that only `other` knows.
    pub(super) fn learn_from(&self, other: &Self) {
        if let Some(used) = other.get() {
            self.keep_later(used);
        }
    }

    /// Notes a use; `true` if it has to be put on the list of those to write. Only the first use in a second counts.
    pub(super) fn note(&self, now: UnixTime, how: u8, from: F) -> bool {
        // The first call that noted this second has put it on the list, or is about to.
        if self.at.load(Relaxed) >= now.0 {
            return false;
        }
        let kept = self.keep_later((now, how, from));
        kept.is_some_and(|mut noted| !replace(&mut noted.is_unwritten, true))
    }

    /// Takes the use for writing, unless it is written.
    pub(super) fn take(&self) -> Option<(UnixTime, u8, F)> {
        let mut noted = self.noted.lock();
        let is_unwritten = take(&mut noted.is_unwritten);
        is_unwritten.then(|| self.used(&noted)).flatten()
    }

    /// The time, the kind and the caller of the last use.
    pub(super) fn get(&self) -> Option<(UnixTime, u8, F)> {
        self.used(&self.noted.lock())
    }

    /// Notes that it has not been written; `true` if it has to be put on the list again.
    pub(super) fn put_back(&self) -> bool {
        !replace(&mut self.noted.lock().is_unwritten, true)
    }

    /// The time of the last use.
    pub(super) fn at(&self) -> Option<UnixTime> {
        Some(UnixTime(self.at.load(Relaxed))).filter(|at| *at > UnixTime(0))
    }

    fn used(&self, noted: &Noted<F>) -> Option<(UnixTime, u8, F)> {
        self.at().map(|at| (at, noted.how, noted.from))
    }

    /// Notes a use if it is later than the last one; `None`: it is not.
    fn keep_later(&self, (at, how, from): (UnixTime, u8, F)) -> Option<MutexGuard<'_, Noted<F>>> {
        let mut noted = self.noted.lock();
        if self.at.load(Relaxed) >= at.0 {
            return None;
        }
        self.at.store(at.0, Relaxed);
        (noted.how, noted.from) = (how, from);
        Some(noted)
    }
}
