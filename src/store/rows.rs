//! Rows of any engine as records, and what columns hold.
//!
//! Columns have the names of the record's fields. Times are seconds since 1970, lists are JSON, secrets are what
//! [`Seal`] keeps.

use std::{str::FromStr, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest as hash};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    StoreError,
    port::{Change, OpenSessions},
    record::{
        AccessToken, Callback, Consumer, Dialect, RequestToken, RequestTokenState, Session, User,
    },
    seal::{Seal, field},
};
use crate::{clock::UnixTime, secret::Secret};

/// A value of a column.
#[derive(Debug, Clone)]
pub enum Value {
    /// The value that is not there.
    Null,
    /// A number, a time, or 0 and 1 for no and yes.
    Integer(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row, read by column; `None` is the value that is not there.
///
/// # Errors
/// Every method: [`StoreError::Broken`] if the column has a value of another type.
#[derive(Debug)]
pub struct Row {
    /// The names of the columns.
    pub columns: Arc<[String]>,
    /// Their values.
    pub values: Vec<Value>,
}

const OTHER_TYPE: StoreError = StoreError::Broken("a column has a value of another type");

impl Row {
    fn value(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.values.get(place)
    }

    pub(super) fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        match self.value(column) {
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(Value::Null) => Ok(None),
            _ => Err(OTHER_TYPE),
        }
    }

    pub(super) fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self.value(column) {
            Some(Value::Bytes(bytes)) => Ok(Some(bytes.clone())),
            Some(Value::Null) => Ok(None),
            _ => Err(OTHER_TYPE),
        }
    }

    pub(super) fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        match self.value(column) {
            Some(Value::Integer(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            _ => Err(OTHER_TYPE),
        }
    }

    fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(needed(self.integer(column)?)? != 0)
    }

    /// A text that [`kept_text`] has made.
    pub(super) fn free_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        let unescape = |kept: String| kept.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}");
        Ok(self.text(column)?.map(unescape))
    }
}

/// A text of any characters as a column holds it: PostgreSQL has no NUL, so it and the character that marks an escape are
/// escaped.
pub(super) fn kept_text(text: &str) -> String {
    text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0")
}

/// Reads a row as a record.
pub(super) type Read<T> = fn(&Row, &Seal) -> Result<T, StoreError>;

/// Reads a row of `consumers`.
pub(super) fn consumer(row: &Row, seal: &Seal) -> Result<Consumer, StoreError> {
    let key = text(row, "key")?;
    let previous = secret(row, seal, "previous_secret", field::CONSUMER_PREVIOUS, &key)?;
    Ok(Consumer {
        secret: needed(secret(row, seal, "secret", field::CONSUMER, &key)?)?,
        previous_secret: previous.zip(time(row, "previous_until")?),
        rsa_public_key: row.text("rsa_public_key")?,
        name: needed(row.free_text("name")?)?,
        description: row.free_text("description")?,
        website: row.text("website")?,
        callbacks: list(row, "callbacks")?,
        permissions: list(row, "permissions")?,
        dialect: dialect(row)?,
        enforce: row.flag("enforce")?,
        rsa_only: row.flag("rsa_only")?,
        enabled: row.flag("enabled")?,
        created_at: needed(time(row, "created_at")?)?,
        key: name(&key)?,
    })
}

/// Reads a row of `users`.
pub(super) fn user(row: &Row, seal: &Seal) -> Result<User, StoreError> {
    let id = text(row, "id")?;
    Ok(User {
        name: needed(row.free_text("name")?)?,
        display_name: row.free_text("display_name")?,
        password_hash: secret(row, seal, "password_hash", field::USER, &id)?,
        enabled: row.flag("enabled")?,
        created_at: needed(time(row, "created_at")?)?,
        id: name(&id)?,
    })
}

/// Reads a row of `access_tokens`.
pub(super) fn access_token(row: &Row, seal: &Seal) -> Result<AccessToken, StoreError> {
    let token = text(row, "token")?;
    Ok(AccessToken {
        secret: needed(secret(row, seal, "secret", field::ACCESS_TOKEN, &token)?)?,
        consumer: name(&text(row, "consumer")?)?,
        user: name(&text(row, "user")?)?,
        permissions: list(row, "permissions")?,
        issued_at: needed(time(row, "issued_at")?)?,
        expires_at: time(row, "expires_at")?,
        last_used_at: time(row, "last_used_at")?,
        revoked_at: time(row, "revoked_at")?,
        token,
    })
}

/// Reads the identifier of a token.
pub(super) fn token(row: &Row, _: &Seal) -> Result<String, StoreError> {
    text(row, "token")
}

/// Reads a row of `request_tokens`.
pub(super) fn request_token(row: &Row, seal: &Seal) -> Result<RequestToken, StoreError> {
    let token = text(row, "token")?;
    let state = match text(row, "state")?.as_str() {
        "issued" => RequestTokenState::Issued,
        "authorized" => RequestTokenState::Authorized {
            user: name(&text(row, "user")?)?,
            verifier: needed(secret(row, seal, "verifier", field::VERIFIER, &token)?)?,
            redirect_token: row.text("redirect_token")?,
        },
        "denied" => RequestTokenState::Denied,
        "exchanged" => RequestTokenState::Exchanged,
        "voided" => RequestTokenState::Voided,
        _ => return Err(StoreError::Broken("a request token is in no known state")),
    };
    let wrong_verifiers = u32::try_from(needed(row.integer("wrong_verifiers")?)?);
    Ok(RequestToken {
        secret: needed(secret(row, seal, "secret", field::REQUEST_TOKEN, &token)?)?,
        consumer: name(&text(row, "consumer")?)?,
        callback: row.text("callback")?.map_or(Callback::Oob, Callback::Uri),
        permissions: list(row, "permissions")?,
        issued_at: needed(time(row, "issued_at")?)?,
        expires_at: needed(time(row, "expires_at")?)?,
        state,
        wrong_verifiers: wrong_verifiers.map_err(|_| StoreError::Broken("a count is negative"))?,
        token,
    })
}

