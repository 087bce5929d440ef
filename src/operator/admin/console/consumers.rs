//! The list of consumers, and the page of one.

use serde_json::Value;

use super::{
    ConsoleRequest, LISTED, PageParts, Result,
    page::{InputField, InputKind, Section},
    parts::{Line, Table, counted, enabled, field_text, line, link, listed, path, tag, time},
    rejections::advised,
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey},
    operator::manage::{CONSUMER_FIELDS, FieldKind, RecordField, view},
    records::store::{
        port::{RecordFilter, TokenFilter},
        record::Consumer,
    },
};

/// Tokens on the page of a consumer or a user.
const TOKENS: u32 = 20;

const STATES: &[(&str, &str)] = &[("", "all"), ("true", "enabled"), ("false", "disabled")];

impl ConsoleRequest<'_> {
    pub(super) async fn consumers(&self) -> Result<PageParts> {
        let (q, enabled, unused_for) = (
            self.field("q"),
            self.field("enabled"),
            self.field("unused_for"),
        );
        let filter = RecordFilter {
            q: (!q.is_empty()).then(|| q.to_owned()),
            enabled: enabled.parse().ok(),
            ..RecordFilter::default()
        };
        let unused = self.duration("unused_for")?;
        let after = self.field("cursor");
        let after: Option<ConsumerKey> = after.parse().ok();
        let found = self
            .backend
            .manage
            .consumers(filter, unused, after.as_ref(), LISTED)
            .await?;
        let next = next(&found, |last| {
            let cursor = last.key.as_str();
            path(
                "/consumers",
                &[
                    ("q", q),
                    ("enabled", enabled),
                    ("unused_for", unused_for),
                    ("cursor", cursor),
                ],
            )
        });
        let mut sections = vec![Section::search(
            "/consumers",
            "Search",
            vec![
                InputField::line("q", "Part of key, name or description", q),
                InputField::new(
                    InputKind::Choice(STATES.into()),
                    "enabled",
                    "State",
                    enabled,
                ),
                InputField::line("unused_for", "Unused for, such as 90d", unused_for),
            ],
        )];
        sections.push(Section::Table(Table {
            caption: "Consumers by key".to_owned(),
            head: vec!["key", "name", "state", "permissions", "registered"],
            rows: found.iter().map(|consumer| self.row(consumer)).collect(),
            empty: "No consumer matches.",
            next,
        }));
        if self.may_write() {
            sections.push(Section::Actions(vec![link(
                "Register a consumer",
                "/consumer/add",
            )]));
        }
        Ok(("Consumers".to_owned(), sections))
    }

    fn row(&self, consumer: &Consumer) -> Vec<Line> {
        let key = consumer.key.as_str();
        vec![
            vec![link(key, path("/consumer", &[("key", key)]))],
            line(consumer.name.clone()),
            self.state(consumer),
            line(listed(&consumer.permissions)),
            line(time(consumer.created_at)),
        ]
    }

    fn state(&self, consumer: &Consumer) -> Line {
        let mut state = vec![enabled(consumer.enabled)];
        let grace = consumer.previous_secret.as_ref().map(|(_, until)| *until);
        if grace.is_some_and(|until| self.now < until) {
            state.push(tag("previous secret in grace", "tag bad"));
        }
        state
    }

    /// The consumer that `key` names.
    pub(super) async fn named_consumer(&self) -> Result<Consumer> {
        let key: Option<ConsumerKey> = self.field("key").parse().ok();
        let key = key.ok_or(super::Rejected::NotFound)?;
        Ok(self.backend.manage.consumer(&key).await?)
    }

    pub(super) async fn consumer(&self) -> Result<PageParts> {
        let consumer = self.named_consumer().await?;
        let key = consumer.key.as_str();
        let mut sections = self.done_note();
        sections.push(Section::Facts(self.consumer_facts(&consumer).await?));
        let at = |page: &str| path(page, &[("key", key)]);
        if self.may_write() {
            let mut actions = vec![
                link("Edit", at("/consumer/edit")),
                link("Rotate the secret", at("/consumer/rotate")),
            ];
            if consumer.previous_secret.is_some() {
                actions.push(link("End the grace", at("/consumer/end-grace")));
            }
            actions.push(match consumer.enabled {
                true => link("Disable", at("/consumer/disable")),
                false => link("Enable", at("/consumer/enable")),
            });
            actions.push(link("Remove", at("/consumer/remove")));
            sections.push(Section::Actions(actions));
        }
        let rejected = self.rejected();
        let of_consumer = rejected
            .iter()
            .filter(|one| one.consumer.as_deref() == Some(key));
        sections.push(Section::Heading("Why its calls are rejected".to_owned()));
        sections.push(Section::Table(advised(
            "By reason".to_owned(),
            &Vec::from_iter(of_consumer),
        )));
        sections.push(Section::Actions(vec![link(
            "Each rejection",
            path("/rejections", &[("consumer", key)]),
        )]));
        sections.push(Section::Heading("Access tokens".to_owned()));
        let filter = TokenFilter {
            consumer: Some(consumer.key.clone()),
            ..TokenFilter::default()
        };
        sections.extend(self.some_tokens(filter, &[("consumer", key)]).await?);
        Ok((consumer.name.clone(), sections))
    }

    /// The note after a change.
    pub(super) fn done_note(&self) -> Vec<Section> {
        let text = "The change is made. It takes effect within a second on every replica.";
        match self.field("done") {
            "" => Vec::new(),
            _ => vec![Section::Note("good", line(text))],
        }
    }

    async fn consumer_facts(&self, consumer: &Consumer) -> Result<Vec<(&'static str, Line)>> {
        let mut views = self.backend.manage.views(vec![consumer.clone()]).await?;
        let view = views.pop().map(|(_, view)| view).unwrap_or_default();
        let word = |name: &str| view.get(name).and_then(Value::as_str).unwrap_or("–");
        let last_use = match (word("last_used_at"), word("last_method")) {
            ("–", _) => "none is known".to_owned(),
            (at, "–") => format!("{at}, from an imported token"),
            (at, method) => format!("{at}, {method}, base string {}", word("last_dialect")),
        };
        let secret = match &consumer.previous_secret {
            None => "never shown again".to_owned(),
            Some((_, until)) => {
                let uses = self
                    .admin
                    .shared
                    .previous_secrets
                    .uses_by(consumer.key.as_str());
                let used = uses.map_or_else(
                    || "this process has not seen the previous one used".to_owned(),
                    |(count, last)| {
                        format!(
                            "this process has seen {} with the previous one, the last at {}",
                            counted(count, "call"),
                            time(last)
                        )
                    },
                );
                let until = time(*until);
                format!("the previous one also verifies until {until}; {used}")
            }
        };
        let members = view::members(consumer);
        let field = |field: &'static RecordField| {
            let value = match (&field.kind, field_text(field, &members)) {
                (FieldKind::File, text) if text != "none" => "registered".to_owned(),
                (FieldKind::Choice(_), text) if text == "the default" => {
                    format!("{} ({text})", word(field.name))
                }
                (_, text) => text,
            };
            (field.label, line(value))
        };
        let first = [
            ("Key", line(consumer.key.as_str())),
            ("State", self.state(consumer)),
            ("Secret", line(secret)),
        ];
        let last = [
            ("Registered", line(time(consumer.created_at))),
            ("Last verified call", line(last_use)),
        ];
        let facts = first.into_iter().chain(CONSUMER_FIELDS.iter().map(field));
        Ok(facts.chain(last).collect())
    }

    /// The first tokens of a filter, with a link to all of them.
    pub(super) async fn some_tokens(
        &self,
        filter: TokenFilter,
        parameters: &[(&str, &str)],
    ) -> Result<Vec<Section>> {
        let found = self
            .backend
            .manage
            .live_tokens(filter, None, (UnixTime(0), ""), TOKENS)
            .await?;
        let all = link("All tokens", path("/tokens", parameters));
        let table = self.token_table(
            "Access tokens that are not revoked".to_owned(),
            &found,
            None,
        );
        Ok(vec![Section::Table(table), Section::Actions(vec![all])])
    }
}

/// The link after the last record of a full page.
pub(super) fn next<T>(found: &[T], link: impl Fn(&T) -> String) -> Option<String> {
    let is_full = found.len() >= LISTED as usize;
    found.last().filter(|_| is_full).map(link)
}
