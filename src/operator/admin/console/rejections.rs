//! Rejections: their reasons, their times, and each call.

use std::sync::Arc;

use askama::Template;

use super::{
    ConsoleRequest, Result,
    page::{ConsoleFrame, InputField, choices, show},
    parts::{Moment, Named, Tag},
    reasons::RejectedConsumer,
};
use crate::{
    operator::reasons::grouped,
    provider::respond::OwnResponse,
    request::rejections::{ReasonCount, RecordedRejection, SenderProof},
};

/// Rejections on the page.
const SHOWN: usize = 200;

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
    fields: [InputField; 4],
    /// Captions and their reasons.
    tables: [(&'static str, Vec<RejectedConsumer>); 2],
    reasons_have_consumers: bool,
    newest: String,
    calls: Vec<RejectedCall>,
}

/// A row of the table of calls.
struct RejectedCall {
    time: Moment,
    call: String,
    consumer: Option<Named>,
    proof: Tag,
    token: String,
    verdict: &'static str,
    diagnosis: Option<&'static str>,
    previous_secret: bool,
    status: u16,
    address: String,
    request_id: String,
}

/// The filter of the page. A consumer is named by a part of its key or name.
struct Filter<'a> {
    consumer: &'a str,
    reason: &'a str,
    id: &'a str,
    kind: &'a str,
}

impl Filter<'_> {
    fn is_of_kind(&self, is_observed: bool) -> bool {
        match self.kind {
            "observed" => is_observed,
            "rejected" => !is_observed,
            _ => true,
        }
    }

    fn has(&self, one: &RecordedRejection, name: Option<&str>) -> bool {
        let has = |text: Option<&str>| {
            text.is_some_and(|text| text.to_lowercase().contains(&self.consumer.to_lowercase()))
        };
        let is_of = |filter: &str, value: &str| filter.is_empty() || value == filter;
        (self.consumer.is_empty() || has(one.consumer.as_deref()) || has(name))
            && (is_of(self.reason, one.mistake()) || self.reason == one.reason)
            && (self.id.is_empty() || one.request_id.as_deref() == Some(self.id))
            && self.is_of_kind(one.is_observed())
    }
}

impl ConsoleRequest<'_> {
    pub(super) async fn rejections(&self) -> Result<OwnResponse> {
        let filter = Filter {
            consumer: self.field("consumer"),
            reason: self.field("reason"),
            id: self.field("request_id"),
            kind: self.field("kind"),
        };
        let all = self.admin.shared.rejections.newest();
        let of_consumers = self.reasons_of_consumers();
        let counted = of_consumers.iter().map(|group| &group.newest);
        let named = all.iter().chain(counted).filter(|one| one.is_registered);
        let keys = named.filter_map(|one| one.consumer.as_deref());
        let names = self.names(keys, std::iter::empty()).await?;
        let named = |one: &RecordedRejection| Some(names.consumer(one.consumer.as_deref()?));
        let is_wanted = |one: &RecordedRejection| {
            let name = named(one).map(|consumer| consumer.name);
            filter.has(one, name.as_deref())
        };
        let wanted = Vec::from_iter(all.iter().filter(|one| is_wanted(one)));
        // What a request id names is one call.
        let counted: Vec<ReasonCount> = match filter.id {
            "" => of_consumers
                .iter()
                .filter(|group| is_wanted(&group.newest))
                .take(GROUPS)
                .cloned()
                .collect(),
            _ => grouped(wanted.iter().copied().filter(|one| one.is_registered)),
        };
        let is_other = |one: &&Arc<RecordedRejection>| !one.is_registered || one.is_fault;
        let mut others = grouped(wanted.iter().copied().filter(is_other));
        others.truncate(GROUPS);
        let mut reasons =
            Vec::from_iter(all.iter().chain(of_consumers.iter().map(|it| &it.newest)));
        reasons.sort_unstable_by_key(|one| one.mistake());
        reasons.dedup_by_key(|one| one.mistake());
        let reasons = reasons.iter().map(|one| one.mistake());
        let reasons = reasons.map(|word| (word, word));
        let reasons = choices([("", "any")].into_iter().chain(reasons));
        let page = RejectionsPage {
            frame: self.shell.frame("Rejections"),
            started: self.moment(self.admin.shared.rejections.since),
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
            tables: [
                (
                    "By registered consumer and reason",
                    self.reasons(&counted, &names).await?,
                ),
                (
                    "Other callers, and faults",
                    self.reasons(&others, &names).await?,
                ),
            ],
            reasons_have_consumers: true,
            newest: format!(
                "The newest {} of {} that are kept",
                wanted.len().min(SHOWN),
                wanted.len()
            ),
            calls: wanted
                .iter()
                .take(SHOWN)
                .map(|one| self.rejected_call(one, named(one)))
                .collect(),
        };
        Ok(show(200, &page))
    }

    fn rejected_call(&self, one: &RecordedRejection, consumer: Option<Named>) -> RejectedCall {
        let text = |text: &Option<String>| text.as_deref().unwrap_or("–").to_owned();
        // The label of an operation has its methods before the path.
        let target = one.operation.rsplit(' ').next().unwrap_or_default();
        RejectedCall {
            time: self.moment(one.time),
            call: format!("{} {target}", one.method.as_deref().unwrap_or("–")),
            consumer,
            proof: match one.proof {
                SenderProof::Verified => Tag::new("signature right", "good"),
                SenderProof::Secrets => Tag::new("made with its secrets", "warn"),
                SenderProof::None => Tag::new("not proved", "warn"),
            },
            token: text(&one.token),
            verdict: one.verdict,
            diagnosis: one.diagnosis,
            previous_secret: one.previous_secret,
            status: one.status,
            address: text(&one.address),
            request_id: text(&one.request_id),
        }
    }
}
