//! The overview: readiness, load, fill levels, and findings that need a person.

use strum::VariantArray as _;

use super::{
    ConsoleRequest, PageParts, Result, chart,
    page::Section,
    parts::{Line, Table, counted, line, link, path, tag, time},
    rejections::{groups, reason_row},
};
use crate::{
    base::clock::UnixTime,
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

impl ConsoleRequest<'_> {
    pub(super) async fn overview(&self) -> Result<PageParts> {
        let (console, shared) = (&self.admin.control.console, &self.admin.shared);
        let counts = shared.metrics.counts();
        let minutes = console.charts.minutes(&counts, self.now);
        let mut sections = self.readiness().await;
        sections.push(Section::Facts(self.facts(&minutes)));
        sections.push(Section::Heading("Needs a person".to_owned()));
        sections.extend(self.needs_a_person().await?);
        let is_day = self.field("span") == "day";
        let (span, samples, other) = match is_day {
            true => (
                chart::DAY,
                console.charts.quarters(&counts, self.now),
                link("Last hour", "/"),
            ),
            false => (chart::HOUR, minutes, link("Last 24 hours", "/?span=day")),
        };
        let heading = if is_day { "Last 24 hours" } else { "Last hour" };
        sections.push(Section::Heading(heading.to_owned()));
        for chart in [chart::requests, chart::latencies] {
            let chart = chart(&span, &samples);
            sections.push(Section::Chart(Box::new(chart)));
        }
        sections.push(Section::Actions(vec![other]));
        sections.push(Section::Table(verdicts(heading, &samples)));
        Ok(("Overview".to_owned(), sections))
    }

    async fn readiness(&self) -> Vec<Section> {
        let readiness = &self.admin.readiness;
        readiness.check().await;
        let active = readiness.conditions.active();
        let is_draining = self.admin.is_announced();
        let stops = active
            .iter()
            .any(|(condition, _)| condition.stops_signed_calls());
        let mut sections = Vec::new();
        if is_draining {
            sections.push(Section::Note(
                "bad",
                line("Not ready: the process is draining."),
            ));
        } else if !stops {
            sections.push(Section::Note(
                "good",
                line("Ready: signed calls are served."),
            ));
        }
        for (condition, active) in active {
            let (class, what) = match condition.stops_signed_calls() {
                true => ("bad", "Not ready"),
                false => ("warn", "Degraded"),
            };
            let (name, since) = (condition.as_str(), time(active.since));
            let text = format!("{what} since {since}: {name}: {}", active.cause);
            sections.push(Section::Note(class, line(text)));
        }
        sections
    }

    fn facts(&self, minutes: &[Sample]) -> Vec<(&'static str, Line)> {
        let (shared, readiness) = (&self.admin.shared, &self.admin.readiness);
        // The last whole minute; the current one has only begun.
        let last = minutes.iter().rev().nth(1).or_else(|| minutes.last());
        let rate = last.map_or(0, |last| last.counts.total());
        let part = |outcome| last.map_or(0, |last| chart::outcome(last, outcome));
        let latency =
            |percent| last.map_or_else(|| "–".to_owned(), |last| chart::latency(last, percent));
        let (entries, max) = (readiness.nonces.window().entries(), readiness.max_nonces);
        let percent = entries.saturating_mul(100) / max.max(1);
        let in_flight = shared.in_flight.load(std::sync::atomic::Ordering::Relaxed);
        let live = shared.live.load();
        [
            (
                "Requests in the last minute",
                format!(
                    "{rate} ({:.1} a second), of them {} rejected and {} failed",
                    rate as f64 / SAMPLE_EVERY.as_secs_f64(),
                    part(Outcome::Rejected),
                    part(Outcome::Failed)
                ),
            ),
            (
                "Latency in the last minute",
                format!("half in {}, 95 % in {}", latency(50), latency(95)),
            ),
            (
                "Requests at this moment",
                format!("{in_flight} of {}", live.concurrent_requests),
            ),
            (
                "Connections of callers",
                shared.metrics.connections.get().to_string(),
            ),
            (
                "Nonce window",
                format!("{entries} of {max} nonces ({percent} %)"),
            ),
            (
                "Signatures",
                match live.authorizer.enforces() {
                    true => "enforced".to_owned(),
                    false => "only observed".to_owned(),
                },
            ),
            ("Version", env!("CARGO_PKG_VERSION").to_owned()),
        ]
        .map(|(name, value)| (name, line(value)))
        .into()
    }

    async fn needs_a_person(&self) -> Result<Vec<Section>> {
        let rejected = self.rejected();
        // Nobody has to do anything about a double click.
        let repeated = Verdict::LaunchRepeated.as_str();
        let of_consumers = rejected
            .iter()
            .filter(|one| one.consumer.is_some() && one.verdict != repeated);
        let groups = groups(of_consumers);
        let observed = rejected
            .iter()
            .filter(|one| one.verdict == Verdict::Observed.as_str());
        let observed = observed.count();
        let mut sections = vec![
            Section::Table(Table {
                caption: "Consumers whose calls are rejected, in this process".to_owned(),
                head: vec!["consumer", "why", "calls", "since", "last", "signed"],
                rows: groups.iter().take(SHOWN).map(reason_row).collect(),
                empty: "No consumer's calls are rejected.",
                next: None,
            }),
            Section::Actions(vec![
                link("All rejections", "/rejections"),
                link(
                    format!("What enforcing would break ({observed})"),
                    "/rejections?kind=observed",
                ),
                link("Tokens unused for 90 days", "/tokens?unused_for=90d"),
            ]),
            Section::Table(self.in_grace().await?),
        ];
        let certificates = (self.admin.control.console.certificates)();
        sections.push(Section::Table(Table {
            caption: "Certificates".to_owned(),
            head: vec!["file", "ends", "state"],
            rows: certificates
                .into_iter()
                .map(|one| {
                    let state = match &one.problem {
                        Some(problem) => tag(problem, "tag bad"),
                        None if one.ends_soon => {
                            tag(format!("{} days left; renew it", one.days_left), "tag bad")
                        }
                        None => tag(format!("{} days left", one.days_left), "tag good"),
                    };
                    vec![line(one.name), line(time(one.not_after)), vec![state]]
                })
                .collect(),
            empty: "This process shows no certificates of its own.",
            next: None,
        }));
        Ok(sections)
    }

    /// The consumers whose previous secret also verifies, and whether they use it.
    async fn in_grace(&self) -> Result<Table> {
        let consumers = self
            .backend
            .manage
            .consumers_in_grace(super::LISTED)
            .await?;
        let uses = &self.admin.shared.previous_secrets;
        let rows = consumers.iter().filter_map(|consumer| {
            let (_, until) = consumer.previous_secret.as_ref()?;
            let key = consumer.key.as_str();
            let used = match uses.uses_by(key) {
                Some((count, last)) => {
                    let count = counted(count, "call");
                    tag(format!("{count}, the last at {}", time(last)), "tag bad")
                }
                None => tag("not used", "tag good"),
            };
            Some(vec![
                vec![link(key, path("/consumer", &[("key", key)]))],
                line(consumer.name.clone()),
                line(time(*until)),
                vec![used],
            ])
        });
        Ok(Table {
            caption:
                "Previous secrets in their grace, and the consumers that still sign with them (in this process)"
                    .to_owned(),
            head: vec!["consumer", "name", "grace ends", "previous secret"],
            rows: rows.collect(),
            empty: "No previous secret is in its grace.",
            next: None,
        })
    }
}

/// The number of requests with each verdict.
fn verdicts(heading: &str, samples: &[Sample]) -> Table {
    let sum = |verdict: &Verdict| -> u64 {
        let counts = samples
            .iter()
            .map(|sample| sample.counts.verdicts.get(*verdict as usize));
        counts.flatten().sum()
    };
    let mut counted = Vec::from_iter(
        Verdict::VARIANTS
            .iter()
            .map(|verdict| (sum(verdict), verdict.as_str())),
    );
    counted.retain(|(count, _)| *count > 0);
    counted.sort_by(|one, next| next.cmp(one));
    Table {
        caption: format!("{heading}: requests by verdict"),
        head: vec!["verdict", "requests"],
        rows: counted
            .into_iter()
            .map(|(count, word)| vec![line(word), line(count.to_string())])
            .collect(),
        empty: "No requests.",
        next: None,
    }
}
