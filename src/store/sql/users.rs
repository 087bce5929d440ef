//! Users: registered, disabled, removed, and what ends with them.

use async_trait::async_trait;

use super::{Engine, Mode, Pace, Param, Tx, run, sessions};
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Account, Added, Admitted, Change},
        record::{OutsideUser, User, password_cost as cost},
        rows::{self, digest, kept_text, needed, seconds},
        rules,
        seal::field,
    },
};

/// Users: registered, disabled, removed.
#[async_trait]
pub trait Users: Engine {
    /// Registers a user; `Taken` also for the id of a removed user.
    async fn add_user(&self, user: User) -> Result<Added, StoreError> {
        run(self, "add_user", Mode::Alone, Pace::Command, async |tx| {
            let is_taken = is_removed(tx, &user.id).await?
                || find(tx, &user.id).await?.is_some()
                || find_by_name(tx, &user.name).await?.is_some();
            if is_taken {
                return Ok(Added::Taken);
            }
            insert(tx, &user).await?;
            Ok(Added::Added)
        })
        .await
    }

    /// Registers a user that an outside login vouches for, or brings the names of one up to date; a disabled user is left
    /// as it is.
    async fn admit_user(&self, user: OutsideUser, now: UnixTime) -> Result<Admitted, StoreError> {
        // Most logins change nothing: they need not wait for, and hold up, everybody who writes.
        let known = run(
            self,
            "admit_user",
            Mode::Single,
            Pace::Request,
            async |tx| {
                let Some(found) = find(tx, &user.id).await? else {
                    return Ok(None);
                };
                let admitted = rules::admitted(Some(&found), user.clone(), now);
                Ok((admitted == found).then_some(Admitted::User(found)))
            },
        );
        if let Some(admitted) = known.await? {
            return Ok(admitted);
        }
        run(self, "admit_user", Mode::Alone, Pace::Request, async |tx| {
            admit(tx, user, now).await
        })
        .await
    }

    /// Finds a user by id.
    async fn user(&self, id: &UserId) -> Result<Option<User>, StoreError> {
        run(self, "user", Mode::Single, Pace::Request, async |tx| {
            find(tx, id).await
        })
        .await
    }

    /// Finds a user by login name, without regard to ASCII case.
    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        run(
            self,
            "user_by_name",
            Mode::Single,
            Pace::Request,
            async |tx| find_by_name(tx, name).await,
        )
        .await
    }

    /// Finds the user who logs in by a name, as [`Users::user_by_name`] does, and what all passwords cost to check.
    async fn account(&self, name: &str) -> Result<Account, StoreError> {
        run(self, "account", Mode::Snapshot, Pace::Request, async |tx| {
            Ok(Account {
                user: find_by_name(tx, name).await?,
                costs: password_costs(tx).await?,
            })
        })
        .await
    }

    /// Sets the password hash and ends the user's sessions; `false` if there is no such user.
    async fn set_password(&self, id: &UserId, hash: Secret) -> Result<bool, StoreError> {
        run(
            self,
            "set_password",
            Mode::Alone,
            Pace::Command,
            async |tx| set_password(tx, id, &hash).await,
        )
        .await
    }

    /// Enables or disables a user. Disabling ends sessions, revokes access tokens and voids request tokens that
    /// the user authorized; enabling brings none of them back. `false` if there is no such user.
    async fn set_user_enabled(
        &self,
        id: &UserId,
        enabled: bool,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        run(
            self,
            "set_user_enabled",
            Mode::Alone,
            Pace::Command,
            async |tx| {
                let set = "UPDATE users SET enabled = $2 WHERE id = $1";
                let is_there = tx.execute(set, &[&id.as_str(), &enabled]).await? > 0;
                if is_there {
                    if !enabled {
                        end_all_of(tx, id, now).await?;
                    }
                    tx.changed(Change::User(id.clone()));
                }
                Ok(is_there)
            },
        )
        .await
    }

    /// Removes a user, as disabling does, and retires the id; `false` if there is no such user.
    async fn remove_user(&self, id: &UserId, now: UnixTime) -> Result<bool, StoreError> {
        run(
            self,
            "remove_user",
            Mode::Alone,
            Pace::Command,
            async |tx| {
                if find(tx, id).await?.is_none() {
                    return Ok(false);
                }
                end_all_of(tx, id, now).await?;
                let delete = "DELETE FROM users WHERE id = $1";
                tx.execute(delete, &[&id.as_str()]).await?;
                retire(tx, id).await?;
                tx.changed(Change::User(id.clone()));
                Ok(true)
            },
        )
        .await
    }

    /// Lists users in the order of their ids, after `after`, at most `limit`.
    async fn users(&self, after: Option<&UserId>, limit: u32) -> Result<Vec<User>, StoreError> {
        let list = "SELECT * FROM users WHERE id > $1 ORDER BY id LIMIT $2";
        run(self, "users", Mode::Single, Pace::Request, async |tx| {
            let after = after.map_or("", UserId::as_str);
            tx.rows(list, &[&after, &i64::from(limit)], rows::user)
                .await
        })
        .await
    }
}

