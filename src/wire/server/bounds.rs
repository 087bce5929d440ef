//! Limits the number of connections, of all callers together and of each.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::base::peer::network;

/// The most refused connections that wait until their callers have read the response; any more are closed at once.
const MAX_REFUSED: usize = 16;

/// Limits the number of connections.
#[derive(Debug)]
pub struct Bounds(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    /// The most connections.
    limit: usize,
    /// The most connections of one address, or one /64 of IPv6.
    limit_per_address: Option<u32>,
    open: usize,
    by_address: HashMap<IpAddr, u32>,
    /// Listeners that may still accept a connection.
    listening: usize,
    /// Connections that are told that they are too many.
    refused: usize,
}

impl Bounds {
    /// Bounds for all workers together.
    pub fn new(limit: usize, limit_per_address: Option<u32>) -> Self {
        Self(Mutex::new(Counts {
            limit,
            limit_per_address,
            open: 0,
            by_address: HashMap::new(),
            listening: 0,
            refused: 0,
        }))
    }

    /// Sets other bounds. Connections that are open stay.
    pub fn set(&self, limit: usize, limit_per_address: Option<u32>) {
        let mut counts = self.0.lock();
        counts.limit = limit;
        counts.limit_per_address = limit_per_address;
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.0.lock().open
    }

    /// Whether no connection is open, and no listener is left that could accept one.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let counts = self.0.lock();
        counts.listening == 0 && counts.open == 0
    }

    /// Counts one more connection, if it is allowed.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Slot> {
        let mut counts = self.0.lock();
        if counts.open >= counts.limit {
            return None;
        }
        counts.open += 1;
        Some(self.slot(SlotKind::Connection(None)))
    }

    /// Whether the caller has its share, which is a quarter of all connections.
    pub(super) fn has_share(&self, caller: IpAddr) -> bool {
        let counts = self.0.lock();
        let of_caller = counts.by_address.get(&caller).copied().unwrap_or(0);
        of_caller as usize >= (counts.limit / 4).max(1)
    }

    /// Counts a connection that is refused, if it may wait until its caller has read that.
    pub(super) fn refuse(self: &Arc<Self>) -> Option<Slot> {
        let mut counts = self.0.lock();
        if counts.refused == MAX_REFUSED {
            return None;
        }
        counts.refused += 1;
        Some(self.slot(SlotKind::Refused))
    }

    fn slot(self: &Arc<Self>, kind: SlotKind) -> Slot {
        Slot {
            bounds: Arc::clone(self),
            kind,
        }
    }

    /// Counts one more listener.
    pub(super) fn listen(self: &Arc<Self>) -> Slot {
        self.0.lock().listening += 1;
        self.slot(SlotKind::Listener)
    }
}

/// The slot of a connection or of a listener; given back when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    bounds: Arc<Bounds>,
    kind: SlotKind,
}

#[derive(Debug)]
enum SlotKind {
    Listener,
    /// The network of the caller, once it is known.
    Connection(Option<IpAddr>),
    Refused,
}

impl Slot {
    /// The network of the caller, if it is known.
    pub(super) const fn caller(&self) -> Option<IpAddr> {
        match self.kind {
            SlotKind::Connection(caller) => caller,
            SlotKind::Listener | SlotKind::Refused => None,
        }
    }

    /// Counts the connection for its caller; returns false if that may not have one more.
    pub(super) fn count_for(&mut self, caller: IpAddr) -> bool {
        let caller = network(caller);
        let mut counts = self.bounds.0.lock();
        let of_caller = counts.by_address.get(&caller).copied().unwrap_or(0);
        let is_too_many = |limit| of_caller >= limit;
        if counts.limit_per_address.is_some_and(is_too_many) {
            return false;
        }
        counts.by_address.insert(caller, of_caller + 1);
        drop(counts);
        self.kind = SlotKind::Connection(Some(caller));
        true
    }

    /// Makes it the slot of another connection, whose caller is not counted yet.
    pub(super) fn hand_on(&mut self) {
        self.bounds.0.lock().leave(self.caller());
        self.kind = SlotKind::Connection(None);
    }
}

impl Counts {
    /// Counts one connection of the caller less.
    fn leave(&mut self, caller: Option<IpAddr>) {
        if let Some(caller) = caller
            && let Entry::Occupied(mut count) = self.by_address.entry(caller)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.bounds.0.lock();
        match self.kind {
            SlotKind::Listener => counts.listening -= 1,
            SlotKind::Refused => counts.refused -= 1,
            SlotKind::Connection(caller) => {
                counts.open -= 1;
                counts.leave(caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_ipv6_has_no_more_connections_than_one_address() {
        let bounds = Arc::new(Bounds::new(10, Some(2)));
        let enter = |address: &str| {
            let mut slot = bounds.enter().expect("there is room");
            let caller = address.parse().expect("an address");
            slot.count_for(caller).then_some(slot)
        };
        let first = enter("2001:db8:1:2::1");
        let second = enter("2001:db8:1:2:ffff::2");
        assert!(first.is_some() && second.is_some());
        assert!(enter("2001:db8:1:2::3").is_none());
        assert!(enter("2001:db8:1:3::1").is_some());
        drop(first);
        assert!(enter("2001:db8:1:2::3").is_some());
    }
}
