//! The overview: readiness, load, and the findings that need attention.

use std::{collections::HashSet, time::Duration};

use askama::Template;
use rustix::system::uname;
use strum::VariantArray as _;

use super::{
    minute::{Tiles, alarm, failures},
    observed::{Breakage, Period, has_registered_consumer, reasons_of_others},
    reasons::{CountedSince, RejectedConsumer},
};
use crate::{
    base::clock::{UnixTime, roughly},
    operator::admin::console::{
        ConsoleRequest, LISTED, Result,
        chart::{self, Chart},
        page::{ConsoleFrame, show},
        parts::{Grace, Moment, Named, Number, Tag, counted, path, time},
    },
    provider::respond::OwnResponse,
    telemetry::{
        calls::rejections::ReasonCount,
        charts::Sample,
        conditions::Condition,
        metrics::{Outcome, Verdict},
    },
    wire::server::caller::unproved,
};

/// A certificate that is shown to callers or to the API.
#[derive(Debug, Clone)]
pub struct ShownCertificate {
    /// The configuration's key, and the file.
    pub name: String,
    /// The last second in which it is valid.
    pub not_after: UnixTime,
    /// Whole days until then.
    pub days_left: u64,
    /// It ends so soon that somebody should renew it.
    pub ends_soon: bool,
    /// Why callers reject it, if they do.
    pub problem: Option<String>,
}

/// Consumers, or other senders, in a table of the overview.
const SHOWN: usize = 10;

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage<'a> {
    frame: ConsoleFrame<'a>,
    /// The browser opens the page again and again.
    refreshes: bool,
    is_draining: bool,
    is_ready: bool,
    /// What is wrong with the API.
    api: Option<ApiOutage>,
    ready_for: String,
    enforces: bool,
    node: String,
    started: Moment,
    version: &'static str,
    /// The class and the text of each condition.
    problems: Vec<(&'static str, String)>,
    /// Many calls of the last minute were rejected.
    alarm: Option<String>,
    needs: Needs,
    tiles: Tiles,
    in_flight: Number,
    concurrent: Number,
    connections: Number,
    reasons_have_consumers: bool,
    /// What enforcing would break, where signatures are only observed.
    breakage: Option<Breakage>,
    /// The first consumers that have not called since, each with its last call, and whether they are all.
    silent: Vec<(Named, Option<Moment>)>,
    silent_are_all: bool,
    graces: Vec<Grace>,
    /// The consumers that users ask for, each with its state and the time.
    asked: Vec<(Named, Vec<Tag>, Moment)>,
    heading: &'static str,
    verdicts_caption: String,
    charts: [Chart; 2],
    /// The same page for the other time.
    other: (&'static str, &'static str),
    verdicts: Vec<VerdictCount>,
    certificates: Vec<(String, Moment, Tag)>,
}

/// The consumers whose calls are rejected.
struct Needs {
    /// Captions, what the numbers count, and the reasons: where signatures are only observed, of the first senders of the calls
    /// of the last 24 hours that enforcing would reject; then of the first of the other consumers that need attention.
    tables: Vec<(&'static str, &'static str, Vec<RejectedConsumer>)>,
    /// The calls that enforcing would reject and that are in no row.
    hidden_calls: Option<String>,
    /// The number of the other consumers that need attention and are not shown.
    more: usize,
    /// The number of all consumers that need attention.
    consumers: usize,
    /// The number of consumers whose calls were rejected and for whom nothing is left to do.
    settled: usize,
}

/// The API does not answer, or calls to it fail.
struct ApiOutage {
    what: &'static str,
    cause: String,
    since: Moment,
    last: Moment,
    /// How many calls failed.
    failures: Option<String>,
}

/// The number of requests with a verdict.
struct VerdictCount {
    word: &'static str,
    count: Number,
    share: String,
    href: String,
}

