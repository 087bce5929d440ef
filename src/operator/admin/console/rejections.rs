//! Rejections: their reasons, their times, and advice for the consumer's developer.

use std::collections::HashMap;

use super::{
    ConsoleRequest, PageParts, Result,
    page::{InputField, InputKind, Section},
    parts::{Cell, Line, Table, line, link, path, tag, time},
};
use crate::{
    base::clock::UnixTime,
    oauth::diagnosis::TABLE,
    provider::respond::advice_of,
    request::policy::caller_rules::CALLER_RULES,
    telemetry::{metrics::Verdict, rejections::RecordedRejection},
};

/// Rejections on the page.
const SHOWN: usize = 200;

const KINDS: &[(&str, &str)] = &[
    ("", "all"),
    ("rejected", "rejected"),
    ("observed", "only observed: enforcing would reject them"),
];

/// Rejections of one consumer for one reason.
pub(super) struct Group<'a> {
    pub(super) newest: &'a RecordedRejection,
    pub(super) count: usize,
    pub(super) since: UnixTime,
    /// The number of calls that the consumer has really signed.
    pub(super) verified: usize,
}

/// The mistake in the signature, else the verdict.
pub(super) fn reason(rejection: &RecordedRejection) -> &'static str {
    rejection.diagnosis.unwrap_or(rejection.reason)
}

/// Groups rejections, the newest first, by consumer and reason; the largest group comes first.
pub(super) fn groups<'a>(newest: impl Iterator<Item = &'a RecordedRejection>) -> Vec<Group<'a>> {
    let mut groups = HashMap::new();
    for one in newest {
        let group = groups.entry((&one.consumer, reason(one), is_observed(one)));
        let group = group.or_insert(Group {
            newest: one,
            count: 0,
            since: one.time,
            verified: 0,
        });
        group.count += 1;
        group.since = one.time;
        group.verified += usize::from(one.verified);
    }
    let mut groups = Vec::from_iter(groups.into_values());
    groups.sort_by_key(|group| {
        (
            std::cmp::Reverse(group.count),
            std::cmp::Reverse(group.newest.time),
        )
    });
    groups
}

fn is_observed(rejection: &RecordedRejection) -> bool {
    rejection.verdict == Verdict::Observed.as_str()
}

/// The row of a group: consumer, reason, calls, since, last, signed.
pub(super) fn reason_row(group: &Group<'_>) -> Vec<Line> {
    let consumer = group.newest.consumer.as_deref().unwrap_or_default();
    let reason = reason(group.newest);
    let parameters = [("consumer", consumer), ("reason", reason)];
    vec![
        match consumer {
            "" => line("–"),
            key => vec![link(key, path("/consumer", &[("key", key)]))],
        },
        vec![link(reason, path("/rejections", &parameters))],
        line(group.count.to_string()),
        line(time(group.since)),
        line(time(group.newest.time)),
        line(match group.verified {
            0 => "by anybody: no signature holds".to_owned(),
            count if count == group.count => "by the consumer".to_owned(),
            count => format!("{count} by the consumer"),
        }),
    ]
}

/// The advice for the developer of the consumer.
pub(super) fn advice(rejection: &RecordedRejection) -> String {
    let mistake = TABLE
        .iter()
        .find(|mistake| Some(mistake.word) == rejection.diagnosis);
    if let Some(mistake) = mistake {
        return mistake.advice.to_owned();
    }
    if let Some(skew) = rejection.skew_seconds {
        let side = if skew < 0 { "behind" } else { "ahead" };
        return format!(
            "set the clock of your machine: it is {} s {side}",
            skew.unsigned_abs()
        );
    }
    if let Some(permission) = &rejection.missing_permission {
        return format!(
            "the operation needs the permission {permission}; the consumer has to be registered with it, and the user has to \
             grant it"
        );
    }
    let mut rules = CALLER_RULES.iter();
    if let Some(rule) = rules.find(|rule| Some(rule.key) == rejection.denied_by) {
        let address = rejection.address.as_deref().unwrap_or("unknown");
        return format!("{}; the address of this call is {address}", rule.advice);
    }
    if let Some(names) = &rejection.parameters {
        let problem = rejection.parameters_problem.as_deref();
        return match (
            rejection.reason == Verdict::ParameterAbsent.as_str(),
            problem,
        ) {
            (true, _) => format!("send {names}"),
            (false, Some(problem)) => format!("correct {names}: {problem}"),
            (false, None) => format!("correct {names}"),
        };
    }
    if let Some(problem) = &rejection.parameters_problem {
        return problem.clone();
    }
    if rejection.reason == Verdict::SignatureInvalid.as_str() {
        return "no known mistake makes this signature: compare consumer secret and token secret first; then send the request as \
                it went over the wire, so that its operator can check it here"
            .to_owned();
    }
    advice_of(rejection.reason)
        .unwrap_or("nothing: the fault is not the consumer's; see the log")
        .to_owned()
}

