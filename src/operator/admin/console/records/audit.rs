//! What operators did.

use askama::Template;
use strum::VariantArray as _;

use crate::{
    base::clock::UnixTime,
    operator::{
        admin::console::{
            ConsoleRequest, LISTED, Result,
            page::{ConsoleFrame, InputField, choices, show},
            parts::{Moment, Named, OtherPages, path},
        },
        manage::Tool,
        reasons::words,
    },
    provider::respond::OwnResponse,
    records::values::use_cases::{AuditEntry, AuditFilter, RecordFilter},
};

/// Times in the past.
const PERIODS: &[(&str, &str)] = &[
    ("", "any, or the times beside"),
    ("1h", "the last hour"),
    ("24h", "the last 24 hours"),
    ("night", "last night, 18:00 to 08:00 UTC"),
    ("7d", "the last 7 days"),
];

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage<'a> {
    frame: ConsoleFrame<'a>,
    problem: Option<String>,
    fields: [InputField; 7],
    /// The consumers and users that a part of a name fits, if there are several.
    several: Vec<Named>,
    acts: Vec<Act>,
    next: Option<OtherPages>,
}

/// A row of the page.
struct Act {
    time: Moment,
    what: String,
    event: String,
    details: String,
    consumer: Option<Named>,
    user: Option<Named>,
    by: String,
    place: String,
}

