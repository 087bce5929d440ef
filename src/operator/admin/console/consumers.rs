//! The list of consumers.

use askama::Template;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{
    ConsoleRequest, LISTED, Result,
    page::{ConsoleFrame, InputField, show},
    parts::{Moment, Named, Number, OtherPages, Tag, counted, listed, path},
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey},
    provider::respond::OwnResponse,
    records::store::{port::RecordFilter, record::Consumer},
};

const STATES: &[(&str, &str)] = &[("", "all"), ("true", "enabled"), ("false", "disabled")];

/// Times without use, as filters offer them.
pub(super) const UNUSED: &[(&str, &str)] = &[
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
    fields: [InputField; 3],
    has_filter: bool,
    may_write: bool,
    caption: String,
    /// The name of the column of rejected calls: those that were, or that enforcing would reject. With the sign of numbers.
    rejected: &'static str,
    /// Whether previous secrets still verify.
    graces: String,
    has_graces: bool,
    consumers: Vec<ConsumerRow>,
    next: Option<OtherPages>,
}

struct ConsumerRow {
    consumer: Named,
    state: Vec<Tag>,
    permissions: String,
    last_call: Option<Moment>,
    /// The calls of the last day in this process, and those of them that were rejected.
    calls: Number,
    rejected: Number,
}

impl ConsoleRequest<'_> {
    pub(super) async fn consumers(&self) -> Result<OwnResponse> {
        let (q, enabled) = (self.field("q"), self.field("enabled"));
        let (unused_for, problem) = self.unused_for();
        let filter = RecordFilter {
            q: (!q.is_empty()).then(|| q.to_owned()),
            enabled: enabled.parse().ok(),
            ..RecordFilter::default()
        };
        let after: Option<ConsumerKey> = self.field("cursor").parse().ok();
        let manage = &self.backend.manage;
        let found = manage.consumers(filter, unused_for, after.as_ref(), LISTED);
        let found = found.await?;
        let given = [
            ("q", q),
            ("enabled", enabled),
            ("unused_for", self.field("unused_for")),
        ];
        let link = |cursor: &str| {
            let parameters = [&given[..], &[("cursor", cursor)]].concat();
            path("/consumers", &parameters)
        };
        let next = self.other_pages(&found, |last| last.key.to_string(), link);
        let caption = match &next {
            None => counted(found.len() as u64, "consumer") + ", by key",
            Some(_) => "Consumers by key".to_owned(),
        };
        let in_grace = manage.consumers_in_grace(LISTED).await?.len();
        let views = manage.views(found).await?;
        let shared = &self.admin.shared;
        let counts = shared.metrics.accepted_calls();
        let charts = &self.admin.control.console.charts;
        let accepted = charts.consumers.last_day(self.now, counts);
        let row = |(consumer, view): &(Consumer, Map<String, Value>)| {
            let last = last_use(view);
            let key = consumer.key.as_str();
            let accepted = accepted.get(key).copied().unwrap_or_default();
            let rejected = shared.rejections.last_day(key);
            ConsumerRow {
                consumer: Named::consumer(key, &consumer.name),
                state: self.state(consumer),
                permissions: listed(&consumer.permissions),
                last_call: last.map(|last| self.moment(last)),
                calls: Number(accepted + rejected),
                rejected: Number(rejected),
            }
        };
        let page = ConsumersPage {
            frame: self.shell.frame("Consumers"),
            problem,
            fields: [
                InputField::line("q", "Part of key, name or description", q),
                InputField::choice("enabled", "State", STATES, enabled),
                InputField::choice("unused_for", "Unused for", UNUSED, given[2].1),
            ],
            has_filter: given.iter().any(|(_, value)| !value.is_empty()),
            may_write: self.may_write(),
            caption,
            rejected: match shared.live.load().authorizer.enforces() {
                true => "#rejected in 24 h (this process)",
                false => "#rejected, or would be, in 24 h (this process)",
            },
            graces: match in_grace {
                0 => "No previous secret is in its grace, so no old secret verifies.".to_owned(),
                1 => "1 previous secret is in its grace".to_owned(),
                more => format!("{more} previous secrets are in their grace"),
            },
            has_graces: in_grace > 0,
            consumers: views.iter().map(row).collect(),
            next,
        };
        Ok(show(200, &page))
    }

    pub(super) fn state(&self, consumer: &Consumer) -> Vec<Tag> {
        let mut state = vec![Tag::enabled(consumer.enabled)];
        if consumer.graced_secret(self.now).is_some() {
            state.push(Tag::new("previous secret in grace", "warn"));
        }
        state
    }
}

/// The time of the last verified call in the view of a consumer.
pub(super) fn last_use(view: &Map<String, Value>) -> Option<UnixTime> {
    UnixTime::deserialize(view.get("last_used_at")?).ok()
}
