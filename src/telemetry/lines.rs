//! Records as lines of text, in the library's form.

use std::fmt::{self, Debug, Write as _};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext,
        format::{Format, FormatEvent, FormatFields, Writer},
        time::{FormatTime as _, SystemTime},
    },
    registry::LookupSpan,
};

/// The target of the records of requests.
pub const ACCESS: &str = "access";

/// Writes the records of [`ACCESS`], one for each request, without the library's spans and colours, which would take as
/// long as the rest of the line. The library writes all others.
pub(super) struct LogLines(pub(super) Format);

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != ACCESS {
            return self.0.format_event(context, writer, event);
        }
        SystemTime.format_time(&mut writer)?;
        write!(writer, "  INFO {ACCESS}:")?;
        let mut fields = Fields(Visible(&mut writer), Ok(()));
        event.record(&mut fields);
        fields.1?;
        writeln!(writer)
    }
}

/// Writes fields; the result of the last write, or the first error.
struct Fields<W>(Visible<W>, fmt::Result);

impl<W: fmt::Write> Visit for Fields<W> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.1 = self.1.and_then(|()| write!(self.0, " {field}={value:?}"));
    }
}

/// Writes control characters escaped, as Rust does in a string: no text of others may begin a line or move the cursor.
struct Visible<W>(W);

/// The text with control characters escaped: it stays one line and steers no terminal.
pub fn visible(text: &str) -> String {
    let mut line = Visible(String::with_capacity(text.len()));
    // Writing to a `String` never fails.
    let _ = line.write_str(text);
    line.0
}

impl<W: fmt::Write> fmt::Write for Visible<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if character.is_control() {
                write!(self.0, "{}", character.escape_default())?;
            } else {
                self.0.write_char(character)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::{super::tests::CapturedLog, *};

    #[test]
    fn an_access_line_is_what_the_library_would_write_and_nothing_in_it_steers_a_terminal() {
        let captured = CapturedLog::default();
        let writer = captured.clone();
        let format = Format::default().with_ansi(false);
        let lines = tracing_subscriber::fmt::layer()
            .event_format(LogLines(format))
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            for target in [true, false] {
                let (path, absent) = ("/x", None::<&str>);
                match target {
                    true => {
                        tracing::info!(target: ACCESS, path, status = 200, ms = 1.5, absent, by = %path);
                    }
                    false => {
                        tracing::info!(target: "access:", path, status = 200, ms = 1.5, absent, by = %path);
                    }
                }
            }
            tracing::info!(target: ACCESS, path = %"/\u{1b}[31m\n\u{9b}é", verdict = "a\nb");
        });
        let text = captured.take();
        // All times have the same length.
        let lines: Vec<&str> = text.lines().map(|line| &line[27..]).collect();
        assert_eq!(
            lines[0],
            "  INFO access: path=\"/x\" status=200 ms=1.5 by=/x"
        );
        assert_eq!(lines[0], lines[1].replace("access::", "access:"));
        let visible = "  INFO access: path=/\\u{1b}[31m\\n\\u{9b}é verdict=\"a\\nb\"";
        assert_eq!(lines[2..], [visible]);
    }
}