impl ConsoleRequest<'_> {
    pub(crate) async fn audit_page(&self) -> Result<OwnResponse> {
        let names = ["consumer", "user", "actor", "kind", "period", "from", "to"];
        let given = names.map(|name| (name, self.field(name)));
        let [_, _, actor, kind, ..] =
            given.map(|(_, value)| (!value.is_empty()).then(|| value.to_owned()));
        let (since, until, problem) = self.times();
        let (consumer, several) = self.meant("consumer").await?;
        let (user, several_users) = self.meant("user").await?;
        let several = [several, several_users].concat();
        let filter = AuditFilter {
            consumer,
            user,
            actor,
            event: kind,
            since,
            until,
        };
        let before = self.field("cursor").parse().ok();
        let manage = &self.backend.manage;
        let found = (manage.store)
            .audit_records(&filter, before, LISTED)
            .await?;
        let keys = found
            .iter()
            .filter_map(|entry| entry.record.consumer.as_deref());
        let ids = found
            .iter()
            .filter_map(|entry| entry.record.user.as_deref());
        let names = self.names(keys, ids).await?;
        let row = |entry: &AuditEntry| {
            let act = &entry.record;
            let actor = &act.actor;
            let token = act.token.as_ref().map(|token| format!("token {token}"));
            let counts = act
                .counts
                .iter()
                .map(|(name, count)| format!("{count} {name}"));
            let changes = act.changes.clone().or_else(|| act.members.clone());
            let details = token.into_iter().chain(changes).chain(counts);
            let tool = match actor.by.parse::<Tool>() {
                Ok(tool) => tool.title(),
                Err(_) => &*actor.by,
            };
            let who = actor
                .os_user
                .as_ref()
                .map(|user| format!("{user}, by {tool}"));
            let with = actor
                .admin_token
                .as_ref()
                .map(|token| match &actor.admin_name {
                    Some(name) => format!("{name}, by {tool}, {token} token"),
                    None => format!("{tool}, {token} token"),
                });
            Act {
                time: self.moment(entry.at),
                what: words(&act.event),
                event: act.event.clone(),
                details: Vec::from_iter(details).join(", "),
                consumer: act.consumer.as_deref().map(|key| names.consumer(key)),
                user: act.user.as_deref().map(|id| names.user(id)),
                by: who.or(with).unwrap_or_else(|| tool.to_owned()),
                place: match &actor.address {
                    Some(address) => format!("{address} at {}", actor.host),
                    None => actor.host.clone(),
                },
            }
        };
        let link = |cursor: &str| {
            let parameters = [&given[..], &[("cursor", cursor)]].concat();
            path("/audit", &parameters)
        };
        let [consumer, user, actor, kind, period, from, to] = given.map(|(_, value)| value);
        let mut kinds = manage.store.audit_events().await?;
        if !kind.is_empty() && !kinds.iter().any(|it| it == kind) {
            kinds.push(kind.to_owned());
        }
        let titles = Vec::from_iter(kinds.iter().map(|it| words(it)));
        let kinds = kinds
            .iter()
            .map(String::as_str)
            .zip(titles.iter().map(String::as_str));
        let kinds = std::iter::once(("", "any")).chain(kinds);
        let tools = Tool::VARIANTS.iter().map(|it| (it.name(), it.title()));
        let tools = Vec::from_iter(std::iter::once(("", "any")).chain(tools));
        let page = AuditPage {
            frame: self.shell.frame("Audit"),
            problem,
            fields: [
                InputField::line("consumer", "Consumer’s key or part of its name", consumer),
                InputField::line("user", "User’s id or part of the name", user),
                InputField::choice("actor", "By", &tools, actor),
                InputField::new(choices(kinds), "kind", "Kind", kind),
                InputField::choice("period", "Time", PERIODS, period),
                InputField::line("from", "From (UTC), such as 2026-01-31 18:00", from),
                InputField::line("to", "Until (UTC)", to),
            ],
            several,
            acts: found.iter().map(row).collect(),
            next: self.other_pages(&found, |entry| entry.position.to_string(), link),
        };
        Ok(show(200, &page))
    }

    /// The beginning and the end that the filter asks for, and what is wrong with a time.
    fn times(&self) -> (Option<UnixTime>, Option<UnixTime>, Option<String>) {
        let ago = |seconds: u64| Some(UnixTime(self.now.0.saturating_sub(seconds)));
        match self.field("period") {
            "1h" => return (ago(HOUR), None, None),
            "24h" => return (ago(DAY), None, None),
            "7d" => return (ago(7 * DAY), None, None),
            "night" => {
                let (begin, end) = last_night(self.now);
                return (Some(begin), Some(end), None);
            }
            _ => {}
        }
        let mut problem = None;
        let mut time = |name: &str| {
            let text = self.field(name);
            let whole = match text.len() {
                10 => format!("{text} 00:00:00"),
                16 => format!("{text}:00"),
                _ => text.to_owned(),
            };
            let read = UnixTime::from_written(&whole).ok();
            if read.is_none() && !text.is_empty() {
                problem = Some(format!(
                    "“{text}” is not a time such as 2026-01-31 18:00: it is left out."
                ));
            }
            read
        };
        let (since, until) = (time("from"), time("to"));
        (since, until, problem)
    }

    /// The key of a consumer, or the id of a user, that a filter of this name means: of the one with this key, id or name, else
    /// of the only one that has the text in one of them, else the text itself, which may be of a record that was removed; and
    /// all that have it, if they are several.
    pub(crate) async fn meant(&self, filter: &str) -> Result<(Option<String>, Vec<Named>)> {
        let text = self.field(filter).to_owned();
        if text.is_empty() {
            return Ok((None, Vec::new()));
        }
        let manage = &self.backend.manage;
        let records = RecordFilter::containing(&text);
        let found: Vec<(String, String)> = match filter {
            "consumer" => {
                if let Ok(key) = text.parse()
                    && manage.consumer(&key).await.is_ok()
                {
                    return Ok((Some(text), Vec::new()));
                }
                let found = manage.store.consumers(&records, None, LISTED).await?;
                let found = found.into_iter();
                found.map(|it| (it.name, it.key.to_string())).collect()
            }
            _ => {
                if let Ok(user) = manage.user(&text).await {
                    return Ok((Some(user.id.to_string()), Vec::new()));
                }
                let found = manage.store.users(&records, None, LISTED).await?;
                let found = found.into_iter();
                found.map(|it| (it.name, it.id.to_string())).collect()
            }
        };
        let wanted = text.to_lowercase();
        let has = |it: &str| it.to_lowercase().contains(&wanted);
        let named = found.into_iter().filter(|(name, id)| has(name) || has(id));
        let named = named.map(|(name, id)| {
            let tried = ["method", "path", "unused_for"].map(|name| (name, self.field(name)));
            let href = path(self.path, &[&tried[..], &[(filter, &*id)]].concat());
            Named {
                href,
                ..Named::unregistered(&name, &id)
            }
        });
        let mut named = Vec::from_iter(named);
        match named.len() {
            0 => Ok((Some(text), named)),
            1 => Ok((named.pop().map(|it| it.id), named)),
            _ => Ok((Some(text), named)),
        }
    }

    /// The last acts on a record, with actors and times, the newest first.
    pub(crate) async fn last_acts(
        &self,
        filter: AuditFilter,
    ) -> Result<Vec<(String, String, Moment)>> {
        /// The acts that are shown.
        const MOST: u32 = 3;

        let store = &self.backend.manage.store;
        let found = store.audit_records(&filter, None, MOST).await?;
        let shown = found.into_iter().map(
            |AuditEntry {
                 at, record: act, ..
             }| {
                let actor = act.actor;
                let person = actor.os_user.or(actor.admin_name);
                let who = match (person, actor.admin_token) {
                    (Some(user), _) => format!("{user} ({})", actor.by),
                    (None, Some(token)) => format!("the {token} token ({})", actor.by),
                    (None, None) => actor.by,
                };
                let what = match &act.members {
                    Some(members) => format!("{} ({members})", words(&act.event)),
                    None => words(&act.event),
                };
                (what, who, self.moment(at))
            },
        );
        Ok(shown.collect())
    }
}

/// From 18:00 to 08:00 UTC: the last night that has ended, or the one that lasts.
fn last_night(now: UnixTime) -> (UnixTime, UnixTime) {
    let today = now.0 - now.0 % DAY;
    let evening = match now.0 - today {
        passed if passed >= 18 * HOUR => today + 18 * HOUR,
        _ => (today + 18 * HOUR).saturating_sub(DAY),
    };
    (UnixTime(evening), UnixTime(evening + 14 * HOUR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_night_is_that_of_eighteen_to_eight() {
        // 2026-09-23 00:00:00 UTC.
        let midnight = 1_790_121_600;
        for (hour, begin) in [(7, -6), (8, -6), (17, -6), (18, 18), (23, 18)] {
            let (from, until) = last_night(UnixTime(midnight + hour * HOUR));
            let expected = midnight.saturating_add_signed(begin * 3_600);
            assert_eq!(
                (from.0, until.0),
                (expected, expected + 14 * HOUR),
                "{hour}"
            );
        }
    }
}