/// Reads a row of `sessions`.
pub(super) fn session(row: &Row, _: &Seal) -> Result<Session, StoreError> {
    let id_hash = needed(row.bytes("id_hash")?)?;
    Ok(Session {
        id_hash: id_hash
            .try_into()
            .map_err(|_| StoreError::Broken("the hash of a session id has another length"))?,
        user: name(&text(row, "user")?)?,
        created_at: needed(time(row, "created_at")?)?,
        expires_at: needed(time(row, "expires_at")?)?,
    })
}

/// Reads a count of sessions, and when the oldest of them was opened.
pub(super) fn open_sessions(row: &Row, _: &Seal) -> Result<OpenSessions, StoreError> {
    Ok(OpenSessions {
        count: needed(row.integer("count")?)?.unsigned_abs(),
        since: time(row, "since")?,
    })
}

/// Reads a row of `changes`.
pub(super) fn change(row: &Row, _: &Seal) -> Result<Change, StoreError> {
    let key = text(row, "key")?;
    match text(row, "kind")?.as_str() {
        "consumer" => Ok(Change::Consumer(name(&key)?)),
        "access_token" => Ok(Change::AccessToken(key)),
        "user" => Ok(Change::User(name(&key)?)),
        "command" => Ok(Change::Command(key)),
        "failed_login" => Ok(Change::FailedLogin(key)),
        _ => Err(StoreError::Broken("a change is of no known kind")),
    }
}

/// A change as the columns `kind` and `key` hold it.
pub(super) fn change_columns(change: &Change) -> (&'static str, &str) {
    match change {
        Change::Consumer(key) => ("consumer", key.as_str()),
        Change::AccessToken(token) => ("access_token", token.as_str()),
        Change::User(id) => ("user", id.as_str()),
        Change::Command(record) => ("command", record),
        Change::FailedLogin(report) => ("failed_login", report),
    }
}

/// A state as a column holds it.
pub(super) const fn state_word(state: &RequestTokenState) -> &'static str {
    match state {
        RequestTokenState::Issued => "issued",
        RequestTokenState::Authorized { .. } => "authorized",
        RequestTokenState::Denied => "denied",
        RequestTokenState::Exchanged => "exchanged",
        RequestTokenState::Voided => "voided",
    }
}

/// A callback as a column holds it.
pub(super) fn callback_text(callback: &Callback) -> Option<&str> {
    match callback {
        Callback::Oob => None,
        Callback::Uri(uri) => Some(uri),
    }
}

/// A time as a column holds it; the greatest signed integer for later times, which is far after every real date.
pub(super) fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// A list as a column holds it.
pub(super) fn json<T: Serialize>(list: &[T]) -> Result<String, StoreError> {
    serde_json::to_string(list).map_err(|_| StoreError::Broken("a list cannot be written"))
}

/// A dialect as a column holds it.
pub(super) fn dialect_word(dialect: Option<Dialect>) -> Option<&'static str> {
    dialect.map(|dialect| match dialect {
        Dialect::Rfc5849 => "rfc5849",
        Dialect::Legacy => "legacy",
    })
}

/// The SHA-256 of a replaced password hash, as a column holds it.
pub(super) fn digest(replaced: &Secret) -> Vec<u8> {
    hash(&SHA256, replaced.expose()).as_ref().to_vec()
}

/// Parses a key or an id of the store.
pub(super) fn name<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Broken("a key or an id is no name"))
}

/// A value that every record has.
pub(super) fn needed<T>(value: Option<T>) -> Result<T, StoreError> {
    value.ok_or(StoreError::Broken("a value is missing"))
}

/// A time that a column holds.
pub(super) fn unix_time(seconds: i64) -> Result<UnixTime, StoreError> {
    u64::try_from(seconds)
        .map(UnixTime)
        .map_err(|_| StoreError::Broken("a time lies before 1970"))
}

fn secret(
    row: &Row,
    seal: &Seal,
    column: &str,
    field: &'static str,
    record: &str,
) -> Result<Option<Secret>, StoreError> {
    let kept = row.bytes(column)?;
    kept.map(|kept| seal.open(field, record, &kept)).transpose()
}

fn text(row: &Row, column: &str) -> Result<String, StoreError> {
    needed(row.text(column)?)
}

fn time(row: &Row, column: &str) -> Result<Option<UnixTime>, StoreError> {
    row.integer(column)?.map(unix_time).transpose()
}

fn dialect(row: &Row) -> Result<Option<Dialect>, StoreError> {
    match row.text("dialect")?.as_deref() {
        None => Ok(None),
        Some("rfc5849") => Ok(Some(Dialect::Rfc5849)),
        Some("legacy") => Ok(Some(Dialect::Legacy)),
        Some(_) => Err(StoreError::Broken("a consumer has no known dialect")),
    }
}

fn list<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Vec<T>, StoreError> {
    serde_json::from_str(&text(row, column)?)
        .map_err(|_| StoreError::Broken("a list cannot be read"))
}
