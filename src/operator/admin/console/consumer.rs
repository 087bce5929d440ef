//! The page of one consumer: the answer to why its calls are rejected comes first.

use askama::Template;
use serde_json::{Map, Value};

use super::{
    ConsoleRequest, Rejected, Result,
    consumers::last_use,
    page::{ConsoleFrame, show},
    parts::{Moment, Tag, field_text, path, time},
    reasons::{CountedSince, RejectedConsumer},
    tokens::TokenRow,
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey},
    operator::manage::{CONSUMER_FIELDS, FieldKind, RecordField, view},
    provider::respond::OwnResponse,
    records::store::{
        port::{AuditFilter, TokenFilter},
        record::Consumer,
    },
};

/// Tokens on the page of a consumer or a user.
const TOKENS: u32 = 20;

#[derive(Template)]
#[template(path = "console/consumer.html")]
struct ConsumerPage<'a> {
    frame: ConsoleFrame<'a>,
    is_done: bool,
    last_acts: Vec<(String, String, Moment)>,
    /// The link to all acts about it.
    acts: String,
    key: &'a str,
    state: Vec<Tag>,
    /// Signatures are enforced, not only observed.
    enforces: bool,
    last_call: Option<Moment>,
    /// The method and the dialect of that call.
    last_method: String,
    previous: Option<PreviousSecret>,
    /// The end of the link of its developer.
    link: Option<Moment>,
    reasons: Vec<RejectedConsumer>,
    reasons_have_consumers: bool,
    /// The permissions that a call lacked, and which half lacks each.
    missing: Vec<String>,
    started: Moment,
    rejections: String,
    may_write: bool,
    /// The time at which the application had it, if it is one of the application.
    looked_up: Option<Moment>,
    is_enabled: bool,
    /// `?key=` of this consumer.
    query: String,
    tokens: Vec<TokenRow>,
    tokens_of: &'static str,
    all_tokens: String,
    /// The number of settings that are not the usual ones.
    set: usize,
    settings: Vec<(&'static str, String)>,
    registered: Moment,
}

/// A previous secret in its grace.
struct PreviousSecret {
    until: Moment,
    /// The number of calls with it, and the last one.
    used: Option<(String, Moment)>,
}

impl ConsoleRequest<'_> {
    /// The consumer that `key` names.
    pub(super) async fn named_consumer(&self) -> Result<Consumer> {
        let key: Option<ConsumerKey> = self.field("key").parse().ok();
        let key = key.ok_or(Rejected::NotFound)?;
        Ok(self.backend.manage.consumer(&key).await?)
    }

    pub(super) async fn consumer(&self) -> Result<OwnResponse> {
        let key: Option<ConsumerKey> = self.field("key").parse().ok();
        let key = key.ok_or(Rejected::NotFound)?;
        let (consumer, looked_up_at) = self.backend.manage.consumer_found(&key).await?;
        let key = consumer.key.as_str();
        let mut views = self.backend.manage.views(vec![consumer.clone()]).await?;
        let view = views.pop().map(|(_, view)| view).unwrap_or_default();
        let word = |name: &str| view.get(name).and_then(Value::as_str);
        let last_method = match (word("last_method"), word("last_dialect")) {
            (Some(method), Some(dialect)) => format!("{method}, base string {dialect}"),
            _ => "an imported token".to_owned(),
        };
        let groups = self.admin.shared.rejections.reasons(Some(key));
        let missing = groups.iter().filter_map(|group| {
            let newest = &group.newest;
            let permission = newest.call.missing_permission.as_deref()?;
            Some(missing_half(
                &consumer,
                permission,
                newest.call.named_token(),
            ))
        });
        let names = self.names_of(&groups).await?;
        let enforces = self.admin.shared.live.load().authorizer.enforces();
        let previous = consumer.graced_secret(self.now);
        let filter = TokenFilter {
            consumer: Some(consumer.key.clone()),
            ..TokenFilter::default()
        };
        let settings = settings(&consumer, &view, self.now, enforces);
        let page = ConsumerPage {
            enforces: enforces || consumer.enforce,
            frame: self.shell.frame(&*consumer.name),
            is_done: !self.field("done").is_empty(),
            last_acts: self
                .last_acts(AuditFilter {
                    consumer: Some(consumer.key.to_string()),
                    ..AuditFilter::default()
                })
                .await?,
            acts: path("/audit", &[("consumer", key)]),
            key,
            state: self.state(&consumer),
            last_call: last_use(&view).map(|last| self.moment(last)),
            last_method,
            previous: previous.map(|(_, until)| PreviousSecret {
                until: self.moment(*until),
                used: self.uses_of_previous(key),
            }),
            link: self
                .backend
                .manage
                .developer_link_until(&consumer.key)
                .await?
                .map(|until| self.moment(until)),
            missing: missing.collect(),
            reasons: self.reasons(&groups, &names, CountedSince::Start).await?,
            reasons_have_consumers: false,
            started: self.moment(self.admin.shared.rejections.since),
            rejections: path("/rejections", &[("consumer", key)]),
            may_write: self.may_write() && looked_up_at.is_none(),
            looked_up: looked_up_at.map(|at| self.moment(at)),
            is_enabled: consumer.enabled,
            query: path("", &[("key", key)]),
            tokens: self.some_tokens(filter).await?,
            tokens_of: "consumer",
            all_tokens: path("/tokens", &[("consumer", key)]),
            set: settings.iter().filter(|(_, text)| !is_usual(text)).count(),
            settings,
            registered: self.moment(consumer.created_at),
        };
        Ok(show(200, &page))
    }

    /// The tokens of a filter that were used last.
    pub(super) async fn some_tokens(&self, filter: TokenFilter) -> Result<Vec<TokenRow>> {
        let manage = &self.backend.manage;
        let found = manage.recent_tokens(filter, None, None, TOKENS);
        self.token_rows(&found.await?).await
    }
}

