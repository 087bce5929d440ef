//! The log: records with fields on standard error, for people or for machines.

pub mod causes;
pub mod lines;
pub(super) mod queue;

use std::{io, panic, str::FromStr, thread, time::Duration};

use thiserror::Error;
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{MakeWriter, format, layer},
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

pub use crate::telemetry::log::lines::LogFormat;
use crate::{
    base::settings::{deserialize_text, section, texts},
    telemetry::log::{
        lines::{LogLines, TextFields},
        queue::{Queue, ToQueue},
    },
};

/// The targets that may write below `info`, with all targets below them.
const OWN_TARGETS: [&str; 2] = ["countersign", "audit"];

/// The levels of the log: one for all targets, and others for some.
///
/// Libraries write nothing below `info`, whatever the level: they work with secrets.
///
/// Written as `info`, or `info,audit=debug,countersign::request::verify=trace`; without a level for all it is `info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevel {
    default: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

/// Why a text is not a [`LogLevel`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidLogLevel {
    /// A name that is not a level. A bare target is rejected too, because a mistyped level looks like one.
    #[error("the levels are off, error, warn, info, debug and trace")]
    Level,
    /// A target with other characters than the path of a module has.
    #[error("a target has only letters, digits, _ and : in it")]
    Target,
    /// Two levels for one target, or two for all.
    #[error("one target has two levels")]
    Repeated,
}

impl LogLevel {
    fn targets(&self) -> Targets {
        // Below `info` tokio-postgres writes the parameters of every statement, which are tokens and secrets.
        let of_libraries = self.default.min(LevelFilter::INFO);
        // The TLS library warns of faults of peers, who can cause any number of them: only a debug log has these.
        let of_tls = if self.default > LevelFilter::INFO {
            of_libraries
        } else {
            self.default.min(LevelFilter::ERROR)
        };
        let targets = self.targets.iter().map(|(target, level)| {
            let is_ours = OWN_TARGETS.iter().any(|target_prefix| {
                let rest = target.strip_prefix(target_prefix);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            });
            let most = if is_ours {
                LevelFilter::TRACE
            } else {
                LevelFilter::INFO
            };
            (target.clone(), (*level).min(most))
        });
        Targets::new()
            .with_default(of_libraries)
            .with_targets(OWN_TARGETS.map(|target_prefix| (target_prefix, self.default)))
            .with_target("rustls", of_tls)
            .with_targets(targets)
    }
}

impl FromStr for LogLevel {
    type Err = InvalidLogLevel;

    fn from_str(text: &str) -> Result<Self, InvalidLogLevel> {
        let mut default = None;
        let mut targets: Vec<(String, LevelFilter)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((target, level)) = part.split_once('=') else {
                if default.replace(level_of(part)?).is_some() {
                    return Err(InvalidLogLevel::Repeated);
                }
                continue;
            };
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_:".contains(&byte);
            if target.is_empty() || !target.bytes().all(valid) {
                return Err(InvalidLogLevel::Target);
            }
            if targets.iter().any(|(known, _)| known == target) {
                return Err(InvalidLogLevel::Repeated);
            }
            targets.push((target.to_owned(), level_of(level)?));
        }
        Ok(Self {
            default: default.unwrap_or(LevelFilter::INFO),
            targets,
        })
    }
}

fn level_of(word: &str) -> Result<LevelFilter, InvalidLogLevel> {
    // The library also accepts numbers, other cases and an empty text as a level.
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let level = word.parse().ok().filter(|_| is_word);
    level.ok_or(InvalidLogLevel::Level)
}

section! {
    /// The log, on standard error. Never a query, a form, a secret, or more than 8 characters of a token.
    LogSettings["log"] {
        /// "text" for people, "json" for machines.
        format: LogFormat = "text", restart;
        /// "off", "error", "warn", "info", "debug" or "trace", also by target: "info,audit=debug". Libraries log from "info"
        /// up.
        level: LogLevel = "info", reload;
        /// A line for each request. While standard error stalls, these are dropped first, and counted.
        access: bool = true, reload;
    }
}

texts! {
    LogLevel: "a level such as \"info\", or levels by target such as \"info,audit=debug\"" => str::parse::<Self>;
}
deserialize_text!(LogLevel);

/// The log could not be started or changed.
#[derive(Debug, Error)]
pub enum LogError {
    /// A log is running in this process already.
    #[error("a log is running already")]
    Running(#[from] tracing_subscriber::util::TryInitError),
    /// The running log is gone.
    #[error("the level of the log cannot be changed")]
    Reload(#[from] reload::Error),
    /// The system gives no thread that writes.
    #[error("cannot start the thread that writes the log")]
    Thread(#[source] io::Error),
}

/// The lines of this process that wait for standard error.
static QUEUE: Queue = Queue::new();

/// The longest time for which the end of the process waits for the reader of the log.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Changes the level of the running log.
#[derive(Debug, Clone)]
pub struct LogControl(reload::Handle<Targets, Registry>);

impl LogControl {
    /// From now on, writes the records that `level` admits.
    ///
    /// # Errors
    /// [`LogError::Reload`] if the log that this controls is gone.
    pub fn set_level(&self, level: &LogLevel) -> Result<(), LogError> {
        Ok(self.0.reload(level.targets())?)
    }
}

/// Starts the log on standard error, once in a process. A thread of its own writes: see [`flush`].
///
/// # Errors
/// [`LogError::Running`] if there is one already, and [`LogError::Thread`].
pub fn start(form: LogFormat, level: &LogLevel) -> Result<LogControl, LogError> {
    let (subscriber, control) = subscriber(form, level, ToQueue(&QUEUE));
    subscriber.try_init()?;
    let writer = thread::Builder::new().name("log".to_owned());
    let writing = writer.spawn(|| QUEUE.write_to(io::stderr()));
    writing.map_err(LogError::Thread)?;
    // By default a panic is written by the thread that panics, which would wait for the reader.
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(tracing::field::display);
        tracing::error!(place, cause = panic.payload_as_str(), "panicked");
    }));
    Ok(control)
}

