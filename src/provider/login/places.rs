//! The places of expensive checks: a bound on those that run or wait, in all and for each caller.
//!
//! A bound on all alone would let one caller take every place, and all other logins would fail. So one caller has at most
//! a quarter of the places.

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;

use crate::base::peer::network;

/// The part of the places that one caller may have.
const SHARE: usize = 4;

/// A number of places.
#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    /// The caller of each place that is taken: an IPv4 address or an IPv6 /64. `None` is the operator.
    taken: Mutex<Vec<Option<IpAddr>>>,
}

impl Places {
    /// This many places, all free.
    pub(super) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            taken: Mutex::new(Vec::with_capacity(all)),
        })
    }

    /// Takes a place for a caller; without an address for the operator, who may have all of them. `None` if no place is
    /// free, or if the caller has a quarter of them (at least one).
    pub(super) fn take(self: &Arc<Self>, caller: Option<IpAddr>) -> Option<Place> {
        let caller = caller.map(network);
        let mut taken = self.taken.lock();
        let own = taken.iter().filter(|place| **place == caller).count();
        let has_share = caller.is_some() && own >= (self.all / SHARE).max(1);
        if has_share || taken.len() >= self.all {
            return None;
        }
        taken.push(caller);
        let places = Arc::clone(self);
        Some(Place { places, caller })
    }
}

/// A place that is taken. It is free again on drop.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    caller: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        if let Some(at) = taken.iter().position(|place| *place == self.caller) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_quarter_and_the_operator_all() {
        let places = Places::new(10);
        let take = |address: &str| places.take(Some(address.parse().unwrap()));
        let first = ["192.0.2.1", "::ffff:192.0.2.1"].map(take);
        assert!(first.iter().all(Option::is_some));
        assert!(take("192.0.2.1").is_none());
        let host = [
            "2001:db8::1",
            "2001:db8::2",
            "2001:db8::3",
            "2001:db8:0:1::",
        ]
        .map(take);
        assert_eq!(
            host.each_ref().map(Option::is_some),
            [true, true, false, true]
        );
        let operator: Vec<_> = std::iter::from_fn(|| places.take(None)).collect();
        assert_eq!(operator.len(), 5);
        assert!(take("192.0.2.2").is_none(), "none is free");
        drop(first);
        let second = take("192.0.2.1");
        assert!(second.is_some());
        assert!(take("192.0.2.2").is_some());
    }

    #[test]
    fn few_places_have_one_for_each_caller() {
        let places = Places::new(2);
        let caller = |last| Some(IpAddr::from([192, 0, 2, last]));
        let first = places.take(caller(1));
        assert!(first.is_some() && places.take(caller(1)).is_none());
        assert!(places.take(caller(2)).is_some());
    }
}
