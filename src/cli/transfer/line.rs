//! The format of an export: JSON Lines in UTF-8, an object a line, each with its `kind`.
//!
//! | `kind` | members |
//! |---|---|
//! | `export` | the first line and no other: `version`; `records`, the number of lines that follow, if that is known; in version 2 also `store`, the random name of the store, and `accepted_until`, the last timestamp of a request that it may have accepted |
//! | `consumer` | `key`, `secret`, `name`; and `previous_secret` with `previous_secret_until`, `rsa_public_key` (PEM), `description`, `website`, `callbacks`, `permissions`, `dialect`, `rsa_only`, `enforce`, `enabled`, `created_at` |
//! | `user` | `id`, `name`; and `display_name`, `password_hash` (see `import --help`), `enabled`, `created_at` |
//! | `token` | an access token: `token`, `token_secret`, `consumer` (its key), `user` (its id); and `permissions`, `issued_at`, `expires_at`, `last_used_at`, `revoked_at` |
//! | `removed_consumer` | `key`, never to be used again |
//! | `removed_user` | `id`, never to be used again |
//! | `removed_token` | `token`, never to be used again |
//!
//! The members after "and" may be left out or null: lists are empty then, `enabled` is true, `rsa_only` and `enforce` are false,
//! `created_at` and `issued_at` are the time of the import, everything else is absent. A secret that is not UTF-8 is
//! written in base64 under its name with `_base64` at the end. Times are RFC 3339, read to the second. An unknown member is an
//! error, and so is a repeated one: a mistyped `enabled` must not enable a consumer that should be disabled. Empty
//! lines are ignored. The order of the lines has no meaning, but for the first.
//!
//! An export has version 2. A file of another system has version 1, and so have exports of older versions of this program.

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    clock::UnixTime,
    issue::{
        callback::{self, CallbackError},
        registration::{self, InvalidText, InvalidWebPage},
    },
    login::password::{self, UnusableHash},
    names::{ConsumerKey, Permission, UserId},
    oauth::{RsaPublicKey, rsa::InvalidRsaKey},
    secret::Secret,
    store::{
        record::{AccessToken, Consumer, Dialect, User},
        transfer::Record,
    },
    telemetry::lines::visible,
};

/// The version of the format that is written. Version 1 does not say where the records are from.
pub(super) const VERSION: u32 = 2;

