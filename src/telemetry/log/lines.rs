//! The lines of the log: those of calls in a form of their own, all others in the library's, with values quoted by one rule.

use std::{
    error::Error,
    fmt::{self, Debug},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{
        FmtContext,
        format::{FormatEvent, FormatFields, Writer},
        time::{FormatTime as _, SystemTime},
    },
    registry::LookupSpan,
};

use super::causes::causes;
use crate::{
    base::settings::choices,
    telemetry::calls::{facts::Shown, record::CallRecord},
};

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
pub(in crate::telemetry) struct LogLines<F> {
    pub(in crate::telemetry) form: LogFormat,
    pub(in crate::telemetry) library: F,
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

/// Writes the fields of all other lines of text. No value ends early or begins a line: the library writes what is not a `str`,
/// such as a key, as it is.
pub(in crate::telemetry) struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut written = WrittenFields(writer, "", Ok(()));
        fields.record(&mut written);
        written.2
    }
}

/// Writes fields; the text before the next one, and the result.
struct WrittenFields<'w>(Writer<'w>, &'static str, fmt::Result);

impl WrittenFields<'_> {
    fn write(&mut self, field: &Field, value: &Shown<'_>) {
        let separator = std::mem::replace(&mut self.1, " ");
        let name = field.name();
        self.2 = self.2.and_then(|()| match value {
            Shown::Bare(text) if name == "message" => {
                write!(self.0, "{separator}{}", visible(text))
            }
            _ => write!(self.0, "{separator}{name}={value}"),
        });
    }
}

impl Visit for WrittenFields<'_> {
    fn record_str(&mut self, field: &Field, text: &str) {
        match field.name() {
            "message" => self.write(field, &Shown::Bare(text.into())),
            _ => self.write(field, &Shown::Text(text)),
        }
    }

    fn record_error(&mut self, field: &Field, error: &(dyn Error + 'static)) {
        self.write(field, &Shown::Bare(causes(error).into()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // The crate `log` passes on the place of a record in such fields; the library has shown it.
        if !field.name().starts_with("log.") {
            self.write(field, &Shown::Bare(format!("{value:?}").into()));
        }
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
    use super::*;
    use crate::telemetry::tests::written;
    use crate::telemetry::{
        audit::CommandRecord,
        calls::{facts::Reason, verdict::Verdict},
        log::LogError,
    };

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

    #[test]
    fn values_forge_no_field_or_line_and_steer_no_terminal() {
        let record = CommandRecord {
            consumer: Some("a\" audit_id=x".to_owned()),
            user: Some("\"7\" audit_id=x\n".to_owned()),
            token: Some("acc0212b\u{2026}".to_owned()),
            id: "r-1".to_owned(),
            ..CommandRecord::counting("token_revoked", [])
        };
        let text = written(LogFormat::Text, || record.log());
        assert_eq!(
            &text[27..],
            "  INFO audit: event=\"token_revoked\" by=\"\" consumer=\"a\\\" audit_id=x\" user=\"\\\"7\\\" audit_id=x\\n\" \
             token=acc0212b\u{2026} host=\"\" pid=0 audit_id=r-1\n"
        );
        let error = LogError::Thread(std::io::Error::other("x\" key=y"));
        let text = written(LogFormat::Text, || {
            let error = &error as &dyn Error;
            let end = "\u{1b}[31m\n";
            tracing::warn!(target: "t", error, path = %"/a b", took = ?Some(7), text = "c", "it {end}");
        });
        assert_eq!(
            &text[27..],
            "  WARN t: it \\u{1b}[31m\\n error=\"cannot start the thread that writes the log: x\\\" key=y\" path=\"/a b\" \
             took=Some(7) text=\"c\"\n"
        );
    }
}
