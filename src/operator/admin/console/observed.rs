//! What enforcing would break: the calls of the last 24 hours that were only observed and would be rejected.

use std::{cmp::Reverse, fmt, sync::Arc};

use askama::filters::HtmlSafe;

use super::{
    ConsoleRequest,
    parts::{Moment, Names, Number, counted, path},
};
use crate::{
    operator::reasons::grouped,
    request::rejections::{KeptCall, ObservedCalls, ReasonCount},
};

/// The numbers of the calls that enforcing would reject, in words.
pub(super) struct Breakage {
    /// `3 of 120 requests`.
    pub(super) share: String,
    /// `: 1 call of 1 consumer, 2 unsigned calls`; empty if there are none.
    pub(super) senders: String,
    /// The page that lists them.
    pub(super) href: String,
    pub(super) period: Period,
}

/// The time of which calls are counted: the last 24 hours, or the time since the process started, if that is shorter.
#[derive(Clone, Copy)]
pub(super) struct Period(Option<Moment>);

/// It consists of fixed words and a [`Moment`].
impl HtmlSafe for Period {}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(start) => write!(f, "since this process started {start}"),
            None => f.write_str("in the last 24 h"),
        }
    }
}

impl Period {
    /// The last 24 hours of a process that started then.
    fn of(start: Moment) -> Self {
        Self((!start.is_date()).then_some(start))
    }

    /// The head of the column of its calls.
    pub(super) const fn calls(self) -> &'static str {
        match self.0 {
            Some(_) => "#calls",
            None => "#calls in 24 h",
        }
    }

    /// The process started within it.
    pub(super) const fn is_since_start(self) -> bool {
        self.0.is_some()
    }
}

impl ConsoleRequest<'_> {
    pub(super) fn breakage(&self) -> Breakage {
        let shared = &self.admin.shared;
        // The requests last: each rejection has been counted among them.
        let observed = shared.rejections.observed_in_last_day();
        let charts = &self.admin.control.console.charts;
        let requests = charts.requests_of_day(&shared.metrics.counts(), self.now);
        Breakage::new(observed, requests, self.period())
    }

    /// The time of which [`ReasonCount::last_day`] counts the calls.
    pub(super) fn period(&self) -> Period {
        Period::of(self.moment(self.admin.shared.rejections.since))
    }

    /// Whether calls of the last 24 hours were only observed, and enforcing would reject them for this reason.
    pub(super) fn is_observed_in_day(&self, group: &ReasonCount) -> bool {
        group.is_observed() && group.last_day(self.now) > 0
    }

    /// Sorts reasons by their calls of the last 24 hours. Those that no longer need a person come after the others. Keys that
    /// callers make up come last, so that they push no consumer off the page.
    pub(super) fn sort_by_day(&self, groups: &mut [ReasonCount], names: &Names) {
        let is_strange = |one: &KeptCall| one.call.named_consumer().is_some() && !one.is_registered;
        groups.sort_by_cached_key(|group| {
            let needs_nobody = self.after(group, names).needs_nobody();
            let calls = group.last_day(self.now);
            (is_strange(&group.newest), needs_nobody, Reverse(calls))
        });
    }
}

/// Whether a call is neither a fault nor of a key that is not registered.
pub(super) fn is_of_consumer(one: &KeptCall) -> bool {
    one.is_registered && !one.call.is_fault()
}

/// The reasons of faults and of keys that are not registered, of these kept calls, and those of all unsigned calls.
pub(super) fn reasons_of_others<'a>(
    strange: impl DoubleEndedIterator<Item = &'a Arc<KeptCall>>,
    unsigned: Vec<ReasonCount>,
) -> Vec<ReasonCount> {
    let mut others = grouped(strange);
    others.retain(|group| {
        group.newest.call.named_consumer().is_some() || group.newest.call.is_fault()
    });
    others.extend(unsigned);
    others
}

impl Breakage {
    fn new(observed: ObservedCalls, requests: u64, period: Period) -> Self {
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
                observed.rejected_by_api,
                "call",
                " that the API rejects too",
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
                counted(requests, "request")
            ),
            senders: match senders.is_empty() {
                true => String::new(),
                false => format!(": {}", senders.join(", ")),
            },
            href: path("/rejections", &[("kind", "observed")]),
            period,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::UnixTime;

    #[test]
    fn senders_are_named_by_what_they_can_be_told() {
        let observed = ObservedCalls {
            registered: 30,
            consumers: 2,
            unsigned: 1_200,
            unregistered: 1,
            faults: 3,
            rejected_by_api: 6,
        };
        let shown = Breakage::new(observed, 5_000, Period(None));
        assert_eq!(shown.share, "1,240 of 5,000 requests");
        assert_eq!(
            shown.senders,
            ": 30 calls of 2 consumers, 1,200 unsigned calls, 1 call with a key that is not registered, 6 calls that the API rejects too, 3 calls that could not be \
             verified, because of a fault of this side"
        );
        let shown = Breakage::new(ObservedCalls::default(), 1, Period(None));
        assert_eq!((&*shown.share, &*shown.senders), ("0 of 1 request", ""));
    }

    #[test]
    fn a_process_that_runs_for_less_than_a_day_counts_since_its_start() {
        let period = |age: u64| {
            let (time, now) = (UnixTime(1_790_164_800), UnixTime(1_790_164_800 + age));
            Period::of(Moment { time, now }).to_string()
        };
        let young = period(86_399);
        assert!(
            young.starts_with("since this process started <time "),
            "{young}"
        );
        assert!(young.ends_with(">23 h ago</time>"), "{young}");
        assert_eq!(period(86_400), "in the last 24 h");
    }
}
