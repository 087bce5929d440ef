//! The format of an export: JSON Lines in UTF-8, an object a line, each with its `kind`.
//!
//! | `kind` | members |
//! |---|---|
//! | `export` | the first line and no other: `version`; `records`, the number of lines that follow, if that is known; in version 2 also `store`, the random name of the store, and `accepted_until`, the last timestamp of a request that it may have accepted |
//! | `consumer` | `key`, `secret`, `name`; and `previous_secret`, and all members of [`Consumer`] |
//! | `user` | `id`, `name`; and `password_hash` (see `import --help`), and all members of [`User`] |
//! | `token` | an access token: `token`, `token_secret`, `consumer` (its key), `user` (its id); and `permissions`, `issued_at`, `expires_at`, `last_used_at`, `last_used_from`, `revoked_at`, `began`, `with_display_name` |
//! | `removed_consumer` | `key`, never to be used again |
//! | `removed_user` | `id`, never to be used again |
//! | `removed_token` | `token`, never to be used again |
//!
//! The members after "and" may be left out or null: lists are empty then, `enabled` is true, `rsa_only`, `enforce` and
//! `with_display_name` are false,
//! `created_at` and `issued_at` are the time of the import, everything else is absent. A secret that is not UTF-8 is
//! written in base64 under its name with `_base64` at the end. Times are written as RFC 3339; [`UnixTime::from_written`] reads
//! other forms too. An unknown member is an
//! error, and so is a repeated one: a mistyped `enabled` must not enable a consumer that should be disabled. Empty
//! lines are ignored. The order of the lines has no meaning, but for the first.
//!
//! An export has version 2. A file of another system has version 1, and so have exports of older versions of this program.

use std::net::IpAddr;

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::member_names;
use crate::{
    base::{
        clock::{InvalidTime, UnixTime},
        secret::Secret,
        text::{longest, names::UserId},
    },
    oauth::Deviation,
    operator::manage::{
        consumers::check_secret,
        input::InvalidInput,
        record_fields::{ASKED_MEMBERS, CONSUMER_FIELDS, USER_FIELDS, check_items, check_members},
        view,
    },
    provider::{
        issue::{
            callback,
            registration::{self, InvalidText},
        },
        login::password::{self, UnusableHash},
    },
    records::values::{
        record::{AccessToken, Consumer, User},
        transfer::{MUST_CHANGE, Record},
    },
    telemetry::log::lines::visible,
};

/// The version of the format that is written. Version 1 does not say where the records are from.
pub(crate) const VERSION: u32 = 2;

/// The problem of a line.
#[derive(Debug, Clone, Error)]
pub(crate) enum LineError {
    #[error("{0}")]
    Json(String),
    #[error("missing field `{0}`")]
    Missing(&'static str),
    #[error("unknown field `{}`{hint}", visible(name))]
    Unknown { name: String, hint: String },
    #[error(
        "the kind {0:?} is not one of consumer, user, token, removed_consumer, removed_user, removed_token"
    )]
    Kind(String),
    #[error("a secret or a hash is not in quotes")]
    Unquoted,
    #[error("is not a JSON object")]
    NotAnObject,
    #[error("the record continues on other lines; write each record on one line, as jq -c does")]
    SeveralLines,
    #[error("the first line of an export is {{\"kind\":\"export\",\"version\":1}}; add it")]
    NotAnExport,
    #[error("the file is empty; take a complete one")]
    Empty,
    #[error(
        "is a JSON array; write each record on a line of its own, after {{\"kind\":\"export\",\"version\":1}}"
    )]
    Array,
    #[error(
        "is not JSON; for a file of CSV say what its rows are: --csv consumer, --csv user or --csv token"
    )]
    NotJson,
    #[error("a second export begins here; import one after the other")]
    SecondExport,
    #[error(
        "the export is of version {0} and this program reads {VERSION}; use a countersign that reads version {0}"
    )]
    Version(u64),
    #[error(
        "the export does not say with store and accepted_until which requests its store may have accepted; take one as \
         countersign export wrote it"
    )]
    OriginMissing,
    #[error(
        "accepted_until is {0}, more than a day from now: correct the clock of this machine or of the one that made the \
         export, and export again"
    )]
    OriginAhead(UnixTime),
    #[error(
        "the file ends after {found} of {announced} records, so it was cut off; take a complete one"
    )]
    CutOff { found: usize, announced: usize },
    #[error("is on {0} {1} already; remove one of the two")]
    Twice(&'static str, usize),
    #[error("{0} is missing or empty")]
    SecretMissing(&'static str),
    #[error("{0} is longer than {max} bytes", max = longest::SECRET)]
    SecretTooLong(&'static str),
    #[error("{0} and {0}_base64 are both given; remove one")]
    SecretTwice(&'static str),
    #[error("{0}_base64: {1}")]
    Base64(&'static str, DecodeError),
    #[error("previous_secret and previous_secret_until need each other")]
    HalfPreviousSecret,
    #[error("{}", .0.detail)]
    Member(#[from] InvalidInput),
    #[error("rsa_only needs rsa_public_key")]
    CannotSign,
    #[error(
        "names no user, and an access token acts for one; give all such tokens a user with --token-user, or remove the \
         line and let the consumer sign without a token, where access has application"
    )]
    NoUser,
    #[error("token: {0}")]
    Token(#[from] InvalidText),
    #[error(
        "password_hash {0}; leave it out and set a password, or let the old system check passwords (login.backend = \"http\")"
    )]
    PasswordHash(#[from] UnusableHash),
    #[error("{0}: {1}")]
    Time(String, InvalidTime),
    #[error(
        "{0}: {1} is not an IP address such as 192.0.2.7 or 2001:db8::7; correct it or leave it out"
    )]
    Address(&'static str, String),
    #[error("{0}: {1:?} is neither true nor false")]
    Flag(String, String),
    #[error("has {found} cells and the header {expected}")]
    Cells { found: u64, expected: u64 },
    #[error(
        "{0} has a backslash; say what it means: --backslashes escape for mysql --batch, --backslashes literal for psql --csv"
    )]
    Backslash(String),
    #[error(
        "has text after a quoted cell, or a quote that is not closed; a quote inside a quoted cell is written twice (RFC 4180), and \
         mysql --batch quotes nothing: --backslashes escape"
    )]
    Misquoted,
    #[error("is not UTF-8")]
    NotUtf8,
}