impl ConsoleRequest<'_> {
    pub(crate) async fn overview(&self) -> Result<OwnResponse> {
        let (console, shared) = (&self.admin.control.console, &self.admin.shared);
        let readiness = &self.admin.readiness;
        let counts = shared.metrics.counts();
        let minutes = console.charts.minutes(&counts, self.now);
        readiness.check().await;
        let (is_ready, problems, api) = self.problems(&minutes);
        let live = shared.live.load();
        let (enforces, concurrent) = (live.authorizer.enforces(), live.concurrent_requests);
        drop(live);
        let breakage = self.breakage();
        let since = breakage.as_ref().and_then(|it| it.since);
        let (silent, silent_are_all) = match enforces {
            true => (Vec::new(), true),
            false => self.silent(since).await?,
        };
        let period = breakage.as_ref().map_or(Period::Day, |it| it.period);
        let (span, samples, heading, other) = match self.field("span") == "day" {
            true => {
                let quarters = console.charts.quarters(&counts, self.now);
                let other = ("/", "Show the last hour");
                (chart::DAY, quarters, "Last 24 hours", other)
            }
            false => {
                let other = ("/?span=day", "Show the last 24 hours");
                (chart::HOUR, minutes.clone(), "Last hour", other)
            }
        };
        let connections = shared.metrics.connections.get();
        let page = OverviewPage {
            frame: self.shell.frame("Overview"),
            refreshes: self.field("refresh") == "30",
            is_draining: self.admin.is_announced(),
            is_ready,
            api,
            ready_for: {
                let since = readiness.conditions.stopped_until();
                let since = since.unwrap_or(shared.rejections.since);
                roughly(Duration::from_secs(self.now.0.saturating_sub(since.0)))
            },
            enforces,
            node: uname().nodename().to_string_lossy().into_owned(),
            started: self.moment(shared.rejections.since),
            version: env!("CARGO_PKG_VERSION"),
            problems,
            alarm: alarm(&minutes),
            needs: self.needs(enforces, since, period).await?,
            tiles: {
                let nonces = readiness.nonces.window().entries();
                Tiles::new(&minutes, enforces, (nonces, readiness.max_nonces))
            },
            in_flight: Number(unproved::in_flight() as u64),
            concurrent: Number(concurrent as u64),
            connections: Number(connections.try_into().unwrap_or_default()),
            reasons_have_consumers: true,
            breakage,
            silent,
            silent_are_all,
            graces: self.graces().await?,
            asked: self.asked_for().await?,
            heading,
            verdicts_caption: format!(
                "Requests that were rejected or failed in the {}, by verdict",
                heading.to_lowercase()
            ),
            charts: [
                chart::requests(&span, &samples),
                chart::latencies(&span, &samples),
            ],
            other,
            verdicts: verdicts(&samples),
            certificates: self.certificates(),
        };
        Ok(show(200, &page))
    }

    /// Whether signed calls are served, the class and the text of each condition, and the outage of the API.
    fn problems(
        &self,
        minutes: &[Sample],
    ) -> (bool, Vec<(&'static str, String)>, Option<ApiOutage>) {
        let active = self.admin.readiness.conditions.active();
        let stops = active
            .iter()
            .any(|(condition, _)| condition.stops_signed_calls());
        let (of_api, active): (Vec<_>, Vec<_>) = active
            .into_iter()
            .partition(|(condition, _)| *condition == Condition::Upstream);
        let api = of_api.into_iter().next().map(|(_, active)| ApiOutage {
            what: match self.admin.shared.metrics.api_answers(self.now) {
                true => "Calls to the API fail",
                false => "The API does not answer",
            },
            cause: active.cause,
            since: self.moment(active.since),
            last: self.moment(active.noted),
            failures: failures(minutes),
        });
        let problems = active.into_iter().map(|(condition, active)| {
            let (class, what) = match condition.stops_signed_calls() {
                true => ("bad", "Not ready"),
                false => ("warn", "Degraded"),
            };
            let (name, since) = (condition.as_str(), time(active.since));
            let text = format!("{what} since {since}: {name}: {}", active.cause);
            (class, text)
        });
        (!stops, problems.collect(), api)
    }

    /// The consumers whose calls are rejected so that they need attention; where signatures are only observed, also the senders
    /// of the calls that would be.
    async fn needs(
        &self,
        enforces: bool,
        observed_since: Option<UnixTime>,
        period: Period,
    ) -> Result<Needs> {
        let mut rejected = self.admin.shared.rejections.reasons(None);
        rejected.retain(|group| {
            // A double click is no mistake of a consumer.
            let is_double_click = group.newest.call.verdict == Verdict::LaunchRepeated;
            // What enforcing has rejected before is past, and its consumers are among the observed ones now.
            let is_past = !group.is_observed()
                && observed_since.is_some_and(|since| group.newest.time <= since);
            !(is_double_click || is_past && !enforces || enforces && group.is_observed())
        });
        let names = self.names_of(&rejected).await?;
        let is_resolved = |group: &ReasonCount| self.after(group, &names).is_resolved();
        let needing = rejected.iter().filter(|group| !is_resolved(group));
        let consumers = senders(needing).len();
        let is_observed = |group: &ReasonCount| !enforces && self.is_observed_in_day(group);
        let (mut observed, mut rejected): (Vec<_>, Vec<_>) =
            rejected.into_iter().partition(|group| is_observed(group));
        if !enforces {
            let rejections = &self.admin.shared.rejections;
            let newest = rejections.newest();
            let strange = newest.iter().filter(|one| !has_registered_consumer(one));
            let others = reasons_of_others(strange, rejections.reasons_of_unsigned());
            observed.extend(others.into_iter().filter(is_observed));
            self.sort_by_day(&mut observed, &names);
        }
        let hidden = beyond_shown(&mut observed);
        let all = senders(&rejected).len();
        rejected.retain(|group| !is_resolved(group));
        let others = senders(&rejected).len();
        beyond_shown(&mut rejected);
        let hidden: u64 = hidden.iter().map(|group| group.last_day(self.now)).sum();
        let observed = self.reasons(&observed, &names, CountedSince::DayOfObserved);
        let observed = observed.await?;
        let rejected = self.reasons(&rejected, &names, CountedSince::Start).await?;
        let of_rejected = match enforces {
            true => "Consumers whose calls are rejected, in this process",
            false => {
                "Consumers whose calls are rejected all the same, such as token calls, or would have been more than 24 h ago, in this process"
            }
        };
        let for_observed = "Who sent them, and what to tell them";
        let mut tables = vec![
            (for_observed, period.calls(), observed),
            (of_rejected, "#calls", rejected),
        ];
        tables.retain(|(.., rows)| !rows.is_empty());
        Ok(Needs {
            tables,
            hidden_calls: (hidden > 0).then(|| counted(hidden, "more call")),
            more: others.saturating_sub(SHOWN),
            consumers,
            settled: all - others,
        })
    }

    fn certificates(&self) -> Vec<(String, Moment, Tag)> {
        let shown = (self.admin.control.console.certificates)().into_iter();
        let shown = shown.map(|one| {
            let left = counted(one.days_left, "day") + " left";
            let state = match one.problem {
                Some(problem) => Tag::new(problem, "bad"),
                None if one.ends_soon => Tag::new(left + "; renew it", "bad"),
                None => Tag::new(left, "good"),
            };
            (one.name, self.moment(one.not_after), state)
        });
        shown.collect()
    }

    /// The first consumers on which an operator has to decide.
    async fn asked_for(&self) -> Result<Vec<(Named, Vec<Tag>, Moment)>> {
        let store = &self.backend.manage.store;
        let found = store.undecided_consumers(None, LISTED).await?;
        let asked = found.iter().take(SHOWN).map(|consumer| {
            let (named, registered) = (Named::with_contact(consumer), consumer.created_at);
            (named, self.state(consumer), self.moment(registered))
        });
        Ok(asked.collect())
    }

    /// The consumers whose previous secret also verifies, and whether they use it.
    async fn graces(&self) -> Result<Vec<Grace>> {
        let store = &self.backend.manage.store;
        let consumers = store.consumers_in_grace(self.now, LISTED).await?;
        Ok(consumers.iter().filter_map(|it| self.grace(it)).collect())
    }
}

