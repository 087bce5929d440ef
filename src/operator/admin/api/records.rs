//! The operations on consumers, users, sessions and access tokens, and the signature doctor.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value, json};

use super::{
    ApiResult, Call,
    input::{typed, wrong},
    json_response, no_content, paged,
    problem::ApiError,
    record_url, tag,
};
use crate::{
    base::{
        clock::{UnixTime, parse_duration},
        secret::Secret,
        text::names::{ConsumerKey, Permission, UserId},
    },
    operator::{
        explain::pasted,
        manage::{InvalidInput, ManageError, new_user, view},
        reasons,
    },
    provider::{
        issue::registration::{self, InvalidText},
        pages::developer::Unchecked,
        respond::OwnResponse,
    },
    records::values::{
        record::{AccessToken, Consumer, Session, User},
        use_cases::{AuditEntry, AuditFilter, Change, RecordFilter, TokenFilter},
    },
    telemetry::calls::rejections::{KeptCall, ReasonCount},
};

const NO_CURSOR: &str = "this is not a cursor of this list";

/// The body of `POST /v1/consumers/{key}/secret`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotation {
    /// The time for which the previous secret also verifies, such as `24h`; none without it.
    #[serde(default, deserialize_with = "optional_duration")]
    grace: Option<Duration>,
    /// The new secret; a random one without it.
    #[serde(default, deserialize_with = "optional_secret")]
    secret: Option<Secret>,
}

/// The body of `POST /v1/consumers/{key}/approve`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Approve {
    /// The callbacks that it asks for.
    callbacks: Option<Vec<String>>,
}

/// The body of `POST /v1/consumers/{key}/decline`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decline {
    /// A sentence for the user.
    reason: String,
}

/// The body of `PUT /v1/users/{id}/password`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPassword {
    /// The password.
    #[serde(deserialize_with = "optional_secret")]
    password: Option<Secret>,
    /// The user has to choose another one after the next login.
    #[serde(default = "must_change")]
    must_change_password: bool,
}

const fn must_change() -> bool {
    true
}

/// The body of `POST /v1/tokens`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewToken {
    /// The key of the consumer.
    consumer: ConsumerKey,
    /// The id of the user that it acts for.
    user: UserId,
    /// The permissions that it grants; by default all of the consumer's.
    permissions: Option<Vec<Permission>>,
}

/// The body of `POST /v1/lookup/forget`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangedRecord {
    /// The key of a consumer that has changed.
    ConsumerKey(ConsumerKey),
    /// An access token that has changed.
    Token(String),
}

/// The body of `POST /v1/explain`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRequest {
    /// The request as it goes over the wire.
    request: String,
}

fn optional_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let duration = text.map(|text| parse_duration(&text)).transpose();
    duration.map_err(D::Error::custom)
}

/// Reads a secret.
fn optional_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    secret(Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Takes a secret out of members.
fn take_secret(members: &mut Map<String, Value>, name: &str) -> Result<Option<Secret>, ApiError> {
    let member = members.remove(name).unwrap_or_default();
    secret(member).map_err(|problem| wrong(name, problem.to_owned()))
}

/// The secret that a member holds. Serde's own message would repeat a number, which may be meant as one.
fn secret(member: Value) -> Result<Option<Secret>, &'static str> {
    match member {
        Value::Null => Ok(None),
        // A consumer that may have an empty one is registered by command.
        Value::String(secret) if secret.is_empty() => Err("it is empty"),
        Value::String(secret) => Ok(Some(secret.into())),
        _ => Err("this is not a text"),
    }
}

