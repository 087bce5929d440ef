//! Users: registered, disabled, removed, and what ends with them.

use super::{Tx, sessions};
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Account, Added, Admitted, Change},
        record::{OutsideUser, User, password_cost as cost},
        rows::{self, digest, needed, seconds},
        rules,
        seal::field,
    },
};

pub(super) async fn find(tx: &mut impl Tx, id: &UserId) -> Result<Option<User>, StoreError> {
    let find = "SELECT * FROM users WHERE id = $1";
    tx.row(find, &[&id.as_str()], rows::user).await
}

pub(super) async fn find_by_name<T: Tx>(
    tx: &mut T,
    name: &str,
) -> Result<Option<User>, StoreError> {
    let name = T::kept_text(name);
    tx.row(T::STATEMENTS.user_by_name, &[&name], rows::user)
        .await
}

pub(super) async fn account(tx: &mut impl Tx, name: &str) -> Result<Account, StoreError> {
    Ok(Account {
        user: find_by_name(tx, name).await?,
        costs: password_costs(tx).await?,
    })
}

pub(super) async fn list(
    tx: &mut impl Tx,
    after: Option<&UserId>,
    limit: u32,
) -> Result<Vec<User>, StoreError> {
    let after = after.map_or("", UserId::as_str);
    tx.rows(
        "SELECT * FROM users WHERE id > $1 ORDER BY id LIMIT $2",
        &[&after, &i64::from(limit)],
        rows::user,
    )
    .await
}

pub(super) async fn add(tx: &mut impl Tx, user: &User) -> Result<Added, StoreError> {
    let is_taken = is_removed(tx, &user.id).await?
        || find(tx, &user.id).await?.is_some()
        || find_by_name(tx, &user.name).await?.is_some();
    if is_taken {
        return Ok(Added::Taken);
    }
    insert(tx, user).await?;
    Ok(Added::Added)
}

/// The outcome of [`admit`], if it needs no change.
pub(super) async fn admitted_unchanged(
    tx: &mut impl Tx,
    outside: OutsideUser,
    now: UnixTime,
) -> Result<Option<Admitted>, StoreError> {
    let Some(found) = find(tx, &outside.id).await? else {
        let is_removed = is_removed(tx, &outside.id).await?;
        return Ok(is_removed.then_some(Admitted::Removed));
    };
    let user = rules::admitted(Some(&found), outside, now);
    Ok((user == found).then_some(Admitted::User(user)))
}

pub(super) async fn admit<T: Tx>(
    tx: &mut T,
    outside: OutsideUser,
    now: UnixTime,
) -> Result<Admitted, StoreError> {
    if is_removed(tx, &outside.id).await? {
        return Ok(Admitted::Removed);
    }
    let found = find(tx, &outside.id).await?;
    let user = rules::admitted(found.as_ref(), outside, now);
    if found.as_ref() == Some(&user) {
        return Ok(Admitted::User(user));
    }
    let namesake = find_by_name(tx, &user.name).await?;
    if namesake.is_some_and(|other| other.id != user.id) {
        return Ok(Admitted::NameTaken);
    }
    if found.is_none() {
        insert(tx, &user).await?;
    } else {
        tx.execute(
            "UPDATE users SET name = $2, display_name = $3 WHERE id = $1",
            &[
                &user.id.as_str(),
                &T::kept_text(&user.name),
                &user.display_name.as_deref().map(T::kept_text),
            ],
        )
        .await?;
        tx.changed(Change::User(user.id.clone()))?;
    }
    Ok(Admitted::User(user))
}

pub(super) async fn set_password(
    tx: &mut impl Tx,
    id: &UserId,
    hash: &Secret,
) -> Result<bool, StoreError> {
    let is_there = put_hash(tx, id, hash, None).await?;
    if is_there {
        sessions::close_all(tx, id).await?;
        tx.changed(Change::User(id.clone()))?;
    }
    Ok(is_there)
}

pub(super) async fn set_enabled(
    tx: &mut impl Tx,
    id: &UserId,
    enabled: bool,
    now: UnixTime,
) -> Result<bool, StoreError> {
    let set = "UPDATE users SET enabled = $2 WHERE id = $1";
    let is_there = tx.execute(set, &[&id.as_str(), &enabled]).await? > 0;
    if is_there {
        if !enabled {
            end_all_of(tx, id, now).await?;
        }
        tx.changed(Change::User(id.clone()))?;
    }
    Ok(is_there)
}

pub(super) async fn remove(
    tx: &mut impl Tx,
    id: &UserId,
    now: UnixTime,
) -> Result<bool, StoreError> {
    if find(tx, id).await?.is_none() {
        return Ok(false);
    }
    end_all_of(tx, id, now).await?;
    let delete = "DELETE FROM users WHERE id = $1";
    tx.execute(delete, &[&id.as_str()]).await?;
    retire(tx, id).await?;
    tx.changed(Change::User(id.clone()))?;
    Ok(true)
}

