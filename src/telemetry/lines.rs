//! Records as lines of text in the library's own form. Records of requests, one for each, are formatted here at less
//! cost.

use std::{
    cell::Cell,
    fmt::{self, Debug, Write as _},
    time::{SystemTime, UNIX_EPOCH},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext,
        format::{Format, FormatEvent, FormatFields, Writer},
    },
    registry::LookupSpan,
};

use crate::clock::UnixTime;

/// The target of the records of requests.
pub const ACCESS: &str = "access";

/// How a record becomes a line.
pub(super) struct LogLines {
    /// What writes all records but those of [`ACCESS`].
    others: Format,
}

impl LogLines {
    pub(super) fn new() -> Self {
        Self {
            others: Format::default().with_ansi(false),
        }
    }
}

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
        let metadata = event.metadata();
        if metadata.target() != ACCESS || *metadata.level() != Level::INFO {
            return self.others.format_event(context, writer, event);
        }
        let mut line = AccessLine {
            out: &mut writer,
            written: Ok(()),
        };
        line.time(SystemTime::now());
        line.put("  INFO access:");
        event.record(&mut line);
        line.put("\n");
        line.written
    }
}

/// A line that is being written.
struct AccessLine<'l, 'w> {
    out: &'l mut Writer<'w>,
    written: fmt::Result,
}

impl AccessLine<'_, '_> {
    fn put(&mut self, text: &str) {
        self.written = self.written.and_then(|()| self.out.write_str(text));
    }

    fn name(&mut self, field: &Field) {
        self.put(" ");
        self.put(field.name());
        self.put("=");
    }

    /// The time as RFC 3339 has it, in UTC and with microseconds.
    fn time(&mut self, now: SystemTime) {
        thread_local! {
            /// The second that was written last, and its text: `2026-11-21T11:06:48`.
            static LAST: Cell<(u64, [u8; 19])> = const { Cell::new((u64::MAX, [0; 19])) };
        }
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut last = LAST.get();
        if last.0 != since.as_secs() {
            last = (since.as_secs(), date_and_time(since.as_secs()));
            LAST.set(last);
        }
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        text[..19].copy_from_slice(&last.1);
        digits(&mut text[20..26], since.subsec_micros());
        self.put(std::str::from_utf8(&text).unwrap_or_default());
    }
}

impl Visit for AccessLine<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        let mut visible = Visible(&mut *self.out);
        self.written = self.written.and_then(|()| write!(visible, "{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        if value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.put("\"");
            self.put(value);
            self.put("\"");
        } else {
            self.written = self.written.and_then(|()| write!(self.out, "{value:?}"));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        self.written = self.written.and_then(|()| write!(self.out, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.name(field);
        let thousandths = (value * 1_000.0).round();
        if !(0.0..1e9).contains(&thousandths) {
            self.written = self.written.and_then(|()| write!(self.out, "{value:?}"));
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked above"
        )]
        let thousandths = thousandths as u32;
        let mut text = *b"000000.000";
        digits(&mut text[..6], thousandths / 1_000);
        digits(&mut text[7..], thousandths % 1_000);
        // At least one digit is kept on either side of the point.
        let begin = text[..5].iter().take_while(|&&digit| digit == b'0').count();
        let zeros = text[8..].iter().rev();
        let zeros = zeros.take_while(|&&digit| digit == b'0').count();
        self.put(std::str::from_utf8(&text[begin..10 - zeros]).unwrap_or_default());
    }
}

/// Writes control characters escaped, as Rust does in a string: no text of others may begin a line or move the cursor.
pub struct Visible<W>(pub W);

impl<W: fmt::Write> fmt::Write for Visible<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ')
        {
            return self.0.write_str(text);
        }
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

fn date_and_time(seconds: u64) -> [u8; 19] {
    let text = UnixTime(seconds).to_string();
    let text = text.as_bytes().first_chunk().copied();
    text.unwrap_or(*b"0000-00-00T00:00:00")
}

/// Fills `place` with the last digits of a number.
fn digits(place: &mut [u8], mut number: u32) {
    for digit in place.iter_mut().rev() {
        let last = (number % 10) as u8;
        *digit = b'0' + last;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::OffsetDateTime;
    use tracing_subscriber::{Layer as _, layer::SubscriberExt as _};

    use super::{super::captured::CapturedLog, *};

    /// What the library makes of the same record, and what is made of it here, both without their times.
    fn both(record: impl Fn()) -> [String; 2] {
        let layer = || tracing_subscriber::fmt::layer().with_ansi(false);
        let written = |ours: bool| {
            let kept = CapturedLog::default();
            let writer = kept.clone();
            let writer = move || writer.clone();
            let lines = if ours {
                layer()
                    .event_format(LogLines::new())
                    .with_writer(writer)
                    .boxed()
            } else {
                layer().with_writer(writer).boxed()
            };
            let subscriber = tracing_subscriber::registry().with(lines);
            tracing::subscriber::with_default(subscriber, &record);
            let text = kept.take();
            let (time, rest) = text.split_at(27);
            let format = time::format_description::well_known::Rfc3339;
            let time = OffsetDateTime::parse(time, &format).unwrap();
            assert!((OffsetDateTime::now_utc() - time).abs() < time::Duration::minutes(1));
            rest.to_owned()
        };
        [written(false), written(true)]
    }

    proptest! {
        #[test]
        fn a_line_is_what_the_library_would_write(
            word in "[a-z_]{1,12}", text in "[ -~]{0,20}", status in 0u64..2_000, micros in 0u32..3_000_000, absent: bool,
        ) {
            let ms = f64::from(micros) / 1e3;
            let [library, ours] = both(|| tracing::info!(
                target: ACCESS, method = %text, path = %word, status, verdict = word, other = text,
                consumer = (!absent).then(|| tracing::field::display(&word)), ms, upstream_ms = (!absent).then_some(ms / 7.0),
            ));
            // The library writes every digit of what is no number of microseconds.
            let shown = |line: &str| line.split(" upstream_ms").next().unwrap().trim_end().to_owned();
            prop_assert_eq!(shown(&library), shown(&ours));
        }
    }

    #[test]
    fn numbers_have_three_digits_behind_the_point_at_most() {
        for (value, shown) in [
            (0.0, "0.0"),
            (0.5, "0.5"),
            (0.05, "0.05"),
            (12.0, "12.0"),
            (1.2345, "1.235"),
            (999_999.999, "999999.999"),
            (1e7, "10000000.0"),
            (-1.0, "-1.0"),
            (f64::NAN, "NaN"),
        ] {
            let [_, ours] = both(|| tracing::info!(target: ACCESS, ms = value));
            assert_eq!(ours, format!("  INFO access: ms={shown}\n"));
        }
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        let [_, ours] = both(
            || tracing::info!(target: ACCESS, path = %"/\u{1b}[31m\n\u{9b}é", verdict = "a\nb"),
        );
        assert_eq!(
            ours,
            "  INFO access: path=/\\u{1b}[31m\\n\\u{9b}é verdict=\"a\\nb\"\n"
        );
    }

    #[test]
    fn other_records_are_the_librarys() {
        let [library, ours] = both(|| tracing::warn!(target: "audit", token = "t", "revoked"));
        assert_eq!(library, ours);
        let [library, ours] = both(|| tracing::error!(target: ACCESS, "at another level"));
        assert_eq!(library, ours);
    }

    #[test]
    fn a_second_is_written_as_the_calendar_has_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (4_102_444_799, "2099-12-31T23:59:59"),
        ] {
            assert_eq!(date_and_time(seconds), *text.as_bytes());
        }
    }
}
