//! Rows to records, and what columns hold.

use std::str::FromStr;

use rusqlite::Row;
use serde::{Serialize, de::DeserializeOwned};

use super::{sealing::field, tx::Tx};
use crate::{
    clock::UnixTime,
    secret::Secret,
    store::{
        StoreError,
        record::{
            AccessToken, Callback, Consumer, Dialect, RequestToken, RequestTokenState, Session,
            User,
        },
    },
};

impl Tx<'_> {
    /// Reads a row of `consumers`.
    pub(super) fn read_consumer(&self, row: &Row<'_>) -> Result<Consumer, StoreError> {
        let key: String = row.get("key")?;
        let previous = self.secret(row, "previous_secret", field::CONSUMER_PREVIOUS, &key)?;
        Ok(Consumer {
            secret: self.needed_secret(row, "secret", field::CONSUMER, &key)?,
            previous_secret: previous.zip(optional_time(row, "previous_until")?),
            rsa_public_key: row.get("rsa_public_key")?,
            name: row.get("name")?,
            callbacks: list(row, "callbacks")?,
            permissions: list(row, "permissions")?,
            dialect: dialect(row)?,
            enforce: row.get("enforce")?,
            enabled: row.get("enabled")?,
            created_at: time(row, "created_at")?,
            key: name(&key)?,
        })
    }

    /// Reads a row of `users`.
    pub(super) fn read_user(&self, row: &Row<'_>) -> Result<User, StoreError> {
        let id: String = row.get("id")?;
        Ok(User {
            name: row.get("name")?,
            display_name: row.get("display_name")?,
            password_hash: self.secret(row, "password_hash", field::USER, &id)?,
            enabled: row.get("enabled")?,
            created_at: time(row, "created_at")?,
            id: name(&id)?,
        })
    }

    /// Reads a row of `access_tokens`.
    pub(super) fn read_access_token(&self, row: &Row<'_>) -> Result<AccessToken, StoreError> {
        let token: String = row.get("token")?;
        Ok(AccessToken {
            secret: self.needed_secret(row, "secret", field::ACCESS_TOKEN, &token)?,
            consumer: name(&row.get::<_, String>("consumer")?)?,
            user: name(&row.get::<_, String>("user")?)?,
            permissions: list(row, "permissions")?,
            issued_at: time(row, "issued_at")?,
            expires_at: optional_time(row, "expires_at")?,
            last_used_at: optional_time(row, "last_used_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
            token,
        })
    }

    /// Reads a row of `request_tokens`.
    pub(super) fn read_request_token(&self, row: &Row<'_>) -> Result<RequestToken, StoreError> {
        let token: String = row.get("token")?;
        let state = match row.get::<_, String>("state")?.as_str() {
            "issued" => RequestTokenState::Issued,
            "authorized" => RequestTokenState::Authorized {
                user: name(&row.get::<_, String>("user")?)?,
                verifier: self.needed_secret(row, "verifier", field::VERIFIER, &token)?,
                redirect_token: row.get("redirect_token")?,
            },
            "denied" => RequestTokenState::Denied,
            "exchanged" => RequestTokenState::Exchanged,
            "voided" => RequestTokenState::Voided,
            _ => return Err(StoreError::Broken("a request token is in no known state")),
        };
        let callback: Option<String> = row.get("callback")?;
        Ok(RequestToken {
            secret: self.needed_secret(row, "secret", field::REQUEST_TOKEN, &token)?,
            consumer: name(&row.get::<_, String>("consumer")?)?,
            callback: callback.map_or(Callback::Oob, Callback::Uri),
            permissions: list(row, "permissions")?,
            issued_at: time(row, "issued_at")?,
            expires_at: time(row, "expires_at")?,
            state,
            wrong_verifiers: row.get("wrong_verifiers")?,
            token,
        })
    }

    fn secret(
        &self,
        row: &Row<'_>,
        column: &str,
        field: &'static str,
        record: &str,
    ) -> Result<Option<Secret>, StoreError> {
        row.get::<_, Option<Vec<u8>>>(column)?
            .map(|kept| self.seal.open(field, record, &kept))
            .transpose()
    }

    fn needed_secret(
        &self,
        row: &Row<'_>,
        column: &str,
        field: &'static str,
        record: &str,
    ) -> Result<Secret, StoreError> {
        self.secret(row, column, field, record)?
            .ok_or(StoreError::Broken("a secret is missing"))
    }
}

/// Reads a row of `sessions`.
pub(super) fn session(row: &Row<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        id_hash: row.get("id_hash")?,
        user: name(&row.get::<_, String>("user")?)?,
        created_at: time(row, "created_at")?,
        expires_at: time(row, "expires_at")?,
    })
}

/// A time as a column holds it; SQLite's integers end earlier than ours, far behind every real date.
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

fn dialect(row: &Row<'_>) -> Result<Option<Dialect>, StoreError> {
    match row.get::<_, Option<String>>("dialect")?.as_deref() {
        None => Ok(None),
        Some("rfc5849") => Ok(Some(Dialect::Rfc5849)),
        Some("legacy") => Ok(Some(Dialect::Legacy)),
        Some(_) => Err(StoreError::Broken("a consumer has no known dialect")),
    }
}

/// Takes a key or an id out of the store.
pub(super) fn name<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Broken("a key or an id is no name"))
}

fn list<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<Vec<T>, StoreError> {
    serde_json::from_str(
        row.get_ref(column)?
            .as_str()
            .map_err(rusqlite::Error::from)?,
    )
    .map_err(|_| StoreError::Broken("a list cannot be read"))
}

fn time(row: &Row<'_>, column: &str) -> Result<UnixTime, StoreError> {
    u64::try_from(row.get::<_, i64>(column)?)
        .map(UnixTime)
        .map_err(|_| StoreError::Broken("a time lies before 1970"))
}

fn optional_time(row: &Row<'_>, column: &str) -> Result<Option<UnixTime>, StoreError> {
    match row.get::<_, Option<i64>>(column)? {
        Some(_) => time(row, column).map(Some),
        None => Ok(None),
    }
}
