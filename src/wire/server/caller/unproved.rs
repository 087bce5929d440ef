//! The requests that are being served, and among them those that wait and have proved nothing of their sender: for their
//! body, for the store, or for a caller who reads the response.
//!
//! How long such a wait lasts is up to the caller, or to a store that is slow. So where all places are taken, a request
//! that waits makes room for another one: the one that has waited longest of the network that has most is dropped, until at
//! most a quarter of all wait. A call that is proved is never dropped, and neither is one that is being decided on or
//! waits for the API.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Waker},
};

use parking_lot::Mutex;

use crate::{base::network::peer::network, wire::server::rejection::BodyRejection};

/// The number of requests of the process that are being served.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// Those of the process that wait and have proved nothing.
static UNPROVED: LazyLock<Mutex<Waiters>> = LazyLock::new(Mutex::default);

/// Requests that wait and have proved nothing.
#[derive(Debug, Default)]
struct Waiters {
    /// The one that has waited longest first.
    by_number: BTreeMap<u64, Waiter>,
    /// Networks of which none waits are not in it. `None` is a Unix socket.
    by_network: HashMap<Option<IpAddr>, usize>,
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    network: Option<IpAddr>,
    waker: Waker,
}

/// The place of a request among those that are being served or wait. It has to be given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::wire::server) enum Place {
    /// It takes none: it has a response, was dropped, or is not limited in number.
    #[default]
    None,
    /// It is being served.
    Serving,
    /// It waits and has proved nothing, under this number.
    Waiting(u64),
}

impl Place {
    /// The place of one more request that is served, of which there are at most `most`, if need be that of one which waits.
    pub(in crate::wire::server) fn take(most: usize) -> Self {
        let others = IN_FLIGHT.fetch_add(1, Relaxed);
        let is_free = others < most || UNPROVED.lock().make_room(most.div_ceil(4));
        if others >= most {
            // Its own, or that of the one which was dropped.
            IN_FLIGHT.fetch_sub(1, Relaxed);
        }
        match is_free {
            true => Self::Serving,
            false => Self::None,
        }
    }

    /// The request of `caller` waits.
    ///
    /// # Errors
    /// [`BodyRejection::Busy`] if it was dropped.
    pub(in crate::wire::server) fn wait(
        self,
        caller: Option<IpAddr>,
        context: &Context<'_>,
    ) -> Result<Self, BodyRejection> {
        match self {
            Self::None => Ok(self),
            Self::Serving => Ok(Self::Waiting(UNPROVED.lock().add(caller, context))),
            Self::Waiting(number) if UNPROVED.lock().renew(number, context) => Ok(self),
            Self::Waiting(_) => Err(BodyRejection::Busy),
        }
    }

    /// The request no longer waits.
    pub(in crate::wire::server) fn proceed(self) -> Self {
        match self {
            Self::Waiting(number) if UNPROVED.lock().remove(number).is_some() => Self::Serving,
            Self::Waiting(_) => Self::None,
            Self::Serving | Self::None => self,
        }
    }

    /// Gives it back.
    pub(in crate::wire::server) fn give_back(self) {
        if self.proceed() == Self::Serving {
            IN_FLIGHT.fetch_sub(1, Relaxed);
        }
    }
}

/// The requests of the process that are being served.
pub fn in_flight() -> usize {
    IN_FLIGHT.load(Relaxed)
}

impl Waiters {
    /// Adds a request of `caller`. Until [`Waiters::remove`] it may be dropped to make room, which wakes the task.
    fn add(&mut self, caller: Option<IpAddr>, context: &Context<'_>) -> u64 {
        let (number, network) = (self.next, caller.map(network));
        let waker = context.waker().clone();
        self.next += 1;
        *self.by_network.entry(network).or_insert(0) += 1;
        self.by_number.insert(number, Waiter { network, waker });
        number
    }

    /// Has the task of `context` woken; `false`: the request was dropped.
    fn renew(&mut self, number: u64, context: &Context<'_>) -> bool {
        let waiter = self.by_number.get_mut(&number);
        waiter
            .map(|waiter| waiter.waker.clone_from(context.waker()))
            .is_some()
    }

    /// Drops one, if more than `spared` wait.
    fn make_room(&mut self, spared: usize) -> bool {
        self.by_number.len() > spared && self.drop_one()
    }

    /// Removes a request that no longer waits; `None`: it was dropped.
    fn remove(&mut self, number: u64) -> Option<Waiter> {
        let removed = self.by_number.remove(&number)?;
        if let Some(count) = self.by_network.get_mut(&removed.network) {
            *count -= 1;
            if *count == 0 {
                self.by_network.remove(&removed.network);
            }
        }
        Some(removed)
    }

    /// Drops the one that has waited longest of a network that has most.
    fn drop_one(&mut self) -> bool {
        let most = self.by_network.values().max().copied();
        let mut waiters = self.by_number.iter();
        let longest = waiters.find(|(_, it)| self.by_network.get(&it.network).copied() == most);
        let longest = longest.map(|(&number, _)| number);
        let dropped = longest.and_then(|number| self.remove(number));
        dropped.map(|dropped| dropped.waker.wake()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn the_longest_wait_of_the_network_that_has_most_ends() {
        let mut waiters = Waiters::default();
        let context = Context::from_waker(Waker::noop());
        let mut enter = |text: &str| {
            waiters.make_room(7);
            waiters.add(address(text), &context)
        };
        let other = enter("192.0.2.1");
        // The addresses of a /64 are one network.
        let many = (0..20).map(|number| match number % 2 {
            0 => enter("2001:db8::1"),
            _ => enter("2001:db8::2"),
        });
        let many = Vec::from_iter(many);
        let newcomers = ["192.0.2.2", "192.0.2.3"].map(&mut enter);
        assert_eq!(waiters.by_number.len(), 8);
        for number in newcomers.into_iter().chain([other]) {
            assert!(waiters.renew(number, &context));
            assert!(waiters.remove(number).is_some());
        }
        let waits = Vec::from_iter(many.iter().map(|&number| waiters.renew(number, &context)));
        assert_eq!(waits, [[false; 15].as_slice(), &[true; 5]].concat());
        let left = many
            .into_iter()
            .filter(|&number| waiters.remove(number).is_some());
        assert_eq!(left.count(), 5);
        assert!(waiters.by_network.is_empty());
    }

    #[test]
    fn the_longest_wait_of_equal_networks_ends() {
        let mut waiters = Waiters::default();
        let context = Context::from_waker(Waker::noop());
        let numbers = (0..9)
            .rev()
            .map(|last| waiters.add(Some(IpAddr::from([192, 0, 2, last])), &context));
        let numbers = Vec::from_iter(numbers);
        assert!(waiters.make_room(8));
        assert!(!waiters.make_room(8), "at most eight wait");
        let waits = numbers
            .iter()
            .map(|&number| waiters.renew(number, &context));
        assert_eq!(
            Vec::from_iter(waits),
            [[false].as_slice(), &[true; 8]].concat()
        );
    }
}
