//! Why calls are rejected, as the console, the admin API and `why` say it: the mistake in words, the advice, and what the calls
//! prove of their sender.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    oauth::diagnosis::TABLE,
    provider::respond::advice_of,
    request::policy::{ACCESS_KEY, caller_rules::CALLER_RULES},
    telemetry::{
        metrics::Verdict,
        rejections::{ReasonCount, RecordedRejection, Rejections, SKIPPED, sort},
    },
};

/// Groups rejections, the newest first, by consumer and reason.
pub fn grouped<'a>(
    newest: impl DoubleEndedIterator<Item = &'a Arc<RecordedRejection>>,
) -> Vec<ReasonCount> {
    let mut groups = Vec::new();
    newest.rev().for_each(|one| count(&mut groups, one));
    sort(&mut groups);
    groups
}

/// Counts a call that is later than all others of these groups.
pub fn count(groups: &mut Vec<ReasonCount>, one: &Arc<RecordedRejection>) {
    let known = groups
        .iter_mut()
        .find(|known| known.newest.consumer == one.consumer && known.is_of(one));
    match known {
        Some(known) => known.add(one),
        None => groups.push(ReasonCount::new(one)),
    }
}

/// The reasons of the calls that name a consumer, registered or not, and those of faults in such calls.
pub fn of_consumer(rejections: &Rejections, key: &str) -> Vec<ReasonCount> {
    let newest = rejections.newest();
    let others = newest
        .iter()
        .filter(|one| one.consumer.as_deref() == Some(key) && (!one.is_registered || one.is_fault));
    let mut groups = rejections.reasons(Some(key));
    for other in grouped(others) {
        match groups.iter_mut().find(|known| known.is_of(&other.newest)) {
            Some(known) => known.merge(other),
            None => groups.push(other),
        }
    }
    sort(&mut groups);
    groups
}

/// A reason as `/v1/rejections/summary` and `why --json` show it.
pub fn view(group: &ReasonCount) -> Value {
    let mut members = json!(group);
    members["mistake"] = mistake(&group.newest).into();
    members["advice"] = advice(&group.newest).into();
    members["newest"] = json!(*group.newest);
    members
}

/// What the calls of a group prove about their sender.
pub fn proof(group: &ReasonCount) -> String {
    match &group.newest.consumer {
        None => "names no consumer".to_owned(),
        Some(_) => proof_of(group.proofs),
    }
}

/// What calls prove about the consumer that they name, by the number of calls with each proof, in the order of
/// [`SenderProof`](crate::telemetry::rejections::SenderProof).
pub fn proof_of([verified, secrets, none]: [u64; 3]) -> String {
    let all = verified + secrets + none;
    let some = |count: u64, text: &str| match count == all {
        true => text.to_owned(),
        false => format!("{count} of {all}: {text}"),
    };
    match (verified, secrets) {
        (0, 0) => "not proved: anybody can send its key".to_owned(),
        (0, secrets) => some(secrets, "signature wrong, but made with its secrets"),
        (verified, _) if none + secrets == 0 => some(verified, "signature right"),
        (verified, secrets) => some(
            verified + secrets,
            "signature right, or made with its secrets",
        ),
    }
}

