//! What enforcing would break: the calls of the last 24 hours that were only observed and would be rejected.

use std::{cmp::Reverse, fmt, sync::Arc, time::Duration};

use askama::filters::HtmlSafe;

use crate::{
    base::clock::UnixTime,
    operator::{
        admin::console::{
            ConsoleRequest, LISTED, Result,
            parts::{Moment, Named, Names, Number, counted, last_use, path},
        },
        reasons::grouped,
    },
    records::values::use_cases::RecordFilter,
    telemetry::{
        calls::rejections::{KeptCall, ObservedCalls, ReasonCount},
        charts::ObservedTime,
    },
};

/// The numbers of the calls that enforcing would reject, in words.
pub(crate) struct Breakage {
    /// `3 of 120 requests`.
    pub(crate) share: String,
    /// `: 1 call of 1 consumer, 2 unsigned calls`; empty if there are none.
    pub(crate) senders: String,
    /// The page that lists them.
    pub(crate) href: String,
    pub(crate) period: Period,
    /// The time is too short to decide by it.
    pub(crate) is_short: bool,
    /// Signatures are enforced again.
    pub(crate) is_past: bool,
    /// The beginning of the time; `None`: the start of this process.
    pub(crate) since: Option<UnixTime>,
}

/// The time of which calls are counted.
#[derive(Clone, Copy)]
pub(crate) enum Period {
    /// All since this process started, which is less than 24 hours ago.
    Process(Moment),
    /// All since calls are only observed, which is less than 24 hours ago.
    Observing(Moment),
    /// The last 24 hours.
    Day,
    /// From then until then: signatures are enforced again.
    Past(Moment, Moment),
}

/// It consists of fixed words and [`Moment`]s.
impl HtmlSafe for Period {}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(start) => write!(f, "since this process started {start}"),
            Self::Observing(start) => write!(f, "since observing began {start}"),
            Self::Day => f.write_str("in the last 24 h"),
            Self::Past(since, until) => write!(f, "from {since} to {until}"),
        }
    }
}

impl Period {
    fn new(observed: &ObservedTime, started: UnixTime, now: UnixTime) -> Self {
        let moment = |time| Moment { time, now };
        let since = moment(observed.since);
        match observed.until {
            Some(until) => Self::Past(since, moment(until)),
            None if since.is_date() => Self::Day,
            None if observed.is_from_start => Self::Process(moment(started)),
            None => Self::Observing(since),
        }
    }

    /// The head of the column of its calls.
    pub(crate) const fn calls(self) -> &'static str {
        match self {
            Self::Day => "#calls in 24 h",
            _ => "#calls",
        }
    }

    pub(crate) const fn is_day(self) -> bool {
        matches!(self, Self::Day)
    }
}

/// A time of observing that is too short to say what enforcing would break: programs that run every hour or day did not call yet.
const SHORT: Duration = Duration::from_secs(60 * 60);

impl ConsoleRequest<'_> {
    /// What enforcing would break; `None`: no call of the last 24 hours may have been only observed.
    pub(crate) fn breakage(&self) -> Option<Breakage> {
        let shared = &self.admin.shared;
        // The requests last: each rejection has been counted among them.
        let calls = shared.rejections.observed_in_last_day();
        let charts = &self.admin.control.console.charts;
        let requests = shared.metrics.counts().total();
        let observed = charts.observed(self.now, requests)?;
        let period = Period::new(&observed, shared.rejections.since, self.now);
        Some(Breakage::new(calls, &observed, period))
    }

    /// The consumers that have not called since calls are only observed, the last verified call first, and whether they are all.
    pub(crate) async fn silent(
        &self,
        since: Option<UnixTime>,
    ) -> Result<(Vec<(Named, Option<Moment>)>, bool)> {
        /// The most that are shown.
        const MOST: usize = 20;

        let (manage, shared) = (&self.backend.manage, &self.admin.shared);
        let started = self.admin.shared.rejections.since;
        let unused = self.now.0.saturating_sub(since.unwrap_or(started).0);
        let unused = Duration::from_secs(unused);
        let enabled = RecordFilter {
            enabled: Some(true),
            unused_since: manage.unused_since(Some(unused)),
            ..RecordFilter::default()
        };
        let found = manage.store.consumers(&enabled, None, LISTED).await?;
        let is_whole = found.len() < LISTED as usize;
        let charts = &self.admin.control.console.charts;
        let views = manage.views(found).await?;
        let silent = views.iter().filter(|(consumer, _)| {
            let key = consumer.key.as_str();
            let newest = shared.rejections.newest_of(key).into_iter().next();
            shared.metrics.accepted_of(key) <= charts.accepted_before(key)
                && newest.is_none_or(|call| since.is_some_and(|since| call.time <= since))
        });
        let silent = silent.map(|(consumer, view)| {
            let last_call = last_use(view).map(|last| self.moment(last));
            (Named::with_contact(consumer), last_call)
        });
        let mut silent = Vec::from_iter(silent);
        silent.sort_by_key(|(_, last_call)| Reverse(last_call.map(|last| last.time)));
        let is_all = is_whole && silent.len() <= MOST;
        silent.truncate(MOST);
        Ok((silent, is_all))
    }

    /// Whether calls of the last 24 hours were only observed, and enforcing would reject them for this reason.
    pub(crate) fn is_observed_in_day(&self, group: &ReasonCount) -> bool {
        group.is_observed() && group.last_day(self.now) > 0
    }

    /// Sorts reasons by their calls of the last 24 hours. Those that no longer need attention come after the others. Keys that
    /// callers make up come last, so that they push no consumer off the page.
    pub(crate) fn sort_by_day(&self, groups: &mut [ReasonCount], names: &Names) {
        let is_strange = |one: &KeptCall| one.call.named_consumer().is_some() && !one.is_registered;
        groups.sort_by_cached_key(|group| {
            let is_resolved = self.after(group, names).is_resolved();
            let calls = group.last_day(self.now);
            (is_strange(&group.newest), is_resolved, Reverse(calls))
        });
    }
}

