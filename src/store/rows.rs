//! Rows of any backend to records, and what columns hold.
//!
//! Columns have the names of the record's fields. Times are seconds since 1970, lists are JSON, secrets are what
//! [`Seal`] keeps.

use std::str::FromStr;

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

/// A row, read by column; `None` is the value that is not there.
///
/// # Errors
/// Every method: [`StoreError::Broken`] if the column has a value of another type.
pub(super) trait Columns {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError>;
    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError>;
    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError>;
    fn flag(&self, column: &str) -> Result<Option<bool>, StoreError>;
}

/// Reads a row as a record.
pub(super) type Read<T> = fn(&dyn Columns, &Seal) -> Result<T, StoreError>;

/// Reads a row of `consumers`.
pub(super) fn consumer(row: &dyn Columns, seal: &Seal) -> Result<Consumer, StoreError> {
    let key = text(row, "key")?;
    let previous = secret(row, seal, "previous_secret", field::CONSUMER_PREVIOUS, &key)?;
    Ok(Consumer {
        secret: needed(secret(row, seal, "secret", field::CONSUMER, &key)?)?,
        previous_secret: previous.zip(time(row, "previous_until")?),
        rsa_public_key: row.text("rsa_public_key")?,
        name: text(row, "name")?,
        description: row.text("description")?,
        website: row.text("website")?,
        callbacks: list(row, "callbacks")?,
        permissions: list(row, "permissions")?,
        dialect: dialect(row)?,
        enforce: needed(row.flag("enforce")?)?,
        rsa_only: needed(row.flag("rsa_only")?)?,
        enabled: needed(row.flag("enabled")?)?,
        created_at: needed(time(row, "created_at")?)?,
        key: name(&key)?,
    })
}

/// Reads a row of `users`.
pub(super) fn user(row: &dyn Columns, seal: &Seal) -> Result<User, StoreError> {
    let id = text(row, "id")?;
    Ok(User {
        name: text(row, "name")?,
        display_name: row.text("display_name")?,
        password_hash: secret(row, seal, "password_hash", field::USER, &id)?,
        enabled: needed(row.flag("enabled")?)?,
        created_at: needed(time(row, "created_at")?)?,
        id: name(&id)?,
    })
}

/// Reads a row of `access_tokens`.
pub(super) fn access_token(row: &dyn Columns, seal: &Seal) -> Result<AccessToken, StoreError> {
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

/// Reads a row of `request_tokens`.
pub(super) fn request_token(row: &dyn Columns, seal: &Seal) -> Result<RequestToken, StoreError> {
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
pub(super) fn session(row: &dyn Columns) -> Result<Session, StoreError> {
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
pub(super) fn open_sessions(count: i64, since: Option<i64>) -> Result<OpenSessions, StoreError> {
    Ok(OpenSessions {
        count: count.unsigned_abs(),
        since: since.map(unix_time).transpose()?,
    })
}

/// Reads a row of `changes`.
pub(super) fn change(row: &dyn Columns) -> Result<Change, StoreError> {
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
    row: &dyn Columns,
    seal: &Seal,
    column: &str,
    field: &'static str,
    record: &str,
) -> Result<Option<Secret>, StoreError> {
    let kept = row.bytes(column)?;
    kept.map(|kept| seal.open(field, record, &kept)).transpose()
}

fn text(row: &dyn Columns, column: &str) -> Result<String, StoreError> {
    needed(row.text(column)?)
}

fn time(row: &dyn Columns, column: &str) -> Result<Option<UnixTime>, StoreError> {
    row.integer(column)?.map(unix_time).transpose()
}

fn dialect(row: &dyn Columns) -> Result<Option<Dialect>, StoreError> {
    match row.text("dialect")?.as_deref() {
        None => Ok(None),
        Some("rfc5849") => Ok(Some(Dialect::Rfc5849)),
        Some("legacy") => Ok(Some(Dialect::Legacy)),
        Some(_) => Err(StoreError::Broken("a consumer has no known dialect")),
    }
}

fn list<T: DeserializeOwned>(row: &dyn Columns, column: &str) -> Result<Vec<T>, StoreError> {
    serde_json::from_str(&text(row, column)?)
        .map_err(|_| StoreError::Broken("a list cannot be read"))
}
