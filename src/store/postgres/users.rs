//! Users: registered, disabled, removed, and what ends with them.

use super::tx::{Tx, kept_text};
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Account, Added, Admitted, Change},
        record::{OutsideUser, User, password_cost as cost},
        rows::{self, Columns, digest, needed, seconds},
        rules,
        seal::field,
    },
};

impl Tx {
    pub(super) async fn user(&mut self, id: &UserId) -> Result<Option<User>, StoreError> {
        let row = self
            .first("SELECT * FROM users WHERE id = $1", &[&id.as_str()])
            .await?;
        row.map(|row| rows::user(&row, &self.seal)).transpose()
    }

    pub(super) async fn user_by_name(&mut self, name: &str) -> Result<Option<User>, StoreError> {
        let row = self
            .first(
                r#"SELECT * FROM users WHERE lower(name) = lower($1 COLLATE "C")"#,
                &[&kept_text(name)],
            )
            .await?;
        row.map(|row| rows::user(&row, &self.seal)).transpose()
    }

    pub(super) async fn account(&mut self, name: &str) -> Result<Account, StoreError> {
        Ok(Account {
            user: self.user_by_name(name).await?,
            costs: self.password_costs().await?,
        })
    }

    pub(super) async fn users(
        &mut self,
        after: Option<&UserId>,
        limit: u32,
    ) -> Result<Vec<User>, StoreError> {
        let after = after.map_or("", UserId::as_str);
        let found = self
            .all(
                "SELECT * FROM users WHERE id > $1 ORDER BY id LIMIT $2",
                &[&after, &i64::from(limit)],
            )
            .await?;
        let users = found.iter().map(|row| rows::user(row, &self.seal));
        users.collect()
    }

    pub(super) async fn add_user(&mut self, user: &User) -> Result<Added, StoreError> {
        let is_taken = self.is_user_removed(&user.id).await?
            || self.user(&user.id).await?.is_some()
            || self.user_by_name(&user.name).await?.is_some();
        if is_taken {
            return Ok(Added::Taken);
        }
        self.insert_user(user).await?;
        Ok(Added::Added)
    }

    pub(super) async fn admit_user(
        &mut self,
        outside: OutsideUser,
        now: UnixTime,
    ) -> Result<Admitted, StoreError> {
        if self.is_user_removed(&outside.id).await? {
            return Ok(Admitted::Removed);
        }
        let found = self.user(&outside.id).await?;
        let user = rules::admitted(found.as_ref(), outside, now);
        if found.as_ref() == Some(&user) {
            return Ok(Admitted::User(user));
        }
        let namesake = self.user_by_name(&user.name).await?;
        if namesake.is_some_and(|other| other.id != user.id) {
            return Ok(Admitted::NameTaken);
        }
        if found.is_none() {
            self.insert_user(&user).await?;
        } else {
            self.run(
                "UPDATE users SET name = $2, display_name = $3 WHERE id = $1",
                &[
                    &user.id.as_str(),
                    &kept_text(&user.name),
                    &user.display_name.as_deref().map(kept_text),
                ],
            )
            .await?;
            self.changed(Change::User(user.id.clone()));
        }
        Ok(Admitted::User(user))
    }

    pub(super) async fn set_password(
        &mut self,
        id: &UserId,
        hash: &Secret,
    ) -> Result<bool, StoreError> {
        let is_there = self.put_hash(id, hash, None).await?;
        if is_there {
            self.close_sessions(id).await?;
            self.changed(Change::User(id.clone()));
        }
        Ok(is_there)
    }

    pub(super) async fn set_user_enabled(
        &mut self,
        id: &UserId,
        enabled: bool,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        let changed = self
            .run(
                "UPDATE users SET enabled = $2 WHERE id = $1",
                &[&id.as_str(), &enabled],
            )
            .await?;
        if changed > 0 {
            if !enabled {
                self.end_all_of(id, now).await?;
            }
            self.changed(Change::User(id.clone()));
        }
        Ok(changed > 0)
    }

