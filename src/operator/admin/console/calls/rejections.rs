//! Rejections: their reasons, their times, and each call.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use askama::Template;

use super::{
    call::href,
    observed::{Breakage, Period, has_registered_consumer, reasons_of_others},
    reasons::{CountedSince, RejectedConsumer},
};
use crate::{
    operator::{
        admin::console::{
            ConsoleRequest, Result,
            page::{ConsoleFrame, InputField, InputKind, choices, show},
            parts::{Moment, Named, Names, Number, OtherPages, counted, path},
        },
        reasons::grouped,
    },
    provider::respond::OwnResponse,
    telemetry::{
        calls::rejections::{KeptCall, ReasonCount, sort},
        metrics::Verdict,
    },
};

/// Calls on a page.
const SHOWN: usize = 50;

/// The caption of the rejections of browsers, whose users no developer can help.
const PEOPLE: &str = "People on the pages of this service";

/// Groups in a table of the page.
const GROUPS: usize = 100;

const KINDS: &[(&str, &str)] = &[
    ("", "all"),
    ("rejected", "rejected"),
    ("observed", "only observed: enforcing would reject them"),
];

#[derive(Template)]
#[template(path = "console/rejections.html")]
struct RejectionsPage<'a> {
    frame: ConsoleFrame<'a>,
    started: Moment,
    /// Other processes may have rejected others.
    has_replicas: bool,
    /// What enforcing would break; only for the page of all observed calls.
    answer: Option<Breakage>,
    fields: [InputField; 4],
    /// Captions, what the numbers count, and the reasons.
    tables: Vec<(String, &'static str, Vec<RejectedConsumer>)>,
    reasons_have_consumers: bool,
    newest: String,
    /// The one consumer that the filter leaves, which is no column then.
    only: Option<Named>,
    heads: Vec<&'static str>,
    calls: Vec<RejectedCall>,
    /// The same page with its calls, on a narrow screen too.
    with_calls: String,
    shows_calls: bool,
    next: Option<OtherPages>,
}

/// A table of reasons.
struct GroupsTable {
    caption: String,
    /// The head of the column of numbers.
    counts: &'static str,
    groups: Vec<ReasonCount>,
    since: CountedSince,
}

impl GroupsTable {
    /// Reasons with all their calls. The caption says if there are too many for the page.
    fn new(caption: &str, mut groups: Vec<ReasonCount>) -> Self {
        let caption = match groups.len() {
            0..=GROUPS => caption.to_owned(),
            all => format!("{caption}: the first {GROUPS} of {}", Number(all as u64)),
        };
        groups.truncate(GROUPS);
        Self {
            caption,
            counts: "#calls",
            groups,
            since: CountedSince::Start,
        }
    }
}

/// A row of the table of calls. The page of a call has the rest.
struct RejectedCall {
    time: Moment,
    /// Its page.
    href: String,
    call: String,
    consumer: Option<Named>,
    word: &'static str,
    status: u16,
}

/// The filter of the page. A consumer is named by a part of its key or name.
struct Filter<'a> {
    consumer: &'a str,
    reason: &'a str,
    id: &'a str,
    kind: &'a str,
}

impl Filter<'_> {
    fn has_kind(&self, is_observed: bool) -> bool {
        match self.kind {
            "observed" => is_observed,
            "rejected" => !is_observed,
            _ => true,
        }
    }

    /// Nothing else is asked than what enforcing would break.
    fn asks_for_all_observed(&self) -> bool {
        let others = [self.consumer, self.reason, self.id];
        self.kind == "observed" && others.iter().all(|text| text.is_empty())
    }

    fn has(&self, one: &KeptCall, name: Option<&str>) -> bool {
        let has = |text: Option<&str>| {
            text.is_some_and(|text| text.to_lowercase().contains(&self.consumer.to_lowercase()))
        };
        (self.consumer.is_empty() || has(one.call.named_consumer()) || has(name))
            && (self.reason.is_empty() || words_of(one).contains(&self.reason))
            && (self.id.is_empty() || one.call.request_id.as_deref() == Some(self.id))
            && self.has_kind(one.call.observed().is_some())
    }
}