/// The first line, but for its kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) records: Option<usize>,
    pub(crate) store: Option<String>,
    pub(crate) accepted_until: Option<UnixTime>,
}

/// A record as the members of its line.
pub(crate) fn line(record: &Record) -> Map<String, Value> {
    let only_member = |name: &str, value| Map::from_iter([(name.to_owned(), value)]);
    let mut members = match record {
        Record::Consumer(consumer) => {
            let mut members = view::members(consumer);
            if let Some((secret, _)) = &consumer.previous_secret {
                members = view::with_secret(members, "previous_secret", secret);
            }
            view::with_secret(members, "secret", &consumer.secret)
        }
        Record::User(user) => match &user.password_hash {
            Some(hash) => view::with_secret(view::members(user), "password_hash", hash),
            None => view::members(user),
        },
        Record::AccessToken(token) => {
            view::with_secret(view::members(token), "token_secret", &token.secret)
        }
        Record::RemovedConsumer(key) => only_member("key", json!(key)),
        Record::RemovedUser(id) => only_member("id", json!(id)),
        Record::RemovedToken(token) => only_member("token", json!(token)),
    };
    members.shift_insert(0, "kind".to_owned(), record.identity().0.into());
    members
}

/// The values that a line may leave out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    /// The time of registration or issue.
    pub(crate) now: UnixTime,
    /// The user of tokens that name none.
    pub(crate) token_user: Option<UserId>,
    /// The last timestamp that the store of an export may have accepted.
    pub(crate) accepted_until: UnixTime,
    /// The line of a consumer may have only the members to change.
    pub(crate) updates: bool,
    /// A record that cannot be read is skipped.
    pub(crate) skips_invalid: bool,
}

/// The members of consumers that none can be without.
const NEEDED: [&str; 3] = ["name", "enabled", "secret"];

/// The members that the line of a consumer leaves out. A null is a value, but not for a member that is needed.
fn left_out(members: &Map<String, Value>) -> Vec<String> {
    let has = |name: &str| {
        let value = members.get(name);
        value.is_some_and(|value| !value.is_null() || !NEEDED.contains(&name))
    };
    let has_secret = |name: &str| has(name) || has(&format!("{name}_base64"));
    let fields = CONSUMER_FIELDS.iter().map(|field| field.name);
    let others = ["enabled"].into_iter().chain(ASKED_MEMBERS);
    let fields = fields.chain(others).filter(|name| !has(name));
    let secrets = ["secret", "previous_secret"].into_iter();
    let secrets = secrets.filter(|name| !has_secret(name));
    fields.chain(secrets).map(str::to_owned).collect()
}