/// The consumers of these reasons, in the order of their first one; `None`: the calls that name none.
fn senders<'g>(groups: impl IntoIterator<Item = &'g ReasonCount>) -> Vec<Option<String>> {
    let mut seen = HashSet::new();
    let consumers = groups
        .into_iter()
        .map(|group| group.newest.call.named_consumer());
    let first = consumers.filter(|one| seen.insert(*one));
    first.map(|one| one.map(str::to_owned)).collect()
}

/// Removes the reasons of all but the first senders, and returns them.
fn beyond_shown(groups: &mut Vec<ReasonCount>) -> Vec<ReasonCount> {
    let shown: HashSet<_> = senders(&*groups).into_iter().take(SHOWN).collect();
    groups
        .extract_if(.., |group| {
            let consumer = group.newest.call.named_consumer();
            !shown.contains(&consumer.map(str::to_owned))
        })
        .collect()
}

/// The verdicts of the requests that were rejected or failed, the most frequent first.
fn verdicts(samples: &[Sample]) -> Vec<VerdictCount> {
    let sum = |verdict: &Verdict| -> u64 {
        let counts = samples
            .iter()
            .map(|sample| sample.counts.verdicts.get(*verdict as usize));
        counts.flatten().sum()
    };
    let all: u64 = samples.iter().map(|sample| sample.counts.total()).sum();
    let bad = Verdict::VARIANTS
        .iter()
        .filter(|it| matches!(it.outcome(), Outcome::Rejected | Outcome::Failed));
    let mut counted = Vec::from_iter(bad.map(|verdict| (sum(verdict), verdict.as_str())));
    counted.retain(|(count, _)| *count > 0);
    counted.sort_by(|one, next| next.cmp(one));
    let shown = counted.into_iter().map(|(count, word)| VerdictCount {
        word,
        count: Number(count),
        share: format!("{:.1} %", count as f64 * 100.0 / all.max(1) as f64),
        href: path("/rejections", &[("reason", word)]),
    });
    shown.collect()
}
