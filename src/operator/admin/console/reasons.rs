//! Why calls are rejected: the mistake in words, the advice for the developer, and what the calls prove.

use super::{
    ConsoleRequest, Result,
    parts::{Moment, Named, Number, Tag, path},
};
use crate::{
    oauth::diagnosis::TABLE,
    provider::respond::advice_of,
    request::policy::caller_rules::CALLER_RULES,
    telemetry::{
        metrics::Verdict,
        rejections::{ReasonCount, RecordedRejection, SKIPPED, sort},
    },
};

/// The calls of one consumer that were rejected for one reason, as a row shows them.
pub(super) struct Reason {
    pub(super) consumer: Option<Named>,
    /// The mistake in words.
    pub(super) mistake: String,
    /// Its fixed word, and the link to its rejections.
    pub(super) word: &'static str,
    pub(super) href: String,
    pub(super) is_observed: bool,
    pub(super) advice: String,
    pub(super) count: Number,
    pub(super) first: Moment,
    pub(super) last: Moment,
    pub(super) proof: Tag,
    /// The last call is signed with the previous secret.
    pub(super) previous_secret: bool,
}

/// Groups rejections, the newest first, by consumer and reason.
pub(super) fn grouped<'a>(
    newest: impl DoubleEndedIterator<Item = &'a std::sync::Arc<RecordedRejection>>,
) -> Vec<ReasonCount> {
    let mut groups: Vec<ReasonCount> = Vec::new();
    for one in newest.rev() {
        let known = groups
            .iter_mut()
            .find(|known| known.newest.consumer == one.consumer && known.is_of(one));
        match known {
            Some(known) => known.add(one),
            None => groups.push(ReasonCount::new(one)),
        }
    }
    sort(&mut groups);
    groups
}

impl ConsoleRequest<'_> {
    /// The reasons for which calls of registered consumers were rejected.
    pub(super) fn reasons_of_consumers(&self) -> Vec<ReasonCount> {
        self.admin.shared.rejections.reasons(None)
    }

    /// The rows of these reasons.
    pub(super) async fn reasons(&self, groups: &[ReasonCount]) -> Result<Vec<Reason>> {
        let keys = groups.iter().filter_map(|it| it.newest.consumer.as_deref());
        let names = self.names(keys, std::iter::empty()).await?;
        let row = |group: &ReasonCount| {
            let newest = &*group.newest;
            let (word, consumer) = (newest.mistake(), newest.consumer.as_deref());
            let parameters = [("consumer", consumer.unwrap_or_default()), ("reason", word)];
            Reason {
                consumer: consumer.map(|key| names.consumer(key)),
                mistake: mistake(newest),
                word,
                href: path("/rejections", &parameters),
                is_observed: group.is_observed(),
                advice: advice(newest),
                count: Number(group.count),
                first: self.moment(group.first),
                last: self.moment(newest.time),
                proof: proof(group),
                previous_secret: newest.previous_secret,
            }
        };
        Ok(groups.iter().map(row).collect())
    }
}

/// What the calls of a group prove about their sender.
fn proof(group: &ReasonCount) -> Tag {
    let [verified, secrets, none] = group.proofs;
    let some = |count: u64| match count == group.count {
        true => String::new(),
        false => format!("{} of {}: ", Number(count), Number(group.count)),
    };
    match (verified, secrets) {
        _ if group.newest.consumer.is_none() => Tag::new("names no consumer", ""),
        (0, 0) => Tag::new("not proved: anybody can send its key", "warn"),
        (0, secrets) => Tag::new(some(secrets) + "signs with its secrets, wrongly", "good"),
        (verified, _) if none + secrets == 0 => {
            Tag::new(some(verified) + "signature right", "good")
        }
        (verified, secrets) => Tag::new(
            some(verified + secrets) + "signature right, or made with its secrets",
            "good",
        ),
    }
}

/// A fixed word as text: `query_unsigned` is `Query unsigned`.
pub(super) fn words(word: &str) -> String {
    let text = word.replace('_', " ");
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// The mistake of a rejection in words.
pub(super) fn mistake(rejection: &RecordedRejection) -> String {
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
    format!("Clock {} s {side}", Number(skew.unsigned_abs()))
}

/// The advice for the developer of the consumer, or for the operator.
pub(super) fn advice(rejection: &RecordedRejection) -> String {
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
            std::sync::Arc::new(RecordedRejection {
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
                proof(group).text,
            )
        });
        let secrets = "signs with its secrets, wrongly".to_owned();
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
