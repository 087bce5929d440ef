//! The overview: readiness, load, and the findings that need a person.

use std::collections::HashSet;

use askama::Template;
use rustix::system::uname;
use strum::VariantArray as _;

use super::{
    ConsoleRequest, Result,
    chart::{self, Chart},
    page::{ConsoleFrame, show},
    parts::{Moment, Named, Number, Tag, counted, path, time},
    reasons::Reason,
};
use crate::{
    base::clock::{UnixTime, days},
    provider::respond::OwnResponse,
    telemetry::{
        charts::{SAMPLE_EVERY, Sample},
        metrics::{Outcome, Verdict},
    },
};

/// A certificate that is shown to callers or to the API.
#[derive(Debug, Clone)]
pub struct ShownCertificate {
    /// The configuration's key, and the file.
    pub name: String,
    /// The last second in which it is valid.
    pub not_after: UnixTime,
    /// Whole days until then.
    pub days_left: u64,
    /// It ends so soon that somebody should renew it.
    pub ends_soon: bool,
    /// Why callers reject it, if they do.
    pub problem: Option<String>,
}

/// Consumers in a table of the overview.
const SHOWN: usize = 10;

/// The share of rejected calls in the last minute from which the overview warns, in percent.
const ALARM_PERCENT: f64 = 5.0;

/// A share that is twice that of the hour is no reason to warn below this many rejected calls.
const ALARM_CALLS: u64 = 10;

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage<'a> {
    frame: ConsoleFrame<'a>,
    is_draining: bool,
    is_ready: bool,
    ready_for: String,
    enforces: bool,
    node: String,
    started: Moment,
    version: &'static str,
    /// The class and the text of each condition.
    problems: Vec<(&'static str, String)>,
    /// Many calls of the last minute were rejected.
    alarm: Option<String>,
    /// The number of consumers that need a person.
    consumers: usize,
    consumers_text: String,
    tiles: Tiles,
    in_flight: Number,
    concurrent: Number,
    connections: Number,
    reasons: Vec<Reason>,
    reasons_have_consumers: bool,
    /// The number of calls that enforcing would reject, also those of nobody who is registered, where signatures are only observed.
    observed: Option<Number>,
    graces: Vec<Grace>,
    heading: &'static str,
    charts: [Chart; 2],
    /// The same page for the other time.
    other: (&'static str, &'static str),
    verdicts: Vec<VerdictCount>,
    certificates: Vec<(String, Moment, Tag)>,
}

/// The numbers of the last minute, and the fill level of the nonce window.
struct Tiles {
    rate: String,
    requests: Number,
    share: String,
    rejected: Number,
    failed: Number,
    half: String,
    most: String,
    nonce_share: String,
    nonces: Number,
    max_nonces: Number,
}

/// A previous secret in its grace.
struct Grace {
    consumer: Named,
    until: Moment,
    /// The number of calls with it, and the last one.
    used: Option<(String, Moment)>,
}

/// The number of requests with a verdict.
struct VerdictCount {
    word: &'static str,
    count: Number,
    share: String,
    href: String,
}