/// Groups with the advice for the developer.
pub(super) fn advised(caption: String, rejections: &[&RecordedRejection]) -> Table {
    let groups = groups(rejections.iter().copied());
    let row = |group: &Group<'_>| {
        let mut row = reason_row(group);
        row.push(line(advice(group.newest)));
        row
    };
    Table {
        caption,
        head: vec![
            "consumer",
            "why",
            "calls",
            "since",
            "last",
            "signed",
            "tell its developer",
        ],
        rows: groups.iter().map(row).collect(),
        empty: "None of the last 1,000 rejections of this process.",
        next: None,
    }
}

impl ConsoleRequest<'_> {
    pub(super) fn rejections(&self) -> Result<PageParts> {
        let (consumer, why, id, kind) = (
            self.field("consumer"),
            self.field("reason"),
            self.field("request_id"),
            self.field("kind"),
        );
        let is_wanted = |one: &&RecordedRejection| {
            let is_of =
                |filter: &str, value: Option<&str>| filter.is_empty() || value == Some(filter);
            is_of(consumer, one.consumer.as_deref())
                && is_of(why, Some(reason(one)))
                && is_of(id, one.request_id.as_deref())
                && match kind {
                    "observed" => is_observed(one),
                    "rejected" => !is_observed(one),
                    _ => true,
                }
        };
        let all = self.rejected();
        let wanted = Vec::from_iter(all.iter().filter(is_wanted));
        let text = "The last 1,000 calls that this process rejected, that failed, or that enforcing would reject. Anybody can \
                    send wrong signatures under the key of a consumer: only where a signature holds is the consumer proved.";
        let sections = vec![
            Section::Text(line(text)),
            Section::search(
                "/rejections",
                "Show",
                vec![
                    InputField::line("request_id", "Request id", id),
                    InputField::line("consumer", "Consumer", consumer),
                    InputField::line("reason", "Why", why),
                    InputField::new(InputKind::Choice(KINDS.into()), "kind", "Kind", kind),
                ],
            ),
            Section::Table(advised("By consumer and reason".to_owned(), &wanted)),
            Section::Table(Table {
                caption: format!("The newest {} of {}", wanted.len().min(SHOWN), wanted.len()),
                head: vec![
                    "time",
                    "request id",
                    "call",
                    "consumer",
                    "token",
                    "verdict",
                    "diagnosis",
                    "status",
                    "address",
                ],
                rows: wanted.iter().take(SHOWN).map(|one| row(one)).collect(),
                empty: "Nothing was rejected.",
                next: None,
            }),
        ];
        Ok(("Rejections".to_owned(), sections))
    }
}

fn row(one: &RecordedRejection) -> Vec<Line> {
    let text = |text: &Option<String>| line(text.as_deref().unwrap_or("–"));
    let consumer = match &one.consumer {
        None => line("–"),
        Some(key) => {
            let consumer = link(key, path("/consumer", &[("key", key)]));
            let proved = if one.verified {
                tag("verified", "tag good")
            } else {
                tag("claimed", "tag")
            };
            vec![consumer, proved]
        }
    };
    // The label of an operation has its methods before the path.
    let target = one.operation.rsplit(' ').next().unwrap_or_default();
    let call = format!("{} {target}", one.method.as_deref().unwrap_or("–"));
    vec![
        line(time(one.time)),
        text(&one.request_id),
        line(call),
        consumer,
        text(&one.token),
        line(one.verdict),
        match one.diagnosis {
            Some(word) => line(word),
            None => Line::from([Cell::from("–")]),
        },
        line(one.status.to_string()),
        text(&one.address),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_of_one_consumer_and_reason_and_begin_with_the_oldest() {
        let rejection = |time, consumer: &str, diagnosis, verified| RecordedRejection {
            time: UnixTime(time),
            consumer: Some(consumer.to_owned()),
            reason: "signature_invalid",
            diagnosis,
            verified,
            ..RecordedRejection::default()
        };
        let newest = [
            rejection(9, "a", None, false),
            rejection(8, "b", Some("secrets_swapped"), false),
            rejection(7, "a", None, true),
            rejection(6, "a", Some("secrets_swapped"), false),
        ];
        let groups = groups(newest.iter());
        let found = groups.iter().map(|group| {
            let key = group.newest.consumer.as_deref().unwrap();
            (
                key,
                reason(group.newest),
                group.count,
                group.since.0,
                group.verified,
            )
        });
        assert_eq!(
            Vec::from_iter(found),
            [
                ("a", "signature_invalid", 2, 7, 1),
                ("b", "secrets_swapped", 1, 8, 0),
                ("a", "secrets_swapped", 1, 6, 0),
            ]
        );
    }

    #[test]
    fn there_is_advice_for_every_reason() {
        let mut rejection = RecordedRejection {
            reason: "timestamp_refused",
            skew_seconds: Some(-400),
            ..RecordedRejection::default()
        };
        assert!(advice(&rejection).contains("400 s behind"));
        rejection.diagnosis = Some("secrets_swapped");
        assert!(advice(&rejection).contains("consumer secret before the '&'"));
        for verdict in <Verdict as strum::VariantArray>::VARIANTS {
            let rejection = RecordedRejection {
                reason: verdict.as_str(),
                ..RecordedRejection::default()
            };
            assert!(!advice(&rejection).is_empty());
        }
    }
}