/// The record that a line holds, and the members that it leaves out, of those for which the store's own value may count.
pub(crate) fn record(
    mut members: Map<String, Value>,
    defaults: &Defaults,
) -> Result<(Record, Vec<String>), LineError> {
    let is_update = defaults.updates && members.get("kind").is_some_and(|kind| kind == "consumer");
    let mut left_out = match is_update {
        true => left_out(&members),
        false => Vec::new(),
    };
    members.retain(|_, value| !value.is_null());
    let kind: String = take(&mut members, "kind")?;
    if kind == "user" && !members.contains_key(MUST_CHANGE) {
        left_out.push(MUST_CHANGE.to_owned());
    }
    // A mistyped name is reported as unknown, which says more than that a member is missing.
    for name in members.keys() {
        if let Some(hint) = member_names::hint_if_unknown(&kind, name) {
            let name = name.clone();
            return Err(LineError::Unknown { name, hint });
        }
    }
    read_times(&mut members)?;
    let now = || json!(defaults.now);
    let record = match &*kind {
        "export" => return Err(LineError::SecondExport),
        "consumer" => {
            members.entry("created_at").or_insert_with(now);
            Record::Consumer(consumer(members, is_update)?)
        }
        "user" => {
            members.entry("created_at").or_insert_with(now);
            Record::User(user(members)?)
        }
        "token" => {
            members.entry("issued_at").or_insert_with(now);
            if let Some(user) = &defaults.token_user {
                members.entry("user").or_insert_with(|| json!(user));
            }
            Record::AccessToken(token(members)?)
        }
        "removed_consumer" => Record::RemovedConsumer(only(members, "key")?),
        "removed_user" => Record::RemovedUser(only(members, "id")?),
        "removed_token" => Record::RemovedToken(checked_token(only(members, "token")?)?),
        _ => return Err(LineError::Kind(kind)),
    };
    Ok((record, left_out))
}

/// Reads the times, and writes each as its type does.
fn read_times(members: &mut Map<String, Value>) -> Result<(), LineError> {
    let is_time = |name: &str| name.ends_with("_at") || name.ends_with("_until");
    for (name, value) in members.iter_mut().filter(|(name, _)| is_time(name)) {
        let text = match value.take() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let time = UnixTime::from_written(&text);
        *value = json!(time.map_err(|error| LineError::Time(name.clone(), error))?);
    }
    Ok(())
}

/// With `is_update` the members are only those to change, and the import checks the consumer that results.
fn consumer(mut members: Map<String, Value>, is_update: bool) -> Result<Consumer, LineError> {
    // An export writes empty secrets too.
    let [is_empty, is_previous_empty] = ["secret", "previous_secret"]
        .map(|name| members.get(name).is_some_and(|secret| secret == ""));
    let secret = match is_empty {
        true => members.remove("secret").and(None),
        false => take_secret(&mut members, "secret")?,
    };
    let accept = members.get("accept").and_then(Value::as_array);
    let may_be_empty =
        accept.is_some_and(|all| all.iter().any(|it| it == Deviation::EmptySecret.as_str()));
    let previous = match is_previous_empty && may_be_empty {
        true => members
            .remove("previous_secret")
            .and(Some(Secret::from(""))),
        false => take_secret(&mut members, "previous_secret")?,
    };
    let until = members.remove("previous_secret_until");
    let until: Option<UnixTime> = until.map(serde_json::from_value).transpose()?;
    if previous.is_some() != until.is_some() {
        return Err(LineError::HalfPreviousSecret);
    }
    if is_update && let Some(key) = members.get("key").cloned() {
        members.entry("name").or_insert(key);
    }
    check_members(CONSUMER_FIELDS, &mut members)?;
    let read: Consumer = whole(members)?;
    for asked in &read.asked_callbacks {
        callback::check_registration(asked).map_err(|problem| {
            InvalidInput::member(
                "asked_callbacks",
                format!("asked_callbacks {asked:?}: {problem}"),
            )
        })?;
    }
    if let Some(decision) = &read.decision {
        registration::shown_name(decision)
            .map_err(|problem| InvalidInput::member("decision", format!("decision: {problem}")))?;
    }
    // The secret of a consumer that signs with its RSA key alone proves nothing.
    let empty = || (may_be_empty || is_update || read.rsa_only).then(|| Secret::from(""));
    let consumer = Consumer {
        secret: secret
            .or_else(empty)
            .ok_or(LineError::SecretMissing("secret"))?,
        previous_secret: previous.zip(until),
        ..read
    };
    let can_sign = is_update || consumer.can_sign();
    can_sign.then_some(consumer).ok_or(LineError::CannotSign)
}

