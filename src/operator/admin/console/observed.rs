//! What enforcing would break: the calls of the last 24 hours that were only observed and would be rejected.

use super::{
    ConsoleRequest,
    parts::{Number, counted, path},
};
use crate::request::rejections::ObservedCalls;

/// The numbers of the calls that enforcing would reject, in words.
pub(super) struct Breakage {
    /// `3 of 120 calls`.
    pub(super) share: String,
    /// `: 1 call of 1 consumer, 2 unsigned calls`; empty if there are none.
    pub(super) senders: String,
    /// The page that lists them.
    pub(super) href: String,
}

impl ConsoleRequest<'_> {
    pub(super) fn breakage(&self) -> Breakage {
        let shared = &self.admin.shared;
        // The requests last: each rejection has been counted among them.
        let observed = shared.rejections.observed_in_last_day();
        let charts = &self.admin.control.console.charts;
        let requests = charts.requests_of_day(&shared.metrics.counts(), self.now);
        Breakage::new(observed, requests)
    }
}

impl Breakage {
    fn new(observed: ObservedCalls, requests: u64) -> Self {
        let of_consumers = match observed.consumers {
            0 => " of consumers that were removed".to_owned(),
            consumers => format!(" of {}", counted(consumers as u64, "consumer")),
        };
        let senders = [
            (observed.registered, "call", &*of_consumers),
            (observed.unsigned, "unsigned call", ""),
            (
                observed.unregistered,
                "call",
                " with a key that is not registered",
            ),
            (
                observed.faults,
                "call",
                " that could not be verified, because of a fault of this side",
            ),
        ];
        let senders = senders.into_iter().filter(|(count, ..)| *count > 0);
        let senders = senders.map(|(count, noun, which)| counted(count, noun) + which);
        let senders = Vec::from_iter(senders);
        Self {
            share: format!(
                "{} of {}",
                Number(observed.all()),
                counted(requests, "call")
            ),
            senders: match senders.is_empty() {
                true => String::new(),
                false => format!(": {}", senders.join(", ")),
            },
            href: path("/rejections", &[("kind", "observed")]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_named_by_what_they_can_be_told() {
        let observed = ObservedCalls {
            registered: 30,
            consumers: 2,
            unsigned: 1_200,
            unregistered: 1,
            faults: 3,
        };
        let shown = Breakage::new(observed, 5_000);
        assert_eq!(shown.share, "1,234 of 5,000 calls");
        assert_eq!(
            shown.senders,
            ": 30 calls of 2 consumers, 1,200 unsigned calls, 1 call with a key that is not registered, 3 calls that could not be \
             verified, because of a fault of this side"
        );
        let shown = Breakage::new(ObservedCalls::default(), 1);
        assert_eq!((&*shown.share, &*shown.senders), ("0 of 1 call", ""));
    }
}
