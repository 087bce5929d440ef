//! A line of the access log, of either form, as a call.
//!
//! Callers choose some of the texts in it. In the text form some values have no quotes, so a value ends only where the name of a
//! field follows, and the first value of a name counts: what a caller can put into one value changes no earlier one.

use serde_json::{Map, Value};

use crate::{
    base::clock::UnixTime,
    oauth::diagnosis::TABLE,
    request::{
        policy::{ACCESS_KEY, caller_rules::CALLER_RULES},
        rejections::{RecordedRejection, SKIPPED, SenderProof},
    },
    telemetry::{
        lines::ACCESS,
        metrics::{Outcome, Verdict},
    },
};
use strum::VariantArray as _;

/// The fields of a line, in their order.
const FIELDS: [&str; 31] = [
    "method",
    "path",
    "status",
    "verdict",
    "consumer",
    "token",
    "unverified_consumer",
    "unverified_token",
    "user",
    "peer",
    "address",
    "request_id",
    "operation",
    "proof",
    "secret",
    "upgrade",
    "host",
    "reason",
    "missing_permission",
    "denied_by",
    "parameters",
    "problem",
    "diagnosis",
    "needs",
    "deviation",
    "skew_seconds",
    "upstream",
    "cause",
    "ms",
    "upstream_ms",
    "timestamp",
];

/// A call.
pub struct Call(Map<String, Value>);

/// The call of a line; `None` for any other line. A log collector may have put something before ours.
pub fn read(line: &str) -> Option<Call> {
    let from_json = || {
        let (prefix, object) = line.split_at(line.find('{')?);
        if has_fields(prefix) {
            return None;
        }
        let fields: Map<String, Value> = serde_json::from_str(object).ok()?;
        let is_access = fields.get("target").and_then(Value::as_str) == Some(ACCESS);
        is_access.then_some(fields)
    };
    from_json().or_else(|| from_text(line)).map(Call)
}

/// Whether another record begins before ours. A text of a caller in it could look like a line of ours; a collector writes no fields.
fn has_fields(prefix: &str) -> bool {
    prefix.contains(['=', '"'])
}

fn from_text(line: &str) -> Option<Map<String, Value>> {
    let (before, rest) = line.split_once(&format!(" INFO {ACCESS}: "))?;
    let (prefix, time) = before
        .trim_end()
        .rsplit_once(' ')
        .unwrap_or(("", before.trim_end()));
    if has_fields(prefix) || UnixTime::from_written(time).is_err() {
        return None;
    }
    let mut fields = Map::new();
    fields.insert("timestamp".to_owned(), time.into());
    let mut rest = rest.trim_end();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => unquoted_value(after),
        };
        fields
            .entry(name.trim_start())
            .or_insert_with(|| value.into());
        rest = after;
    }
    Some(fields)
}

/// The text up to the closing quote, as Rust escapes it, and what follows.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((text, &quoted[index + 1..])),
            // Escapes are of control characters, quotes and backslashes.
            '\\' => match characters.next()?.1 {
                escaped @ ('"' | '\\' | '\'') => text.push(escaped),
                escaped => text.extend(['\\', escaped]),
            },
            character => text.push(character),
        }
    }
    None
}

/// The text up to the name of the next field, and what follows.
fn unquoted_value(text: &str) -> (String, &str) {
    let is_field = |index: &usize| {
        let name = text[index + 1..].split('=').next().unwrap_or_default();
        FIELDS.contains(&name)
    };
    let mut spaces = text.match_indices(' ').map(|(index, _)| index);
    let (value, rest) = text.split_at(spaces.find(is_field).unwrap_or(text.len()));
    (value.to_owned(), rest)
}

impl Call {
    fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// What the process has kept of the call, if it was rejected, has failed, or would have been rejected.
    pub fn rejection(&self) -> Option<RecordedRejection> {
        let verdict = verdict(&self.text("verdict")?)?;
        let observed = self
            .text("reason")
            .and_then(|reason| self::verdict(&reason));
        let is_rejected = match verdict.outcome() {
            Outcome::Rejected => true,
            Outcome::Failed => verdict != Verdict::Aborted,
            Outcome::Observed | Outcome::Served => false,
        };
        if !is_rejected && observed.is_none() {
            return None;
        }
        let reason = observed.unwrap_or(verdict);
        let diagnosis = self.text("diagnosis").and_then(|word| diagnosis(&word));
        let (consumer, unverified) = (self.text("consumer"), self.text("unverified_consumer"));
        let token = self.text("token").or_else(|| self.text("unverified_token"));
        let time = UnixTime::from_written(&self.text("timestamp")?).ok()?;
        let proof = self.text("proof");
        let mut proofs = SenderProof::VARIANTS.iter();
        let proof = proofs.find(|known| Some(<&str>::from(**known)) == proof.as_deref());
        let rules = CALLER_RULES.iter().map(|rule| rule.key);
        let mut rules = rules.chain([ACCESS_KEY]);
        let denied_by = self.text("denied_by");
        Some(RecordedRejection {
            time,
            request_id: self.text("request_id"),
            method: self.text("method"),
            operation: self.text("operation").unwrap_or_default(),
            is_registered: consumer.is_some(),
            consumer: consumer.or(unverified),
            proof: proof.copied().unwrap_or_default(),
            previous_secret: self.text("secret").as_deref() == Some("previous"),
            token: token.map(|token| token.trim_end_matches('…').to_owned()),
            verdict: verdict.as_str(),
            diagnosis: diagnosis.or_else(|| observed.map(|_| reason.as_str())),
            parameters: self.text("parameters"),
            parameters_problem: self.text("problem"),
            status: self.number("status").unwrap_or_default(),
            address: self.text("address").or_else(|| self.text("peer")),
            is_observed: observed.is_some(),
            reason: reason.as_str(),
            is_fault: reason.outcome() == Outcome::Failed,
            skew_seconds: self.number("skew_seconds"),
            missing_permission: self.text("missing_permission"),
            denied_by: rules.find(|key| Some(*key) == denied_by.as_deref()),
            ..RecordedRejection::default()
        })
    }
}