fn user(mut members: Map<String, Value>) -> Result<User, LineError> {
    let hash = members.remove("password_hash").map(text).transpose()?;
    let hash = hash.and_then(password::known_form);
    check_members(USER_FIELDS, &mut members)?;
    let user = User {
        password_hash: hash.map(Secret::from),
        ..whole(members)?
    };
    if let Some(hash) = &user.password_hash {
        password::check_usable(hash)?;
    }
    Ok(user)
}

fn token(mut members: Map<String, Value>) -> Result<AccessToken, LineError> {
    let secret = take_secret(&mut members, "token_secret")?;
    if !members.contains_key("user") {
        return Err(LineError::NoUser);
    }
    if let Some(address) = members.get("last_used_from") {
        let parsed = address.as_str().map(str::parse::<IpAddr>);
        if !matches!(parsed, Some(Ok(_))) {
            return Err(LineError::Address("last_used_from", address.to_string()));
        }
    }
    let token: AccessToken = whole(members)?;
    check_items("permissions", token.permissions.len())?;
    Ok(AccessToken {
        token: checked_token(token.token)?,
        secret: secret.ok_or(LineError::SecretMissing("token_secret"))?,
        ..token
    })
}

fn checked_token(token: String) -> Result<String, LineError> {
    registration::token(&token)?;
    Ok(token)
}

/// Reads a record, and names the member that is at fault.
fn whole<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, LineError> {
    serde_path_to_error::deserialize(Value::Object(members)).map_err(|error| {
        let (path, error) = (
            error.path().to_string(),
            LineError::from(error.into_inner()),
        );
        match error {
            LineError::Json(problem) if path != "." => {
                LineError::Json(format!("{}: {problem}", visible(&path)))
            }
            error => error,
        }
    })
}

/// Reads the one member that there is.
fn only<T: DeserializeOwned>(
    mut members: Map<String, Value>,
    name: &'static str,
) -> Result<T, LineError> {
    let member = take(&mut members, name)?;
    match members.into_iter().next() {
        Some((unknown, _)) => Err(LineError::Unknown {
            name: unknown,
            hint: format!("; only {name} is known"),
        }),
        None => Ok(member),
    }
}

fn take<T: DeserializeOwned>(
    members: &mut Map<String, Value>,
    name: &'static str,
) -> Result<T, LineError> {
    let member = members.remove(name).ok_or(LineError::Missing(name))?;
    Ok(serde_json::from_value(member)?)
}

/// The text of a secret or of a hash.
fn text(member: Value) -> Result<String, LineError> {
    match member {
        Value::String(text) => Ok(text),
        // Serde's message repeats a number, which may be meant as the secret.
        _ => Err(LineError::Unquoted),
    }
}

/// Takes the secret of this name, which is in the member of the same name or as base64 in another one, and has at least
/// one byte.
fn take_secret(
    members: &mut Map<String, Value>,
    name: &'static str,
) -> Result<Option<Secret>, LineError> {
    let base64 = members.remove(&format!("{name}_base64"));
    let secret = match (members.remove(name), base64) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(LineError::SecretTwice(name)),
        (Some(secret), None) => Secret::from(text(secret)?),
        (None, Some(base64)) => STANDARD
            .decode(text(base64)?)
            .map_err(|error| LineError::Base64(name, error))?
            .into(),
    };
    match check_secret(&secret) {
        Ok(()) if secret.is_empty() => Err(LineError::SecretMissing(name)),
        Ok(()) => Ok(Some(secret)),
        Err(_) => Err(LineError::SecretTooLong(name)),
    }
}

/// The name in messages of a record that cannot be read, if its line shows it.
pub(crate) fn name_of(members: &Map<String, Value>) -> Option<String> {
    let word = |name: &str| members.get(name).and_then(Value::as_str);
    let kind = word("kind")?;
    let key = match kind {
        "consumer" | "removed_consumer" => word("key"),
        "user" | "removed_user" => word("id"),
        "token" | "removed_token" => word("token"),
        _ => None,
    };
    key.map(|key| format!("{kind} {key:?}"))
}

impl From<serde_json::Error> for LineError {
    /// Serde's message, on one line whatever it quotes. Its line number is always 1, so only the column is kept.
    fn from(error: serde_json::Error) -> Self {
        let text = visible(&error.to_string()).replace("expected a sequence", "expected a list");
        let position = format!(" at line {} column {}", error.line(), error.column());
        Self::Json(match text.strip_suffix(&position) {
            Some(text) if error.column() > 0 => format!("{text}, column {}", error.column()),
            Some(text) => text.to_owned(),
            None => text,
        })
    }
}
