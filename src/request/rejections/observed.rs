//! The calls of the last day that enforcing would reject, by who sent them.

use super::RecordedRejection;
use crate::{base::clock::UnixTime, telemetry::last_day::LastDay};

/// Numbers of calls that enforcing would reject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObservedCalls {
    /// All of them.
    pub all: u64,
    /// The registered consumers that some of them name.
    pub consumers: usize,
    /// Those that name a key that is not registered.
    pub unregistered: u64,
    /// Those that name no consumer.
    pub unsigned: u64,
    /// Those that enforcing would reject because this program cannot decide, such as without its store.
    pub faults: u64,
}

/// The counts of which [`ObservedCalls`] are the sums.
#[derive(Debug, Default)]
pub(super) struct ObservedDay {
    all: LastDay,
    unregistered: LastDay,
    unsigned: LastDay,
    faults: LastDay,
}

impl ObservedDay {
    pub(super) fn add(&mut self, one: &RecordedRejection) {
        self.all.add(one.time, 1);
        let of_sender = match (one.is_fault, &one.consumer) {
            (true, _) => &mut self.faults,
            (false, None) => &mut self.unsigned,
            (false, Some(_)) if one.is_registered => return,
            (false, Some(_)) => &mut self.unregistered,
        };
        of_sender.add(one.time, 1);
    }

    pub(super) fn sums(&self, now: UnixTime, consumers: usize) -> ObservedCalls {
        ObservedCalls {
            all: self.all.sum(now),
            consumers,
            unregistered: self.unregistered.sum(now),
            unsigned: self.unsigned.sum(now),
            faults: self.faults.sum(now),
        }
    }
}