/// A fixed word as text: `query_unsigned` is `Query unsigned`.
pub fn words(word: &str) -> String {
    let text = word.replace('_', " ");
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// The mistake of a rejection in words.
pub fn mistake(rejection: &RecordedRejection) -> String {
    let reason = rejection.reason;
    if rejection.diagnosis.is_some_and(|word| word != reason) {
        return words(rejection.mistake());
    }
    if let Some(skew) = rejection.skew_seconds {
        return clock(skew);
    }
    let permission = rejection.missing_permission.as_deref();
    let text = match reason {
        "consumer_key_refused" => "Is disabled here, still calls",
        "signature_invalid" => "Signature wrong, mistake unknown",
        "nonce_used" => "Nonce used before",
        "permission_denied" => match permission {
            Some(permission) => return format!("Permission {permission} is missing"),
            None if rejection.denied_by == Some(ACCESS_KEY) => {
                "Operation not open to this kind of call"
            }
            None => "Operation not permitted",
        },
        "parameter_absent" => "Parameter missing",
        "rate_limited" => "Too many requests",
        word => return words(word),
    };
    text.to_owned()
}

fn clock(skew: i64) -> String {
    let side = if skew < 0 { "behind" } else { "ahead" };
    format!("Clock {} s {side}", skew.unsigned_abs())
}

/// The advice for the developer of the consumer, or for the operator.
pub fn advice(rejection: &RecordedRejection) -> String {
    let known = TABLE
        .iter()
        .find(|mistake| Some(mistake.word) == rejection.diagnosis);
    let text = match known {
        Some(mistake) => Ok(mistake.advice.to_owned()),
        None => advice_of_reason(rejection),
    };
    match text {
        Ok(text) => format!("Tell its developer: {text}."),
        Err(ours) => ours.to_owned(),
    }
}

/// The advice for the developer; an error is what concerns the operator.
fn advice_of_reason(rejection: &RecordedRejection) -> Result<String, &'static str> {
    if rejection.diagnosis == Some(SKIPPED) {
        return Ok("the signature was not examined: send the request again in a few seconds, or a smaller one".to_owned());
    }
    if let (Some(_), Some(problem)) = (rejection.skew_seconds, &rejection.parameters_problem) {
        return Ok(problem.clone());
    }
    if let Some(skew) = rejection.skew_seconds {
        let side = if skew < 0 { "behind" } else { "ahead" };
        let seconds = skew.unsigned_abs();
        return Ok(format!(
            "set the clock of your machine (NTP): it is {seconds} s {side}"
        ));
    }
    if let Some(permission) = &rejection.missing_permission {
        return Ok(format!(
            "the operation needs the permission {permission}; the consumer has to be registered with it, and the user has to \
             grant it"
        ));
    }
    let mut rules = CALLER_RULES.iter();
    if let Some(rule) = rules.find(|rule| Some(rule.key) == rejection.denied_by) {
        let address = rejection.address.as_deref().unwrap_or("unknown");
        return Ok((rule.advice)(address));
    }
    if rejection.denied_by == Some(ACCESS_KEY) {
        return Err(
            "Nothing, or add its kind to access of the operation: \"consumer\" for calls with a user’s token, \"application\" for those without one.",
        );
    }
    let is_absent = rejection.reason == Verdict::ParameterAbsent.as_str();
    match (&rejection.parameters, &rejection.parameters_problem) {
        (Some(names), _) if is_absent => return Ok(format!("send {names}")),
        (Some(names), Some(problem)) => return Ok(format!("correct {names}: {problem}")),
        (Some(names), None) => return Ok(format!("correct {names}")),
        (None, Some(problem)) => return Ok(problem.clone()),
        (None, None) => {}
    }
    match rejection.reason {
        "signature_invalid" => Ok(
            "compare consumer secret and token secret; then send one request as it went over the wire, so that its operator \
             can check it here"
                .to_owned(),
        ),
        "consumer_key_refused" => Err("Enable it, or tell its developer that its access has ended."),
        reason => match advice_of(reason) {
            Some(text) => Ok(text.to_owned()),
            None => Err("Nothing: the fault is not the consumer’s; see the log."),
        },
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;
    use crate::{
        base::clock::UnixTime,
        telemetry::{metrics::Outcome, rejections::SenderProof},
    };

    #[test]
    fn groups_are_of_one_consumer_and_reason_and_begin_with_the_oldest() {
        let rejection = |number, consumer: &str, diagnosis, proof| {
            Arc::new(RecordedRejection {
                number,
                time: UnixTime(number),
                consumer: Some(consumer.to_owned()),
                reason: "signature_invalid",
                diagnosis,
                proof,
                ..RecordedRejection::default()
            })
        };
        let swapped = Some("secrets_swapped");
        let newest = [
            rejection(9, "a", None, SenderProof::None),
            rejection(8, "b", swapped, SenderProof::Secrets),
            rejection(7, "a", None, SenderProof::Verified),
            rejection(6, "a", swapped, SenderProof::Secrets),
        ];
        let found = grouped(newest.iter());
        let found = found.iter().map(|group| {
            let key = group.newest.consumer.as_deref().unwrap();
            (
                key,
                group.newest.mistake(),
                group.count,
                group.first.0,
                proof(group),
            )
        });
        let secrets = "signature wrong, but made with its secrets".to_owned();
        assert_eq!(
            Vec::from_iter(found),
            [
                (
                    "a",
                    "signature_invalid",
                    2,
                    7,
                    "1 of 2: signature right, or made with its secrets".to_owned()
                ),
                ("b", "secrets_swapped", 1, 8, secrets.clone()),
                ("a", "secrets_swapped", 1, 6, secrets),
            ]
        );
    }

    #[test]
    fn there_are_words_and_advice_for_every_reason() {
        let mut rejection = RecordedRejection {
            reason: "timestamp_refused",
            skew_seconds: Some(-742),
            ..RecordedRejection::default()
        };
        assert_eq!(mistake(&rejection), "Clock 742 s behind");
        assert!(advice(&rejection).contains("742 s behind"));
        rejection.parameters_problem = Some("oauth_timestamp is in milliseconds".to_owned());
        assert!(advice(&rejection).contains("in milliseconds"));
        let denied = RecordedRejection {
            reason: "permission_denied",
            denied_by: Some(ACCESS_KEY),
            ..RecordedRejection::default()
        };
        assert_eq!(mistake(&denied), "Operation not open to this kind of call");
        assert!(advice(&denied).contains("\"consumer\" for calls with a user’s token"));
        rejection.diagnosis = Some(SKIPPED);
        assert!(advice(&rejection).contains("was not examined"));
        rejection.diagnosis = Some("secrets_swapped");
        assert_eq!(mistake(&rejection), "Secrets swapped");
        assert!(advice(&rejection).contains("consumer secret before the '&'"));
        for verdict in Verdict::VARIANTS {
            let rejection = RecordedRejection {
                reason: verdict.as_str(),
                ..RecordedRejection::default()
            };
            let is_of_the_caller = matches!(verdict.outcome(), Outcome::Rejected);
            let advice = advice(&rejection);
            assert_ne!(mistake(&rejection), "");
            let is_of_others = advice.contains("not the consumer’s");
            assert!(!(is_of_the_caller && is_of_others), "{verdict:?}: {advice}");
        }
    }
}
