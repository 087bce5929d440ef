//! Why calls are rejected, as the console, the admin API and `why` say it: the mistake in words, the advice, and what the calls
//! prove of their sender.

pub mod attention;
pub mod logged_call;

use std::sync::Arc;

use serde_json::{Value, json};

pub use crate::provider::respond::mistake::{mistake, words};
use crate::{
    base::clock::UnixTime,
    oauth::diagnosis::{Diagnosed, Mistake},
    operator::reasons::attention::{AfterRejection, ConsumerNow},
    provider::respond,
    records::values::use_cases::ListedConsumer,
    telemetry::calls::{
        facts::Door,
        record::CallRecord,
        rejections::{KeptCall, ReasonCount, Rejections, sort},
    },
};

/// Groups rejections, the newest first, by consumer and reason.
pub fn grouped<'a>(newest: impl DoubleEndedIterator<Item = &'a Arc<KeptCall>>) -> Vec<ReasonCount> {
    let mut groups = Vec::new();
    newest.rev().for_each(|one| count(&mut groups, one));
    sort(&mut groups);
    groups
}

/// Counts a call, which may be earlier than others of these groups.
pub fn count(groups: &mut Vec<ReasonCount>, one: &Arc<KeptCall>) {
    let consumer = one.call.named_consumer();
    let known = groups
        .iter_mut()
        .find(|known| known.newest.call.named_consumer() == consumer && known.is_of(one));
    match known {
        Some(known) => known.add(one),
        None => groups.push(ReasonCount::new(one)),
    }
}

/// The reasons of the calls that name a consumer, registered or not, and those of faults in such calls.
pub fn for_consumer(rejections: &Rejections, key: &str) -> Vec<ReasonCount> {
    let newest = rejections.newest();
    let is_other = |one: &KeptCall| !one.is_registered || one.call.is_fault();
    let others = newest
        .iter()
        .filter(|one| one.call.named_consumer() == Some(key) && is_other(one));
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

/// Reasons as [`view`] shows each, the most frequent first.
pub fn views(mut groups: Vec<ReasonCount>) -> Vec<Value> {
    sort(&mut groups);
    groups.iter().map(view).collect()
}

/// A reason as `why --json` shows it.
pub fn view(group: &ReasonCount) -> Value {
    let mut members = json!(group);
    members["mistake"] = mistake(&group.newest.call).into();
    members["advice"] = advice(&group.newest.call).into();
    members["newest"] = json!(*group.newest);
    members
}

/// A reason as `/v1/rejections/summary` shows it: as [`view`], with name and contact of the consumer, if it is registered, and
/// whether it needs attention. The consumer's accepted calls are those since this process started.
pub fn summary(
    group: &ReasonCount,
    consumer: Option<&ListedConsumer>,
    accepted: u64,
    now: UnixTime,
) -> Value {
    let mut members = view(group);
    let consumer_now = ConsumerNow {
        accepted,
        enabled: consumer.map(|known| known.enabled),
        now,
    };
    let after = AfterRejection::new(group, consumer_now);
    members["name"] = json!(consumer.map(|known| &known.name));
    members["contact"] = json!(consumer.and_then(|known| known.contact.as_ref()));
    members["needs_attention"] = json!(!after.is_resolved());
    members
}

/// What the calls of a group prove about their sender.
pub fn proof(group: &ReasonCount) -> String {
    let newest = &group.newest.call;
    match newest.named_consumer() {
        None => "no consumer key".to_owned(),
        // It may have been replaced because others know it.
        Some(_) if newest.diagnosis == Diagnosed::Known(Mistake::PreviousSecret) => {
            "made with its secret before the last rotation, which others may know".to_owned()
        }
        Some(_) if newest.door == Some(Door::Bearer) => {
            proof_of(group.proofs).replace("signature right", "Bearer token right")
        }
        Some(_) => proof_of(group.proofs),
    }
}

/// What calls prove about the consumer that they name, by the number of calls with each proof, in the order of
/// [`SenderProof`](crate::telemetry::calls::facts::SenderProof).
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

/// The advice for the developer of the consumer, or for the operator.
pub fn advice(call: &CallRecord<'_>) -> String {
    if call.is_unlisted() {
        let called = call.called();
        return format!(
            "Tell its developer the right path instead of {called}, or add an operation to the configuration."
        );
    }
    match respond::mistake::advice(call) {
        Ok(text) => format!("Tell its developer: {text}."),
        Err(ours) => ours.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        base::clock::UnixTime,
        telemetry::{calls::facts::SenderProof, metrics::Verdict},
    };

    #[test]
    fn groups_have_one_consumer_and_reason_oldest_first() {
        let rejection = |number, consumer: &str, diagnosis, proof| {
            let call = CallRecord {
                verdict: Verdict::SignatureInvalid,
                consumer: Some(consumer.into()),
                diagnosis,
                proof: Some(proof),
                ..CallRecord::default()
            };
            Arc::new(KeptCall {
                number,
                time: UnixTime(number),
                ..KeptCall::from(call)
            })
        };
        let (unknown, swapped) = (
            Diagnosed::Unknown,
            Diagnosed::Known(Mistake::SecretsSwapped),
        );
        let newest = [
            rejection(9, "a", unknown, SenderProof::None),
            rejection(8, "b", swapped, SenderProof::Secrets),
            rejection(7, "a", unknown, SenderProof::Verified),
            rejection(6, "a", swapped, SenderProof::Secrets),
        ];
        let found = grouped(newest.iter());
        let found = found.iter().map(|group| {
            let key = group.newest.call.named_consumer().unwrap();
            (
                key,
                group.newest.call.mistake(),
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
}
