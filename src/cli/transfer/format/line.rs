//! One line of an export: how it is read and written.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use super::LineError;
use crate::{
    cli::output::Members,
    clock::UnixTime,
    issue::{callback, registration},
    login::password,
    manage::view::{TokenView, UserView},
    names::{ConsumerKey, Permission, UserId},
    oauth::RsaPublicKey,
    secret::Secret,
    store::{
        record::{AccessToken, Consumer, Dialect, User},
        transfer::{Origin, Record},
    },
};

const SECRET: [&str; 2] = ["secret", "secret_base64"];
const PREVIOUS_SECRET: [&str; 2] = ["previous_secret", "previous_secret_base64"];
const TOKEN_SECRET: [&str; 2] = ["token_secret", "token_secret_base64"];

/// A record's line, its end included.
#[must_use]
pub fn written(record: &Record) -> String {
    let (kind, _) = identity(record);
    let kind = Members::default().with("kind", kind);
    let line = match record {
        Record::Consumer(consumer) => {
            let mut line = kind
                .with("key", &consumer.key)
                .with_secret(SECRET, &consumer.secret);
            if let Some((secret, until)) = &consumer.previous_secret {
                line = line
                    .with_secret(PREVIOUS_SECRET, secret)
                    .with("previous_secret_until", until);
            }
            line.with("rsa_public_key", &consumer.rsa_public_key)
                .with("name", &consumer.name)
                .with("description", &consumer.description)
                .with("website", &consumer.website)
                .with("callbacks", &consumer.callbacks)
                .with("permissions", &consumer.permissions)
                .with("dialect", consumer.dialect)
                .with("rsa_only", consumer.rsa_only)
                .with("enforce", consumer.enforce)
                .with("enabled", consumer.enabled)
                .with("created_at", consumer.created_at)
        }
        Record::User(user) => {
            // A hash in PHC form is ASCII.
            let hash = user.password_hash.as_ref().map(Secret::expose_text);
            let hash = hash.as_ref().map(|text| text.as_str());
            kind.and(Members::of(&UserView::from(user)))
                .with("password_hash", hash)
        }
        Record::AccessToken(token) => kind.and(Members::of(&TokenView::issued(token))),
        Record::RemovedUser(id) => kind.with("id", id),
        Record::RemovedToken(token) => kind.with("token", token),
    };
    line.json_line()
}

/// The kind of a record and its key.
pub(super) fn identity(record: &Record) -> (&'static str, &str) {
    match record {
        Record::Consumer(consumer) => ("consumer", consumer.key.as_str()),
        Record::User(user) => ("user", user.id.as_str()),
        Record::AccessToken(token) => ("token", &token.token),
        Record::RemovedUser(id) => ("removed_user", id.as_str()),
        Record::RemovedToken(token) => ("removed_token", token),
    }
}

/// The first line.
#[derive(Deserialize)]
pub(super) struct ExportHead {
    pub(super) kind: String,
    pub(super) version: u32,
    pub(super) records: Option<usize>,
    pub(super) store: Option<String>,
    pub(super) accepted_until: Option<UnixTime>,
    /// Those that a later version may have.
    #[serde(flatten)]
    pub(super) other_members: Map<String, Value>,
}

impl ExportHead {
    /// Where the records are from, if the line names it.
    pub(super) fn origin(self) -> Option<Origin> {
        Some(Origin {
            store: self.store?,
            accepted_until: self.accepted_until?,
        })
    }
}

