//! The page of one consumer: the answer to why its calls are rejected comes first.

use askama::Template;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::tokens::TokenRow;
use crate::{
    base::{
        clock::UnixTime,
        text::names::{ConsumerKey, Permission},
    },
    operator::{
        admin::console::{
            ConsoleRequest, Rejected, Result,
            calls::reasons::{CountedSince, RejectedConsumer},
            chart::{self, Chart},
            page::{ConsoleFrame, show},
            parts::{
                Grace, Moment, Named, Names, Number, Tag, counted, field_text, last_use, path, time,
            },
        },
        manage::{CONSUMER_FIELDS, FieldKind, RecordField, view},
        reasons::attention::AfterRejection,
    },
    provider::respond::OwnResponse,
    records::values::{
        record::{AccessToken, BEARER, Consumer, Registration},
        use_cases::{AuditFilter, TokenFilter},
    },
    telemetry::{
        calls::{consumer_calls::DoorCalls, last_day::LastDay, rejections::ReasonCount},
        redact::RedactedToken,
    },
};

/// Tokens on the page of a consumer or a user.
const TOKENS: u32 = 20;

/// The most tokens of a consumer of which those with a permission are counted.
const COUNTED: u32 = 1_000;

#[derive(Template)]
#[template(path = "console/consumer.html")]
struct ConsumerPage<'a> {
    frame: ConsoleFrame<'a>,
    is_done: bool,
    revoked: Option<String>,
    last_acts: Vec<(String, String, Moment)>,
    consumer: &'a Consumer,
    state: Vec<Tag>,
    /// Signatures are enforced, not only observed.
    enforces: bool,
    last_call: Option<Moment>,
    /// The method and the dialect of that call.
    last_method: String,
    previous: Option<Grace>,
    /// The end of the link of its developer.
    link: Option<Moment>,
    reasons: Vec<RejectedConsumer>,
    reasons_have_consumers: bool,
    /// The permissions that a call lacked, and which half lacks each.
    missing: Vec<String>,
    started: Moment,
    /// The calls of the last day in this process, those of them that were rejected, and both by hour.
    day: (String, Number),
    /// The accepted ones by each door, where Bearer tokens are accepted.
    doors: Option<DoorCalls>,
    /// The last signed call, if a later one came with a Bearer token.
    last_signed: Option<Moment>,
    chart: Option<Chart>,
    may_write: bool,
    /// The time at which the application had it, if it is one of the application.
    looked_up: Option<Moment>,
    /// The user who manages it.
    owner: Option<Named>,
    /// An operator has to decide, or can.
    can_approve: bool,
    can_decline: bool,
    /// `?key=` of this consumer.
    query: String,
    tokens: Vec<TokenRow>,
    tokens_of: &'static str,
    /// `?consumer=` with its key.
    of: String,
    /// The number of settings that are not the usual ones, in words.
    set: String,
    settings: Vec<(&'static str, String)>,
    registered: Moment,
}

