//! Bodies that are held back until they are proved, and how much memory they and their parameters may take together.
//!
//! Anyone who can connect can send a form before it is known who sent it. Each form is bounded, and so is the number of
//! connections, but their product is more memory than a machine should lend to strangers. So all forms of the process
//! together are bounded as well, and no caller gets more than a quarter of that: one address alone keeps nobody out.
//! The forms of the pages are counted apart from all others, so that users can log in while the API's share is taken.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    ops::Deref,
    sync::{Mutex, MutexGuard, PoisonError},
};

use zeroize::Zeroize;

use super::rejection::BodyRejection;
use crate::peer;

/// The memory of forms and hashed bodies, and of all parameters; `limits.form_memory` bounds it.
pub static API_FORMS: FormMemory = FormMemory::new();

/// The memory of the pages' forms; [`PAGE_MEMORY`] bounds it.
pub static PAGE_FORMS: FormMemory = FormMemory::new();

/// The size of one page form, in bytes: a user name, a password and two random values are far below it.
pub const PAGE_BYTES: usize = 16 * 1024;

/// The size of all page forms together, in bytes: 256 of the largest.
pub const PAGE_MEMORY: usize = 256 * PAGE_BYTES;

/// One caller gets this part of the whole.
const PARTS: usize = 4;

/// How much memory is taken, in all and by each caller. A caller is an IPv4 address or an IPv6 /64.
#[derive(Debug)]
pub struct FormMemory {
    taken: Mutex<TakenMemory>,
}

#[derive(Debug)]
struct TakenMemory {
    bytes: usize,
    /// Without those that have taken nothing, so that it is no larger than what it counts. `None` is a Unix socket.
    by_caller: BTreeMap<Option<IpAddr>, usize>,
}

impl FormMemory {
    /// Nothing is taken.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            taken: Mutex::new(TakenMemory {
                bytes: 0,
                by_caller: BTreeMap::new(),
            }),
        }
    }

    /// A reservation of nothing yet.
    pub fn reserve(&'static self, caller: Option<IpAddr>) -> Reservation {
        Reservation {
            memory: self,
            caller: caller.map(peer::network),
            bytes: 0,
        }
    }

    fn taken(&self) -> MutexGuard<'_, TakenMemory> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for FormMemory {
    fn default() -> Self {
        Self::new()
    }
}

/// A part of a [`FormMemory`] that one caller has taken. It is given back on drop.
#[derive(Debug)]
pub struct Reservation {
    memory: &'static FormMemory,
    caller: Option<IpAddr>,
    bytes: usize,
}

impl Reservation {
    /// Takes or gives back memory until this reservation has `bytes`. All reservations of the [`FormMemory`] together
    /// have at most `limit` bytes, and those of one caller a quarter of it.
    ///
    /// # Errors
    /// [`BodyRejection::TooLarge`] if `bytes` alone are more than one caller may have, and [`BodyRejection::Busy`] if they are
    /// only too much beside what is taken. The reservation then stays as it was.
    pub fn resize(&mut self, bytes: usize, limit: usize) -> Result<(), BodyRejection> {
        if bytes > self.bytes && !Self::fits(bytes, limit) {
            return Err(BodyRejection::TooLarge);
        }
        self.set(bytes, limit)
    }

    /// Whether one caller may ever have `bytes` where all together may have `limit`.
    #[must_use]
    pub const fn fits(bytes: usize, limit: usize) -> bool {
        bytes <= limit / PARTS
    }

    fn set(&mut self, bytes: usize, limit: usize) -> Result<(), BodyRejection> {
        if bytes == self.bytes {
            return Ok(());
        }
        let mut taken = self.memory.taken();
        let others = taken.bytes - self.bytes;
        let own = taken.by_caller.get(&self.caller).unwrap_or(&0) - self.bytes + bytes;
        // What grows smaller is always allowed: a reload may have lowered the limit.
        if bytes > self.bytes && (others + bytes > limit || !Self::fits(own, limit)) {
            return Err(BodyRejection::Busy);
        }
        taken.bytes = others + bytes;
        if own == 0 {
            taken.by_caller.remove(&self.caller);
        } else {
            taken.by_caller.insert(self.caller, own);
        }
        drop(taken);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let _ = self.set(0, 0);
    }
}

/// A body that is held back. Its bytes count until it is dropped.
#[derive(Debug, Default)]
pub struct BufferedBody {
    bytes: Vec<u8>,
    reservation: Option<Reservation>,
}

impl BufferedBody {
    /// An empty body with room for `expected` bytes, which take no memory before they are there.
    pub(super) fn with_room(expected: usize, reservation: Reservation) -> Self {
        Self {
            bytes: Vec::with_capacity(expected),
            reservation: Some(reservation),
        }
    }

    /// Where to append what arrives; [`BufferedBody::count`] follows.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Counts what has arrived, as part of `limit` bytes.
    ///
    /// # Errors
    /// As [`Reservation::resize`].
    pub(super) fn count(&mut self, limit: usize) -> Result<(), BodyRejection> {
        let bytes = self.bytes.len();
        self.reservation
            .as_mut()
            .map_or(Ok(()), |reservation| reservation.resize(bytes, limit))
    }

    /// Takes other bytes in place of these, no more than they were.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        debug_assert!(bytes.len() <= self.bytes.len());
        self.wipe();
        self.bytes = bytes;
    }

    /// A form may hold a password. Its bytes alone are wiped: the rest of the room was never touched.
    fn wipe(&mut self) {
        self.bytes.as_mut_slice().zeroize();
    }
}

impl AsRef<[u8]> for BufferedBody {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for BufferedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BufferedBody {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[cfg(test)]
mod tests;
