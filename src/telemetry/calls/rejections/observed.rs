//! The calls of the last day that enforcing would reject, by who sent them.

use super::KeptCall;
use crate::{base::clock::UnixTime, telemetry::calls::last_day::LastDay};

/// Numbers of calls that enforcing would reject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObservedCalls {
    /// Those that name a registered consumer.
    pub registered: u64,
    /// The registered consumers that they name.
    pub consumers: usize,
    /// Those that name a key that is not registered.
    pub unregistered: u64,
    /// Those that name no consumer.
    pub unsigned: u64,
    /// Those that enforcing would reject because this program cannot decide, such as without its store.
    pub faults: u64,
    /// Those that the API rejects too: enforcing changes nothing for them.
    pub rejected_by_api: u64,
}

impl ObservedCalls {
    /// All of them.
    pub const fn all(&self) -> u64 {
        self.registered + self.unregistered + self.unsigned + self.faults + self.rejected_by_api
    }
}

/// The counts of which [`ObservedCalls`] are the sums.
#[derive(Debug, Default)]
pub(super) struct ObservedDay {
    registered: LastDay,
    unregistered: LastDay,
    unsigned: LastDay,
    faults: LastDay,
    rejected_by_api: LastDay,
}

impl ObservedDay {
    pub(super) fn add(&mut self, one: &KeptCall) {
        let of_sender = match (one.call.is_fault(), one.call.named_consumer()) {
            _ if one.call.is_rejected_by_api() => &mut self.rejected_by_api,
            (true, _) => &mut self.faults,
            (false, None) => &mut self.unsigned,
            (false, Some(_)) if one.is_registered => &mut self.registered,
            (false, Some(_)) => &mut self.unregistered,
        };
        of_sender.add(one.time, 1);
    }

    pub(super) fn sums(&self, now: UnixTime, consumers: usize) -> ObservedCalls {
        ObservedCalls {
            registered: self.registered.sum(now),
            consumers,
            unregistered: self.unregistered.sum(now),
            unsigned: self.unsigned.sum(now),
            faults: self.faults.sum(now),
            rejected_by_api: self.rejected_by_api.sum(now),
        }
    }
}