impl<E: Engine + ?Sized> Users for E {}

pub(super) async fn find(tx: &mut Tx, id: &UserId) -> Result<Option<User>, StoreError> {
    let find = "SELECT * FROM users WHERE id = $1";
    tx.row(find, &[&id.as_str()], rows::user).await
}

pub(super) async fn find_by_name(tx: &mut Tx, name: &str) -> Result<Option<User>, StoreError> {
    let find = tx.statements().user_by_name;
    tx.row(find, &[&kept_text(name)], rows::user).await
}

async fn admit(tx: &mut Tx, outside: OutsideUser, now: UnixTime) -> Result<Admitted, StoreError> {
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
        let display_name = user.display_name.as_deref().map(kept_text);
        tx.execute(
            "UPDATE users SET name = $2, display_name = $3 WHERE id = $1",
            &[&user.id.as_str(), &kept_text(&user.name), &display_name],
        )
        .await?;
        tx.changed(Change::User(user.id.clone()));
    }
    Ok(Admitted::User(user))
}

pub(super) async fn set_password(
    tx: &mut Tx,
    id: &UserId,
    hash: &Secret,
) -> Result<bool, StoreError> {
    let is_there = put_hash(tx, id, hash, None).await?;
    if is_there {
        sessions::close_all(tx, id).await?;
        tx.changed(Change::User(id.clone()));
    }
    Ok(is_there)
}

async fn is_removed(tx: &mut Tx, id: &UserId) -> Result<bool, StoreError> {
    let find = "SELECT 1 FROM removed_users WHERE id = $1";
    tx.has_row(find, &[&id.as_str()]).await
}

/// Marks an id as never to be used again.
pub(super) async fn retire(tx: &mut Tx, id: &UserId) -> Result<(), StoreError> {
    let insert = "INSERT INTO removed_users (id) VALUES ($1)";
    tx.execute(insert, &[&id.as_str()]).await.map(drop)
}

pub(super) async fn insert(tx: &mut Tx, user: &User) -> Result<(), StoreError> {
    let id = user.id.as_str();
    let hash = user.password_hash.as_ref();
    let kept = hash.map(|hash| tx.seal().close(field::USER, id, hash));
    let columns: [(&str, &dyn Param); 7] = [
        ("id", &id),
        ("name", &kept_text(&user.name)),
        ("display_name", &user.display_name.as_deref().map(kept_text)),
        ("password_hash", &kept.transpose()?),
        ("password_cost", &hash.map(cost)),
        ("enabled", &user.enabled),
        ("created_at", &seconds(user.created_at)),
    ];
    tx.insert("users", &columns, "").await.map(drop)
}

/// Whether a login has replaced `hash` by the one that the user has now.
pub(super) async fn is_replaced_hash(
    tx: &mut Tx,
    id: &UserId,
    hash: &Secret,
) -> Result<bool, StoreError> {
    let find = "SELECT 1 FROM users WHERE id = $1 AND replaced_hash = $2";
    tx.has_row(find, &[&id.as_str(), &digest(hash)]).await
}

/// Writes a password hash; `replaced` is the one that it replaces, if both are of the same password.
pub(super) async fn put_hash(
    tx: &mut Tx,
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
pub(super) async fn password_costs(tx: &mut Tx) -> Result<Vec<String>, StoreError> {
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
pub(super) async fn fill_costs(tx: &mut Tx) -> Result<(), StoreError> {
    let find = "SELECT * FROM users WHERE password_hash IS NOT NULL AND password_cost IS NULL";
    for user in tx.rows(find, &[], rows::user).await? {
        let cost = user.password_hash.as_ref().map(cost);
        let fill = "UPDATE users SET password_cost = $2 WHERE id = $1";
        tx.execute(fill, &[&user.id.as_str(), &cost]).await?;
    }
    Ok(())
}

/// Ends sessions, revokes access tokens, voids request tokens that wait for the exchange.
async fn end_all_of(tx: &mut Tx, id: &UserId, now: UnixTime) -> Result<(), StoreError> {
    sessions::close_all(tx, id).await?;
    let revoke = r#"UPDATE access_tokens SET revoked_at = $2 WHERE "user" = $1 AND revoked_at IS NULL
         RETURNING token"#;
    let params: [&dyn Param; 2] = [&id.as_str(), &seconds(now)];
    for token in tx.rows(revoke, &params, rows::token).await? {
        tx.changed(Change::AccessToken(token));
    }
    let void = r#"UPDATE request_tokens SET state = 'voided', "user" = NULL, verifier = NULL
         WHERE "user" = $1"#;
    tx.execute(void, &[&id.as_str()]).await.map(drop)
}
