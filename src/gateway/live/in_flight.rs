//! The requests that are being served, of which the process has at most `limits.concurrent_requests`.
//!
//! Calls that prove nothing and are permitted all the same, because their operation is open to everybody or they are only
//! observed, leave a quarter of them to others, and one network takes at most half as many as are left, or one. A few
//! networks whose calls last, and that make another one for each that ends, leave some to the next network.

use std::{collections::HashMap, net::IpAddr, rc::Rc};

use parking_lot::Mutex;

use super::Current;
use crate::{
    base::network::peer,
    wire::server::caller::{stream::CallerStream, unproved},
};

/// A request that is being served. It counts until this is dropped.
pub struct InFlight {
    current: Rc<Current>,
    caller: Rc<CallerStream>,
    /// The network for which it counts as an anonymous call; `None` of a network is a Unix socket.
    anonymous: Option<Option<IpAddr>>,
}

/// The permitted calls that have proved nothing.
#[derive(Debug, Default)]
pub struct AnonymousCalls(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// Networks without such a call are not in it.
    by_network: HashMap<Option<IpAddr>, usize>,
}

impl InFlight {
    /// Counts one more request; `None`: there are as many as the limit.
    pub(crate) fn begin(current: &Rc<Current>, caller: &Rc<CallerStream>) -> Option<Self> {
        let most = current.live.concurrent_requests;
        caller.take_place(most).then(|| Self {
            current: Rc::clone(current),
            caller: Rc::clone(caller),
            anonymous: None,
        })
    }

    /// Counts it as a permitted call that has proved nothing; `false`: there are too many.
    pub(crate) fn count_anonymous(&mut self) -> bool {
        let (shared, most) = (&self.current.shared, self.current.live.concurrent_requests);
        let others = unproved::in_flight().saturating_sub(1);
        let network = self.caller.counts_for().map(peer::network);
        let is_counted = shared.anonymous.add(network, others, most);
        self.anonymous = is_counted.then_some(network);
        is_counted
    }
}

impl AnonymousCalls {
    /// Counts one more, where `others` of at most `most` requests are being served.
    fn add(&self, network: Option<IpAddr>, others: usize, most: usize) -> bool {
        let mut counts = self.0.lock();
        let of_network = counts.by_network.get(&network).copied().unwrap_or(0);
        let left = (most - most / 4).saturating_sub(counts.all);
        let left = left.min(most.saturating_sub(others));
        if left == 0 || of_network >= (left / 2).max(1) {
            return false;
        }
        counts.all += 1;
        counts.by_network.insert(network, of_network + 1);
        true
    }

    fn remove(&self, network: Option<IpAddr>) {
        let mut counts = self.0.lock();
        counts.all -= 1;
        match counts.by_network.get_mut(&network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.by_network.remove(&network)),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.caller.give_place_back();
        if let Some(network) = self.anonymous {
            self.current.shared.anonymous.remove(network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_calls_leave_a_quarter_and_a_network_half_the_rest() {
        let calls = AnonymousCalls::default();
        let network = |last| Some(IpAddr::from([192, 0, 2, last]));
        let add = |last, proved, most| {
            let all = calls.0.lock().all;
            calls.add(network(last), all + proved, most)
        };
        let added = |last, proved| (0..40).filter(|_| add(last, proved, 40)).count();
        let counts = [1, 2, 3, 4, 5].map(|last| added(last, 0));
        assert_eq!(counts, [10, 7, 4, 3, 2], "four of thirty are left");
        for (last, count) in (1..).zip(counts) {
            (0..count).for_each(|_| calls.remove(network(last)));
        }
        assert!(calls.0.lock().by_network.is_empty());
        assert_eq!(added(1, 20), 7, "proved calls take places too");
        (0..7).for_each(|_| calls.remove(network(1)));
        assert!(add(1, 0, 1), "the only one");
        assert!(!add(2, 0, 1));
    }

    #[test]
    fn networks_that_refill_at_once_leave_calls_to_others() {
        let calls = AnonymousCalls::default();
        let network = |last| Some(IpAddr::from([192, 0, 2, last]));
        let add = |last| {
            let all = calls.0.lock().all;
            calls.add(network(last), all, 400)
        };
        let wanted = (0..25).flat_map(|_| 0..16);
        let mut under_way: Vec<u8> = wanted.filter(|it| add(*it)).collect();
        for round in 0..100 {
            for _ in 0..under_way.len() {
                let ended = under_way.remove(0);
                calls.remove(network(ended));
                let begun = (0..16).filter(|it| add(*it));
                under_way.extend(begun);
            }
            let others = (100..110).filter(|it| add(*it));
            let others = Vec::from_iter(others);
            assert!(others.len() >= 8, "{others:?} in round {round}");
            others.into_iter().for_each(|it| calls.remove(network(it)));
        }
    }
}
