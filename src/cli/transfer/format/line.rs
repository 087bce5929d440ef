//! One line of an export, as serde sees it, and the way from there to a record and back.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::Problem;
use crate::{
    clock::UnixTime,
    issue::{callback, registration},
    login::password,
    names::{ConsumerKey, Permission, UserId},
    oauth::RsaPublicKey,
    secret::Secret,
    store::{
        record::{AccessToken, Consumer, Dialect, User},
        transfer::Record,
    },
};

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum JsonLine {
    Export(ExportLine),
    Consumer(Box<ConsumerLine>),
    User(UserLine),
    Token(TokenLine),
    RemovedUser(RemovedUserLine),
    RemovedToken(RemovedTokenLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportLine {
    pub(super) version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) records: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsumerLine {
    key: ConsumerKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_base64: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_base64: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<Time>,
    rsa_public_key: Option<String>,
    name: String,
    callbacks: Option<Vec<String>>,
    permissions: Option<Vec<Permission>>,
    dialect: Option<Dialect>,
    enforce: Option<bool>,
    enabled: Option<bool>,
    created_at: Option<Time>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserLine {
    id: UserId,
    name: String,
    display_name: Option<String>,
    password_hash: Option<Text>,
    enabled: Option<bool>,
    created_at: Option<Time>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenLine {
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_secret: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_secret_base64: Option<Text>,
    consumer: ConsumerKey,
    user: UserId,
    permissions: Option<Vec<Permission>>,
    issued_at: Option<Time>,
    expires_at: Option<Time>,
    last_used_at: Option<Time>,
    revoked_at: Option<Time>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovedUserLine {
    id: UserId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovedTokenLine {
    token: String,
}

/// A secret, or the base64 of one.
struct Text(Secret);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.expose_text())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What serde would say of a number repeats it, and it may be meant as the secret.
        let text = String::deserialize(deserializer);
        text.map(|text| Self(Secret::from(text)))
            .map_err(|_| de::Error::custom("a secret or a hash is not in quotes"))
    }
}

/// A time: RFC 3339, or, beyond the years that it can write, `@` and the seconds.
#[derive(Clone, Copy)]
struct Time(UnixTime);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z, from 1970 on",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                let seconds = match text.strip_prefix('@') {
                    Some(seconds) => seconds.parse().ok(),
                    None => OffsetDateTime::parse(text, &Rfc3339)
                        .ok()
                        .and_then(|time| u64::try_from(time.unix_timestamp()).ok()),
                };
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                seconds
                    .map(|seconds| Time(UnixTime(seconds)))
                    .ok_or_else(wrong)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

impl From<&Record> for JsonLine {
    fn from(record: &Record) -> Self {
        match record {
            Record::Consumer(consumer) => Self::Consumer(Box::new(consumer.into())),
            Record::User(user) => Self::User(user.into()),
            Record::AccessToken(token) => Self::Token(token.into()),
            Record::RemovedUser(id) => Self::RemovedUser(RemovedUserLine { id: id.clone() }),
            Record::RemovedToken(token) => Self::RemovedToken(RemovedTokenLine {
                token: token.clone(),
            }),
        }
    }
}

impl From<&Consumer> for ConsumerLine {
    fn from(consumer: &Consumer) -> Self {
        let (secret, secret_base64) = written(&consumer.secret);
        let (previous_secret, previous_secret_base64) = consumer
            .previous_secret
            .as_ref()
            .map_or((None, None), |(secret, _)| written(secret));
        Self {
            key: consumer.key.clone(),
            secret,
            secret_base64,
            previous_secret,
            previous_secret_base64,
            previous_secret_until: consumer
                .previous_secret
                .as_ref()
                .map(|(_, time)| Time(*time)),
            rsa_public_key: consumer.rsa_public_key.clone(),
            name: consumer.name.clone(),
            callbacks: Some(consumer.callbacks.clone()),
            permissions: Some(consumer.permissions.clone()),
            dialect: consumer.dialect,
            enforce: Some(consumer.enforce),
            enabled: Some(consumer.enabled),
            created_at: Some(Time(consumer.created_at)),
        }
    }
}

impl From<&User> for UserLine {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.clone(),
            name: user.name.clone(),
            display_name: user.display_name.clone(),
            password_hash: user.password_hash.clone().map(Text),
            enabled: Some(user.enabled),
            created_at: Some(Time(user.created_at)),
        }
    }
}

impl From<&AccessToken> for TokenLine {
    fn from(token: &AccessToken) -> Self {
        let (token_secret, token_secret_base64) = written(&token.secret);
        Self {
            token: token.token.clone(),
            token_secret,
            token_secret_base64,
            consumer: token.consumer.clone(),
            user: token.user.clone(),
            permissions: Some(token.permissions.clone()),
            issued_at: Some(Time(token.issued_at)),
            expires_at: token.expires_at.map(Time),
            last_used_at: token.last_used_at.map(Time),
            revoked_at: token.revoked_at.map(Time),
        }
    }
}

/// A secret as text, or else as base64.
fn written(secret: &Secret) -> (Option<Text>, Option<Text>) {
    if std::str::from_utf8(secret.expose()).is_ok() {
        (Some(Text(secret.clone())), None)
    } else {
        let base64 = STANDARD.encode(secret.expose());
        (None, Some(Text(Secret::from(base64))))
    }
}