/// Which half of a permission is missing.
fn missing_half(consumer: &Consumer, permission: &str, token: Option<&str>) -> String {
    let is_registered = consumer
        .permissions
        .iter()
        .any(|it| it.as_str() == permission);
    match (is_registered, token) {
        (false, _) => format!(
            "The consumer is not registered with {permission}: edit it; then the user has to allow it again."
        ),
        (true, Some(token)) => format!(
            "The consumer has {permission}; the token {token}… of its last such call does not: the user has to allow it again."
        ),
        (true, None) => format!("The consumer has {permission} now: the call can be sent again."),
    }
}

fn is_usual(text: &str) -> bool {
    ["none", "no", "the default"].contains(&text) || text.ends_with(" (the default)")
}

/// The fields of a consumer as texts.
fn settings(
    consumer: &Consumer,
    view: &Map<String, Value>,
    now: UnixTime,
    enforces: bool,
) -> Vec<(&'static str, String)> {
    let members = view::members(consumer);
    let field = |field: &'static RecordField| {
        let value = match (&field.kind, field_text(field, &members)) {
            (FieldKind::Flag, text) if field.name == "enforce" => match (&*text, enforces) {
                ("no", true) => "as all: signatures are enforced (the default)".to_owned(),
                ("no", false) => "as all: signatures are only observed (the default)".to_owned(),
                (_, true) => "always, as all at present".to_owned(),
                (_, false) => "always, although others are only observed".to_owned(),
            },
            (FieldKind::File, text) if text != "none" => "registered".to_owned(),
            (FieldKind::Choice(_), text) if text == "the default" => {
                match view.get(field.name).and_then(Value::as_str) {
                    Some(value) => format!("{value} ({text})"),
                    None => text,
                }
            }
            (_, text) => text,
        };
        (field.label, value)
    };
    let fields = CONSUMER_FIELDS.iter().map(field);
    let secret = match consumer.graced_secret(now) {
        None => "never shown again".to_owned(),
        Some((_, until)) => format!("the previous one also verifies until {}", time(*until)),
    };
    fields.chain([("Secret", secret)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_half_that_lacks_a_permission_is_named() {
        let mut consumer = Consumer::for_tests("c");
        consumer.permissions.clear();
        let text = missing_half(&consumer, "members.read", Some("acc0212b"));
        assert!(
            text.starts_with("The consumer is not registered with members.read"),
            "{text}"
        );
        consumer.permissions.push("members.read".parse().unwrap());
        let text = missing_half(&consumer, "members.read", Some("acc0212b"));
        assert!(
            text.contains("the token acc0212b… of its last such call does not"),
            "{text}"
        );
        let text = missing_half(&consumer, "members.read", None);
        assert!(text.contains("can be sent again"), "{text}");
    }
}
