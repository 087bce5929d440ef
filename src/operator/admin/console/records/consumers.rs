//! The list of consumers.

use std::cmp::Reverse;

use askama::Template;
use serde_json::{Map, Value};
use strum::VariantArray as _;

use crate::{
    base::text::names::ConsumerKey,
    operator::admin::console::{
        ConsoleRequest, LISTED, Result,
        page::{ConsoleFrame, InputField, show},
        parts::{Moment, Named, Number, OtherPages, Tag, counted, last_use, listed, path},
    },
    provider::respond::OwnResponse,
    records::values::{
        record::{Consumer, Registration},
        use_cases::RecordFilter,
    },
};

const STATES: &[(&str, &str)] = &[("", "all"), ("true", "enabled"), ("false", "disabled")];

/// Times in which a consumer has signed, as the filter offers them.
const SIGNED: &[(&str, &str)] = &[
    ("", "any"),
    ("1d", "1 day"),
    ("30d", "30 days"),
    ("90d", "90 days"),
];

const SIGNED_LABEL: &str = "Signed a call within";

/// Times without use, as filters offer them.
pub(crate) const UNUSED: &[(&str, &str)] = &[
    ("", "any"),
    ("30d", "30 days"),
    ("90d", "90 days"),
    ("365d", "1 year"),
];

#[derive(Template)]
#[template(path = "console/consumers.html")]
struct ConsumersPage<'a> {
    frame: ConsoleFrame<'a>,
    problem: Option<String>,
    fields: [InputField; 4],
    has_filter: bool,
    may_write: bool,
    caption: String,
    /// The links that sort, in the order of [`Order`]; `None`: there are too many to sort.
    heads: Option<Vec<SortHead>>,
    /// The name of the column of rejected calls: those that were, or that enforcing would reject. With the sign of numbers.
    rejected: &'static str,
    /// It lists those that still sign: their contacts and doors are of interest.
    is_of_signers: bool,
    /// Whether previous secrets still verify.
    graces: String,
    has_graces: bool,
    consumers: Vec<ConsumerRow>,
    next: Option<OtherPages>,
}

/// The most consumers that are sorted, each of which is read for that.
const SORTED: u32 = 2_000;

/// The order of the list.
#[derive(
    Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
enum Order {
    Name,
    LastCall,
    Calls,
    Rejected,
}

impl Order {
    /// The place of a row: what is of interest first, and then by name.
    fn place(self, row: &ConsumerRow) -> (Reverse<u64>, String) {
        let first = match self {
            Self::Name => 0,
            Self::LastCall => row.last_call.map_or(0, |last| last.time.0),
            Self::Calls => row.calls.0,
            Self::Rejected => row.rejected.0,
        };
        (Reverse(first), row.consumer.name.to_lowercase())
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Name => "by name",
            Self::LastCall => "the last verified call first",
            Self::Calls => "the most calls first",
            Self::Rejected => "the most rejected calls first",
        }
    }
}

/// The link of a column that sorts by it.
struct SortHead {
    href: String,
    is_current: bool,
}

struct ConsumerRow {
    consumer: Named,
    state: Vec<Tag>,
    permissions: String,
    last_call: Option<Moment>,
    /// The calls of the last day in this process, and those of them that were rejected.
    calls: Number,
    rejected: Number,
    /// The accepted ones by each door: signature, Bearer token.
    doors: [Number; 2],
    contact: String,
}