pub(super) async fn is_removed(tx: &mut impl Tx, id: &UserId) -> Result<bool, StoreError> {
    let find = "SELECT 1 FROM removed_users WHERE id = $1";
    tx.has_row(find, &[&id.as_str()]).await
}

/// Marks an id as never to be used again.
pub(super) async fn retire(tx: &mut impl Tx, id: &UserId) -> Result<(), StoreError> {
    let insert = "INSERT INTO removed_users (id) VALUES ($1)";
    tx.execute(insert, &[&id.as_str()]).await.map(drop)
}

pub(super) async fn insert<T: Tx>(tx: &mut T, user: &User) -> Result<(), StoreError> {
    let id = user.id.as_str();
    let hash = user.password_hash.as_ref();
    let kept = hash.map(|hash| tx.seal().close(field::USER, id, hash));
    let insert =
        "INSERT INTO users (id, name, display_name, password_hash, password_cost, enabled, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    tx.execute(
        insert,
        &[
            &id,
            &T::kept_text(&user.name),
            &user.display_name.as_deref().map(T::kept_text),
            &kept.transpose()?,
            &hash.map(cost),
            &user.enabled,
            &seconds(user.created_at),
        ],
    )
    .await
    .map(drop)
}

/// Whether a login has replaced `hash` by the one that the user has now.
pub(super) async fn is_replaced_hash(
    tx: &mut impl Tx,
    id: &UserId,
    hash: &Secret,
) -> Result<bool, StoreError> {
    let find = "SELECT 1 FROM users WHERE id = $1 AND replaced_hash = $2";
    tx.has_row(find, &[&id.as_str(), &digest(hash)]).await
}

/// Writes a password hash; `replaced` is the one that it replaces, if both are of the same password.
pub(super) async fn put_hash(
    tx: &mut impl Tx,
    id: &UserId,
    hash: &Secret,
    replaced: Option<&Secret>,
) -> Result<bool, StoreError> {
    let kept = tx.seal().close(field::USER, id.as_str(), hash)?;
    let rows = tx
        .execute(
            "UPDATE users SET password_hash = $2, password_cost = $3, replaced_hash = $4 WHERE id = $1",
            &[&id.as_str(), &kept, &cost(hash), &replaced.map(digest)],
        )
        .await?;
    Ok(rows > 0)
}

/// The costs of all password hashes, each once.
pub(super) async fn password_costs(tx: &mut impl Tx) -> Result<Vec<String>, StoreError> {
    // From each to the next in the index: a DISTINCT would visit every user at every login.
    tx.rows(
        "WITH RECURSIVE costs (cost) AS (
             SELECT min(password_cost) FROM users WHERE password_cost IS NOT NULL
             UNION ALL
             SELECT (SELECT min(password_cost) FROM users WHERE password_cost > cost)
             FROM costs WHERE cost IS NOT NULL
         )
         SELECT cost FROM costs WHERE cost IS NOT NULL",
        &[],
        |row, _| needed(row.text("cost")?),
    )
    .await
}

/// Fills the column that says what a hash costs, in a store from before there was one.
pub(in crate::store) async fn fill_costs(tx: &mut impl Tx) -> Result<(), StoreError> {
    let users = tx
        .rows(
            "SELECT * FROM users WHERE password_hash IS NOT NULL AND password_cost IS NULL",
            &[],
            rows::user,
        )
        .await?;
    for user in users {
        tx.execute(
            "UPDATE users SET password_cost = $2 WHERE id = $1",
            &[&user.id.as_str(), &user.password_hash.as_ref().map(cost)],
        )
        .await?;
    }
    Ok(())
}

/// Ends sessions, revokes access tokens, voids request tokens that wait for the exchange.
async fn end_all_of(tx: &mut impl Tx, id: &UserId, now: UnixTime) -> Result<(), StoreError> {
    sessions::close_all(tx, id).await?;
    let revoked = tx
        .rows(
            r#"UPDATE access_tokens SET revoked_at = $2 WHERE "user" = $1 AND revoked_at IS NULL
             RETURNING token"#,
            &[&id.as_str(), &seconds(now)],
            |row, _| needed(row.text("token")?),
        )
        .await?;
    for token in revoked {
        tx.changed(Change::AccessToken(token))?;
    }
    let void = r#"UPDATE request_tokens SET state = 'voided', "user" = NULL, verifier = NULL
         WHERE "user" = $1"#;
    tx.execute(void, &[&id.as_str()]).await.map(drop)
}
