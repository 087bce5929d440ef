//! Why a call was rejected, in words: the mistake, and the advice for the developer of the consumer.

use std::borrow::Cow;

use crate::{
    base::clock,
    oauth::diagnosis::{Diagnosed, Mistake},
    provider::respond::next_step::usual,
    telemetry::{
        calls::{facts::OperationRule, record::CallRecord},
        metrics::{Outcome, Verdict},
    },
};

/// A fixed word as text: `query_unsigned` is `Query not signed`.
pub fn words(word: &str) -> String {
    let text = match word.strip_suffix("_unsigned") {
        Some(part) => format!("{part} not signed"),
        None => word.to_owned(),
    };
    let text = text.replace('_', " ");
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// The mistake of a rejected call in words.
pub fn mistake(call: &CallRecord<'_>) -> String {
    match call.diagnosis {
        Diagnosed::Known(Mistake::PreviousSecret) => {
            return "Signs with a secret that was replaced".to_owned();
        }
        Diagnosed::Known(_) | Diagnosed::Skipped => return words(call.mistake()),
        Diagnosed::Unknown => {}
    }
    if let Some(skew) = call.skew_seconds {
        return format!("Clock {}", clock::offset(skew.into()));
    }
    if let (Verdict::PermissionDenied, Some(name)) =
        (call.reason(), call.missing_permission.as_deref())
    {
        return format!("Permission {name} is missing");
    }
    rejected(call).map_or_else(|| words(call.reason().as_str()), str::to_owned)
}

/// The mistake that a verdict means; `None` if its name says it.
fn rejected(call: &CallRecord<'_>) -> Option<&'static str> {
    Some(match call.reason() {
        Verdict::ConsumerKeyRefused if call.names_disabled_consumer() => {
            "Disabled, but still calling"
        }
        Verdict::ConsumerKeyRefused if call.denied_by.is_some() => {
            "Called from outside its networks"
        }
        Verdict::ConsumerKeyRefused => "Lacks the pinned value of a parameter",
        Verdict::SignatureInvalid if call.problem.is_some() => "Body not as it was signed",
        Verdict::SignatureInvalid => "Signature wrong, mistake unknown",
        Verdict::NonceUsed => "Same nonce twice",
        Verdict::TokenRejected if call.is_from_page() => "Request token unknown",
        Verdict::TokenRejected if call.lacks_token() => "No token sent",
        Verdict::TokenRejected => "Token unknown, or not for this call",
        Verdict::Forbidden => "Form forged, too old, or not possible",
        Verdict::PermissionDenied if call.is_unlisted() => "No operation lists this path",
        Verdict::PermissionDenied => match call.denied_by {
            Some(OperationRule::Access) if call.named_token().is_some() => {
                "This operation does not accept calls with a user’s token"
            }
            Some(OperationRule::Access) => {
                "This operation does not accept calls without a user’s token"
            }
            Some(OperationRule::From) | None => "Operation not permitted",
        },
        Verdict::ParameterAbsent => match (call.named_consumer(), &call.parameters) {
            (None, None) => "No OAuth credentials",
            (Some(_), _) | (None, Some(_)) => "Parameter missing",
        },
        Verdict::RateLimited => "Too many requests",
        Verdict::LoginFailed => "Wrong password",
        Verdict::Forwarded
        | Verdict::Anonymous
        | Verdict::Observed
        | Verdict::RequestTokenIssued
        | Verdict::AccessTokenIssued
        | Verdict::AccessTokenRevoked
        | Verdict::TokenExchanged
        | Verdict::Page
        | Verdict::LoginNeeded
        | Verdict::ParameterRejected
        | Verdict::SignatureMethodRejected
        | Verdict::VersionRejected
        | Verdict::ConsumerKeyUnknown
        | Verdict::TokenExpired
        | Verdict::TokenUsed
        | Verdict::TokenRevoked
        | Verdict::VerifierInvalid
        | Verdict::LaunchRepeated
        | Verdict::TimestampRefused
        | Verdict::PermissionUnknown
        | Verdict::BadRequest
        | Verdict::NotFound
        | Verdict::MethodNotAllowed
        | Verdict::RequestTimeout
        | Verdict::PayloadTooLarge
        | Verdict::UriTooLong
        | Verdict::Misdirected
        | Verdict::LoginThrottled
        | Verdict::HeadersTooLarge
        | Verdict::InternalError
        | Verdict::BadGateway
        | Verdict::BrownOut
        | Verdict::GrantsEnded
        | Verdict::SignaturesEnded
        | Verdict::Unavailable
        | Verdict::GatewayTimeout
        | Verdict::LoopDetected
        | Verdict::Aborted => return None,
    })
}

/// The advice for the developer of the consumer.
///
/// # Errors
/// What concerns the operator instead.
pub fn advice(call: &CallRecord<'_>) -> Result<String, Cow<'static, str>> {
    if let Some(of_people) = on_a_page(call) {
        return Err(of_people.into());
    }
    match call.diagnosis {
        Diagnosed::Known(mistake) => return Ok(mistake.advice().to_owned()),
        Diagnosed::Skipped => {
            return Ok("the signature was not examined: send the request again in a few seconds, or a smaller one".to_owned());
        }
        Diagnosed::Unknown => {}
    }
    if let Some(skew) = call.skew_seconds {
        let offset = clock::offset(skew.into());
        let usual = || format!("set the clock of your machine (NTP): it is {offset}");
        return Ok(call.problem.as_deref().map_or_else(usual, str::to_owned));
    }
    if let Some(permission) = call.missing_permission.as_deref() {
        return Ok(format!(
            "the operation needs the permission {permission}; the consumer has to be registered with it, and the user has to \
             grant it"
        ));
    }
    match call.denied_by {
        Some(OperationRule::From) => {
            let address = call.caller_address().map(|address| address.to_string());
            let address = address.as_deref().unwrap_or("unknown");
            let what = match call.reason() {
                Verdict::ConsumerKeyRefused => "this consumer may call",
                _ => "the operation can be called",
            };
            return Ok(format!(
                "{what} only from certain networks (its key from); the address of this call is {address}"
            ));
        }
        Some(OperationRule::Access) => {
            let ours = match call.named_token() {
                Some(_) => {
                    "To allow it, add \"consumer\" to this operation’s access. Otherwise nothing to do."
                }
                None => {
                    "To allow it, add \"application\" to this operation’s access. Otherwise nothing to do."
                }
            };
            return Err(ours.into());
        }
        None => {}
    }
    let is_absent = call.reason() == Verdict::ParameterAbsent;
    match (call.parameters.as_deref(), call.problem.as_deref()) {
        (Some(names), _) if is_absent => return Ok(format!("send {names}")),
        (Some(names), Some(problem)) => return Ok(format!("correct {names}: {problem}")),
        (Some(names), None) => return Ok(format!("correct {names}")),
        (None, Some(problem)) => return Ok(problem.to_owned()),
        (None, None) => {}
    }
    match (call.reason(), usual(call.reason())) {
        (Verdict::SignatureInvalid, _) => Ok(
            "compare consumer secret and token secret; then check one request as it went over the wire".to_owned(),
        ),
        (Verdict::ConsumerKeyRefused, _) => Err("Enable it, or tell its developer that its access has ended.".into()),
        (_, Some(text)) => Ok(text.to_owned()),
        (_, None) => Err(match call.cause.as_deref() {
            Some(cause) => format!("Nothing: the fault is not the consumer’s. {cause}").into(),
            None => "Nothing: the fault is not the consumer’s; see the log.".into(),
        }),
    }
}

/// What an operator has to do about a request of a user's browser, which no developer has made.
fn on_a_page(call: &CallRecord<'_>) -> Option<&'static str> {
    let is_rejected = call.is_from_page() && call.reason().outcome() == Outcome::Rejected;
    is_rejected.then(|| match call.reason() {
        Verdict::LoginFailed => {
            "Nothing, if they are few. Somebody who guesses passwords sends many: after login.max_failures the login pauses by itself."
        }
        Verdict::LoginThrottled => "Nothing: the pause ends by itself.",
        Verdict::Forbidden => "Nothing, if they are few: the page has told its user to open it again.",
        Verdict::TokenRejected | Verdict::TokenExpired | Verdict::TokenUsed => {
            "Nothing, if they are few: the link is wrong, too old, or was used, and its user begins again at the application."
        }
        Verdict::ConsumerKeyRefused => "Enable the consumer, or tell its developer that its access has ended.",
        _ => "Nothing, if they are few: the page has told its user what is wrong.",
    })
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    fn rejected(verdict: Verdict) -> CallRecord<'static> {
        CallRecord {
            verdict,
            ..CallRecord::default()
        }
    }

    #[test]
    fn there_are_words_and_advice_for_every_reason() {
        let mut call = CallRecord {
            skew_seconds: Some(-742),
            ..rejected(Verdict::TimestampRefused)
        };
        assert_eq!(mistake(&call), "Clock 742 s behind");
        assert!(advice(&call).unwrap().contains("742 s behind"));
        let mut absent = rejected(Verdict::ParameterAbsent);
        assert_eq!(mistake(&absent), "No OAuth credentials");
        absent.parameters = Some("oauth_consumer_key".into());
        assert_eq!(mistake(&absent), "Parameter missing");
        let mut token = rejected(Verdict::TokenRejected);
        assert_eq!(mistake(&token), "No token sent");
        token.token = Some("acc0212b…".into());
        assert_eq!(mistake(&token), "Token unknown, or not for this call");
        call.problem = Some("oauth_timestamp is in milliseconds".into());
        assert!(advice(&call).unwrap().contains("in milliseconds"));
        let denied = CallRecord {
            denied_by: Some(OperationRule::Access),
            ..rejected(Verdict::PermissionDenied)
        };
        assert_eq!(
            mistake(&denied),
            "This operation does not accept calls without a user’s token"
        );
        assert!(
            advice(&denied)
                .unwrap_err()
                .contains("add \"application\" to this operation’s access")
        );
        call.diagnosis = Diagnosed::Skipped;
        assert!(advice(&call).unwrap().contains("was not examined"));
        call.diagnosis = Diagnosed::Known(Mistake::SecretsSwapped);
        assert_eq!(mistake(&call), "Secrets swapped");
        assert!(
            advice(&call)
                .unwrap()
                .contains("consumer secret before the '&'")
        );
        for (verdict, problem, expected) in [
            (Verdict::ParameterAbsent, None, "send oauth_nonce"),
            (
                Verdict::ParameterRejected,
                Some("too long"),
                "correct oauth_nonce: too long",
            ),
        ] {
            let named = CallRecord {
                parameters: Some("oauth_nonce".into()),
                problem: problem.map(Into::into),
                ..rejected(verdict)
            };
            assert_eq!(advice(&named).as_deref(), Ok(expected));
        }
        let failed = CallRecord {
            cause: Some("store.lookup.url: no response".into()),
            ..rejected(Verdict::Unavailable)
        };
        let ours = "Nothing: the fault is not the consumer’s. store.lookup.url: no response";
        assert_eq!(advice(&failed), Err(ours.into()));
        for verdict in Verdict::VARIANTS {
            let call = rejected(*verdict);
            let is_callers = matches!(verdict.outcome(), Outcome::Rejected);
            assert_ne!(mistake(&call), "");
            let is_others = advice(&call).is_err_and(|ours| ours.contains("not the consumer’s"));
            assert!(!(is_callers && is_others), "{verdict:?}");
        }
    }
}