impl ConsoleRequest<'_> {
    pub(crate) async fn rejections(&self) -> Result<OwnResponse> {
        let filter = Filter {
            consumer: self.field("consumer"),
            reason: self.field("reason"),
            id: self.field("request_id"),
            kind: self.field("kind"),
        };
        let rejections = &self.admin.shared.rejections;
        let all = rejections.newest();
        let mut of_consumers = self.admin.shared.rejections.reasons(None);
        let of_groups = of_consumers.iter().map(|group| &group.newest);
        let named = all.iter().chain(of_groups).filter(|one| one.is_registered);
        let keys = named.filter_map(|one| one.call.named_consumer());
        let names = self.names(keys, std::iter::empty()).await?;
        let named = |one: &KeptCall| Some(names.consumer(one.call.named_consumer()?));
        let is_wanted = |one: &KeptCall| {
            let name = named(one).map(|consumer| consumer.name);
            filter.has(one, name.as_deref())
        };
        let known = all.iter().chain(of_consumers.iter().map(|it| &it.newest));
        let reasons = reason_words(known, filter.reason);
        let wanted = Vec::from_iter(all.iter().filter(|one| is_wanted(one)));
        let (known, strange): (Vec<_>, Vec<_>) = wanted
            .iter()
            .copied()
            .partition(|one| has_registered_consumer(one));
        let others = match filter.id {
            "" => {
                of_consumers.retain(|group| is_wanted(&group.newest));
                let mut unsigned = rejections.reasons_of_unsigned();
                unsigned.retain(|group| is_wanted(&group.newest));
                let mut others = reasons_of_others(strange.iter().copied(), unsigned);
                sort(&mut others);
                others
            }
            // A filter by request id leaves one call.
            _ => {
                of_consumers = grouped(known.into_iter());
                grouped(strange.iter().copied())
            }
        };
        let groups = of_consumers
            .iter()
            .chain(&others)
            .map(|group| &group.newest);
        let left = groups.chain(wanted.iter().copied());
        let left = HashSet::<_>::from_iter(left.map(|one| one.call.named_consumer()));
        let only = left.iter().next().filter(|_| left.len() == 1);
        let only = only.copied().flatten();
        let only = only.filter(|_| !filter.consumer.is_empty());
        let only = only.map(|key| names.consumer(key));
        let answer = self.breakage().filter(|_| filter.asks_for_all_observed());
        let answers = answer.is_some();
        let tables = match answers {
            true => {
                let period = answer.as_ref().map_or(Period::Day, |answer| answer.period);
                self.by_day([of_consumers, others].concat(), &names, period)
            }
            false => {
                let (people, others) = others
                    .into_iter()
                    .partition(|it| it.newest.call.is_from_page());
                vec![
                    GroupsTable::new("By registered consumer and reason", of_consumers),
                    GroupsTable::new(PEOPLE, people),
                    GroupsTable::new("Other callers, and faults", others),
                ]
            }
        };
        let mut listed = Vec::new();
        for table in tables.into_iter().filter(|table| !table.groups.is_empty()) {
            let rows = self.reasons(&table.groups, &names, table.since).await?;
            listed.push((table.caption, table.counts, rows));
        }
        let before: Option<u64> = self.field("before").parse().ok();
        let rest = wanted.iter().copied().map(|one| &**one);
        let rest = rest.filter(|one| before.is_none_or(|before| one.number < before));
        let mut shown = Vec::from_iter(rest.take(SHOWN + 1));
        let is_more = shown.len() > SHOWN;
        shown.truncate(SHOWN);
        let link = |more: &[(&str, &str)]| {
            let names = ["request_id", "consumer", "reason", "kind"];
            let filter = names.map(|name| (name, self.field(name)));
            path("/rejections", &[&filter[..], more].concat())
        };
        let page = RejectionsPage {
            frame: self.shell.frame(match answers {
                true => "What enforcing would break",
                false => "Rejections",
            }),
            started: self.moment(rejections.since),
            has_replicas: self.backend.manage.store.is_shared(),
            answer,
            fields: [
                InputField::line("request_id", "Request id", filter.id),
                InputField::line(
                    "consumer",
                    "Part of a consumer’s name or key",
                    filter.consumer,
                ),
                InputField::new(reasons, "reason", "Why", filter.reason),
                InputField::choice("kind", "Kind", KINDS, filter.kind),
            ],
            tables: listed,
            reasons_have_consumers: only.is_none(),
            newest: match (shown.len(), wanted.len()) {
                (shown, all) if shown == all => counted(all as u64, "call"),
                (shown, all) => format!("{shown} of {}", counted(all as u64, "call")),
            },
            heads: match only {
                Some(_) => vec!["time", "call", "why", "#status"],
                None => vec!["time", "call", "consumer", "why", "#status"],
            },
            calls: (shown.iter().copied())
                .map(|one| self.call_row(one, named(one)))
                .collect(),
            with_calls: link(&[("calls", "1")]) + "#calls",
            only,
            shows_calls: !self.field("calls").is_empty() || before.is_some(),
            next: (before.is_some() || is_more).then(|| OtherPages {
                first: before.map(|_| link(&[])),
                next: shown
                    .last()
                    .filter(|_| is_more)
                    .map(|last| link(&[("before", &last.number.to_string())]) + "#calls"),
            }),
        };
        Ok(show(200, &page))
    }

    /// The observed calls of the last 24 hours, and those reasons that only earlier ones have.
    fn by_day(&self, groups: Vec<ReasonCount>, names: &Names, period: Period) -> Vec<GroupsTable> {
        let (mut of_day, mut earlier): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| self.is_observed_in_day(group));
        self.sort_by_day(&mut of_day, names);
        sort(&mut earlier);
        let caption = match period.is_day() {
            false => "Calls that enforcing would reject",
            true => "Calls of the last 24 h that enforcing would reject",
        };
        vec![
            GroupsTable {
                since: CountedSince::DayOfObserved,
                counts: period.calls(),
                ..GroupsTable::new(caption, of_day)
            },
            GroupsTable::new("Only before that, since this process started", earlier),
        ]
    }

    fn call_row(&self, one: &KeptCall, consumer: Option<Named>) -> RejectedCall {
        let call = &one.call;
        RejectedCall {
            time: self.moment(one.time),
            href: href(one),
            call: call.called(),
            consumer,
            word: call.mistake(),
            status: call.status,
        }
    }
}

/// The words that find a call: its mistake, and the verdicts under which metrics and charts count it.
fn words_of(one: &KeptCall) -> [&'static str; 3] {
    let call = &one.call;
    [
        call.mistake(),
        call.reason().as_str(),
        call.verdict.as_str(),
    ]
}

/// The choice of these words, and of the one that is asked for.
fn reason_words<'a>(known: impl Iterator<Item = &'a Arc<KeptCall>>, asked: &'a str) -> InputKind {
    let words = known.flat_map(|one| words_of(one));
    let words = words.filter(|word| *word != Verdict::Observed.as_str());
    let words: BTreeSet<&str> = words.chain([asked]).collect();
    let words = words.into_iter().filter(|word| !word.is_empty());
    choices(
        [("", "any")]
            .into_iter()
            .chain(words.map(|word| (word, word))),
    )
}