/// The secret that stands under `name` or, as base64, beside it.
fn secret(
    name: &'static str,
    text: Option<Text>,
    base64: Option<Text>,
) -> Result<Option<Secret>, Problem> {
    match (text, base64) {
        (Some(_), Some(_)) => Err(Problem::SecretTwice(name)),
        (Some(Text(secret)), None) => Ok(Some(secret)),
        (None, Some(Text(base64))) => STANDARD
            .decode(base64.expose())
            .map(|secret| Some(Secret::from(secret)))
            .map_err(|error| Problem::Base64(name, error)),
        (None, None) => Ok(None),
    }
}

/// As [`secret`], but it must be there and have a byte.
fn demanded(
    name: &'static str,
    text: Option<Text>,
    base64: Option<Text>,
) -> Result<Secret, Problem> {
    secret(name, text, base64)?
        .filter(|secret| !secret.is_empty())
        .ok_or(Problem::SecretMissing(name))
}

impl JsonLine {
    /// The record on the line; what has no time of its own gets `now`.
    pub(super) fn into_record(self, now: UnixTime) -> Result<Record, Problem> {
        match self {
            Self::Export(_) => Err(Problem::SecondExport),
            Self::Consumer(line) => line.into_consumer(now).map(Record::Consumer),
            Self::User(line) => line.into_user(now).map(Record::User),
            Self::Token(line) => line.into_token(now).map(Record::AccessToken),
            Self::RemovedUser(line) => Ok(Record::RemovedUser(line.id)),
            Self::RemovedToken(line) => checked_token(line.token).map(Record::RemovedToken),
        }
    }
}

impl ConsumerLine {
    fn into_consumer(self, now: UnixTime) -> Result<Consumer, Problem> {
        registration::shown_name(&self.name).map_err(|error| Problem::Text("name", error))?;
        let callbacks = self.callbacks.unwrap_or_default();
        for registered in &callbacks {
            callback::check_registration(registered)
                .map_err(|error| Problem::Callback(registered.clone(), error))?;
        }
        if let Some(pem) = &self.rsa_public_key {
            RsaPublicKey::from_pem(pem)?;
        }
        let previous = secret(
            "previous_secret",
            self.previous_secret,
            self.previous_secret_base64,
        )?;
        let previous_secret = match (previous, self.previous_secret_until) {
            (Some(secret), Some(Time(until))) if !secret.is_empty() => Some((secret, until)),
            (Some(_), Some(_)) => return Err(Problem::SecretMissing("previous_secret")),
            (None, None) => None,
            _ => return Err(Problem::HalfPreviousSecret),
        };
        Ok(Consumer {
            secret: demanded("secret", self.secret, self.secret_base64)?,
            previous_secret,
            key: self.key,
            rsa_public_key: self.rsa_public_key,
            name: self.name,
            callbacks,
            permissions: self.permissions.unwrap_or_default(),
            dialect: self.dialect,
            enforce: self.enforce.unwrap_or(false),
            enabled: self.enabled.unwrap_or(true),
            created_at: self.created_at.map_or(now, |time| time.0),
        })
    }
}

impl UserLine {
    fn into_user(self, now: UnixTime) -> Result<User, Problem> {
        registration::login_name(&self.name).map_err(|error| Problem::Text("name", error))?;
        if let Some(name) = &self.display_name {
            registration::shown_name(name).map_err(|error| Problem::Text("display_name", error))?;
        }
        let password_hash = self.password_hash.map(|Text(hash)| hash);
        if let Some(hash) = &password_hash {
            password::check_usable(hash)?;
        }
        Ok(User {
            id: self.id,
            name: self.name,
            display_name: self.display_name,
            password_hash,
            enabled: self.enabled.unwrap_or(true),
            created_at: self.created_at.map_or(now, |time| time.0),
        })
    }
}

impl TokenLine {
    fn into_token(self, now: UnixTime) -> Result<AccessToken, Problem> {
        Ok(AccessToken {
            token: checked_token(self.token)?,
            secret: demanded("token_secret", self.token_secret, self.token_secret_base64)?,
            consumer: self.consumer,
            user: self.user,
            permissions: self.permissions.unwrap_or_default(),
            issued_at: self.issued_at.map_or(now, |time| time.0),
            expires_at: self.expires_at.map(|time| time.0),
            last_used_at: self.last_used_at.map(|time| time.0),
            revoked_at: self.revoked_at.map(|time| time.0),
        })
    }
}

fn checked_token(token: String) -> Result<String, Problem> {
    registration::token(&token).map_err(|error| Problem::Text("token", error))?;
    Ok(token)
}

/// What a line that cannot be read calls its record, as far as that can be seen.
pub(super) fn called(text: &[u8]) -> Option<String> {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text).ok()?;
    let word = |name: &str| members.get(name).and_then(serde_json::Value::as_str);
    let kind = word("kind")?;
    let key = match kind {
        "consumer" => word("key"),
        "user" | "removed_user" => word("id"),
        "token" | "removed_token" => word("token"),
        _ => None,
    };
    key.map(|key| format!("{kind} {key:?}"))
}

/// The version of an export whose first line has members of a later one.
pub(super) fn version(text: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Head {
        kind: String,
        version: u32,
    }
    let head: Head = serde_json::from_slice(text).ok()?;
    (head.kind == "export" && head.version != super::VERSION).then_some(head.version)
}

/// What serde says, on one line whatever it quotes; the line that it counts is always the first, so only the column is
/// told.
pub(super) fn explain(error: &serde_json::Error) -> String {
    let mut text = String::new();
    for character in error.to_string().chars() {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(text) if error.column() > 0 => format!("{text}, column {}", error.column()),
        Some(text) => text.to_owned(),
        None => text,
    }
}
