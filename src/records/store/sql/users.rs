//! Users: registered, disabled, removed, with the sessions and tokens that end then.

use super::{CHANGE, EXCLUSIVE, LIST, READ, SNAPSHOT, Store, is_removed, passes, retire, tx::Tx};
use crate::{
    base::{clock::UnixTime, secret::Secret, text::names::UserId},
    records::{
        store::sql::tx::{
            filter::condition,
            rows::{self, digest},
        },
        values::{
            Result, StoreError,
            password_cost::password_cost as cost,
            record::{OutsideUser, User},
            seal::field,
            use_cases::{Account, Added, Admitted, Change, Guard, RecordFilter, Updated},
            value::escaped,
        },
    },
};

/// The most names that are tried for a new user whose id is the name of another one.
const MOST_NAMESAKES: u32 = 100;

impl Store {
    /// Registers a user; `Taken` also for the id of a removed user.
    pub async fn add_user(&self, user: User) -> Result<Added> {
        self.run("add_user", EXCLUSIVE, async |tx| {
            let is_taken = is_removed(tx, "user", user.id.as_str()).await?
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

    /// Registers a user that an outside login vouches for, or brings the names of one up to date, but for a name that
    /// another user has; a disabled user is left as it is.
    pub async fn admit_user(&self, user: OutsideUser, now: UnixTime) -> Result<Admitted> {
        // Most logins change nothing: they need not wait for other writers, nor block them.
        let known = self.run("admit_user", READ, async |tx| {
            let Some(found) = find(tx, &user.id).await? else {
                return Ok(None);
            };
            let admitted = admitted(tx, Some(&found), user.clone(), now).await?;
            Ok((admitted == found).then_some(Admitted::User(found)))
        });
        if let Some(admitted) = known.await? {
            return Ok(admitted);
        }
        self.run("admit_user", CHANGE, async |tx| admit(tx, user, now).await)
            .await
    }

    /// Finds a user by id.
    pub async fn user(&self, id: &UserId) -> Result<Option<User>> {
        self.run("user", READ, async |tx| find(tx, id).await).await
    }

    /// Finds a user by login name, without regard to ASCII case.
    pub async fn user_by_name(&self, name: &str) -> Result<Option<User>> {
        self.run("user_by_name", READ, async |tx| {
            find_by_name(tx, name).await
        })
        .await
    }

    /// Finds the user who logs in by a name, as [`Self::user_by_name`] does, and the costs of checking all passwords.
    pub async fn account(&self, name: &str) -> Result<Account> {
        self.run("account", SNAPSHOT, async |tx| {
            Ok(Account {
                user: find_by_name(tx, name).await?,
                costs: password_costs(tx).await?,
            })
        })
        .await
    }

    /// Sets the password hash, and whether the user has to choose another one, and ends the user's sessions; `false` if there
    /// is no such user or `guard` rejects that.
    pub async fn set_password(
        &self,
        id: &UserId,
        hash: Secret,
        must_change: bool,
        guard: Guard<'_, User>,
    ) -> Result<bool> {
        self.run("set_password", EXCLUSIVE, async |tx| {
            match passes(guard, find(tx, id).await?) {
                true => set_password(tx, id, &hash, must_change).await,
                false => Ok(false),
            }
        })
        .await
    }

    /// Changes names and state of a user, unless `change` returns `false` or another user has the name. Disabling ends
    /// sessions, revokes access tokens and voids request tokens that the user authorized; enabling brings none of them
    /// back.
    pub async fn update_user(
        &self,
        id: &UserId,
        now: UnixTime,
        change: &(dyn for<'u> Fn(&'u mut User) -> bool + Sync),
    ) -> Result<Updated<User>> {
        self.run("update_user", EXCLUSIVE, async |tx| {
            let Some(mut user) = find(tx, id).await? else {
                return Ok(Updated::Unknown);
            };
            let is_wanted = change(&mut user);
            let namesake = find_by_name(tx, &user.name).await?;
            if !is_wanted || namesake.is_some_and(|other| other.id != *id) {
                return Ok(Updated::Refused);
            }
            update(tx, &user).await?;
            if !user.enabled {
                end_all_of(tx, id, now).await?;
            }
            Ok(Updated::Updated(Box::new(user)))
        })
        .await
    }

    /// Removes a user, as disabling does, and retires the id; `false` if there is no such user or `guard` rejects that.
    pub async fn remove_user(
        &self,
        id: &UserId,
        now: UnixTime,
        guard: Guard<'_, User>,
    ) -> Result<bool> {
        self.run("remove_user", EXCLUSIVE, async |tx| {
            if !passes(guard, find(tx, id).await?) {
                return Ok(false);
            }
            end_all_of(tx, id, now).await?;
            let delete = "DELETE FROM countersign.users WHERE id = $1";
            tx.execute(delete, &[id.as_str().into()]).await?;
            retire(tx, "user", id.as_str()).await?;
            tx.changed(Change::User(id.clone()));
            Ok(true)
        })
        .await
    }

    /// Lists users in the order of their ids, after `after`, at most `limit`.
    pub async fn users(
        &self,
        filter: &RecordFilter,
        after: Option<&UserId>,
        limit: u32,
    ) -> Result<Vec<User>> {
        let condition = condition(filter, "id", after.map_or("", UserId::as_str));
        let (list, params) = condition.list("users", "id", limit);
        self.rows("users", LIST, &list, &params, rows::user).await
    }
}

pub(super) async fn find(tx: &mut Tx, id: &UserId) -> Result<Option<User>> {
    let find = "SELECT * FROM countersign.users WHERE id = $1";
    tx.row(find, &[id.as_str().into()], rows::user).await
}

pub(super) async fn find_by_name(tx: &mut Tx, name: &str) -> Result<Option<User>> {
    // The database, too, folds only ASCII letters.
    let name = escaped(name).to_ascii_lowercase();
    let find = "SELECT * FROM countersign.users WHERE lower(name) = $1";
    tx.row(find, &[name.into()], rows::user).await
}

/// The record of a user that an outside login vouches for. The name of another user is not taken over: a known user keeps
/// the name, and a new one is named by the id, with a number if that is taken too.
async fn admitted(
    tx: &mut Tx,
    found: Option<&User>,
    vouched: OutsideUser,
    now: UnixTime,
) -> Result<User> {
    let OutsideUser {
        id,
        name,
        display_name,
    } = vouched;
    if let Some(found) = found.filter(|found| !found.enabled) {
        return Ok(found.clone());
    }
    let known = found.map(|found| &found.name);
    let numbered = (2..=MOST_NAMESAKES).map(|number| format!("{id}.{number}"));
    let by_id = std::iter::once(id.to_string()).chain(numbered);
    for name in name.into_iter().chain(known.cloned()).chain(by_id) {
        if known != Some(&name) {
            let namesake = find_by_name(tx, &name).await?;
            if namesake.is_some_and(|other| other.id != id) {
                continue;
            }
        }
        return Ok(match found {
            Some(found) => User {
                name,
                display_name: display_name.or_else(|| found.display_name.clone()),
                ..found.clone()
            },
            None => User {
                display_name,
                ..User::new(id, name, now)
            },
        });
    }
    Err(StoreError::Broken("no name is free for a new user"))
}

async fn admit(tx: &mut Tx, vouched: OutsideUser, now: UnixTime) -> Result<Admitted> {
    if is_removed(tx, "user", vouched.id.as_str()).await? {
        return Ok(Admitted::Removed);
    }
    let found = find(tx, &vouched.id).await?;
    let user = admitted(tx, found.as_ref(), vouched, now).await?;
    match found {
        Some(found) if found == user => {}
        None => insert(tx, &user).await?,
        Some(_) => update(tx, &user).await?,
    }
    Ok(Admitted::User(user))
}

/// Writes every field but the password hash.
async fn update(tx: &mut Tx, user: &User) -> Result<()> {
    let (names, params): (Vec<_>, Vec<_>) = user.columns()?.into_iter().unzip();
    let set = (1..)
        .zip(&names)
        .map(|(number, name)| format!("{name} = ${number}"));
    let set = Vec::from_iter(set).join(", ");
    // The first column is the id.
    let update = format!("UPDATE countersign.users SET {set} WHERE id = $1");
    tx.execute(&update, &params).await?;
    tx.changed(Change::User(user.id.clone()));
    Ok(())
}

/// Makes a user what an import says, with the consequences that [`Store::update_user`] and [`Store::set_password`] have.
pub(super) async fn replace(tx: &mut Tx, before: &User, user: &User, now: UnixTime) -> Result<()> {
    update(tx, user).await?;
    // A file without a password keeps the one that is here.
    if let Some(hash) = &user.password_hash
        && before.password_hash.as_ref() != Some(hash)
    {
        set_password(tx, &user.id, hash, user.must_change_password).await?;
    }
    match user.enabled {
        true => Ok(()),
        false => end_all_of(tx, &user.id, now).await,
    }
}

pub(super) async fn set_password(
    tx: &mut Tx,
    id: &UserId,
    hash: &Secret,
    must_change: bool,
) -> Result<bool> {
    let is_there = put_hash(tx, id, hash, must_change, None).await?;
    if is_there {
        close_sessions(tx, id, None).await?;
        tx.changed(Change::User(id.clone()));
    }
    Ok(is_there)
}

pub(super) async fn insert(tx: &mut Tx, user: &User) -> Result<()> {
    let id = user.id.as_str();
    let hash = user.password_hash.as_ref();
    let sealed = hash.map(|hash| tx.seal().close(field::USER, id, hash));
    let mut columns = user.columns()?;
    columns.push(("password_hash", sealed.transpose()?.into()));
    columns.push(("password_cost", hash.map(cost).into()));
    tx.insert("users", columns, "").await.map(drop)
}

/// Whether a login has replaced `hash` by the one that the user has now.
pub(super) async fn is_replaced_hash(tx: &mut Tx, id: &UserId, hash: &Secret) -> Result<bool> {
    let find = "SELECT 1 FROM countersign.users WHERE id = $1 AND replaced_hash = $2";
    tx.has_row(find, &[id.as_str().into(), digest(hash).into()])
        .await
}

/// Writes a password hash; `replaced` is the one that it replaces, if both are of the same password.
pub(super) async fn put_hash(
    tx: &mut Tx,
    id: &UserId,
    hash: &Secret,
    must_change: bool,
    replaced: Option<&Secret>,
) -> Result<bool> {
    let sealed = tx.seal().close(field::USER, id.as_str(), hash)?;
    let rows = tx
        .execute(
            "UPDATE countersign.users SET password_hash = $2, password_cost = $3, replaced_hash = $4, must_change_password = $5
             WHERE id = $1",
            &[id.as_str().into(), sealed.into(), cost(hash).into(), replaced.map(digest).into(), must_change.into()],
        )
        .await?;
    Ok(rows > 0)
}

/// The costs of all password hashes, each once.
pub(super) async fn password_costs(tx: &mut Tx) -> Result<Vec<String>> {
    // From each to the next in the index: a DISTINCT would visit every user at every login.
    tx.rows(
        "WITH RECURSIVE costs (cost) AS (
             SELECT min(password_cost) FROM countersign.users WHERE password_cost IS NOT NULL
             UNION ALL
             SELECT (SELECT min(password_cost) FROM countersign.users WHERE password_cost > cost)
             FROM costs WHERE cost IS NOT NULL
         )
         SELECT cost FROM costs WHERE cost IS NOT NULL",
        &[],
        |row, _| row.get("cost"),
    )
    .await
}

/// Ends sessions, revokes access tokens, voids request tokens that wait for the exchange.
async fn end_all_of(tx: &mut Tx, id: &UserId, now: UnixTime) -> Result<()> {
    close_sessions(tx, id, None).await?;
    let revoke = r#"UPDATE countersign.access_tokens SET revoked_at = $2 WHERE "user" = $1 AND revoked_at IS NULL
         RETURNING token"#;
    let params = [id.as_str().into(), now.into()];
    for token in tx.rows(revoke, &params, rows::token).await? {
        tx.changed(Change::AccessToken(token));
    }
    let void = r#"UPDATE countersign.request_tokens SET state = 'voided', "user" = NULL, verifier = NULL
         WHERE "user" = $1"#;
    tx.execute(void, &[id.as_str().into()]).await.map(drop)
}

/// Ends all sessions of a user, except the one with the hash `except`.
pub(super) async fn close_sessions(
    tx: &mut Tx,
    user: &UserId,
    except: Option<&[u8; 32]>,
) -> Result<()> {
    let delete = r#"DELETE FROM countersign.sessions WHERE "user" = $1 AND id_hash <> $2"#;
    // No hash is empty.
    let except = except.map_or_else(Vec::new, |hash| hash.to_vec());
    let params = [user.as_str().into(), except.into()];
    tx.execute(delete, &params).await.map(drop)
}