    pub(super) async fn remove_user(
        &mut self,
        id: &UserId,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        if self.user(id).await?.is_none() {
            return Ok(false);
        }
        self.end_all_of(id, now).await?;
        self.run("DELETE FROM users WHERE id = $1", &[&id.as_str()])
            .await?;
        self.retire_user(id).await?;
        self.changed(Change::User(id.clone()));
        Ok(true)
    }

    pub(super) async fn is_user_removed(&mut self, id: &UserId) -> Result<bool, StoreError> {
        self.exists("SELECT 1 FROM removed_users WHERE id = $1", &[&id.as_str()])
            .await
    }

    /// Marks an id as never to be used again.
    pub(super) async fn retire_user(&mut self, id: &UserId) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO removed_users (id) VALUES ($1)",
            &[&id.as_str()],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn insert_user(&mut self, user: &User) -> Result<(), StoreError> {
        let id = user.id.as_str();
        let hash = user.password_hash.as_ref();
        let kept = hash
            .map(|hash| self.seal.close(field::USER, id, hash))
            .transpose()?;
        self.run(
            "INSERT INTO users (id, name, display_name, password_hash, password_cost, enabled, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &id,
                &kept_text(&user.name),
                &user.display_name.as_deref().map(kept_text),
                &kept,
                &hash.map(cost),
                &user.enabled,
                &seconds(user.created_at),
            ],
        )
        .await?;
        Ok(())
    }

    /// Whether a login has replaced `hash` by the one that the user has now.
    pub(super) async fn is_replaced_hash(
        &mut self,
        id: &UserId,
        hash: &Secret,
    ) -> Result<bool, StoreError> {
        self.exists(
            "SELECT 1 FROM users WHERE id = $1 AND replaced_hash = $2",
            &[&id.as_str(), &digest(hash)],
        )
        .await
    }

    /// Writes a password hash; `replaced` is the one that it replaces, if both are of the same password.
    pub(super) async fn put_hash(
        &mut self,
        id: &UserId,
        hash: &Secret,
        replaced: Option<&Secret>,
    ) -> Result<bool, StoreError> {
        let kept = self.seal.close(field::USER, id.as_str(), hash)?;
        let rows = self
            .run(
                "UPDATE users SET password_hash = $2, password_cost = $3, replaced_hash = $4 WHERE id = $1",
                &[&id.as_str(), &kept, &cost(hash), &replaced.map(digest)],
            )
            .await?;
        Ok(rows > 0)
    }

    /// The costs of all password hashes, each once.
    pub(super) async fn password_costs(&mut self) -> Result<Vec<String>, StoreError> {
        // From each to the next in the index: a DISTINCT would visit every user at every login.
        let found = self
            .all(
                "WITH RECURSIVE costs (cost) AS (
                     SELECT min(password_cost) FROM users WHERE password_cost IS NOT NULL
                     UNION ALL
                     SELECT (SELECT min(password_cost) FROM users WHERE password_cost > cost)
                     FROM costs WHERE cost IS NOT NULL
                 )
                 SELECT cost FROM costs WHERE cost IS NOT NULL",
                &[],
            )
            .await?;
        found.iter().map(|row| needed(row.text("cost")?)).collect()
    }

    /// Ends sessions, revokes access tokens, voids request tokens that wait for the exchange.
    async fn end_all_of(&mut self, id: &UserId, now: UnixTime) -> Result<(), StoreError> {
        self.close_sessions(id).await?;
        let revoked = self
            .all(
                r#"UPDATE access_tokens SET revoked_at = $2 WHERE "user" = $1 AND revoked_at IS NULL
                 RETURNING token"#,
                &[&id.as_str(), &seconds(now)],
            )
            .await?;
        for row in revoked {
            self.changed(Change::AccessToken(needed(row.text("token")?)?));
        }
        self.run(
            r#"UPDATE request_tokens SET state = 'voided', "user" = NULL, verifier = NULL
             WHERE "user" = $1"#,
            &[&id.as_str()],
        )
        .await?;
        Ok(())
    }
}

/// Whether a caller's text can be in a column: PostgreSQL has no NUL.
pub(super) fn is_text(text: &str) -> bool {
    !text.contains('\0')
}
