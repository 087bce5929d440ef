//! The lines of the log: those of calls in a form of their own, all others in the library's.

use std::fmt::{self, Debug};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext,
        format::{FormatEvent, FormatFields, Writer},
        time::{FormatTime as _, SystemTime},
    },
    registry::LookupSpan,
};

use super::calls::record::CallRecord;
use crate::base::settings::choices;

choices!(LogFormat);

/// The form of log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// The target of the records of calls.
pub const ACCESS: &str = "access";

impl CallRecord<'_> {
    /// Writes the line of the access log.
    pub fn log(&self) {
        tracing::info!(target: ACCESS, call = ?Facts(self));
    }
}

/// The facts of a call: `{:?}` writes them for a line of text, `{:#?}` as members of JSON.
struct Facts<'r>(&'r CallRecord<'r>);

impl Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let object = serde_json::to_string(self.0).map_err(|_| fmt::Error)?;
            return f.write_str(&object[1..object.len() - 1]);
        }
        let mut separator = "";
        self.0.show(|name, value| {
            write!(f, "{separator}{name}={value}")?;
            separator = " ";
            Ok(())
        })
    }
}

/// Writes the records of [`ACCESS`], one for each call. The library writes all others.
///
/// tracing passes on no value with fields, so the record of a call is one field, which knows how to write itself. A record of the
/// library has a field for each fact, of which most are absent, and takes longer.
pub(super) struct LogLines<F> {
    pub(super) form: LogFormat,
    pub(super) library: F,
}

impl<S, N, F> FormatEvent<S, N> for LogLines<F>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != ACCESS {
            return self.library.format_event(context, writer, event);
        }
        let [begin, middle, end] = match self.form {
            LogFormat::Text => ["", "  INFO access: ", ""],
            LogFormat::Json => [
                "{\"timestamp\":\"",
                "\",\"level\":\"INFO\",",
                ",\"target\":\"access\"}",
            ],
        };
        writer.write_str(begin)?;
        SystemTime.format_time(&mut writer)?;
        writer.write_str(middle)?;
        let mut facts = WrittenFacts(writer.by_ref(), self.form, Ok(()));
        event.record(&mut facts);
        facts.2?;
        writeln!(writer, "{end}")
    }
}

/// Writes the facts of a call in a form; the result of that.
struct WrittenFacts<'w>(Writer<'w>, LogFormat, fmt::Result);

impl Visit for WrittenFacts<'_> {
    fn record_debug(&mut self, _: &Field, facts: &dyn Debug) {
        self.2 = match self.1 {
            LogFormat::Text => write!(self.0, "{facts:?}"),
            LogFormat::Json => write!(self.0, "{facts:#?}"),
        };
    }
}

/// The text with control characters escaped: it stays one line and steers no terminal.
pub fn visible(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{super::tests::written, *};
    use crate::telemetry::calls::{facts::Reason, verdict::Verdict};

    #[test]
    fn both_forms_have_the_facts_of_a_call_in_their_order() {
        let call = CallRecord {
            method: Some("GET".into()),
            path: Some("/x".into()),
            status: 200,
            verdict: Verdict::Observed,
            consumer: Some("shop".into()),
            peer: Some([127, 0, 0, 1].into()),
            problem: Some("it is wrong".into()),
            reason: Some(Reason::Observed(Verdict::NonceUsed)),
            ms: Some(std::time::Duration::from_nanos(1_234_567)),
            ..CallRecord::default()
        };
        let text = written(LogFormat::Text, || call.log());
        // All times have the same length.
        assert_eq!(
            &text[27..],
            "  INFO access: method=\"GET\" path=\"/x\" status=200 verdict=\"observed\" consumer=shop peer=127.0.0.1 \
             reason=\"nonce_used\" problem=\"it is wrong\" ms=1.235\n"
        );
        let json = written(LogFormat::Json, || call.log());
        assert_eq!(
            json.split_once("Z\"").unwrap().1,
            ",\"level\":\"INFO\",\"method\":\"GET\",\"path\":\"/x\",\"status\":200,\"verdict\":\"observed\",\"consumer\":\"shop\",\
             \"peer\":\"127.0.0.1\",\"reason\":\"nonce_used\",\"problem\":\"it is wrong\",\"ms\":1.235,\"target\":\"access\"}\n"
        );
    }

    #[test]
    fn lines_of_calls_have_the_frame_of_the_library() {
        let call = CallRecord::default();
        for form in [LogFormat::Text, LogFormat::Json] {
            let ours = written(form, || call.log());
            let library = written(form, || {
                tracing::info!(target: "acces_", status = 0, verdict = "aborted");
            });
            let [ours, library] =
                [ours, library].map(|line| line.split_once('Z').unwrap().1.to_owned());
            assert_eq!(ours, library.replace("acces_", "access"));
        }
    }

    #[test]
    fn no_fact_forges_a_fact_begins_a_line_or_steers_a_terminal() {
        let odd = "x\" status=200\n2026-11-27T03:54:15Z  INFO access: \u{1b}[31m\u{9b}";
        let call = CallRecord {
            path: Some(odd.into()),
            host: Some(odd.into()),
            ..CallRecord::default()
        };
        let shown = "\"x\\\" status=200\\n2026-11-27T03:54:15Z  INFO access: \\u{1b}[31m\\u{9b}\"";
        let text = written(LogFormat::Text, || call.log());
        assert_eq!(
            &text[27..],
            format!("  INFO access: path={shown} status=0 verdict=\"aborted\" host={shown}\n")
        );
        let json = written(LogFormat::Json, || call.log());
        assert!(
            json.trim_end().chars().all(|it| !it.is_ascii_control()),
            "{json}"
        );
    }
}
