//! Last uses of consumers and tokens, until they are written to the store.

use std::mem::{replace, take};

use parking_lot::Mutex;

use crate::base::clock::UnixTime;

/// The last use of a consumer or a token, written with others in batches; `F` is what is kept of the caller.
#[derive(Debug, Default)]
pub(super) struct LastUse<F>(Mutex<Noted<F>>);

#[derive(Debug, Default)]
struct Noted<F> {
    /// The time; 1970: no use.
    at: UnixTime,
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
        Self(Mutex::new(Noted {
            at: at.unwrap_or_default(),
            how: 0,
            from,
            is_unwritten: false,
        }))
    }

    /// Takes over a use that only `other` knows.
    pub(super) fn learn_from(&self, other: &Self) {
        if let Some(used) = other.get() {
            self.0.lock().keep_later(used);
        }
    }

    /// Notes a use; `true` if it has to be put on the list of those to write. Only the first use in a second counts.
    pub(super) fn note(&self, now: UnixTime, how: u8, from: F) -> bool {
        let mut noted = self.0.lock();
        noted.keep_later((now, how, from)) && !replace(&mut noted.is_unwritten, true)
    }

    /// Takes the use for writing, unless it is written.
    pub(super) fn take(&self) -> Option<(UnixTime, u8, F)> {
        let mut noted = self.0.lock();
        take(&mut noted.is_unwritten)
            .then(|| noted.used())
            .flatten()
    }

    /// The time, the kind and the caller of the last use.
    pub(super) fn get(&self) -> Option<(UnixTime, u8, F)> {
        self.0.lock().used()
    }

    /// Notes that it has not been written; `true` if it has to be put on the list again.
    pub(super) fn put_back(&self) -> bool {
        !replace(&mut self.0.lock().is_unwritten, true)
    }
}

impl<F: Copy> Noted<F> {
    fn used(&self) -> Option<(UnixTime, u8, F)> {
        (self.at > UnixTime(0)).then_some((self.at, self.how, self.from))
    }

    /// Notes a use if it is later than the last one; whether it is.
    fn keep_later(&mut self, used: (UnixTime, u8, F)) -> bool {
        let is_later = self.at < used.0;
        if is_later {
            (self.at, self.how, self.from) = used;
        }
        is_later
    }
}