/// The problem of a line.
#[derive(Debug, Error)]
pub(super) enum LineError {
    #[error("{0}")]
    Json(String),
    #[error("is not a JSON object")]
    NotAnObject,
    #[error("the first line of an export is {{\"kind\":\"export\",\"version\":1}}; add it")]
    NotAnExport,
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
    #[error("is on line {0} already; remove one of the two")]
    Twice(usize),
    #[error("{0} is missing or empty")]
    SecretMissing(&'static str),
    #[error("{0} and {0}_base64 are both given; remove one")]
    SecretTwice(&'static str),
    #[error("{0}_base64: {1}")]
    Base64(&'static str, DecodeError),
    #[error("previous_secret and previous_secret_until need each other")]
    HalfPreviousSecret,
    #[error("rsa_only needs rsa_public_key")]
    CannotSign,
    #[error(
        "names no user, and an access token acts for one; give all such tokens a user with --token-user, or remove the \
         line and let the consumer sign without a token, where access has application"
    )]
    NoUser,
    #[error("{0}: {1}")]
    Text(&'static str, InvalidText),
    #[error("callback {0:?}: {1}")]
    Callback(String, CallbackError),
    #[error("website: {0}")]
    Website(#[from] InvalidWebPage),
    #[error("rsa_public_key: {0}")]
    RsaKey(#[from] InvalidRsaKey),
    #[error("password_hash {0}; leave it out and set a password")]
    PasswordHash(#[from] UnusableHash),
    #[error("{0}: {1:?} is neither true nor false")]
    Flag(String, String),
    #[error("has {found} cells and the header {expected}")]
    Cells { found: u64, expected: u64 },
    #[error("is not UTF-8")]
    NotUtf8,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    Export(Head),
    Consumer(Box<ConsumerLine>),
    User(UserLine),
    Token(Box<TokenLine>),
    RemovedConsumer { key: ConsumerKey },
    RemovedUser { id: UserId },
    RemovedToken { token: String },
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) records: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accepted_until: Option<UnixTime>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsumerLine {
    key: ConsumerKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<SecretText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_base64: Option<SecretText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret: Option<SecretText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_base64: Option<SecretText>,
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserLine {
    id: UserId,
    name: String,
    display_name: Option<String>,
    enabled: Option<bool>,
    created_at: Option<UnixTime>,
    password_hash: Option<SecretText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenLine {
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_secret: Option<SecretText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_secret_base64: Option<SecretText>,
    consumer: ConsumerKey,
    user: Option<UserId>,
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

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.expose_text())
    }
}

/// A secret under its own name or, if it is not UTF-8, in base64 under the other.
fn secret_texts(secret: &Secret) -> (Option<SecretText>, Option<SecretText>) {
    match str::from_utf8(secret.expose()) {
        Ok(_) => (Some(SecretText(secret.clone())), None),
        Err(_) => (
            None,
            Some(SecretText(STANDARD.encode(secret.expose()).into())),
        ),
    }
}

/// The secret that one of the two members holds; it has at least one byte.
fn secret(
    name: &'static str,
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

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        match record {
            Record::Consumer(consumer) => Self::Consumer(Box::new(consumer.into())),
            Record::User(user) => Self::User(UserLine {
                id: user.id,
                name: user.name,
                display_name: user.display_name,
                enabled: Some(user.enabled),
                created_at: Some(user.created_at),
                password_hash: user.password_hash.map(SecretText),
            }),
            Record::AccessToken(token) => Self::Token(Box::new(token.into())),
            Record::RemovedConsumer(key) => Self::RemovedConsumer { key },
            Record::RemovedUser(id) => Self::RemovedUser { id },
            Record::RemovedToken(token) => Self::RemovedToken { token },
        }
    }
}

impl From<Consumer> for ConsumerLine {
    fn from(consumer: Consumer) -> Self {
        let (secret, secret_base64) = secret_texts(&consumer.secret);
        let (previous, until) = consumer.previous_secret.unzip();
        let (previous_secret, previous_secret_base64) =
            previous.as_ref().map(secret_texts).unwrap_or_default();
        Self {
            key: consumer.key,
            secret,
            secret_base64,
            previous_secret,
            previous_secret_base64,
            previous_secret_until: until,
            rsa_public_key: consumer.rsa_public_key,
            name: consumer.name,
            description: consumer.description,
            website: consumer.website,
            callbacks: Some(consumer.callbacks),
            permissions: Some(consumer.permissions),
            dialect: consumer.dialect,
            rsa_only: Some(consumer.rsa_only),
            enforce: Some(consumer.enforce),
            enabled: Some(consumer.enabled),
            created_at: Some(consumer.created_at),
        }
    }
}

impl From<AccessToken> for TokenLine {
    fn from(token: AccessToken) -> Self {
        let (token_secret, token_secret_base64) = secret_texts(&token.secret);
        Self {
            token: token.token,
            token_secret,
            token_secret_base64,
            consumer: token.consumer,
            user: Some(token.user),
            permissions: Some(token.permissions),
            issued_at: Some(token.issued_at),
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            revoked_at: token.revoked_at,
        }
    }
}

/// The values that a line may leave out.
pub(super) struct Defaults {
    /// The time of registration or issue.
    pub(super) now: UnixTime,
    /// The user of tokens that name none.
    pub(super) token_user: Option<UserId>,
}

impl Line {
    /// The record on the line.
    pub(super) fn into_record(self, defaults: &Defaults) -> Result<Record, LineError> {
        match self {
            Self::Export(_) => Err(LineError::SecondExport),
            Self::Consumer(line) => line.into_consumer(defaults.now).map(Record::Consumer),
            Self::User(line) => line.into_user(defaults.now).map(Record::User),
            Self::Token(line) => line.into_token(defaults).map(Record::AccessToken),
            Self::RemovedConsumer { key } => Ok(Record::RemovedConsumer(key)),
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
        let previous = secret("previous_secret", previous.0, previous.1)?;
        if previous.is_some() != self.previous_secret_until.is_some() {
            return Err(LineError::HalfPreviousSecret);
        }
        let consumer = Consumer {
            secret: secret("secret", self.secret, self.secret_base64)?
                .ok_or(LineError::SecretMissing("secret"))?,
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
    fn into_token(self, defaults: &Defaults) -> Result<AccessToken, LineError> {
        let user = self.user.or_else(|| defaults.token_user.clone());
        Ok(AccessToken {
            token: checked_token(self.token)?,
            secret: secret("token_secret", self.token_secret, self.token_secret_base64)?
                .ok_or(LineError::SecretMissing("token_secret"))?,
            consumer: self.consumer,
            user: user.ok_or(LineError::NoUser)?,
            permissions: self.permissions.unwrap_or_default(),
            issued_at: self.issued_at.unwrap_or(defaults.now),
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

/// The name in messages of a record that cannot be read, if its line shows it.
pub(super) fn name_of(members: &Map<String, Value>) -> Option<String> {
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
        let text = visible(&error.to_string());
        let place = format!(" at line {} column {}", error.line(), error.column());
        Self::Json(match text.strip_suffix(&place) {
            Some(text) if error.column() > 0 => format!("{text}, column {}", error.column()),
            Some(text) => text.to_owned(),
            None => text,
        })
    }
}