impl ConsoleRequest<'_> {
    /// The consumer that `key` names.
    pub(crate) async fn named_consumer(&self) -> Result<Consumer> {
        let key: Option<ConsumerKey> = self.field("key").parse().ok();
        let key = key.ok_or(Rejected::NotFound)?;
        Ok(self.backend.manage.consumer(&key).await?)
    }

    pub(crate) async fn consumer(&self) -> Result<OwnResponse> {
        let key: Option<ConsumerKey> = self.field("key").parse().ok();
        let key = key.ok_or(Rejected::NotFound)?;
        let (consumer, looked_up_at) = self.backend.manage.consumer_found(&key).await?;
        let key = consumer.key.as_str();
        let mut views = self.backend.manage.views(vec![consumer.clone()]).await?;
        let view = views.pop().map(|(_, view)| view).unwrap_or_default();
        let word = |name: &str| view.get(name).and_then(Value::as_str);
        let last_method = match (word("last_method"), word("last_dialect")) {
            (Some(method), Some(dialect)) => format!("{method}, base string {dialect}"),
            (Some(BEARER), None) => "with a Bearer token".to_owned(),
            _ => "an imported token".to_owned(),
        };
        let groups = self.admin.shared.rejections.reasons(Some(key));
        let names = self.names_of(&groups).await?;
        let missing = self.missing(&consumer, &groups, &names).await?;
        let live = self.admin.shared.live.load();
        let enforces = live.authorizer.enforces();
        let accepts_tokens = live.authorizer.bearer.is_some();
        drop(live);
        let is_by_token = word("last_method") == Some(BEARER);
        let last_signed = view.get("last_signed_at").filter(|_| is_by_token);
        let last_signed = last_signed.and_then(|at| UnixTime::deserialize(at).ok());
        let settings = settings(&consumer, &view, self.now, enforces);
        let day = self.calls_of_day(key);
        let [accepted, rejected] = [0, 1].map(|index| day[index].sum(self.now));
        let by_hour = || (day[0].by_hour(self.now), day[1].by_hour(self.now));
        let wrong = match enforces || consumer.enforce {
            true => "rejected",
            false => "rejected, or would be",
        };
        let store = &self.backend.manage.store;
        let link = store.developer_link_of(&consumer.key, self.now);
        let is_asked = !consumer.asked_callbacks.is_empty();
        let registration = consumer.registration;
        let page = ConsumerPage {
            enforces: enforces || consumer.enforce,
            frame: self.shell.frame(&*consumer.name),
            is_done: !self.field("done").is_empty(),
            revoked: self.revoked(),
            last_acts: self.last_acts(AuditFilter::for_consumer(key)).await?,
            consumer: &consumer,
            doors: accepts_tokens.then(|| self.admin.doors_of_day().of(key)),
            last_signed: last_signed.map(|at| self.moment(at)),
            state: self.state(&consumer),
            last_call: last_use(&view).map(|last| self.moment(last)),
            last_method,
            previous: self.grace(&consumer),
            link: link.await?.map(|until| self.moment(until)),
            missing,
            reasons: self.reasons(&groups, &names, CountedSince::Start).await?,
            reasons_have_consumers: false,
            started: self.moment(self.admin.shared.rejections.since),
            day: (counted(accepted + rejected, "call"), Number(rejected)),
            chart: (accepted + rejected > 0)
                .then(|| chart::for_consumer(self.now, by_hour(), wrong)),
            may_write: self.may_write() && looked_up_at.is_none(),
            looked_up: looked_up_at.map(|at| self.moment(at)),
            owner: match &consumer.owner {
                Some(owner) => {
                    let names = self.names(std::iter::empty(), [owner.as_str()].into_iter());
                    Some(names.await?.user(owner.as_str()))
                }
                None => None,
            },
            can_approve: is_asked || registration.is_some_and(|it| it != Registration::Approved),
            can_decline: is_asked || registration == Some(Registration::Waiting),
            query: path("", &[("key", key)]),
            tokens: self
                .some_tokens(TokenFilter::for_consumer(&consumer.key))
                .await?,
            tokens_of: "consumer",
            of: path("", &[("consumer", key)]),
            set: {
                let set = settings.iter().filter(|(_, text)| !is_usual(text));
                counted(set.count() as u64, "setting") + " changed from the default"
            },
            settings,
            registered: self.moment(consumer.created_at),
        };
        Ok(show(200, &page))
    }

    /// Which half of each permission is missing that calls lacked, unless later ones were right.
    async fn missing(
        &self,
        consumer: &Consumer,
        groups: &[ReasonCount],
        names: &Names,
    ) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for group in groups {
            let newest = &group.newest.call;
            let is_past = matches!(self.after(group, names), AfterRejection::Accepted(_));
            let Some(permission) = newest.missing_permission.as_deref().filter(|_| !is_past) else {
                continue;
            };
            let token = match newest.named_token() {
                Some(start) => self.token_beginning(start).await?,
                None => None,
            };
            let token = token.filter(|token| token.consumer == consumer.key);
            let all = TokenFilter::for_consumer(&consumer.key);
            let store = &self.backend.manage.store;
            let tokens = store.recent_access_tokens(&all, None, COUNTED);
            let mut tokens = tokens.await?;
            tokens.retain(|token| token.expires_at.is_none_or(|end| self.now < end));
            let has = |token: &&AccessToken| {
                let permissions = &token.permissions;
                permissions.iter().any(|it| it.as_str() == permission)
            };
            let counts = (tokens.iter().filter(has).count(), tokens.len());
            missing.extend(missing_half(consumer, permission, token.as_ref(), counts));
        }
        Ok(missing)
    }

    /// The accepted calls of a consumer in the last 24 hours, and those that were rejected, or would be.
    fn calls_of_day(&self, key: &str) -> [LastDay; 2] {
        let (shared, charts) = (&self.admin.shared, &self.admin.control.console.charts);
        let accepted = shared.metrics.accepted_of(key);
        let accepted = charts.consumers.day_of(key, self.now, accepted);
        [accepted, shared.rejections.last_day(key)]
    }

    /// The token that begins with these characters, if there is one.
    pub(crate) async fn token_beginning(&self, start: &str) -> Result<Option<AccessToken>> {
        match self.backend.manage.token(start, false).await {
            Ok(token) => Ok(Some(token)),
            Err(error) if error.status() >= 500 => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// The tokens of a filter that were used last.
    pub(crate) async fn some_tokens(&self, filter: TokenFilter) -> Result<Vec<TokenRow>> {
        let store = &self.backend.manage.store;
        let found = store.recent_access_tokens(&filter, None, TOKENS);
        self.token_rows(&found.await?).await
    }
}

/// Which half of a permission is missing now, of a call that lacked it and of the token that it named, if that is known; `tokens`
/// counts the valid ones of the consumer that have it, and all.
fn missing_half(
    consumer: &Consumer,
    permission: &str,
    token: Option<&AccessToken>,
    (with, tokens): (usize, usize),
) -> Option<String> {
    let has = |permissions: &[Permission]| permissions.iter().any(|it| it.as_str() == permission);
    if !has(&consumer.permissions) {
        let others = match (with, tokens) {
            (_, 0) => "It has no token yet.".to_owned(),
            (with, all) if with == all => {
                "Its tokens have it, so that nothing else is missing.".to_owned()
            }
            (with, all) => format!(
                "{with} of its {all} tokens {} {permission}; users of the others have to allow it again.",
                if with == 1 { "has" } else { "have" }
            ),
        };
        return Some(format!(
            "The consumer lacks {permission}: edit it. {others}"
        ));
    }
    match token {
        None => Some(format!(
            "The consumer has {permission} now. The last call that lacked it named no token that is known here."
        )),
        Some(token) if has(&token.permissions) => Some(format!(
            "Consumer and token {} both have {permission} now: nothing is missing.",
            RedactedToken(&token.token)
        )),
        Some(token) => Some(format!(
            "The token {} lacks {permission}: its user {} has to allow it again.",
            RedactedToken(&token.token),
            token.user
        )),
    }
}

pub(crate) fn is_usual(text: &str) -> bool {
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
    use crate::{base::secret::Secret, records::values::record::TokenBeginning};

    #[test]
    fn the_half_that_lacks_a_permission_is_named() {
        let mut consumer = Consumer::for_tests("c");
        consumer.permissions.clear();
        let permission: Permission = "members.read".parse().unwrap();
        let mut token = AccessToken {
            token: "acc0212bcdefghijklmnopqrstuvw".to_owned(),
            secret: Secret::default(),
            consumer: consumer.key.clone(),
            user: "nina".parse().unwrap(),
            permissions: Vec::new(),
            issued_at: UnixTime(0),
            expires_at: None,
            last_used_at: None,
            last_used_from: None,
            revoked_at: None,
            began: TokenBeginning::default(),
            with_display_name: false,
        };
        let said = |consumer: &Consumer, token: Option<&AccessToken>, counts| {
            missing_half(consumer, "members.read", token, counts).unwrap()
        };
        for (counts, expected) in [
            ((0, 0), "It has no token yet."),
            (
                (1, 15),
                "1 of its 15 tokens has members.read; users of the others",
            ),
            ((15, 15), "so that nothing else is missing"),
        ] {
            let text = said(&consumer, Some(&token), counts);
            assert!(
                text.starts_with("The consumer lacks members.read: edit it."),
                "{text}"
            );
            assert!(text.contains(expected), "{text}");
        }
        consumer.permissions.push(permission.clone());
        let text = said(&consumer, Some(&token), (1, 2));
        assert!(
            text.starts_with("The token acc0212b… lacks members.read: its user"),
            "{text}"
        );
        token.permissions.push(permission);
        let text = said(&consumer, Some(&token), (1, 2));
        assert!(text.contains("both have members.read now"), "{text}");
        let text = said(&consumer, None, (1, 2));
        assert!(text.contains("named no token that is known here"), "{text}");
    }
}