fn verdict(text: &str) -> Option<Verdict> {
    let mut all = Verdict::VARIANTS.iter();
    all.find(|known| known.as_str() == text).copied()
}

fn diagnosis(text: &str) -> Option<&'static str> {
    let known = TABLE.iter().map(|mistake| mistake.word).chain([SKIPPED]);
    known.into_iter().find(|word| *word == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "2026-11-27T03:54:15.123456Z  INFO access: method=\"GET\" path=\"/a=b \\\"c\" status=401 \
        verdict=\"parameter_rejected\" unverified_consumer=shop unverified_token=acc0212b… peer=127.0.0.1 request_id=r-1 \
        operation=\"GET /a\" proof=\"none\" parameters=oauth_timestamp problem=is in milliseconds, write status=200 seconds \
        ms=0.2";

    #[test]
    fn both_forms_say_the_same() {
        let json = serde_json::json!({
            "timestamp": "2026-11-27T03:54:15.123456Z", "level": "INFO", "target": "access", "method": "GET", "path": "/a",
            "status": 401, "verdict": "parameter_rejected", "unverified_consumer": "shop", "unverified_token": "acc0212b…",
            "peer": "127.0.0.1", "request_id": "r-1", "operation": "GET /a", "proof": "none",
            "parameters": "oauth_timestamp", "problem": "is in milliseconds, write", "ms": 0.2,
        });
        let of = |line: &str| read(line).unwrap().rejection().unwrap();
        let from_text = of(TEXT);
        assert_eq!(of(&json.to_string()), from_text);
        assert_eq!(of(&format!("countersign-1  | {json}")), from_text);
        let journal = format!("Nov 27 03:54:15 host countersign[17]: {TEXT}");
        assert_eq!(of(&journal), from_text);
        assert_eq!(from_text.consumer.as_deref(), Some("shop"));
        assert_eq!(
            (from_text.status, from_text.reason),
            (401, "parameter_rejected")
        );
        assert_eq!(from_text.token.as_deref(), Some("acc0212b"));
        assert_eq!(from_text.address.as_deref(), Some("127.0.0.1"));
        assert_eq!(from_text.time.to_string(), "2026-11-27T03:54:15Z");
    }

    #[test]
    fn observed_calls_have_the_verdict_of_enforcing_and_served_ones_are_none() {
        let line = |verdict: &str, rest: &str| {
            format!(
                "2026-11-27T03:54:15Z  INFO access: method=\"GET\" status=200 verdict=\"{verdict}\" consumer=shop {rest}"
            )
        };
        let of = |verdict: &str, rest: &str| read(&line(verdict, rest)).unwrap().rejection();
        let observed = of(
            "observed",
            "reason=\"signature_invalid\" diagnosis=\"query_unsigned\"",
        )
        .unwrap();
        assert!(observed.is_observed);
        assert_eq!(observed.mistake(), "query_unsigned");
        assert_eq!(
            of("observed", "reason=\"nonce_used\"").unwrap().mistake(),
            "nonce_used"
        );
        for verdict in [
            "observed",
            "forwarded",
            "launch_repeated",
            "aborted",
            "unheard_of",
        ] {
            assert_eq!(of(verdict, "ms=1"), None, "{verdict}");
        }
        assert!(of("bad_gateway", "ms=1").unwrap().is_fault);
        // The API failed, or the caller went away: enforcing would have rejected it all the same.
        for verdict in ["bad_gateway", "aborted"] {
            let failed = of(verdict, "reason=\"nonce_used\"").unwrap();
            assert!(failed.is_observed && !failed.is_fault, "{verdict}");
            assert_eq!(failed.mistake(), "nonce_used");
        }
        assert!(of("observed", "reason=\"unavailable\"").unwrap().is_fault);
    }

    #[test]
    fn other_lines_are_none_also_with_an_access_line_of_a_caller_in_them() {
        for line in [
            "",
            "{}",
            "{\"target\":\"audit\",\"verdict\":\"nonce_used\"}",
            "2026-11-27T03:54:15Z  INFO audit: event=\"x\"",
            &format!("2026-11-27T03:54:15Z  WARN countersign: error={TEXT}"),
            " INFO access: verdict=\"nonce_used\" consumer=shop",
            "2026-11-27T03:54:15Z  WARN countersign: error={\"target\":\"access\",\"verdict\":\"nonce_used\"}",
        ] {
            assert!(read(line).is_none(), "{line}");
        }
    }
}
