//! `status`: the running process on one screen.

use std::{collections::HashMap, fmt::Write as _, io, thread, time::Duration};

use serde_json::Value;
use strum::VariantArray as _;

use super::{admin_api::AdminApi, health};
use crate::{
    base::{clock::roughly, text::counted},
    cli::{
        context::{CommandError, ConfigArgs, Output},
        terminal::marks::{Mark, shows_colours},
    },
    run::config::Config,
    telemetry::{
        calls::verdict::{Outcome, Verdict},
        log::lines::visible,
    },
};

/// Shows whether the running process is ready, whether the API answers, how many calls there are, and who needs attention first;
/// exit code 0 if it is ready, else 1.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

/// The time between two readings of the counters.
const SAMPLE: Duration = Duration::from_secs(1);

/// The consumers that are shown.
const SHOWN: usize = 3;

/// Asks the running process.
///
/// # Errors
/// The configuration is invalid, or the process does not answer.
pub(in crate::cli) fn run(args: &Args) -> Result<Output, CommandError> {
    args.config.announce();
    let config = args.config.load()?;
    let (status, conditions) = health::open_page(&config.admin.listen, "/readyz")?;
    let before = Counts::read(&config)?;
    thread::sleep(SAMPLE);
    let counts = Counts::read(&config)?;
    let colours = shows_colours(&io::stdout());
    let mut text = readiness(status == 200, &conditions, colours);
    text += &counts.since(&before);
    text += &match AdminApi::new(&config, "") {
        Ok(api) => needs(&api.items("/v1/rejections/summary")?, colours),
        Err(error) => format!("  needs attention: not known: {error}\n"),
    };
    Ok(Output {
        code: u8::from(status != 200),
        ..text.into()
    })
}

/// The lines of `/readyz`, and what the condition of the API means.
fn readiness(is_ready: bool, conditions: &str, colours: bool) -> String {
    let is_about_api = |line: &&str| line.starts_with("degraded: upstream ");
    let lines = conditions.lines().filter(|line| *line != "ready");
    let mut text = match is_ready {
        true => Mark::Good.line("ready", colours),
        false => Mark::Bad.line("not ready", colours),
    };
    let api = conditions.lines().find(is_about_api);
    text += &match api.and_then(|line| line.split_once("upstream ")) {
        Some((_, cause)) => Mark::Bad.line(
            &format!("the API does not answer {}", visible(cause)),
            colours,
        ),
        None => Mark::Good.line("no outage of the API is known", colours),
    };
    for line in lines.filter(|line| !is_about_api(line)) {
        let mark = match line.starts_with("degraded") {
            true => Mark::Warning,
            false => Mark::Bad,
        };
        text += &mark.line(&visible(line), colours);
    }
    text
}

/// The requests since the process started.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    all: f64,
    rejected: f64,
    failed: f64,
    uptime: f64,
}

impl Counts {
    fn read(config: &Config) -> Result<Self, CommandError> {
        let (status, text) = health::open_page(&config.admin.listen, "/metrics")?;
        match status {
            200 => Ok(Self::from_metrics(&text)),
            status => Err(CommandError::failed(format!("/metrics answers {status}"))),
        }
    }

    /// The counts of the text of `/metrics`.
    fn from_metrics(text: &str) -> Self {
        let mut counts = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let value: f64 = value.parse().unwrap_or(0.0);
            if name == "countersign_uptime_seconds" {
                counts.uptime = value;
            }
            let label = name.strip_prefix("countersign_requests_total{verdict=\"");
            let Some(word) = label.and_then(|label| label.strip_suffix("\"}")) else {
                continue;
            };
            counts.all += value;
            let mut verdicts = Verdict::VARIANTS.iter();
            let verdict = verdicts.find(|verdict| verdict.as_str() == word);
            match verdict.map(|verdict| verdict.outcome()) {
                Some(Outcome::Rejected) => counts.rejected += value,
                Some(Outcome::Failed) if word != Verdict::Aborted.as_str() => {
                    counts.failed += value;
                }
                _ => {}
            }
        }
        counts
    }

    fn since(&self, before: &Self) -> String {
        let share = |part: f64, all: f64| format!("{:.1} %", part * 100.0 / all.max(1.0));
        let seconds = (self.uptime - before.uptime).max(SAMPLE.as_secs_f64());
        let rate = |now: f64, before: f64| format!("{:.1}", (now - before) / seconds);
        format!(
            "  now: {} requests a second, {} rejected, {} failed\n  since the start, {} ago: {} requests, {} rejected, {} failed\n",
            rate(self.all, before.all),
            rate(self.rejected, before.rejected),
            rate(self.failed, before.failed),
            roughly(Duration::try_from_secs_f64(self.uptime).unwrap_or_default()),
            self.all,
            share(self.rejected, self.all),
            share(self.failed, self.all),
        )
    }
}

