//! Why a call was rejected, in words: the mistake, and the advice for the developer of the consumer.

use super::advice_of;
use crate::{
    base::clock,
    oauth::diagnosis::TABLE,
    request::{
        policy::{ACCESS_KEY, caller_rules::CALLER_RULES},
        rejections::{REPLACED_SECRET, RecordedRejection, SKIPPED},
    },
    telemetry::metrics::Verdict,
};

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
    if rejection.diagnosis == Some(REPLACED_SECRET) {
        return "Signs with a secret that was replaced".to_owned();
    }
    if rejection.diagnosis.is_some_and(|word| word != reason) {
        return words(rejection.mistake());
    }
    if let Some(skew) = rejection.skew_seconds {
        return format!("Clock {}", clock::offset(skew.into()));
    }
    let permission = rejection.missing_permission.as_deref();
    let text = match reason {
        "consumer_key_refused" => match rejection.parameters_problem {
            Some(_) => "Lacks the pinned value of a parameter",
            None => "Is disabled here, still calls",
        },
        "signature_invalid" => match rejection.parameters_problem {
            Some(_) => "Body not as it was signed",
            None => "Signature wrong, mistake unknown",
        },
        "nonce_used" => "Nonce used before",
        "token_rejected" if rejection.lacks_token() => "No token sent",
        "token_rejected" => "Token unknown, or not for this call",
        "permission_denied" => match permission {
            Some(permission) => return format!("Permission {permission} is missing"),
            None if rejection.denied_by == Some(ACCESS_KEY) => {
                "Operation not open to this kind of call"
            }
            None => "Operation not permitted",
        },
        "parameter_absent" if rejection.consumer.is_none() && rejection.parameters.is_none() => {
            "No OAuth credentials"
        }
        "parameter_absent" => "Parameter missing",
        "rate_limited" => "Too many requests",
        word => return words(word),
    };
    text.to_owned()
}

/// The advice for the developer of the consumer.
///
/// # Errors
/// What concerns the operator instead.
pub fn advice(rejection: &RecordedRejection) -> Result<String, &'static str> {
    let mut table = TABLE.iter();
    if let Some(mistake) = table.find(|mistake| Some(mistake.word) == rejection.diagnosis) {
        return Ok(mistake.advice.to_owned());
    }
    if rejection.diagnosis == Some(SKIPPED) {
        return Ok("the signature was not examined: send the request again in a few seconds, or a smaller one".to_owned());
    }
    if let (Some(_), Some(problem)) = (rejection.skew_seconds, &rejection.parameters_problem) {
        return Ok(problem.clone());
    }
    if let Some(skew) = rejection.skew_seconds {
        let offset = clock::offset(skew.into());
        return Ok(format!(
            "set the clock of your machine (NTP): it is {offset}"
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
            "compare consumer secret and token secret; then check one request as it went over the wire".to_owned(),
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
    use crate::telemetry::metrics::Outcome;

    #[test]
    fn there_are_words_and_advice_for_every_reason() {
        let mut rejection = RecordedRejection {
            reason: "timestamp_refused",
            skew_seconds: Some(-742),
            ..RecordedRejection::default()
        };
        assert_eq!(mistake(&rejection), "Clock 742 s behind");
        assert!(advice(&rejection).unwrap().contains("742 s behind"));
        let mut absent = RecordedRejection {
            reason: "parameter_absent",
            ..RecordedRejection::default()
        };
        assert_eq!(mistake(&absent), "No OAuth credentials");
        absent.parameters = Some("oauth_consumer_key".to_owned());
        assert_eq!(mistake(&absent), "Parameter missing");
        let mut token = RecordedRejection {
            reason: "token_rejected",
            ..RecordedRejection::default()
        };
        assert_eq!(mistake(&token), "No token sent");
        token.token = Some("acc0212b".to_owned());
        assert_eq!(mistake(&token), "Token unknown, or not for this call");
        rejection.parameters_problem = Some("oauth_timestamp is in milliseconds".to_owned());
        assert!(advice(&rejection).unwrap().contains("in milliseconds"));
        let denied = RecordedRejection {
            reason: "permission_denied",
            denied_by: Some(ACCESS_KEY),
            ..RecordedRejection::default()
        };
        assert_eq!(mistake(&denied), "Operation not open to this kind of call");
        assert!(
            advice(&denied)
                .unwrap_err()
                .contains("\"consumer\" for calls with a user’s token")
        );
        rejection.diagnosis = Some(SKIPPED);
        assert!(advice(&rejection).unwrap().contains("was not examined"));
        rejection.diagnosis = Some("secrets_swapped");
        assert_eq!(mistake(&rejection), "Secrets swapped");
        assert!(
            advice(&rejection)
                .unwrap()
                .contains("consumer secret before the '&'")
        );
        for (reason, problem, expected) in [
            ("parameter_absent", None, "send oauth_nonce"),
            (
                "parameter_rejected",
                Some("too long"),
                "correct oauth_nonce: too long",
            ),
        ] {
            let named = RecordedRejection {
                reason,
                parameters: Some("oauth_nonce".to_owned()),
                parameters_problem: problem.map(str::to_owned),
                ..RecordedRejection::default()
            };
            assert_eq!(advice(&named).as_deref(), Ok(expected));
        }
        for verdict in Verdict::VARIANTS {
            let rejection = RecordedRejection {
                reason: verdict.as_str(),
                ..RecordedRejection::default()
            };
            let is_of_the_caller = matches!(verdict.outcome(), Outcome::Rejected);
            assert_ne!(mistake(&rejection), "");
            let is_of_others =
                advice(&rejection).is_err_and(|ours| ours.contains("not the consumer’s"));
            assert!(!(is_of_the_caller && is_of_others), "{verdict:?}");
        }
    }
}
