//! Bodies that are buffered until they are proved, and the limits on the memory of them and their parameters.
//!
//! Anyone who can connect can send a form before it is known who sent it. Each form is bounded, and so is the number of
//! connections, but their product is more memory than unauthenticated callers should get. So all forms of the process
//! together are bounded, and those of each caller. A form that finds no room takes the place of the one that has been
//! arriving for longest: of the same caller where that caller is over its share, else of all. Slow forms, however many
//! addresses they come from, therefore keep no other caller out. The forms of the pages are counted apart from all others.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    ops::Deref,
    sync::LazyLock,
    task::{Context, Waker},
};

use parking_lot::Mutex;
use zeroize::Zeroize;

use crate::{base::network::peer, wire::server::rejection::BodyRejection};

/// The memory of forms and hashed bodies, and of all parameters.
pub static API_FORMS: LazyLock<FormMemory> = LazyLock::new(FormMemory::default);

/// The memory of the pages' forms; [`PAGE_SHARES`] bounds it.
pub static PAGE_FORMS: LazyLock<FormMemory> = LazyLock::new(FormMemory::default);

/// The memory of bodies of the admin API.
pub static ADMIN_BODIES: LazyLock<FormMemory> = LazyLock::new(FormMemory::default);

/// The size of one page form, in bytes: a user name, a password and two random values are far below it.
pub const PAGE_BYTES: usize = 16 * 1024;

/// Room for 1,024 page forms of the largest size, and for 16 of one caller.
pub const PAGE_SHARES: Shares = Shares {
    all: 1024 * PAGE_BYTES,
    each: 16 * PAGE_BYTES,
};

/// A body has room for this many bytes at first, whatever length it announces.
const FIRST_ROOM: usize = 64 * 1024;

/// The limits on memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// By all callers together.
    pub all: usize,
    /// By one caller.
    pub each: usize,
}

impl Shares {
    /// The shares of `limits.form_memory`. Each caller has a sixteenth, or eight times `limits.form_bytes` if that is more
    /// (parameters can take several times the form that they are read from), but never more than a quarter.
    pub fn new(form_memory: usize, form_bytes: usize) -> Self {
        let least = form_bytes.saturating_mul(8).max(form_memory / 16);
        Self {
            all: form_memory,
            each: least.min(form_memory / 4),
        }
    }
}

/// The memory that is taken, in all and by each caller. A caller is an IPv4 address or an IPv6 /64.
#[derive(Debug, Default)]
pub struct FormMemory {
    taken: Mutex<TakenMemory>,
}

#[derive(Debug, Default)]
struct TakenMemory {
    bytes: usize,
    /// Callers that have taken nothing are not in it, so that its own size is bounded too. `None` is a Unix socket.
    by_caller: BTreeMap<Option<IpAddr>, usize>,
    /// Bodies that have not arrived whole, the oldest first.
    arriving: BTreeMap<u64, Arriving>,
    next_arrival: u64,
}

#[derive(Debug)]
struct Arriving {
    caller: Option<IpAddr>,
    bytes: usize,
    /// Of the task that reads it.
    waker: Waker,
}

impl FormMemory {
    /// A reservation of nothing yet.
    pub fn reserve(&'static self, caller: Option<IpAddr>) -> Reservation {
        Reservation {
            memory: self,
            caller: caller.map(peer::network),
            bytes: 0,
            arrival: None,
        }
    }
}

impl TakenMemory {
    fn taken_by(&self, caller: Option<IpAddr>) -> usize {
        self.by_caller.get(&caller).copied().unwrap_or(0)
    }

    /// Counts `after` bytes of a caller instead of `before`.
    fn change(&mut self, caller: Option<IpAddr>, before: usize, after: usize) {
        self.bytes = self.bytes - before + after;
        match self.taken_by(caller) - before + after {
            0 => self.by_caller.remove(&caller),
            taken => self.by_caller.insert(caller, taken),
        };
    }

    /// Drops bodies that are arriving until there is room for `more` bytes of a caller; whether there is.
    fn make_room(
        &mut self,
        caller: Option<IpAddr>,
        arrival: Option<u64>,
        more: usize,
        shares: Shares,
    ) -> bool {
        loop {
            let is_over_share = self.taken_by(caller) + more > shares.each;
            if !is_over_share && self.bytes + more <= shares.all {
                return true;
            }
            let counts = |it: &Arriving| it.bytes > 0 && (!is_over_share || it.caller == caller);
            let oldest = self.arriving.iter().find(|(_, it)| counts(it));
            let Some(oldest) = oldest.map(|(&id, _)| id).filter(|id| Some(*id) != arrival) else {
                return false;
            };
            self.drop_arriving(oldest);
        }
    }

