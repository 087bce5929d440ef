//! Why calls are rejected: by consumer, the mistake in words, the advice for the developer, what the calls prove, and what
//! happened since.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::call::href;
use crate::{
    oauth::diagnosis::{Diagnosed, Mistake},
    operator::{
        admin::console::{
            ConsoleRequest, Result,
            parts::{Moment, Named, Names, Number, Tag, counted, path},
        },
        manage::SECRET_ROTATED,
        reasons::{
            self,
            attention::{AfterRejection, ConsumerNow},
        },
    },
    records::values::use_cases::AuditFilter,
    telemetry::{
        calls::{facts::OtherSecret, rejections::ReasonCount},
        metrics::Verdict,
    },
};

/// A reason whose first call came so soon after the start of this process may be older.
const START: Duration = Duration::from_secs(5 * 60);

/// The calls of one consumer that were rejected, by reason.
pub(crate) struct RejectedConsumer {
    /// `None`: the calls name no consumer.
    pub(crate) consumer: Option<Named>,
    /// The text without a consumer.
    pub(crate) without: &'static str,
    pub(crate) reasons: Vec<Reason>,
}

/// The calls of one consumer that were rejected for one reason, as a row shows them.
pub(crate) struct Reason {
    /// The mistake in words.
    pub(crate) mistake: String,
    /// Its fixed word, and the link to its rejections.
    pub(crate) word: &'static str,
    pub(crate) href: String,
    /// The row says that enforcing would reject them.
    pub(crate) is_observed: bool,
    pub(crate) advice: String,
    /// What happened since the last of them, with the class of its frame.
    pub(crate) later: Option<Tag>,
    /// The link to the page that enables its consumer again.
    pub(crate) enable: Option<String>,
    pub(crate) count: Number,
    pub(crate) first: Moment,
    /// This process had only started then: calls before it may have had the same mistake.
    pub(crate) may_be_older: bool,
    pub(crate) last: Moment,
    pub(crate) proof: Tag,
    /// The last call is signed with the previous secret.
    pub(crate) previous_secret: bool,
    /// The rotation that replaced the secret with which it signs.
    pub(crate) rotated: Option<Moment>,
    /// The last call, and its page.
    pub(crate) call: String,
    pub(crate) call_href: String,
    /// Where it came from, if it names no consumer.
    pub(crate) from: Option<String>,
    /// The accounts and addresses of the failed logins that are kept.
    pub(crate) logins: Option<String>,
}

/// The calls that a row counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedSince {
    /// All since this process started.
    Start,
    /// Those of the last 24 hours, of a table that has no others than observed ones.
    DayOfObserved,
}

