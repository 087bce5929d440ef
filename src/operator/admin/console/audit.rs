//! What operators did.

use askama::Template;
use strum::VariantArray as _;

use super::{
    ConsoleRequest, LISTED, Result,
    page::{ConsoleFrame, InputField, show},
    parts::{Moment, Named, OtherPages, path},
};
use crate::{
    operator::{manage::Tool, reasons::words},
    provider::respond::OwnResponse,
    records::store::port::{AuditEntry, AuditFilter, RecordFilter},
};

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage<'a> {
    frame: ConsoleFrame<'a>,
    fields: [InputField; 4],
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
    pub(super) async fn audit_page(&self) -> Result<OwnResponse> {
        let names = ["consumer", "user", "actor", "kind"];
        let given = names.map(|name| (name, self.field(name)));
        let [consumer, user, actor, kind] =
            given.map(|(_, value)| (!value.is_empty()).then(|| value.to_owned()));
        let (consumer, several) = self.meant("consumer", consumer).await?;
        let (user, several_users) = self.meant("user", user).await?;
        let several = [several, several_users].concat();
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
        let [consumer, user, actor, kind] = given.map(|(_, value)| value);
        let tools = Tool::VARIANTS.iter().map(|it| (it.name(), it.title()));
        let tools = Vec::from_iter(std::iter::once(("", "any")).chain(tools));
        let page = AuditPage {
            frame: self.shell.frame("Audit"),
            fields: [
                InputField::line("consumer", "Consumer’s key or part of its name", consumer),
                InputField::line("user", "User’s id or part of the name", user),
                InputField::choice("actor", "By", &tools, actor),
                InputField::line("kind", "Kind, such as consumer_changed", kind),
            ],
            several,
            acts: found.iter().map(row).collect(),
            next: self.other_pages(&found, |entry| entry.position.to_string(), link),
        };
        Ok(show(200, &page))
    }

    /// The key of a consumer, or the id of a user, that a filter of this name means: the only one whose name has the text, else the
    /// text itself, which may be of a record that was removed; and all whose names have it, if they are several.
    pub(super) async fn meant(
        &self,
        filter: &str,
        text: Option<String>,
    ) -> Result<(Option<String>, Vec<Named>)> {
        let Some(text) = text else {
            return Ok((None, Vec::new()));
        };
        let manage = &self.backend.manage;
        let records = RecordFilter {
            q: Some(text.clone()),
            ..RecordFilter::default()
        };
        let found: Vec<(String, String)> = match filter {
            "consumer" => {
                let found = manage.consumers(records, None, None, LISTED).await?;
                let found = found.into_iter();
                found.map(|it| (it.name, it.key.to_string())).collect()
            }
            _ => {
                let found = manage.users(&records, None, LISTED).await?;
                let found = found.into_iter();
                found.map(|it| (it.name, it.id.to_string())).collect()
            }
        };
        let wanted = text.to_lowercase();
        let is_id = found.iter().any(|(_, id)| *id == text);
        let named = found
            .into_iter()
            .filter(|(name, _)| name.to_lowercase().contains(&wanted));
        let named = named.map(|(name, id)| {
            let tried = ["method", "path"].map(|name| (name, self.field(name)));
            let href = path(self.path, &[&tried[..], &[(filter, &*id)]].concat());
            Named {
                name,
                id,
                href,
                is_disabled: false,
            }
        });
        let mut named = Vec::from_iter(named.filter(|_| !is_id));
        match named.len() {
            0 => Ok((Some(text), named)),
            1 => Ok((named.pop().map(|it| it.id), named)),
            _ => Ok((Some(text), named)),
        }
    }

    /// The last acts on a record, with actors and times, the newest first.
    pub(super) async fn last_acts(
        &self,
        filter: AuditFilter,
    ) -> Result<Vec<(String, String, Moment)>> {
        /// The acts that are shown.
        const MOST: u32 = 3;

        let manage = &self.backend.manage;
        let found = manage.audit_records(&filter, None, MOST).await?;
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
