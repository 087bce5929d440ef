//! Access tokens outside the flow: found, issued, revoked, listed.

use super::{Param, Tx};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    store::{
        StoreError,
        port::{Added, Change, TokenFilter},
        record::AccessToken,
        rows::{self, Read, json, needed, seconds},
        seal::field,
    },
};

pub(super) async fn find<T: Tx>(
    tx: &mut T,
    token: &str,
) -> Result<Option<AccessToken>, StoreError> {
    if !T::is_text(token) {
        return Ok(None);
    }
    let find = "SELECT * FROM access_tokens WHERE token = $1";
    tx.row(find, &[&token], rows::access_token).await
}

/// Finds a token that was given out here, else one of the existing system.
pub(super) async fn find_anywhere<T: Tx>(
    tx: &mut T,
    token: &str,
) -> Result<Option<AccessToken>, StoreError> {
    match find(tx, token).await? {
        None if T::is_text(token) => tx.access_token_outside(token).await,
        found => Ok(found),
    }
}

/// A statement for each filter, so that each finds its index.
macro_rules! select {
    ($filter:literal) => {
        concat!(
            "SELECT * FROM access_tokens WHERE token > $1 AND coalesce(last_used_at, issued_at) <= $3 ",
            $filter,
            " ORDER BY token LIMIT $2"
        )
    };
}

/// As [`select`], to revoke.
macro_rules! revoke {
    ($filter:literal) => {
        concat!(
            "UPDATE access_tokens SET revoked_at = $1
             WHERE revoked_at IS NULL AND coalesce(last_used_at, issued_at) <= $2 AND ",
            $filter,
            " RETURNING token"
        )
    };
}

pub(super) async fn list(
    tx: &mut impl Tx,
    filter: &TokenFilter,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<AccessToken>, StoreError> {
    let user = filter.user.as_ref().map(UserId::as_str);
    let consumer = filter.consumer.as_ref().map(ConsumerKey::as_str);
    let (after, limit) = (after.unwrap_or_default(), i64::from(limit));
    let unused = filter.unused_since.map_or(i64::MAX, seconds);
    let (find, params): (_, &[&dyn Param]) = match (&user, &consumer) {
        (None, None) => (select!(""), &[&after, &limit, &unused]),
        (Some(user), None) => (
            select!(r#"AND "user" = $4"#),
            &[&after, &limit, &unused, user],
        ),
        (None, Some(consumer)) => (
            select!("AND consumer = $4"),
            &[&after, &limit, &unused, consumer],
        ),
        (Some(user), Some(consumer)) => (
            select!(r#"AND "user" = $4 AND consumer = $5"#),
            &[&after, &limit, &unused, user, consumer],
        ),
    };
    tx.rows(find, params, rows::access_token).await
}

pub(super) async fn issue(tx: &mut impl Tx, token: &AccessToken) -> Result<Added, StoreError> {
    let may_be_issued = tx
        .has_row(
            "SELECT 1 FROM consumers, users
             WHERE consumers.key = $1 AND users.id = $2 AND users.enabled",
            &[&token.consumer.as_str(), &token.user.as_str()],
        )
        .await?;
    if may_be_issued && insert(tx, token).await? {
        Ok(Added::Added)
    } else {
        Ok(Added::Taken)
    }
}

pub(super) async fn revoke<T: Tx>(
    tx: &mut T,
    token: &str,
    now: UnixTime,
) -> Result<bool, StoreError> {
    if !T::is_text(token) {
        return Ok(false);
    }
    let revoke = "UPDATE access_tokens SET revoked_at = $2 WHERE token = $1 AND revoked_at IS NULL";
    if tx.execute(revoke, &[&token, &seconds(now)]).await? > 0 {
        tx.changed(Change::AccessToken(token.to_owned()))?;
        return Ok(true);
    }
    let find = "SELECT 1 FROM access_tokens WHERE token = $1";
    tx.has_row(find, &[&token]).await
}

pub(super) async fn revoke_all(
    tx: &mut impl Tx,
    filter: &TokenFilter,
    now: UnixTime,
) -> Result<u64, StoreError> {
    let user = filter.user.as_ref().map(UserId::as_str);
    let consumer = filter.consumer.as_ref().map(ConsumerKey::as_str);
    let (now, unused) = (seconds(now), filter.unused_since.map_or(i64::MAX, seconds));
    let (revoke, params): (_, &[&dyn Param]) = match (&user, &consumer) {
        (None, None) => return Ok(0),
        (Some(user), None) => (revoke!(r#""user" = $3"#), &[&now, &unused, user]),
        (None, Some(consumer)) => (revoke!("consumer = $3"), &[&now, &unused, consumer]),
        (Some(user), Some(consumer)) => (
            revoke!(r#""user" = $3 AND consumer = $4"#),
            &[&now, &unused, user, consumer],
        ),
    };
    let read: Read<String> = |row, _| needed(row.text("token")?);
    let revoked = tx.rows(revoke, params, read).await?;
    let count = revoked.len() as u64;
    for token in revoked {
        tx.changed(Change::AccessToken(token))?;
    }
    Ok(count)
}

/// Revokes a token at the time that an import says, else now.
pub(in crate::store) async fn revoke_at<T: Tx>(
    tx: &mut T,
    token: &str,
    at: Option<UnixTime>,
) -> Result<(), StoreError> {
    let revoke = T::STATEMENTS.revoke_at;
    tx.execute(revoke, &[&token, &at.map(seconds)]).await?;
    tx.changed(Change::AccessToken(token.to_owned()))
}

/// Keeps a token; `false` if its identifier is in use or was before.
pub(in crate::store) async fn insert<T: Tx>(
    tx: &mut T,
    token: &AccessToken,
) -> Result<bool, StoreError> {
    if tx.is_token_removed(&token.token)? {
        return Ok(false);
    }
    let secret = tx
        .seal()
        .close(field::ACCESS_TOKEN, &token.token, &token.secret)?;
    let inserted = tx
        .execute(
            T::STATEMENTS.insert_token,
            &[
                &token.token,
                &secret,
                &token.consumer.as_str(),
                &token.user.as_str(),
                &json(&token.permissions)?,
                &seconds(token.issued_at),
                &token.expires_at.map(seconds),
                &token.last_used_at.map(seconds),
                &token.revoked_at.map(seconds),
            ],
        )
        .await?;
    if inserted > 0 {
        tx.changed(Change::AccessToken(token.token.clone()))?;
    }
    Ok(inserted > 0)
}
