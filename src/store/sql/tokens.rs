//! Access tokens outside the flow: found, issued, revoked, listed.

use super::Tx;
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    store::{
        StoreError,
        port::{Added, Change, TokenFilter},
        record::AccessToken,
        rows::{self, json, seconds},
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

pub(super) async fn list(
    tx: &mut impl Tx,
    filter: &TokenFilter,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<AccessToken>, StoreError> {
    let user = filter.user.as_ref().map(UserId::as_str);
    let consumer = filter.consumer.as_ref().map(ConsumerKey::as_str);
    let (after, limit) = (after.unwrap_or_default(), i64::from(limit));
    // A statement for each filter, so that each finds its index.
    let (find, params): (_, &[&dyn super::Param]) = match (&user, &consumer) {
        (None, None) => (
            "SELECT * FROM access_tokens WHERE token > $1 ORDER BY token LIMIT $2",
            &[&after, &limit],
        ),
        (Some(user), None) => (
            r#"SELECT * FROM access_tokens WHERE token > $1 AND "user" = $3 ORDER BY token LIMIT $2"#,
            &[&after, &limit, user],
        ),
        (None, Some(consumer)) => (
            "SELECT * FROM access_tokens WHERE token > $1 AND consumer = $3 ORDER BY token LIMIT $2",
            &[&after, &limit, consumer],
        ),
        (Some(user), Some(consumer)) => (
            r#"SELECT * FROM access_tokens WHERE token > $1 AND "user" = $3 AND consumer = $4
             ORDER BY token LIMIT $2"#,
            &[&after, &limit, user, consumer],
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

/// Whether an identifier is in use or was before.
pub(super) async fn is_taken(tx: &mut impl Tx, token: &str) -> Result<bool, StoreError> {
    tx.has_row(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM access_tokens WHERE token = $1)
         OR EXISTS (SELECT 1 FROM removed_tokens WHERE token = $1)",
        &[&token],
    )
    .await
}

/// Keeps a token; `false` if its identifier is in use or was before.
pub(super) async fn insert<T: Tx>(tx: &mut T, token: &AccessToken) -> Result<bool, StoreError> {
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