/// Whether a call is neither a fault nor of a key that is not registered.
pub(crate) fn has_registered_consumer(one: &KeptCall) -> bool {
    one.is_registered && !one.call.is_fault()
}

/// The reasons of faults and of keys that are not registered, of these kept calls, and those of all unsigned calls.
pub(crate) fn reasons_of_others<'a>(
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
    fn new(calls: ObservedCalls, observed: &ObservedTime, period: Period) -> Self {
        let of_consumers = match calls.consumers {
            0 => " of consumers that were removed".to_owned(),
            consumers => format!(" of {}", counted(consumers as u64, "consumer")),
        };
        let senders = [
            (calls.registered, "call", &*of_consumers),
            (calls.unsigned, "unsigned call", ""),
            (
                calls.unregistered,
                "call",
                " with a key that is not registered",
            ),
            (calls.rejected_by_api, "call", " that the API rejects too"),
            (
                calls.faults,
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
                Number(calls.all()),
                counted(observed.requests, "request")
            ),
            senders: match senders.is_empty() {
                true => String::new(),
                false => format!(": {}", senders.join(", ")),
            },
            href: path("/rejections", &[("kind", "observed")]),
            period,
            is_short: observed.until.is_none() && observed.lasted < SHORT,
            is_past: observed.until.is_some(),
            since: (!observed.is_from_start).then_some(observed.since),
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
            rejected_by_api: 6,
        };
        let time = |requests| ObservedTime {
            since: UnixTime(1_790_164_800),
            is_from_start: true,
            until: None,
            lasted: SHORT,
            requests,
        };
        let shown = Breakage::new(observed, &time(5_000), Period::Day);
        assert_eq!(shown.share, "1,240 of 5,000 requests");
        assert_eq!(
            shown.senders,
            ": 30 calls of 2 consumers, 1,200 unsigned calls, 1 call with a key that is not registered, 6 calls that the API rejects too, 3 calls that could not be \
             verified, because of a fault of this side"
        );
        let shown = Breakage::new(ObservedCalls::default(), &time(1), Period::Day);
        assert_eq!((&*shown.share, &*shown.senders), ("0 of 1 request", ""));
        assert!(!shown.is_short);
    }

    #[test]
    fn the_period_is_that_of_the_calls() {
        let start = UnixTime(1_790_164_800);
        let later = |seconds| start.after(Duration::from_secs(seconds));
        let period = |since, until, now| {
            let observed = ObservedTime {
                since,
                is_from_start: since == later(1),
                until,
                lasted: Duration::from_secs(60),
                requests: 9,
            };
            let period = Period::new(&observed, start, now);
            let is_short = Breakage::new(ObservedCalls::default(), &observed, period).is_short;
            (period.to_string(), is_short)
        };
        for (since, until, now, begin, end, is_short) in [
            (
                later(1),
                None,
                later(86_399),
                "since this process started <time ",
                ">23 h ago</time>",
                true,
            ),
            (
                later(600),
                None,
                later(690),
                "since observing began <time ",
                ">1 min ago</time>",
                true,
            ),
            (
                later(1),
                None,
                later(86_402),
                "in the last 24 h",
                "24 h",
                true,
            ),
            (
                later(600),
                Some(later(660)),
                later(720),
                "from <time ",
                ">1 min ago</time>",
                false,
            ),
        ] {
            let (text, short) = period(since, until, now);
            assert!(text.starts_with(begin) && text.ends_with(end), "{text}");
            assert_eq!(short, is_short, "{text}");
        }
    }
}