/// Waits until all records are written, at most five seconds. Call it at the end of the process.
pub fn flush() {
    QUEUE.flush(LAST_LINES);
}

/// The number of lines that were dropped because standard error was not read fast enough, or not at all.
pub fn dropped_lines() -> u64 {
    QUEUE.dropped()
}

/// Whether lines were dropped and those before them have not been read yet.
pub fn is_stalled() -> bool {
    QUEUE.is_stalled()
}

/// Makes the log without starting it; tests give it another place to write to.
pub(super) fn subscriber<W>(
    form: LogFormat,
    level: &LogLevel,
    writer: W,
) -> (impl Subscriber + Send + Sync + 'static, LogControl)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(level.targets());
    // Colours are for terminals; a log collector would keep their escape sequences.
    let lines = layer().with_ansi(false).with_writer(writer);
    let library = format::Format::default().with_ansi(false);
    let lines = match form {
        LogFormat::Text => lines
            .fmt_fields(TextFields)
            .event_format(LogLines { form, library })
            .boxed(),
        LogFormat::Json => {
            let library = library.json().flatten_event(true);
            lines
                .json()
                .event_format(LogLines { form, library })
                .boxed()
        }
    };
    let subscriber = Registry::default().with(filter).with(lines);
    (subscriber, LogControl(handle))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::CapturedLog, *};

    fn for_target(level: &LogLevel, target: &str) -> LevelFilter {
        use tracing::Level;
        [
            Level::TRACE,
            Level::DEBUG,
            Level::INFO,
            Level::WARN,
            Level::ERROR,
        ]
        .into_iter()
        .find(|at| level.targets().would_enable(target, at))
        .map_or(LevelFilter::OFF, LevelFilter::from_level)
    }

    #[test]
    fn reads_levels_by_target() {
        let level: LogLevel = "warn, audit=debug,countersign::request::verify=off"
            .parse()
            .unwrap();
        assert_eq!(for_target(&level, "hyper"), LevelFilter::WARN);
        assert_eq!(for_target(&level, "audit"), LevelFilter::DEBUG);
        assert_eq!(
            for_target(&level, "countersign::request::verify::order"),
            LevelFilter::OFF
        );
        let level: LogLevel = "audit=debug".parse().unwrap();
        assert_eq!(for_target(&level, "hyper"), LevelFilter::INFO);
        assert_eq!(Ok(level), "info,audit=debug".parse());
    }

    #[test]
    fn libraries_never_write_below_info() {
        for text in ["trace", "info,tokio_postgres=trace,hyper=debug"] {
            let level: LogLevel = text.parse().unwrap();
            for target in ["tokio_postgres::query", "hyper", "rustls"] {
                assert!(
                    for_target(&level, target) <= LevelFilter::INFO,
                    "{text} {target}"
                );
            }
        }
        let level: LogLevel = "trace".parse().unwrap();
        for target in ["countersign", "countersign::records::store", "audit"] {
            assert_eq!(for_target(&level, target), LevelFilter::TRACE, "{target}");
        }
    }

    #[test]
    fn rejects_a_mistyped_level_rather_than_taking_it_for_a_target() {
        for (text, error) in [
            ("", InvalidLogLevel::Level),
            ("inof", InvalidLogLevel::Level),
            ("INFO", InvalidLogLevel::Level),
            ("info,", InvalidLogLevel::Level),
            ("audit=", InvalidLogLevel::Level),
            ("=info", InvalidLogLevel::Target),
            ("a[b]=info", InvalidLogLevel::Target),
            ("info,warn", InvalidLogLevel::Repeated),
            ("a=info,a=warn", InvalidLogLevel::Repeated),
        ] {
            assert_eq!(text.parse::<LogLevel>(), Err(error), "{text}");
        }
    }

    #[test]
    fn acts_of_tls_peers_are_not_logged_as_warnings() {
        let of_tls = |text: &str| {
            let level: LogLevel = text.parse().unwrap();
            for_target(&level, "rustls::common_state")
        };
        assert_eq!(of_tls("info"), LevelFilter::ERROR);
        assert_eq!(of_tls("off"), LevelFilter::OFF);
        assert_eq!(of_tls("debug"), LevelFilter::INFO);
        assert_eq!(of_tls("info,rustls=warn"), LevelFilter::WARN);
    }

    #[test]
    fn changes_the_level_while_running() {
        let captured = CapturedLog::default();
        let writer = captured.clone();
        let level = "warn".parse().unwrap();
        let (subscriber, control) = subscriber(LogFormat::Text, &level, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("before");
            assert_eq!(captured.take(), "");
            control.set_level(&"debug".parse().unwrap()).unwrap();
            tracing::debug!(path = "\u{1b}[31m", "after");
        });
        let written = captured.take();
        assert!(written.contains("DEBUG"), "{written}");
        assert!(!written.contains('\u{1b}'), "{written:?}");
    }
}