/// The consumers with the most calls among those that need attention, each with its most frequent mistake.
fn needs(reasons: &[Value], colours: bool) -> String {
    let text = |of: &Value, name: &str| visible(of[name].as_str().unwrap_or_default());
    let mut first = Vec::<&Value>::new();
    let mut more = HashMap::<String, u64>::new();
    for reason in reasons.iter().filter(|it| it["needs_attention"] == true) {
        let known = more.entry(text(reason, "consumer")).or_default();
        if *known == 0 {
            first.push(reason);
        }
        *known += 1;
    }
    if first.is_empty() {
        return Mark::Good.line("no consumer needs attention", colours);
    }
    let noun = match first.len() {
        1 => "1 consumer needs attention".to_owned(),
        count => format!("{count} consumers need attention"),
    };
    let mut lines = Mark::Warning.line(&noun, colours);
    for reason in first.iter().take(SHOWN) {
        let key = text(reason, "consumer");
        let others = match more.get(&key) {
            Some(count) if *count > 1 => format!(", and {}", counted(count - 1, "more reason")),
            _ => String::new(),
        };
        // Writing to a `String` never fails.
        let _ = writeln!(
            lines,
            "  {} ({key}): {} ({}), {} times, last {}{others}\n    {}",
            text(reason, "name"),
            text(reason, "mistake"),
            text(reason, "reason"),
            reason["count"],
            text(reason, "last"),
            text(reason, "advice"),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn readiness_and_conditions_have_marks() {
        let shown = |ready, conditions: &str| readiness(ready, conditions, false);
        assert_eq!(
            shown(true, "ready\n"),
            "✓ ready\n✓ no outage of the API is known\n"
        );
        let api = "degraded: upstream since 2026-01-01T00:00:00Z: connection refused\n";
        let disk = "degraded: disk_full since 2026-01-01T00:00:00Z: no space\n";
        assert_eq!(
            shown(true, &format!("ready\n{disk}{api}")),
            format!(
                "✓ ready\n✗ the API does not answer since 2026-01-01T00:00:00Z: connection refused\n! {disk}"
            )
        );
        let store = "not ready: store since 2026-01-01T00:00:00Z: gone\n";
        let text = shown(false, store);
        assert!(text.starts_with("✗ not ready\n") && text.ends_with(&format!("✗ {store}")));
    }

    #[test]
    fn the_rate_is_the_difference_of_two_readings() {
        let page = |served: u64, uptime: u64| {
            let text = format!(
                "countersign_requests_total{{verdict=\"forwarded\"}} {served}\ncountersign_requests_total{{verdict=\"nonce_used\"}} 5\n\
                 countersign_requests_total{{verdict=\"bad_gateway\"}} 2\ncountersign_uptime_seconds {uptime}\n"
            );
            Counts::from_metrics(&text)
        };
        let (before, now) = (page(73, 7_198), page(93, 7_200));
        assert_eq!(
            now.since(&before),
            "  now: 10.0 requests a second, 0.0 rejected, 0.0 failed\n  since the start, 2 h ago: 100 requests, 5.0 % rejected, 2.0 % failed\n"
        );
    }

    #[test]
    fn three_consumers_are_named_with_their_first_reason() {
        let reason = |consumer: &str, needs: bool| {
            json!({"consumer": consumer, "name": "Shop", "mistake": "Same nonce twice", "reason": "nonce_used", "count": 3,
                "last": "2026-01-01T00:00:00Z", "advice": "Tell its developer.", "needs_attention": needs})
        };
        let quiet = needs(&[reason("a", false)], false);
        assert_eq!(quiet, "✓ no consumer needs attention\n");
        let mut all = Vec::from(["a", "b", "c", "d", "a"].map(|key| reason(key, true)));
        all.push(reason("e", false));
        let text = needs(&all, false);
        assert!(text.starts_with("! 4 consumers need attention\n  Shop (a): Same nonce twice (nonce_used), 3 times, last 2026"));
        assert!(text.contains(", and 1 more reason\n    Tell its developer.\n"));
        assert_eq!(text.matches("Shop (").count(), 3, "{text}");
    }
}