impl ConsoleRequest<'_> {
    pub(super) async fn overview(&self) -> Result<OwnResponse> {
        let (console, shared) = (&self.admin.control.console, &self.admin.shared);
        let readiness = &self.admin.readiness;
        let counts = shared.metrics.counts();
        let minutes = console.charts.minutes(&counts, self.now);
        readiness.check().await;
        let active = readiness.conditions.active();
        let stops = active
            .iter()
            .any(|(condition, _)| condition.stops_signed_calls());
        let problems = active.into_iter().map(|(condition, active)| {
            let (class, what) = match condition.stops_signed_calls() {
                true => ("bad", "Not ready"),
                false => ("warn", "Degraded"),
            };
            let (name, since) = (condition.as_str(), time(active.since));
            (
                class,
                format!("{what} since {since}: {name}: {}", active.cause),
            )
        });
        let problems = problems.collect();
        let live = shared.live.load();
        let (enforces, concurrent) = (live.authorizer.enforces(), live.concurrent_requests);
        drop(live);
        let mut rejected = self.reasons_of_consumers();
        // Nobody has to do anything about a double click.
        rejected.retain(|group| group.newest.verdict != Verdict::LaunchRepeated.as_str());
        let needed = rejected.iter().filter(|group| !group.is_observed());
        let keys: HashSet<_> = needed.clone().map(|group| &group.newest.consumer).collect();
        let consumers = keys.len();
        let observed = shared.metrics.all_observed();
        let shown = Vec::from_iter(match enforces {
            true => needed.take(SHOWN).cloned().collect(),
            false => rejected.iter().take(SHOWN).cloned().collect::<Vec<_>>(),
        });
        let (span, samples, heading, other) = match self.field("span") == "day" {
            true => {
                let quarters = console.charts.quarters(&counts, self.now);
                (chart::DAY, quarters, "Last 24 hours", ("/", "Last hour"))
            }
            false => {
                let other = ("/?span=day", "Last 24 hours");
                (chart::HOUR, minutes.clone(), "Last hour", other)
            }
        };
        let page = OverviewPage {
            frame: self.shell.frame("Overview"),
            is_draining: self.admin.is_announced(),
            is_ready: !stops,
            ready_for: {
                let since = readiness.conditions.stopped_until();
                let since = since.unwrap_or(shared.rejections.since);
                elapsed(self.now.0.saturating_sub(since.0))
            },
            enforces,
            node: uname().nodename().to_string_lossy().into_owned(),
            started: self.moment(shared.rejections.since),
            version: env!("CARGO_PKG_VERSION"),
            problems,
            alarm: alarm(&minutes),
            consumers,
            consumers_text: match consumers {
                1 => "1 consumer needs a person.".to_owned(),
                _ => format!("{consumers} consumers need a person."),
            },
            tiles: self.tiles(&minutes),
            in_flight: Number(shared.places.in_flight()),
            concurrent: Number(concurrent as u64),
            connections: Number(
                shared
                    .metrics
                    .connections
                    .get()
                    .try_into()
                    .unwrap_or_default(),
            ),
            reasons: self.reasons(&shown).await?,
            reasons_have_consumers: true,
            observed: (!enforces || observed > 0).then_some(Number(observed)),
            graces: self.graces().await?,
            heading,
            charts: [
                chart::requests(&span, &samples),
                chart::latencies(&span, &samples),
            ],
            other,
            verdicts: verdicts(&samples),
            certificates: self.certificates(),
        };
        Ok(show(200, &page))
    }

    fn tiles(&self, minutes: &[Sample]) -> Tiles {
        let readiness = &self.admin.readiness;
        let minute = MinuteCalls::of(last_minute(minutes));
        let latency = |percent| {
            let last = last_minute(minutes);
            last.map_or_else(|| "–".to_owned(), |last| chart::latency(last, percent))
        };
        let (entries, max) = (readiness.nonces.window().entries(), readiness.max_nonces);
        let percent = entries as f64 * 100.0 / max.max(1) as f64;
        Tiles {
            rate: format!("{:.1}", minute.all as f64 / SAMPLE_EVERY.as_secs_f64()),
            requests: Number(minute.all),
            share: format!("{:.1} %", minute.percent()),
            rejected: Number(minute.rejected),
            failed: Number(minute.failed),
            half: latency(50),
            most: latency(95),
            nonce_share: format!("{percent:.2} %"),
            nonces: Number(entries),
            max_nonces: Number(max),
        }
    }

    fn certificates(&self) -> Vec<(String, Moment, Tag)> {
        let shown = (self.admin.control.console.certificates)().into_iter();
        let shown = shown.map(|one| {
            let left = days(one.days_left) + " left";
            let state = match one.problem {
                Some(problem) => Tag::new(problem, "bad"),
                None if one.ends_soon => Tag::new(left + "; renew it", "bad"),
                None => Tag::new(left, "good"),
            };
            (one.name, self.moment(one.not_after), state)
        });
        shown.collect()
    }

    /// The consumers whose previous secret also verifies, and whether they use it.
    async fn graces(&self) -> Result<Vec<Grace>> {
        let manage = &self.backend.manage;
        let consumers = manage.consumers_in_grace(super::LISTED).await?;
        let graces = consumers.iter().filter_map(|consumer| {
            let (_, until) = consumer.previous_secret.as_ref()?;
            let key = consumer.key.as_str();
            Some(Grace {
                consumer: Named::consumer(key, &consumer.name),
                until: self.moment(*until),
                used: self.uses_of_previous(key),
            })
        });
        Ok(graces.collect())
    }

    /// The number of calls of a consumer with its previous secret, and the last one.
    pub(super) fn uses_of_previous(&self, key: &str) -> Option<(String, Moment)> {
        let (count, last) = self.admin.shared.previous_secrets.uses_by(key)?;
        Some((counted(count, "call"), self.moment(last)))
    }
}

