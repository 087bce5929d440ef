//! A line of the access log, of either form, as a call.
//!
//! Callers choose some of the texts in it. In the text form some values have no quotes, so a value ends only where the name of a
//! field follows, and the first value of a name counts: what a caller can put into one value changes no earlier one.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    base::clock::UnixTime,
    telemetry::{calls::record::CallRecord, log::lines::ACCESS},
};

/// The time of a line and the call; `None` for any other line. A log collector may have put something before ours.
pub fn read(line: &str) -> Option<(UnixTime, CallRecord<'static>)> {
    let (time, mut values) = from_json(line).or_else(|| from_text(line))?;
    let call = CallRecord::read(|name| values.remove(name));
    Some((UnixTime::from_written(&time).ok()?, call))
}

/// The time of a line and the values of its fields, by name.
type Line = (String, HashMap<String, String>);

fn from_json(line: &str) -> Option<Line> {
    let (prefix, object) = line.split_at(line.find('{')?);
    if has_fields(prefix) {
        return None;
    }
    let members: Map<String, Value> = serde_json::from_str(object).ok()?;
    let values = members.into_iter().filter_map(|(name, value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Number(number) => Some((name, number.to_string())),
        _ => None,
    });
    let mut values = HashMap::from_iter(values);
    let is_access = values.get("target").is_some_and(|it| it == ACCESS);
    let time = values.remove("timestamp")?;
    is_access.then_some((time, values))
}

/// Whether another record begins before ours. A text of a caller in it could look like a line of ours; a collector writes
/// no fields.
fn has_fields(prefix: &str) -> bool {
    prefix.contains(['=', '"'])
}

fn from_text(line: &str) -> Option<Line> {
    let (before, mut rest) = line.trim_end().split_once(&format!(" INFO {ACCESS}: "))?;
    let before = before.trim_end();
    let (prefix, time) = before.rsplit_once(' ').unwrap_or(("", before));
    if has_fields(prefix) {
        return None;
    }
    let mut values = HashMap::new();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => unquoted_value(after),
        };
        let name = name.trim_start().to_owned();
        values.entry(name).or_insert(value);
        rest = after;
    }
    Some((time.to_owned(), values))
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

/// The text up to the name of the next field, and what follows. Lines of earlier versions have spaces in such a text.
fn unquoted_value(text: &str) -> (String, &str) {
    let is_field = |index: &usize| {
        let name = text[index + 1..].split('=').next().unwrap_or_default();
        CallRecord::NAMES.contains(&name)
    };
    let mut spaces = text.match_indices(' ').map(|(index, _)| index);
    let (value, rest) = text.split_at(spaces.find(is_field).unwrap_or(text.len()));
    (value.to_owned(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{
        log::LogFormat,
        metrics::Verdict,
        tests::{self, written},
    };

    /// A line of an earlier version, which has a text with spaces and no quotation marks.
    const TEXT: &str = "2026-11-27T03:54:15.123456Z  INFO access: method=\"GET\" path=\"/a=b \\\"c\" status=401 \
        verdict=\"parameter_rejected\" unverified_consumer=shop unverified_token=acc0212b… peer=127.0.0.1 request_id=r-1 \
        operation=\"GET /a\" proof=\"none\" parameters=oauth_timestamp problem=is in milliseconds, write status=200 seconds \
        ms=0.2";

    #[test]
    fn both_forms_have_every_fact() {
        let call = tests::call();
        for form in [LogFormat::Text, LogFormat::Json] {
            let line = written(form, || call.log());
            for prefix in [
                "",
                "countersign-1  | ",
                "Nov 27 03:54:15 host countersign[17]: ",
            ] {
                let (_, read) = read(&format!("{prefix}{line}")).unwrap();
                assert_eq!(read, call, "{line}");
            }
            for name in CallRecord::NAMES {
                assert!(line.contains(name), "{name}: {line}");
            }
        }
    }

    #[test]
    fn a_line_of_an_earlier_version_says_the_same() {
        let (time, call) = read(TEXT).unwrap();
        assert_eq!(time.to_string(), "2026-11-27T03:54:15Z");
        assert_eq!(
            (call.status, call.reason()),
            (401, Verdict::ParameterRejected)
        );
        assert_eq!(call.path.as_deref(), Some("/a=b \"c"));
        assert_eq!(call.named_consumer(), Some("shop"));
        assert_eq!(call.named_token(), Some("acc0212b"));
        assert_eq!(call.caller_address(), Some([127, 0, 0, 1].into()));
        assert_eq!(call.parameters.as_deref(), Some("oauth_timestamp"));
        assert_eq!(call.problem.as_deref(), Some("is in milliseconds, write"));
    }

    #[test]
    fn observed_calls_have_the_verdict_of_enforcing_unless_served() {
        let of = |verdict: &str, rest: &str| {
            let line = format!(
                "2026-11-27T03:54:15Z  INFO access: method=\"GET\" status=200 verdict=\"{verdict}\" consumer=shop {rest}"
            );
            let (_, call) = read(&line).unwrap();
            call.is_rejected().then_some(call)
        };
        let observed = of(
            "observed",
            "reason=\"signature_invalid\" diagnosis=\"query_unsigned\"",
        )
        .unwrap();
        assert!(observed.observed().is_some());
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
        assert!(of("bad_gateway", "ms=1").unwrap().is_fault());
        // The API failed, or the caller went away: enforcing would have rejected it all the same.
        for verdict in ["bad_gateway", "aborted"] {
            let failed = of(verdict, "reason=\"nonce_used\"").unwrap();
            assert!(
                failed.observed().is_some() && !failed.is_fault(),
                "{verdict}"
            );
            assert_eq!(failed.mistake(), "nonce_used");
        }
        assert!(of("observed", "reason=\"unavailable\"").unwrap().is_fault());
        // Why a head cannot be read is no verdict.
        let unread = of("bad_request", "reason=\"invalid header\"").unwrap();
        assert_eq!(unread.reason(), Verdict::BadRequest);
    }

    #[test]
    fn other_lines_that_quote_an_access_line_are_not_access_lines() {
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
