//! Records as rows. Their secrets have the form that [`Seal`] gives them.

use aws_lc_rs::digest::{SHA256, digest as hash};
use serde_json::json as object;

use crate::{
    base::{clock::UnixTime, secret::Secret, text::names::ConsumerKey},
    records::values::{
        Result, StoreError,
        record::{
            AccessToken, Consumer, ConsumerUse, RequestToken, RequestTokenState, Session, User,
        },
        seal::{Seal, field},
        use_cases::Change,
        value::{Row, needed},
    },
};

/// Reads a row as a record.
pub(crate) type Read<T> = fn(&Row, &Seal) -> Result<T>;

fn secret(
    row: &Row,
    seal: &Seal,
    column: &str,
    field: &'static str,
    record: &str,
) -> Result<Option<Secret>> {
    let sealed = row.bytes(column)?;
    sealed
        .map(|sealed| seal.open(field, record, &sealed))
        .transpose()
}

/// Reads a row of `consumers`.
pub(crate) fn consumer(row: &Row, seal: &Seal) -> Result<Consumer> {
    let key: String = row.get("key")?;
    let current = secret(row, seal, "secret", field::CONSUMER, &key)?;
    let previous = secret(row, seal, "previous_secret", field::CONSUMER_PREVIOUS, &key)?;
    let previous = previous.zip(row.get("previous_until")?);
    Consumer::from_row(row, needed(current)?, previous)
}

/// Reads a row of `consumer_uses`.
pub(crate) fn consumer_use(row: &Row, _: &Seal) -> Result<ConsumerUse> {
    Ok(ConsumerUse {
        consumer: row.get("consumer")?,
        last_used_at: row.get("last_used_at")?,
        method: row.get("method")?,
        dialect: row.get("dialect")?,
    })
}

/// Reads a row of `developer_links`.
pub(crate) fn developer_link(row: &Row, _: &Seal) -> Result<(ConsumerKey, UnixTime)> {
    Ok((row.get("consumer")?, row.get("expires_at")?))
}

/// Reads a row of `users`.
pub(crate) fn user(row: &Row, seal: &Seal) -> Result<User> {
    let id: String = row.get("id")?;
    User::from_row(row, secret(row, seal, "password_hash", field::USER, &id)?)
}

/// Reads a row of `access_tokens`.
pub(crate) fn access_token(row: &Row, seal: &Seal) -> Result<AccessToken> {
    let token: String = row.get("token")?;
    Ok(AccessToken {
        secret: needed(secret(row, seal, "secret", field::ACCESS_TOKEN, &token)?)?,
        token,
        consumer: row.get("consumer")?,
        user: row.get("user")?,
        permissions: row.get("permissions")?,
        issued_at: row.get("issued_at")?,
        expires_at: row.get("expires_at")?,
        last_used_at: row.get("last_used_at")?,
        last_used_from: row.get("last_used_from")?,
        revoked_at: row.get("revoked_at")?,
        began: row.get("began")?,
        with_display_name: row.get("with_display_name")?,
    })
}

/// Reads the identifier of a token.
pub(crate) fn token(row: &Row, _: &Seal) -> Result<String> {
    row.get("token")
}

/// Reads a row of `request_tokens`.
pub(crate) fn request_token(row: &Row, seal: &Seal) -> Result<RequestToken> {
    let token: String = row.get("token")?;
    let state = match &*row.get::<String>("state")? {
        "issued" => RequestTokenState::Issued,
        "authorized" => RequestTokenState::Authorized {
            user: row.get("user")?,
            verifier: needed(secret(row, seal, "verifier", field::VERIFIER, &token)?)?,
            redirect_token: row.get("redirect_token")?,
        },
        "denied" => RequestTokenState::Denied,
        "exchanged" => RequestTokenState::Exchanged,
        "voided" => RequestTokenState::Voided,
        _ => return Err(StoreError::Broken("a request token has an unknown state")),
    };
    let current = secret(row, seal, "secret", field::REQUEST_TOKEN, &token)?;
    RequestToken::from_row(row, needed(current)?, state)
}

/// Reads a row of `sessions`.
pub(crate) fn session(row: &Row, _: &Seal) -> Result<Session> {
    let id_hash = needed(row.bytes("id_hash")?)?;
    let other_length = |_| StoreError::Broken("the hash of a session id does not have 32 bytes");
    Session::from_row(row, id_hash.try_into().map_err(other_length)?)
}

/// Reads a row of `changes`.
pub(crate) fn change(row: &Row, _: &Seal) -> Result<Change> {
    let (kind, key): (String, String) = (row.get("kind")?, row.get("key")?);
    let change = serde_json::from_value(object!({ "kind": kind, "key": key }));
    change.map_err(|_| StoreError::Broken("a change has an unknown kind"))
}

/// The SHA-256 of a replaced password hash, as a column holds it.
pub(crate) fn digest(replaced: &Secret) -> Vec<u8> {
    hash(&SHA256, replaced.expose()).as_ref().to_vec()
}
