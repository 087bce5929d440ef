//! The password checks that run or wait: a bound on all of them, and on those of each caller.
//!
//! With a bound on all alone one caller could fill it, and all other logins would fail. So one caller has at most a
//! quarter.

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;

use crate::base::network::peer::network;

/// One caller may have one part in this many.
const SHARE: usize = 4;

/// The checks that run or wait, at most `all`.
#[derive(Debug)]
pub(super) struct PendingChecks {
    all: usize,
    /// The caller of each check: an IPv4 address or an IPv6 /64. `None` is the operator.
    callers: Mutex<Vec<Option<IpAddr>>>,
}

impl PendingChecks {
    /// Room for this many checks.
    pub(super) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            callers: Mutex::new(Vec::with_capacity(all)),
        })
    }

    /// Admits a check of a caller; without an address, of the operator, who may have all of them. `None` if there is no
    /// room, or if the caller has a quarter of it (at least one check).
    pub(super) fn admit(self: &Arc<Self>, caller: Option<IpAddr>) -> Option<PendingCheck> {
        let caller = caller.map(network);
        let mut callers = self.callers.lock();
        let of_caller = callers.iter().filter(|it| **it == caller).count();
        let has_share = caller.is_some() && of_caller >= (self.all / SHARE).max(1);
        if has_share || callers.len() >= self.all {
            return None;
        }
        callers.push(caller);
        let checks = Arc::clone(self);
        Some(PendingCheck { checks, caller })
    }
}

/// A check that was admitted, until it is dropped.
#[derive(Debug)]
pub(super) struct PendingCheck {
    checks: Arc<PendingChecks>,
    caller: Option<IpAddr>,
}

impl Drop for PendingCheck {
    fn drop(&mut self) {
        let mut callers = self.checks.callers.lock();
        if let Some(at) = callers.iter().position(|it| *it == self.caller) {
            callers.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_quarter_and_the_operator_all() {
        let checks = PendingChecks::new(10);
        let admit = |address: &str| checks.admit(Some(address.parse().unwrap()));
        let first = ["192.0.2.1", "::ffff:192.0.2.1"].map(admit);
        assert!(first.iter().all(Option::is_some));
        assert!(admit("192.0.2.1").is_none());
        let host = [
            "2001:db8::1",
            "2001:db8::2",
            "2001:db8::3",
            "2001:db8:0:1::",
        ]
        .map(admit);
        assert_eq!(
            host.each_ref().map(Option::is_some),
            [true, true, false, true]
        );
        let operator: Vec<_> = std::iter::from_fn(|| checks.admit(None)).collect();
        assert_eq!(operator.len(), 5);
        assert!(admit("192.0.2.2").is_none(), "none is free");
        drop(first);
        let second = admit("192.0.2.1");
        assert!(second.is_some());
        assert!(admit("192.0.2.2").is_some());
    }

    #[test]
    fn little_room_has_one_check_for_each_caller() {
        let checks = PendingChecks::new(2);
        let caller = |last| Some(IpAddr::from([192, 0, 2, last]));
        let first = checks.admit(caller(1));
        assert!(first.is_some() && checks.admit(caller(1)).is_none());
        assert!(checks.admit(caller(2)).is_some());
    }
}
