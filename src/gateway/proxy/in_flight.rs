//! The requests that are being served, of which the process has at most `limits.concurrent_requests`.
//!
//! Calls that prove nothing and are permitted all the same, because their operation is open to everybody or they are only observed, leave a quarter of
//! them to others. Once more than half of all are taken, one network has at most a quarter for such calls.

use std::{collections::HashMap, net::IpAddr, rc::Rc};

use parking_lot::Mutex;

use super::Current;
use crate::{
    base::peer,
    wire::server::{caller_stream::CallerStream, unproved},
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
    pub(super) fn begin(current: &Rc<Current>, caller: &Rc<CallerStream>) -> Option<Self> {
        let most = current.live.concurrent_requests;
        caller.take_place(most).then(|| Self {
            current: Rc::clone(current),
            caller: Rc::clone(caller),
            anonymous: None,
        })
    }

    /// Counts it as a permitted call that has proved nothing; `false`: there are too many.
    pub(super) fn count_anonymous(&mut self) -> bool {
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
        let has_share = others > most / 2 && of_network >= (most / 4).max(1);
        if has_share || counts.all >= most - most / 4 {
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
    fn anonymous_calls_leave_a_quarter_and_a_network_has_one_when_half_are_taken() {
        let calls = AnonymousCalls::default();
        let network = |last| Some(IpAddr::from([192, 0, 2, last]));
        let add = |last, most| {
            let all = calls.0.lock().all;
            calls.add(network(last), all, most)
        };
        assert_eq!((0..40).filter(|_| add(1, 40)).count(), 21);
        let of_others = [2, 3].map(|last| (0..40).filter(|_| add(last, 40)).count());
        assert_eq!(of_others, [9, 0], "thirty are taken");
        for _ in 0..21 {
            calls.remove(network(1));
        }
        assert!(add(3, 40));
        for (last, count) in [(2, 9), (3, 1)] {
            for _ in 0..count {
                calls.remove(network(last));
            }
        }
        assert!(calls.0.lock().by_network.is_empty());
        assert!(add(1, 1), "the only one");
        assert!(!add(2, 1));
    }
}