/// Any other line.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum RecordLine {
    Export,
    Consumer(Box<ConsumerLine>),
    User(UserLine),
    Token(TokenLine),
    RemovedUser { id: UserId },
    RemovedToken { token: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsumerLine {
    key: ConsumerKey,
    secret: Option<SecretText>,
    secret_base64: Option<SecretText>,
    previous_secret: Option<SecretText>,
    previous_secret_base64: Option<SecretText>,
    previous_secret_until: Option<UnixTime>,
    rsa_public_key: Option<String>,
    name: String,
    description: Option<String>,
    website: Option<String>,
    callbacks: Option<Vec<String>>,
    permissions: Option<Vec<Permission>>,
    dialect: Option<Dialect>,
    rsa_only: Option<bool>,
    enforce: Option<bool>,
    enabled: Option<bool>,
    created_at: Option<UnixTime>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserLine {
    id: UserId,
    name: String,
    display_name: Option<String>,
    password_hash: Option<SecretText>,
    enabled: Option<bool>,
    created_at: Option<UnixTime>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenLine {
    token: String,
    token_secret: Option<SecretText>,
    token_secret_base64: Option<SecretText>,
    consumer: ConsumerKey,
    user: UserId,
    permissions: Option<Vec<Permission>>,
    issued_at: Option<UnixTime>,
    expires_at: Option<UnixTime>,
    last_used_at: Option<UnixTime>,
    revoked_at: Option<UnixTime>,
}

/// A secret, or the base64 of one.
struct SecretText(Secret);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's message for a number repeats the number, which may be meant as the secret.
        let text = String::deserialize(deserializer);
        text.map(|text| Self(Secret::from(text)))
            .map_err(|_| de::Error::custom("a secret or a hash is not in quotes"))
    }
}

/// The secret under the first name or, as base64, under the second; it has at least one byte.
fn secret(
    [name, _]: [&'static str; 2],
    text: Option<SecretText>,
    base64: Option<SecretText>,
) -> Result<Option<Secret>, LineError> {
    let secret = match (text, base64) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(LineError::SecretTwice(name)),
        (Some(SecretText(secret)), None) => secret,
        (None, Some(SecretText(base64))) => STANDARD
            .decode(base64.expose())
            .map_err(|error| LineError::Base64(name, error))?
            .into(),
    };
    if secret.is_empty() {
        return Err(LineError::SecretMissing(name));
    }
    Ok(Some(secret))
}

impl RecordLine {
    /// The record on the line; a time of creation that is left out is `now`.
    pub(super) fn into_record(self, now: UnixTime) -> Result<Record, LineError> {
        match self {
            Self::Export => Err(LineError::SecondExport),
            Self::Consumer(line) => line.into_consumer(now).map(Record::Consumer),
            Self::User(line) => line.into_user(now).map(Record::User),
            Self::Token(line) => line.into_token(now).map(Record::AccessToken),
            Self::RemovedUser { id } => Ok(Record::RemovedUser(id)),
            Self::RemovedToken { token } => checked_token(token).map(Record::RemovedToken),
        }
    }
}

impl ConsumerLine {
    fn into_consumer(self, now: UnixTime) -> Result<Consumer, LineError> {
        registration::shown_name(&self.name).map_err(|error| LineError::Text("name", error))?;
        if let Some(text) = &self.description {
            registration::shown_name(text)
                .map_err(|error| LineError::Text("description", error))?;
        }
        let website = self.website.as_deref().map(registration::web_page);
        let callbacks = self.callbacks.unwrap_or_default();
        for registered in &callbacks {
            callback::check_registration(registered)
                .map_err(|error| LineError::Callback(registered.clone(), error))?;
        }
        if let Some(pem) = &self.rsa_public_key {
            RsaPublicKey::from_pem(pem)?;
        }
        let previous = (self.previous_secret, self.previous_secret_base64);
        let previous = secret(PREVIOUS_SECRET, previous.0, previous.1)?;
        if previous.is_some() != self.previous_secret_until.is_some() {
            return Err(LineError::HalfPreviousSecret);
        }
        let consumer = Consumer {
            secret: secret(SECRET, self.secret, self.secret_base64)?
                .ok_or(LineError::SecretMissing(SECRET[0]))?,
            previous_secret: previous.zip(self.previous_secret_until),
            key: self.key,
            rsa_public_key: self.rsa_public_key,
            name: self.name,
            description: self.description,
            website: website.transpose()?,
            callbacks,
            permissions: self.permissions.unwrap_or_default(),
            dialect: self.dialect,
            rsa_only: self.rsa_only.unwrap_or(false),
            enforce: self.enforce.unwrap_or(false),
            enabled: self.enabled.unwrap_or(true),
            created_at: self.created_at.unwrap_or(now),
        };
        let can_sign = consumer.can_sign();
        can_sign.then_some(consumer).ok_or(LineError::CannotSign)
    }
}

impl UserLine {
    fn into_user(self, now: UnixTime) -> Result<User, LineError> {
        registration::login_name(&self.name).map_err(|error| LineError::Text("name", error))?;
        if let Some(name) = &self.display_name {
            registration::shown_name(name)
                .map_err(|error| LineError::Text("display_name", error))?;
        }
        let password_hash = self.password_hash.map(|SecretText(hash)| hash);
        if let Some(hash) = &password_hash {
            password::check_usable(hash)?;
        }
        Ok(User {
            id: self.id,
            name: self.name,
            display_name: self.display_name,
            password_hash,
            enabled: self.enabled.unwrap_or(true),
            created_at: self.created_at.unwrap_or(now),
        })
    }
}

impl TokenLine {
    fn into_token(self, now: UnixTime) -> Result<AccessToken, LineError> {
        Ok(AccessToken {
            token: checked_token(self.token)?,
            secret: secret(TOKEN_SECRET, self.token_secret, self.token_secret_base64)?
                .ok_or(LineError::SecretMissing(TOKEN_SECRET[0]))?,
            consumer: self.consumer,
            user: self.user,
            permissions: self.permissions.unwrap_or_default(),
            issued_at: self.issued_at.unwrap_or(now),
            expires_at: self.expires_at,
            last_used_at: self.last_used_at,
            revoked_at: self.revoked_at,
        })
    }
}

fn checked_token(token: String) -> Result<String, LineError> {
    registration::token(&token).map_err(|error| LineError::Text("token", error))?;
    Ok(token)
}

/// Names the record of a line that cannot be read, if the line shows it.
pub(super) fn name_of(text: &[u8]) -> Option<String> {
    let members: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let word = |name: &str| members.get(name).and_then(Value::as_str);
    let kind = word("kind")?;
    let key = match kind {
        "consumer" => word("key"),
        "user" | "removed_user" => word("id"),
        "token" | "removed_token" => word("token"),
        _ => None,
    };
    key.map(|key| format!("{kind} {key:?}"))
}

/// Serde's message, on one line whatever it quotes. Its line number is always 1, so only the column is kept.
pub(super) fn explain(error: &serde_json::Error) -> String {
    let text = crate::cli::usage::escaped(&error.to_string());
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(text) if error.column() > 0 => format!("{text}, column {}", error.column()),
        Some(text) => text.to_owned(),
        None => text,
    }
}