impl Call<'_> {
    fn record_filter(&self) -> Result<RecordFilter, ApiError> {
        Ok(RecordFilter {
            q: self.query.text("q").map(str::to_owned),
            enabled: self.query.parsed("enabled")?,
            ..RecordFilter::default()
        })
    }

    fn key(&self) -> Result<ConsumerKey, ApiError> {
        self.segment.parse().map_err(|_| ApiError::NotFound)
    }

    /// Accepts the record only in the state that `If-Match` names.
    fn guard<T: Serialize>(&self) -> impl Fn(&T) -> bool + Sync {
        |record| self.is_expected(&tag(record))
    }

    fn consumer_guard(&self) -> impl Fn(&Consumer) -> bool + Sync {
        |consumer| self.is_expected(&self.consumer_tag(consumer))
    }

    fn consumer_tag(&self, consumer: &Consumer) -> String {
        tag(&self.backend.manage.view(consumer))
    }

    async fn consumer_response(
        &self,
        consumer: Consumer,
        looked_up_at: Option<UnixTime>,
    ) -> ApiResult {
        let tag = self.consumer_tag(&consumer);
        let views = self.backend.manage.views(vec![consumer]).await?;
        let view = views.into_iter().next();
        let view = view.map(|(_, view)| view::with_lookup(view, looked_up_at));
        Ok(json_response(200, view).field("ETag", tag))
    }

    fn issued(&self, status: u16, consumer: &Consumer) -> OwnResponse {
        let view = self.backend.manage.view(consumer);
        let view = view::with_secret(view, "secret", &consumer.secret);
        json_response(status, view).field("ETag", self.consumer_tag(consumer))
    }

    pub(super) async fn list_consumers(&self) -> ApiResult {
        let limit = self.query.limit()?;
        let signed_within = self.query.duration("signed_within")?;
        let now = self.admin.control.clock.now();
        let manage = &self.backend.manage;
        let filter = RecordFilter {
            contact: self.query.text("contact").map(str::to_owned),
            signed_since: signed_within.map(|within| now.before(within)),
            unused_since: manage.unused_since(self.query.duration("unused_for")?),
            ..self.record_filter()?
        };
        let after = self.query.cursor()?;
        let listed = (manage.store).consumers(&filter, after.as_ref(), limit + 1);
        let views = manage.views(listed.await?).await?;
        let doors = signed_within.map(|_| self.admin.doors_of_day());
        let view = |(consumer, view): &(Consumer, Map<String, Value>)| {
            let mut view = view.clone();
            if let Some(doors) = &doors {
                let calls = doors.of(consumer.key.as_str());
                view.insert("calls_in_day".to_owned(), json!(calls));
            }
            json!(view)
        };
        Ok(paged(views, limit, view, |(last, _)| last.key.to_string()))
    }

    pub(super) async fn register_consumer(&mut self) -> ApiResult {
        let mut members = std::mem::take(&mut self.body);
        let secret = take_secret(&mut members, "secret")?;
        let registered = self.operator.register_consumer(members, secret);
        let consumer = registered.await.map_err(|error| match error {
            // The fault of the request, not of a record's state.
            ManageError::CannotSign => wrong("rsa_only", error.to_string()),
            error => error.into(),
        })?;
        let location = record_url("consumers", consumer.key.as_str());
        Ok(self.issued(201, &consumer).field("Location", location))
    }

    pub(super) async fn show_consumer(&self) -> ApiResult {
        let found = self.backend.manage.consumer_found(&self.key()?).await?;
        self.consumer_response(found.0, found.1).await
    }

    pub(super) async fn change_consumer(&self) -> ApiResult {
        let (key, guard) = (self.key()?, self.consumer_guard());
        let changed = self.operator.patch_consumer(&key, Some(&guard), &self.body);
        self.consumer_response(changed.await?, None).await
    }

    pub(super) async fn remove_consumer(&self) -> ApiResult {
        let (key, guard) = (self.key()?, self.consumer_guard());
        self.operator.remove_consumer(&key, Some(&guard)).await?;
        Ok(no_content())
    }

    pub(super) async fn rotate_secret(&mut self) -> ApiResult {
        let key = self.key()?;
        let Rotation { grace, secret } = typed(std::mem::take(&mut self.body))?;
        let guard = self.consumer_guard();
        let rotated = self
            .operator
            .rotate_secret(&key, Some(&guard), secret, grace);
        Ok(self.issued(200, &rotated.await?))
    }

    pub(super) async fn end_grace(&self) -> ApiResult {
        let (key, guard) = (self.key()?, self.consumer_guard());
        self.operator.end_grace(&key, Some(&guard)).await?;
        Ok(no_content())
    }

    pub(super) async fn list_registrations(&self) -> ApiResult {
        let (limit, manage) = (self.query.limit()?, &self.backend.manage);
        let after = self.query.cursor()?;
        let listed = (manage.store).undecided_consumers(after.as_ref(), limit + 1);
        let views = manage.views(listed.await?).await?;
        let view = |(_, view): &(Consumer, Map<String, Value>)| json!(view);
        Ok(paged(views, limit, view, |(last, _)| last.key.to_string()))
    }

    pub(super) async fn approve_consumer(&mut self) -> ApiResult {
        let Approve { callbacks } = typed(std::mem::take(&mut self.body))?;
        let (key, guard) = (self.key()?, self.consumer_guard());
        // An entity tag is of the record that was seen; `*` is of any.
        let names_record = |tags: &Vec<String>| tags.iter().all(|tag| tag != "*");
        let is_seen = self.conditions.as_ref().is_some_and(names_record);
        let none_named = (!is_seen).then_some(&[][..]);
        let seen = callbacks.as_deref().or(none_named);
        let approved = self.operator.approve_consumer(&key, Some(&guard), seen);
        self.consumer_response(approved.await?, None).await
    }

    pub(super) async fn decline_consumer(&mut self) -> ApiResult {
        let key = self.key()?;
        let Decline { reason } = typed(std::mem::take(&mut self.body))?;
        let guard = self.consumer_guard();
        let declined = self.operator.decline_consumer(&key, Some(&guard), &reason);
        self.consumer_response(declined.await?, None).await
    }

    pub(super) async fn make_developer_link(&self) -> ApiResult {
        let link = self.operator.make_developer_link(&self.key()?).await?;
        let url = link.url(&self.backend.base_url, &self.backend.rules.flow);
        let members = json!({ "url": url, "expires_at": link.until });
        Ok(json_response(201, members))
    }

    pub(super) async fn revoke_developer_link(&self) -> ApiResult {
        self.operator.revoke_developer_link(&self.key()?).await?;
        Ok(no_content())
    }

    async fn user(&self) -> Result<User, ApiError> {
        let id = self.segment.parse().map_err(|_| ApiError::NotFound)?;
        Ok(self.backend.manage.user_of_id(&id).await?)
    }

    fn user_response(&self, status: u16, user: &User) -> OwnResponse {
        json_response(status, user).field("ETag", tag(user))
    }

    async fn hash(&self, password: Secret) -> Result<Secret, ApiError> {
        let hashed = self.admin.hash(password).await?;
        Ok(hashed.map_err(|error| InvalidInput::member("password", error))?)
    }

    pub(super) async fn list_users(&self) -> ApiResult {
        let (limit, filter) = (self.query.limit()?, self.record_filter()?);
        let after = self.query.cursor()?;
        let store = &self.backend.manage.store;
        let listed = store.users(&filter, after.as_ref(), limit + 1);
        Ok(paged(
            listed.await?,
            limit,
            |user| json!(user),
            |last| last.id.to_string(),
        ))
    }

    pub(super) async fn add_user(&mut self) -> ApiResult {
        let mut members = std::mem::take(&mut self.body);
        let password = take_secret(&mut members, "password")?;
        if password.is_some() {
            let member = members.entry("must_change_password");
            member.or_insert_with(|| must_change().into());
        }
        let mut user = new_user(members, self.admin.control.clock.now())?;
        if let Some(password) = password {
            user.password_hash = Some(self.hash(password).await?);
        }
        self.operator.add_user(&user).await?;
        let location = record_url("users", user.id.as_str());
        Ok(self.user_response(201, &user).field("Location", location))
    }

    pub(super) async fn show_user(&self) -> ApiResult {
        Ok(self.user_response(200, &self.user().await?))
    }

    pub(super) async fn change_user(&self) -> ApiResult {
        let id = self.segment.parse().map_err(|_| ApiError::NotFound)?;
        let guard = self.guard();
        let changed = self.operator.patch_user(&id, Some(&guard), &self.body);
        Ok(self.user_response(200, &changed.await?))
    }

    pub(super) async fn remove_user(&self) -> ApiResult {
        let (user, guard) = (self.user().await?, self.guard());
        self.operator.remove_user(&user, Some(&guard)).await?;
        Ok(no_content())
    }

    pub(super) async fn set_password(&mut self) -> ApiResult {
        let new: NewPassword = typed(std::mem::take(&mut self.body))?;
        let (user, guard) = (self.user().await?, self.guard());
        let hash = self.hash(new.password.unwrap_or_default()).await?;
        let must_change = new.must_change_password;
        self.operator
            .set_password(&user, Some(&guard), hash, must_change)
            .await?;
        Ok(no_content())
    }

    pub(super) async fn list_sessions(&self) -> ApiResult {
        let (limit, user) = (self.query.limit()?, self.user().await?);
        let now = self.admin.control.clock.now();
        let sessions = self.backend.manage.store.sessions_of(&user.id, now).await?;
        // A user has few sessions. The cursor is the number of sessions before the page.
        let before = self.query.cursor()?.unwrap_or(0_usize);
        let most = limit as usize + 1;
        let rest = sessions.into_iter().skip(before).take(most);
        let rest = Vec::from_iter(rest.enumerate());
        let view = |(_, session): &(usize, Session)| json!(session);
        Ok(paged(rest, limit, view, |(index, _)| {
            (before + index + 1).to_string()
        }))
    }

    pub(super) async fn end_sessions(&self) -> ApiResult {
        let (user, guard) = (self.user().await?, self.guard());
        self.operator.end_sessions(&user.id, Some(&guard)).await?;
        Ok(no_content())
    }

    pub(super) async fn end_login_pauses(&self) -> ApiResult {
        let user = self.user().await?;
        let report = self.backend.throttle.report_of_end(&user.name);
        self.operator.end_login_pauses(&user.id, report).await?;
        Ok(no_content())
    }

    fn token_filter(&self) -> Result<TokenFilter, ApiError> {
        Ok(TokenFilter {
            user: self.query.parsed("user")?,
            consumer: self.query.parsed("consumer")?,
            ..TokenFilter::default()
        })
    }

    pub(super) async fn list_tokens(&self) -> ApiResult {
        let (limit, mut filter) = (self.query.limit()?, self.token_filter()?);
        let manage = &self.backend.manage;
        let ends_within = self.query.duration("ends_within")?;
        filter.ends = ends_within.map(|time| manage.ends_within(time));
        filter.unused_since = manage.unused_since(self.query.duration("unused_for")?);
        let after = match self.query.text("cursor") {
            None => (UnixTime(0), ""),
            Some(cursor) => {
                let parts = cursor
                    .split_once('.')
                    .filter(|(_, token)| !token.contains('\0'));
                let parts =
                    parts.and_then(|(time, token)| Some((UnixTime(time.parse().ok()?), token)));
                parts.ok_or_else(|| wrong("cursor", NO_CURSOR.to_owned()))?
            }
        };
        let listed = (manage.store).idle_access_tokens(&filter, after, limit + 1);
        let next = |last: &AccessToken| {
            let used = last.last_used_at.unwrap_or(last.issued_at);
            format!("{}.{}", used.0, last.token)
        };
        Ok(paged(listed.await?, limit, |token| json!(token), next))
    }

    pub(super) async fn issue_token(&mut self) -> ApiResult {
        let is_given = self.body.get("permissions").is_some_and(|it| !it.is_null());
        let new: NewToken = typed(std::mem::take(&mut self.body))?;
        let permissions = new.permissions.unwrap_or_default();
        if permissions.is_empty() && is_given {
            return Err(wrong(
                "permissions",
                "name one at least, or leave it out for all".to_owned(),
            ));
        }
        let manage = &self.backend.manage;
        let consumer = manage.consumer(&new.consumer).await?;
        let user = manage.user_of_id(&new.user).await?;
        let issued = self.operator.issue_token(&consumer, &user, permissions);
        let token = issued.await?;
        let view = view::with_secret(view::members(&token), "token_secret", &token.secret);
        Ok(json_response(201, view)
            .field("Location", record_url("tokens", &token.token))
            .field("ETag", tag(&token)))
    }

    pub(super) async fn revoke_tokens(&self) -> ApiResult {
        let filter = self.token_filter()?;
        let unused_for = self.query.duration("unused_for")?;
        if filter.user.is_none() && filter.consumer.is_none() && unused_for.is_none() {
            let problem = "name the tokens by consumer, user or unused_for";
            return Err(wrong("consumer", problem.to_owned()));
        }
        let revoked = self.operator.revoke_tokens(filter, unused_for).await?;
        Ok(json_response(200, json!({ "revoked": revoked })))
    }

    pub(super) async fn show_token(&self) -> ApiResult {
        let found = self.backend.manage.token_found(&self.segment, true);
        let (token, looked_up_at) = found.await?;
        let view = view::with_lookup(view::members(&token), looked_up_at);
        Ok(json_response(200, view).field("ETag", tag(&token)))
    }

    pub(super) async fn revoke_token(&self) -> ApiResult {
        let manage = &self.backend.manage;
        let token = manage.token(&self.segment, true).await?;
        let guard = self.guard();
        self.operator.revoke_token(&token, Some(&guard)).await?;
        Ok(no_content())
    }

    #[expect(clippy::unused_async, reason = "as the other actions")]
    pub(super) async fn list_rejections(&self) -> ApiResult {
        let limit = self.query.limit()?;
        let mut rejections = self.admin.shared.rejections.newest();
        if let Some(cursor) = self.query.cursor::<u64>()? {
            rejections.retain(|one| one.number < cursor);
        }
        let next = |last: &Arc<KeptCall>| last.number.to_string();
        Ok(paged(rejections, limit, |one| json!(**one), next))
    }

    pub(super) async fn summarize_rejections(&self) -> ApiResult {
        let limit = self.query.limit()?;
        let rejections = &self.admin.shared.rejections;
        let consumer: Option<ConsumerKey> = self.query.parsed("consumer")?;
        let reasons = match &consumer {
            Some(key) => reasons::for_consumer(rejections, key.as_str()),
            None => rejections.reasons(None),
        };
        // The cursor is the number of those before.
        let before = self.query.cursor::<usize>()?.unwrap_or_default();
        let rest = Vec::from_iter((1..).zip(reasons).skip(before));
        let next = |last: &(usize, ReasonCount)| last.0.to_string();
        let key = |one: &ReasonCount| one.newest.call.named_consumer().map(str::to_owned);
        let keys = HashSet::<_>::from_iter(rest.iter().filter_map(|(_, one)| key(one)));
        let keys = Vec::from_iter(keys.iter().map(String::as_str));
        let known = self.backend.manage.store.listed_consumers(&keys).await?;
        let (metrics, now) = (&self.admin.shared.metrics, self.admin.control.clock.now());
        let view = |(_, one): &(usize, ReasonCount)| {
            let key = key(one).unwrap_or_default();
            reasons::summary(one, known.get(&key), metrics.accepted_of(&key), now)
        };
        Ok(paged(rest, limit, view, next))
    }

    pub(super) async fn list_audit(&self) -> ApiResult {
        let limit = self.query.limit()?;
        let text = |name| self.query.text(name).map(str::to_owned);
        let consumer: Option<ConsumerKey> = self.query.parsed("consumer")?;
        let user: Option<UserId> = self.query.parsed("user")?;
        let filter = AuditFilter {
            consumer: consumer.map(|key| key.to_string()),
            user: user.map(|id| id.to_string()),
            actor: text("actor"),
            event: text("kind"),
            ..AuditFilter::default()
        };
        let before = self.query.cursor::<i64>()?;
        let store = &self.backend.manage.store;
        let found = store.audit_records(&filter, before, limit + 1);
        let next = |entry: &AuditEntry| entry.position.to_string();
        let view = |entry: &AuditEntry| {
            let mut members = view::members(&entry.record);
            members.shift_insert(0, "time".to_owned(), json!(entry.at));
            Value::Object(members)
        };
        Ok(paged(found.await?, limit, view, next))
    }

    pub(super) async fn forget_lookup(&mut self) -> ApiResult {
        let change = match typed(std::mem::take(&mut self.body))? {
            ChangedRecord::ConsumerKey(key) => Change::Consumer(key),
            ChangedRecord::Token(token) => {
                let invalid = |error: InvalidText| InvalidInput::member("token", error.to_string());
                registration::token(&token).map_err(invalid)?;
                Change::AccessToken(token)
            }
        };
        self.backend.manage.forget_external(change).await?;
        Ok(no_content())
    }

    pub(super) async fn explain(&mut self) -> ApiResult {
        let RawRequest { request } = typed(std::mem::take(&mut self.body))?;
        let invalid = |problem: String| InvalidInput::member("request", problem);
        let message = pasted::http(&request).map_err(invalid)?;
        match self.admin.explainer(self.backend).explain(message).await {
            Ok(explained) => Ok(json_response(200, explained.view)),
            Err(Unchecked::Unreadable(problem)) => Err(invalid(problem).into()),
            Err(Unchecked::Store(error)) => Err(error.into()),
            Err(Unchecked::Pool(error)) => Err(error.into()),
        }
    }
}