impl ConsoleRequest<'_> {
    pub(crate) async fn consumers(&self) -> Result<OwnResponse> {
        let (q, enabled) = (self.field("q"), self.field("enabled"));
        let (unused_for, problem) = self.duration_of("unused_for", "Unused for");
        let (signed_within, signed_problem) = self.duration_of("signed_within", SIGNED_LABEL);
        let problem = problem.or(signed_problem);
        let manage = &self.backend.manage;
        let filter = RecordFilter {
            enabled: enabled.parse().ok(),
            signed_since: signed_within.map(|within| self.now.before(within)),
            unused_since: manage.unused_since(unused_for),
            ..RecordFilter::containing(q)
        };
        let mut found = manage.store.consumers(&filter, None, SORTED).await?;
        let is_sorted = found.len() < SORTED as usize;
        if !is_sorted {
            let after: Option<ConsumerKey> = self.field("cursor").parse().ok();
            let page = (manage.store).consumers(&filter, after.as_ref(), LISTED);
            found = page.await?;
        }
        let given = [
            ("q", q),
            ("enabled", enabled),
            ("unused_for", self.field("unused_for")),
            ("signed_within", self.field("signed_within")),
            ("sort", self.field("sort")),
        ];
        let link = |cursor: &str| {
            let parameters = [&given[..], &[("cursor", cursor)]].concat();
            path("/consumers", &parameters)
        };
        let all = found.len();
        let by_key = self.other_pages(&found, |last| last.key.to_string(), link);
        let in_grace = (manage.store).consumers_in_grace(self.now, LISTED);
        let in_grace = in_grace.await?.len();
        let views = manage.views(found).await?;
        let shared = &self.admin.shared;
        let doors = self.admin.doors_of_day();
        let row = |(consumer, view): &(Consumer, Map<String, Value>)| {
            let last = last_use(view);
            let key = consumer.key.as_str();
            let calls = doors.of(key);
            let accepted = calls.signature + calls.bearer;
            let rejected = shared.rejections.last_day(key).sum(self.now);
            ConsumerRow {
                consumer: Named::consumer(key, &consumer.name),
                state: self.state(consumer),
                permissions: listed(&consumer.permissions),
                last_call: last.map(|last| self.moment(last)),
                calls: Number(accepted + rejected),
                rejected: Number(rejected),
                doors: [calls.signature, calls.bearer].map(Number),
                contact: consumer.contact.clone().unwrap_or_default(),
            }
        };
        let mut rows = Vec::from_iter(views.iter().map(row));
        let order = match self.field("sort") {
            _ if !is_sorted => None,
            "" if rows.iter().any(|row| row.rejected.0 > 0) => Some(Order::Rejected),
            "" => Some(Order::Name),
            word => Some(word.parse().unwrap_or(Order::Name)),
        };
        let (mut next, mut caption) = (by_key, "Consumers by key".to_owned());
        if let Some(order) = order {
            rows.sort_by_cached_key(|row| order.place(row));
            let from: usize = self.field("cursor").parse().unwrap_or(0);
            let end = all.min(from + LISTED as usize);
            rows.truncate(end);
            rows.drain(..from.min(end));
            next = (from > 0 || end < all).then(|| OtherPages {
                first: (from > 0).then(|| link("")),
                next: (end < all).then(|| link(&end.to_string())),
            });
            caption = format!("{}, {}", counted(all as u64, "consumer"), order.words());
        }
        let heads = Order::VARIANTS.iter().map(|it| SortHead {
            href: {
                let filter = given.iter().filter(|(name, _)| *name != "sort").copied();
                let parameters = Vec::from_iter(filter.chain([("sort", it.into())]));
                path("/consumers", &parameters)
            },
            is_current: order == Some(*it),
        });
        let heads = order.is_some().then(|| Vec::from_iter(heads));
        let page = ConsumersPage {
            frame: self.shell.frame("Consumers"),
            problem,
            fields: [
                InputField::line("q", "Part of key, name, description or contact", q),
                InputField::choice("enabled", "State", STATES, enabled),
                InputField::choice("unused_for", "Unused for", UNUSED, given[2].1),
                InputField::choice("signed_within", SIGNED_LABEL, SIGNED, given[3].1),
            ],
            heads,
            has_filter: given[..4].iter().any(|(_, value)| !value.is_empty()),
            may_write: self.may_write(),
            caption,
            rejected: match shared.live.load().authorizer.enforces() {
                true => "#rejected in 24 h (this process)",
                false => "#rejected, or would be, in 24 h (this process)",
            },
            is_of_signers: signed_within.is_some(),
            graces: match in_grace {
                0 => "No previous secret is in its grace, so no old secret verifies.".to_owned(),
                1 => "1 previous secret is in its grace".to_owned(),
                more => format!("{more} previous secrets are in their grace"),
            },
            has_graces: in_grace > 0,
            consumers: rows,
            next,
        };
        Ok(show(200, &page))
    }

    pub(crate) fn state(&self, consumer: &Consumer) -> Vec<Tag> {
        let mut state = vec![Tag::enabled(consumer.enabled)];
        let asked = match consumer.registration {
            Some(Registration::Waiting) => Some(("waits for approval", "warn")),
            Some(Registration::Declined) => Some(("declined", "bad")),
            Some(Registration::Unchecked) => Some(("registered by a user, not checked", "")),
            Some(Registration::Approved) | None => None,
        };
        state.extend(asked.map(|(text, class)| Tag::new(text, class)));
        if !consumer.asked_callbacks.is_empty() {
            state.push(Tag::new("other callbacks are asked for", "warn"));
        }
        if consumer.graced_secret(self.now).is_some() {
            state.push(Tag::new("previous secret in grace", "warn"));
        }
        state
    }
}