/// The last whole minute; the current one has only begun.
fn last_minute(minutes: &[Sample]) -> Option<&Sample> {
    minutes.iter().rev().nth(1).or_else(|| minutes.last())
}

/// The calls of some time, by outcome.
struct MinuteCalls {
    all: u64,
    rejected: u64,
    failed: u64,
}

impl MinuteCalls {
    fn of<'s>(samples: impl IntoIterator<Item = &'s Sample>) -> Self {
        let mut calls = Self {
            all: 0,
            rejected: 0,
            failed: 0,
        };
        for sample in samples {
            calls.all += sample.counts.total();
            calls.rejected += chart::outcome(sample, Outcome::Rejected);
            calls.failed += chart::outcome(sample, Outcome::Failed);
        }
        calls
    }

    fn percent(&self) -> f64 {
        self.rejected as f64 * 100.0 / self.all.max(1) as f64
    }
}

/// The warning about the last minute: more than a twentieth of its calls were rejected, or twice the share of the hour.
fn alarm(minutes: &[Sample]) -> Option<String> {
    let minute = MinuteCalls::of(last_minute(minutes));
    let (share, of_hour) = (minute.percent(), MinuteCalls::of(minutes).percent());
    let is_double = minute.rejected >= ALARM_CALLS && share >= 2.0 * of_hour;
    (share > ALARM_PERCENT || is_double).then(|| {
        format!(
            "{share:.1} % of the last minute’s calls were rejected ({} of {}).",
            Number(minute.rejected),
            Number(minute.all)
        )
    })
}

/// A length of time.
fn elapsed(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The verdicts of the requests that were rejected or failed, the most frequent first.
fn verdicts(samples: &[Sample]) -> Vec<VerdictCount> {
    let sum = |verdict: &Verdict| -> u64 {
        let counts = samples
            .iter()
            .map(|sample| sample.counts.verdicts.get(*verdict as usize));
        counts.flatten().sum()
    };
    let all: u64 = samples.iter().map(|sample| sample.counts.total()).sum();
    let bad = Verdict::VARIANTS
        .iter()
        .filter(|it| matches!(it.outcome(), Outcome::Rejected | Outcome::Failed));
    let mut counted = Vec::from_iter(bad.map(|verdict| (sum(verdict), verdict.as_str())));
    counted.retain(|(count, _)| *count > 0);
    counted.sort_by(|one, next| next.cmp(one));
    let shown = counted.into_iter().map(|(count, word)| VerdictCount {
        word,
        count: Number(count),
        share: format!("{:.1} %", count as f64 * 100.0 / all.max(1) as f64),
        href: path("/rejections", &[("reason", word)]),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::admin::console::chart::sample as minute;

    #[test]
    fn warns_above_a_twentieth_or_twice_the_share_of_the_hour() {
        let running = || minute(0, 0);
        assert_eq!(alarm(&[minute(95, 5), running()]), None);
        let text = "12.7 % of the last minute’s calls were rejected (383 of 3,008).";
        assert_eq!(
            alarm(&[minute(2_625, 383), running()]).as_deref(),
            Some(text)
        );
        // 2 % of the hour's calls, and 4 % of the last minute's.
        let hour = [
            minute(980, 20),
            minute(1_980, 20),
            minute(960, 40),
            running(),
        ];
        assert!(alarm(&hour).is_some());
        // Few calls are no finding.
        assert_eq!(alarm(&[minute(10_000, 0), minute(100, 4), running()]), None);
    }
}
