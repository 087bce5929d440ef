//! Browser sessions.

use std::num::NonZeroU32;

use super::{Tx, users};
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Change, OpenSessions, VerifiedPassword},
        record::{Session, User},
        rows::{self, needed, seconds},
    },
};

pub(super) async fn open<T: Tx>(
    tx: &mut T,
    session: &Session,
    verified: &VerifiedPassword,
    most: NonZeroU32,
) -> Result<bool, StoreError> {
    let id = &session.user;
    // Logins of one user are counted one after the other, and one of them replaces the hash.
    let lock = T::STATEMENTS.lock_user;
    tx.has_row(lock, &[&id.as_str()]).await?;
    // The user may have been removed or disabled, or the password changed, while the password was checked.
    let user = enabled_user(tx, id).await?;
    if user.is_none_or(|user| user.password_hash != verified.hash) {
        return Ok(false);
    }
    if let Some(rehashed) = &verified.rehashed {
        users::put_hash(tx, id, rehashed, verified.hash.as_ref()).await?;
        tx.changed(Change::User(id.clone()))?;
    }
    // Before the insertion: sessions of the same second have no order, and the new one must stay.
    tx.execute(
        r#"DELETE FROM sessions WHERE id_hash IN
             (SELECT id_hash FROM sessions WHERE "user" = $1
              ORDER BY created_at DESC LIMIT 1000000 OFFSET $2)"#,
        &[&id.as_str(), &i64::from(most.get() - 1)],
    )
    .await?;
    insert(tx, session).await?;
    Ok(true)
}

pub(super) async fn change_password(
    tx: &mut impl Tx,
    session: &Session,
    verified: &Secret,
    hash: &Secret,
) -> Result<bool, StoreError> {
    let user = enabled_user(tx, &session.user).await?;
    if user.is_none_or(|user| user.password_hash.as_ref() != Some(verified)) {
        return Ok(false);
    }
    users::set_password(tx, &session.user, hash).await?;
    insert(tx, session).await?;
    Ok(true)
}

async fn enabled_user(tx: &mut impl Tx, id: &UserId) -> Result<Option<User>, StoreError> {
    Ok(users::find(tx, id).await?.filter(|user| user.enabled))
}

async fn insert(tx: &mut impl Tx, session: &Session) -> Result<(), StoreError> {
    tx.execute(
        r#"INSERT INTO sessions (id_hash, "user", created_at, expires_at) VALUES ($1, $2, $3, $4)"#,
        &[
            &session.id_hash.as_slice(),
            &session.user.as_str(),
            &seconds(session.created_at),
            &seconds(session.expires_at),
        ],
    )
    .await
    .map(drop)
}

pub(super) async fn find(
    tx: &mut impl Tx,
    id_hash: &[u8; 32],
    now: UnixTime,
) -> Result<Option<(Session, User)>, StoreError> {
    let find = "SELECT * FROM sessions WHERE id_hash = $1 AND expires_at > $2";
    let params: super::Params<'_> = &[&id_hash.as_slice(), &seconds(now)];
    let session = tx.row(find, params, |row, _| rows::session(row)).await?;
    let Some(session) = session else {
        return Ok(None);
    };
    let user = enabled_user(tx, &session.user).await?;
    Ok(user.map(|user| (session, user)))
}

pub(super) async fn close(tx: &mut impl Tx, id_hash: &[u8; 32]) -> Result<(), StoreError> {
    let delete = "DELETE FROM sessions WHERE id_hash = $1";
    tx.execute(delete, &[&id_hash.as_slice()]).await.map(drop)
}

pub(super) async fn count(
    tx: &mut impl Tx,
    user: &UserId,
    now: UnixTime,
) -> Result<OpenSessions, StoreError> {
    let found = tx
        .row(
            r#"SELECT count(*) AS count, min(created_at) AS since
             FROM sessions WHERE "user" = $1 AND expires_at > $2"#,
            &[&user.as_str(), &seconds(now)],
            |row, _| {
                let count = needed(row.integer("count")?)?;
                rows::open_sessions(count, row.integer("since")?)
            },
        )
        .await?;
    found.ok_or(StoreError::Broken("there is no count of sessions"))
}

pub(super) async fn close_all(tx: &mut impl Tx, user: &UserId) -> Result<(), StoreError> {
    let delete = r#"DELETE FROM sessions WHERE "user" = $1"#;
    tx.execute(delete, &[&user.as_str()]).await.map(drop)
}
