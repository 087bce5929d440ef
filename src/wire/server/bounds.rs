//! Limits the number of connections, of all callers together and of each.
//!
//! Once more than half of the connections are open, one network may have a quarter of them, whatever limit each one has.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Once},
};

use parking_lot::Mutex;

use crate::base::network::peer::network;

/// The most refused connections that wait until their callers have read the response; further ones are closed at once.
const MAX_REFUSED: usize = 16;

/// Limits the number of connections.
#[derive(Debug)]
pub struct Bounds(Mutex<Counts>);

#[derive(Debug, Default)]
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

/// A caller, as its connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) network: IpAddr,
    /// A trusted proxy, or a Unix socket: many callers, for whom there is no share.
    pub(super) is_trusted: bool,
}

impl Caller {
    pub(super) fn new(address: IpAddr, is_trusted: bool) -> Self {
        Self {
            network: network(address),
            is_trusted,
        }
    }
}

/// Why one more connection has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All slots are taken.
    All,
    /// Its caller has as many as it may have.
    Share,
}

impl Bounds {
    /// Bounds for all workers together.
    pub fn new(limit: usize, limit_per_address: Option<u32>) -> Self {
        Self(Mutex::new(Counts {
            limit,
            limit_per_address,
            ..Counts::default()
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

    /// Counts one more connection, of `caller` if it is known.
    pub(super) fn enter(self: &Arc<Self>, caller: Option<Caller>) -> Result<Slot, Full> {
        let mut counts = self.0.lock();
        if caller.is_some_and(|caller| counts.is_full_for(caller)) {
            return Err(Full::Share);
        }
        if counts.open >= counts.limit {
            return Err(Full::All);
        }
        counts.open += 1;
        let network = caller.map(|caller| caller.network);
        counts.add(network);
        Ok(self.slot(SlotKind::Connection(network)))
    }

    /// Calls `choose` with a function that returns the number of connections of a network.
    pub(super) fn with_counts<T>(&self, choose: impl FnOnce(&dyn Fn(IpAddr) -> u32) -> T) -> T {
        let counts = self.0.lock();
        choose(&|network| counts.connections(network))
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
    /// Counts the connection for its caller; returns false if that may not have one more.
    pub(super) fn count_for(&mut self, caller: Caller) -> bool {
        let mut counts = self.bounds.0.lock();
        if counts.is_full_for(caller) {
            return false;
        }
        counts.add(Some(caller.network));
        drop(counts);
        self.kind = SlotKind::Connection(Some(caller.network));
        true
    }

    /// Makes it the slot of another connection, whose caller is not counted yet.
    pub(super) fn hand_on(&mut self) {
        if let SlotKind::Connection(network) = &mut self.kind {
            self.bounds.0.lock().leave(network.take());
        }
    }
}

impl Counts {
    /// The connections of a network.
    fn connections(&self, network: IpAddr) -> u32 {
        self.by_address.get(&network).copied().unwrap_or(0)
    }

    /// Whether the caller has as many connections as it may have, whatever others have.
    fn is_full_for(&self, caller: Caller) -> bool {
        let count = self.connections(caller.network);
        let is_scarce = self.open > self.limit / 2 && !caller.is_trusted;
        let has_share = is_scarce && count as usize >= (self.limit / 4).max(1);
        if has_share {
            warn_of_share(caller.network, count);
        }
        has_share || self.limit_per_address.is_some_and(|limit| count >= limit)
    }

    fn add(&mut self, network: Option<IpAddr>) {
        if let Some(network) = network {
            *self.by_address.entry(network).or_insert(0) += 1;
        }
    }

    /// Counts one connection of the network less.
    fn leave(&mut self, network: Option<IpAddr>) {
        if let Some(network) = network
            && let Entry::Occupied(mut count) = self.by_address.entry(network)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Warns, once in the life of the process, of an address that has its share: it may be a proxy for many callers.
fn warn_of_share(address: IpAddr, connections: u32) {
    static WARNING: Once = Once::new();
    WARNING.call_once(|| {
        tracing::warn!(
            %address,
            connections,
            "limits.connections: one address has its whole share; if it is a proxy for many callers, name it in \
             listen.trusted_proxies, or set listen.proxy_protocol"
        );
    });
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
    fn a_host_of_ipv6_has_as_many_connections_as_one_address() {
        let bounds = Arc::new(Bounds::new(10, Some(2)));
        let enter = |address: &str| {
            let caller = Caller::new(address.parse().expect("an address"), false);
            bounds.enter(Some(caller)).ok()
        };
        let first = enter("2001:db8:1:2::1");
        let second = enter("2001:db8:1:2:ffff::2");
        assert!(first.is_some() && second.is_some());
        assert!(enter("2001:db8:1:2::3").is_none());
        assert!(enter("2001:db8:1:3::1").is_some());
        drop(first);
        assert!(enter("2001:db8:1:2::3").is_some());
    }

    #[test]
    fn network_has_a_quarter_once_half_the_connections_are_open() {
        let bounds = Arc::new(Bounds::new(40, None));
        let enter = |last: u8, is_trusted| {
            let caller = Caller::new(IpAddr::from([192, 0, 2, last]), is_trusted);
            bounds.enter(Some(caller))
        };
        let of_one = Vec::from_iter((0..40).map_while(|_| enter(1, false).ok()));
        assert_eq!(of_one.len(), 21);
        assert_eq!(enter(1, false).err(), Some(Full::Share));
        let of_another = Vec::from_iter((0..40).map_while(|_| enter(2, false).ok()));
        assert_eq!(of_another.len(), 10);
        let of_proxy = Vec::from_iter((0..40).map_while(|_| enter(3, true).ok()));
        assert_eq!(of_proxy.len(), 9);
        assert_eq!(enter(3, true).err(), Some(Full::All));
    }
}
