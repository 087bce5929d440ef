//! What operators did.

use askama::Template;

use super::{
    ConsoleRequest, LISTED, Result,
    page::{ConsoleFrame, InputField, show},
    parts::{Moment, Named, NextPage, next_page, path},
};
use crate::{
    operator::reasons::words,
    provider::respond::OwnResponse,
    records::store::port::{AuditEntry, AuditFilter},
};

const ACTORS: &[(&str, &str)] = &[
    ("", "any"),
    ("command", "commands"),
    ("api", "the admin API"),
    ("console", "the console"),
    ("serve", "countersign itself"),
];

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage<'a> {
    frame: ConsoleFrame<'a>,
    fields: [InputField; 4],
    acts: Vec<Act>,
    next: Option<NextPage>,
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
    pub(super) async fn audit_page(&self) -> Result<OwnResponse> {
        let names = ["consumer", "user", "actor", "kind"];
        let given = names.map(|name| (name, self.field(name)));
        let [consumer, user, actor, kind] =
            given.map(|(_, value)| (!value.is_empty()).then(|| value.to_owned()));
        let filter = AuditFilter {
            consumer,
            user,
            actor,
            event: kind,
        };
        let before = self.field("cursor").parse().ok();
        let manage = &self.backend.manage;
        let found = manage.audit_records(&filter, before, LISTED).await?;
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
            let details = token.into_iter().chain(act.members.clone()).chain(counts);
            let tool = match &*actor.by {
                "command" => "a command",
                "api" => "the admin API",
                "console" => "the console",
                "serve" => "countersign itself",
                other => other,
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
        let [consumer, user, actor, kind] = given.map(|(_, value)| value);
        let page = AuditPage {
            frame: self.shell.frame("Audit"),
            fields: [
                InputField::line("consumer", "Consumer key", consumer),
                InputField::line("user", "User id", user),
                InputField::choice("actor", "By", ACTORS, actor),
                InputField::line("kind", "Kind, such as consumer_changed", kind),
            ],
            acts: found.iter().map(row).collect(),
            next: next_page(&found, |entry| entry.position.to_string(), link),
        };
        Ok(show(200, &page))
    }

    /// What was last done to a record: the act, the actor and the time.
    pub(super) async fn last_act(
        &self,
        filter: AuditFilter,
    ) -> Result<Option<(String, String, Moment)>> {
        let found = self.backend.manage.audit_records(&filter, None, 1).await?;
        Ok(found.into_iter().next().map(
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
        ))
    }
}