impl ConsoleRequest<'_> {
    /// The names of the consumers of these reasons.
    pub(crate) async fn names_of(&self, groups: &[ReasonCount]) -> Result<Names> {
        let keys = groups
            .iter()
            .filter_map(|it| it.newest.call.named_consumer());
        self.names(keys, std::iter::empty()).await
    }

    /// What happened after the last call of a reason.
    pub(crate) fn after(&self, group: &ReasonCount, names: &Names) -> AfterRejection {
        let key = group.newest.call.named_consumer();
        let consumer = ConsumerNow {
            accepted: key.map_or(0, |key| self.admin.shared.metrics.accepted_of(key)),
            enabled: key.and_then(|key| names.is_enabled(key)),
            now: self.now,
        };
        AfterRejection::new(group, consumer)
    }

    /// The rows of these reasons. Those of one consumer follow each other, in the place of its first one.
    pub(crate) async fn reasons(
        &self,
        groups: &[ReasonCount],
        names: &Names,
        since: CountedSince,
    ) -> Result<Vec<RejectedConsumer>> {
        let mut places = HashMap::new();
        let mut rows: Vec<RejectedConsumer> = Vec::new();
        for group in groups {
            let newest = &group.newest.call;
            let consumer = newest.named_consumer();
            let place = *places.entry(consumer).or_insert_with(|| {
                rows.push(RejectedConsumer {
                    consumer: consumer.map(|key| names.consumer(key)),
                    without: match (group.is_observed(), newest.is_from_page()) {
                        (_, true) => "a browser",
                        (true, _) => "unsigned calls",
                        (false, _) => "no consumer key",
                    },
                    reasons: Vec::new(),
                });
                rows.len() - 1
            });
            let reason = self.reason(group, names, since).await?;
            rows[place].reasons.push(reason);
        }
        Ok(rows)
    }

    async fn reason(
        &self,
        group: &ReasonCount,
        names: &Names,
        since: CountedSince,
    ) -> Result<Reason> {
        let newest = &group.newest.call;
        let (word, consumer) = (newest.mistake(), newest.named_consumer());
        let key = consumer.unwrap_or_default();
        let after = self.after(group, names);
        let class = match after {
            AfterRejection::Open | AfterRejection::SomeAccepted(_) => "warn",
            AfterRejection::Accepted(_) | AfterRejection::Enabled => "good",
            AfterRejection::Disabled | AfterRejection::RejectedByApi => "",
        };
        let is_disabled = newest.names_disabled_consumer()
            && consumer.and_then(|key| names.is_enabled(key)) == Some(false);
        Ok(Reason {
            mistake: reasons::mistake(newest),
            word,
            href: path("/rejections", &[("consumer", key), ("reason", word)]),
            is_observed: group.is_observed() && since == CountedSince::Start,
            advice: reasons::advice(newest),
            later: after.text().map(|text| Tag::new(text, class)),
            enable: (is_disabled && self.may_write())
                .then(|| path("/consumer/enable", &[("key", key)])),
            count: Number(match since {
                CountedSince::Start => group.count,
                CountedSince::DayOfObserved => group.last_day(self.now),
            }),
            first: self.moment(group.first),
            may_be_older: group.first < self.admin.shared.rejections.since.after(START),
            last: self.moment(group.newest.time),
            proof: proof(group),
            previous_secret: newest.secret == Some(OtherSecret::Previous),
            rotated: match newest.diagnosis {
                Diagnosed::Known(Mistake::PreviousSecret) => self.last_rotation(key).await?,
                _ => None,
            },
            call: newest.called(),
            call_href: href(&group.newest),
            from: match (consumer, newest.caller_address()) {
                (None, Some(address)) => Some(address.to_string()),
                _ => None,
            },
            logins: (newest.verdict == Verdict::LoginFailed).then(|| self.failed_logins()),
        })
    }

    /// The accounts and addresses of the failed logins that are kept.
    fn failed_logins(&self) -> String {
        let kept = self.admin.shared.rejections.newest();
        let failed = kept
            .iter()
            .filter(|one| one.call.verdict == Verdict::LoginFailed);
        let failed = Vec::from_iter(failed);
        let accounts =
            HashSet::<_>::from_iter(failed.iter().filter_map(|it| it.call.user.as_ref()));
        let addresses = HashSet::<_>::from_iter(failed.iter().map(|it| it.call.caller_address()));
        let nobodys = failed.iter().filter(|it| it.call.user.is_none());
        let names = match nobodys.count() as u64 {
            0 => String::new(),
            count => format!(
                ", {} with a name that no account has",
                counted(count, "time")
            ),
        };
        let (times, accounts) = (failed.len() as u64, accounts.len() as u64);
        let addresses = counted(addresses.len() as u64, "address");
        let (times, accounts) = (counted(times, "time"), counted(accounts, "account"));
        format!("{times}: at {accounts}{names}, from {addresses}")
    }

    /// The last rotation of the secret of a consumer, if its record is kept.
    async fn last_rotation(&self, key: &str) -> Result<Option<Moment>> {
        let filter = AuditFilter {
            event: Some(SECRET_ROTATED.to_owned()),
            ..AuditFilter::for_consumer(key)
        };
        let found = (self.backend.manage.store)
            .audit_records(&filter, None, 1)
            .await?;
        Ok(found.first().map(|entry| self.moment(entry.at)))
    }
}

/// What the calls of a group prove about their sender.
fn proof(group: &ReasonCount) -> Tag {
    let [verified, secrets, _] = group.proofs;
    let class = match group.newest.call.named_consumer() {
        None => "",
        // A signature that is right, or nothing that is: one made with the secrets is still a mistake.
        Some(_) if verified > 0 && secrets == 0 => "good",
        Some(_) => "warn",
    };
    Tag::new(reasons::proof(group), class)
}