    fn drop_arriving(&mut self, id: u64) {
        if let Some(dropped) = self.arriving.remove(&id) {
            self.change(dropped.caller, dropped.bytes, 0);
            dropped.waker.wake();
        }
    }
}

/// A part of a [`FormMemory`] that one caller has taken. It is given back on drop.
#[derive(Debug)]
pub struct Reservation {
    memory: &'static FormMemory,
    caller: Option<IpAddr>,
    bytes: usize,
    /// Its key in [`TakenMemory::arriving`]; if it is no longer there, its memory was given to another body.
    arrival: Option<u64>,
}

impl Reservation {
    /// Takes or gives back memory until this reservation has `bytes`.
    ///
    /// # Errors
    /// [`BodyRejection::TooLarge`] if `bytes` alone are more than the share of one caller, and [`BodyRejection::Busy`] if
    /// there is no room for them, or if this body was dropped to make room. The reservation then stays as it was.
    pub fn resize(&mut self, bytes: usize, shares: Shares) -> Result<(), BodyRejection> {
        if bytes == self.bytes && self.arrival.is_none() {
            // Nearly every request takes nothing: it does not need the lock that all workers share.
            return Ok(());
        }
        if bytes > self.bytes && bytes > shares.each {
            return Err(BodyRejection::TooLarge);
        }
        let mut taken = self.memory.taken.lock();
        if self
            .arrival
            .is_some_and(|id| !taken.arriving.contains_key(&id))
        {
            self.bytes = 0;
            return Err(BodyRejection::Busy);
        }
        // Shrinking is always allowed: a reload may have lowered the limit.
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 && !taken.make_room(self.caller, self.arrival, more, shares) {
            return Err(BodyRejection::Busy);
        }
        taken.change(self.caller, self.bytes, bytes);
        let arriving = self.arrival.and_then(|id| taken.arriving.get_mut(&id));
        if let Some(arriving) = arriving {
            arriving.bytes = bytes;
        }
        drop(taken);
        self.bytes = bytes;
        Ok(())
    }

    /// Waits for more of the body: until [`Reservation::arrived`] it may be dropped to make room, which wakes the task.
    ///
    /// # Errors
    /// [`BodyRejection::Busy`] if it was.
    pub(in crate::wire::server) fn await_more(
        &mut self,
        context: &Context<'_>,
    ) -> Result<(), BodyRejection> {
        let mut taken = self.memory.taken.lock();
        if let Some(id) = self.arrival {
            let arriving = taken.arriving.get_mut(&id);
            return match arriving {
                Some(arriving) => {
                    arriving.waker.clone_from(context.waker());
                    Ok(())
                }
                None => Err(BodyRejection::Busy),
            };
        }
        let id = taken.next_arrival;
        taken.next_arrival += 1;
        let body = Arriving {
            caller: self.caller,
            bytes: self.bytes,
            waker: context.waker().clone(),
        };
        taken.arriving.insert(id, body);
        self.arrival = Some(id);
        Ok(())
    }

    /// The body has arrived: it is no longer dropped to make room.
    ///
    /// # Errors
    /// [`BodyRejection::Busy`] if it was dropped before.
    pub(in crate::wire::server) fn arrived(&mut self) -> Result<(), BodyRejection> {
        if let Some(id) = self.arrival.take()
            && self.memory.taken.lock().arriving.remove(&id).is_none()
        {
            self.bytes = 0;
            return Err(BodyRejection::Busy);
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.arrived().is_ok() && self.bytes > 0 {
            self.memory.taken.lock().change(self.caller, self.bytes, 0);
        }
    }
}

/// A buffered body. Its bytes count until it is dropped.
#[derive(Debug)]
pub struct BufferedBody {
    bytes: Vec<u8>,
    /// The reservation of its memory.
    pub(in crate::wire::server) reservation: Reservation,
}

impl BufferedBody {
    /// An empty body with room for `expected` bytes, or for the first of them.
    pub(in crate::wire::server) fn with_room(expected: usize, reservation: Reservation) -> Self {
        Self {
            bytes: Vec::with_capacity(expected.min(FIRST_ROOM)),
            reservation,
        }
    }

    /// Appends bytes that have arrived and are counted. A buffer that is too small is wiped: a form may hold a password.
    pub(in crate::wire::server) fn push(&mut self, data: &[u8]) {
        let length = self.bytes.len() + data.len();
        if length > self.bytes.capacity() {
            let mut larger = Vec::with_capacity(length.max(2 * self.bytes.capacity()));
            larger.extend_from_slice(&self.bytes);
            self.wipe();
            self.bytes = larger;
        }
        self.bytes.extend_from_slice(data);
    }

    /// Replaces the bytes by others, which are not more.
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
