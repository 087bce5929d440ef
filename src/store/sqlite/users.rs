//! Users: registered, disabled, removed, and what ends with them.

use rusqlite::params;

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Account, Added, Admitted, Change},
        record::{OutsideUser, User, password_cost as cost},
        rows::{self, digest, seconds},
        rules,
        seal::field,
    },
};

impl Tx<'_> {
    pub(super) fn user(&self, id: &UserId) -> Result<Option<User>, StoreError> {
        self.first("SELECT * FROM users WHERE id = ?1", [id.as_str()], |row| {
            rows::user(row, self.seal)
        })
    }

    pub(super) fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        // The column's collation folds ASCII letters and no others.
        self.first("SELECT * FROM users WHERE name = ?1", [name], |row| {
            rows::user(row, self.seal)
        })
    }

    pub(super) fn account(&self, name: &str) -> Result<Account, StoreError> {
        Ok(Account {
            user: self.user_by_name(name)?,
            costs: self.password_costs()?,
        })
    }

    pub(super) fn users(
        &self,
        after: Option<&UserId>,
        limit: u32,
    ) -> Result<Vec<User>, StoreError> {
        let after = after.map_or("", UserId::as_str);
        self.all(
            "SELECT * FROM users WHERE id > ?1 ORDER BY id LIMIT ?2",
            params![after, limit],
            |row| rows::user(row, self.seal),
        )
    }

    pub(super) fn add_user(&self, user: &User) -> Result<Added, StoreError> {
        let is_taken = self.is_user_removed(&user.id)?
            || self.exists(
                "SELECT 1 FROM users WHERE id = ?1 UNION ALL SELECT 1 FROM users WHERE name = ?2",
                [user.id.as_str(), &user.name],
            )?;
        if is_taken {
            return Ok(Added::Taken);
        }
        self.insert_user(user)?;
        Ok(Added::Added)
    }

    pub(super) fn admit_user(
        &self,
        outside: OutsideUser,
        now: UnixTime,
    ) -> Result<Admitted, StoreError> {
        if self.is_user_removed(&outside.id)? {
            return Ok(Admitted::Removed);
        }
        let found = self.user(&outside.id)?;
        let user = rules::admitted(found.as_ref(), outside, now);
        if found.as_ref() == Some(&user) {
            return Ok(Admitted::User(user));
        }
        let namesake = self.user_by_name(&user.name)?;
        if namesake.is_some_and(|other| other.id != user.id) {
            return Ok(Admitted::NameTaken);
        }
        if found.is_none() {
            self.insert_user(&user)?;
        } else {
            self.run(
                "UPDATE users SET name = ?2, display_name = ?3 WHERE id = ?1",
                params![user.id.as_str(), user.name, user.display_name],
            )?;
            self.changed(&Change::User(user.id.clone()))?;
        }
        Ok(Admitted::User(user))
    }

    pub(super) fn set_password(&self, id: &UserId, hash: &Secret) -> Result<bool, StoreError> {
        let is_there = self.put_hash(id, hash, None)?;
        if is_there {
            self.close_sessions(id)?;
            self.changed(&Change::User(id.clone()))?;
        }
        Ok(is_there)
    }

    pub(super) fn set_user_enabled(
        &self,
        id: &UserId,
        enabled: bool,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        let is_there = self.run(
            "UPDATE users SET enabled = ?2 WHERE id = ?1",
            params![id.as_str(), enabled],
        )? > 0;
        if is_there {
            if !enabled {
                self.end_all_of(id, now)?;
            }
            self.changed(&Change::User(id.clone()))?;
        }
        Ok(is_there)
    }

    pub(super) fn remove_user(&self, id: &UserId, now: UnixTime) -> Result<bool, StoreError> {
        if self.user(id)?.is_none() {
            return Ok(false);
        }
        self.end_all_of(id, now)?;
        self.run("DELETE FROM users WHERE id = ?1", [id.as_str()])?;
        self.retire_user(id)?;
        self.changed(&Change::User(id.clone()))?;
        Ok(true)
    }

    pub(super) fn is_user_removed(&self, id: &UserId) -> Result<bool, StoreError> {
        self.exists("SELECT 1 FROM removed_users WHERE id = ?1", [id.as_str()])
    }

    /// Marks an id as never to be used again.
    pub(super) fn retire_user(&self, id: &UserId) -> Result<(), StoreError> {
        self.run("INSERT INTO removed_users (id) VALUES (?1)", [id.as_str()])?;
        Ok(())
    }

    pub(super) fn insert_user(&self, user: &User) -> Result<(), StoreError> {
        let id = user.id.as_str();
        let hash = user.password_hash.as_ref();
        self.run(
            "INSERT INTO users (id, name, display_name, password_hash, password_cost, enabled, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                id,
                user.name,
                user.display_name,
                hash.map(|hash| self.seal.close(field::USER, id, hash))
                    .transpose()?,
                hash.map(cost),
                user.enabled,
                seconds(user.created_at),
            ],
        )?;
        Ok(())
    }

    /// Replaces the hash of a verified password by another of the same password.
    pub(super) fn replace_hash(
        &self,
        id: &UserId,
        replaced: Option<&Secret>,
        hash: &Secret,
    ) -> Result<(), StoreError> {
        self.put_hash(id, hash, replaced)?;
        self.changed(&Change::User(id.clone()))
    }

    /// Whether a login has replaced `hash` by the one that the user has now.
    pub(super) fn is_replaced_hash(&self, id: &UserId, hash: &Secret) -> Result<bool, StoreError> {
        self.exists(
            "SELECT 1 FROM users WHERE id = ?1 AND replaced_hash = ?2",
            params![id.as_str(), digest(hash)],
        )
    }

    fn put_hash(
        &self,
        id: &UserId,
        hash: &Secret,
        replaced: Option<&Secret>,
    ) -> Result<bool, StoreError> {
        let kept = self.seal.close(field::USER, id.as_str(), hash)?;
        let rows = self.run(
            "UPDATE users SET password_hash = ?2, password_cost = ?3, replaced_hash = ?4 WHERE id = ?1",
            params![id.as_str(), kept, cost(hash), replaced.map(digest)],
        )?;
        Ok(rows > 0)
    }

    /// The costs of all password hashes, each once.
    pub(super) fn password_costs(&self) -> Result<Vec<String>, StoreError> {
        // From each to the next in the index: a DISTINCT would visit every user at every login.
        self.all(
            "WITH RECURSIVE costs (cost) AS (
                 SELECT min(password_cost) FROM users WHERE password_cost IS NOT NULL
                 UNION ALL
                 SELECT (SELECT min(password_cost) FROM users WHERE password_cost > cost)
                 FROM costs WHERE cost IS NOT NULL
             )
             SELECT cost FROM costs WHERE cost IS NOT NULL",
            [],
            |row| Ok(row.get(0)?),
        )
    }

    /// Fills the column that says what a hash costs, in a file from before there was one.
    pub(super) fn fill_costs(&self) -> Result<(), StoreError> {
        let users = self.all(
            "SELECT * FROM users WHERE password_hash IS NOT NULL AND password_cost IS NULL",
            [],
            |row| rows::user(row, self.seal),
        )?;
        for user in users {
            self.run(
                "UPDATE users SET password_cost = ?2 WHERE id = ?1",
                params![user.id.as_str(), user.password_hash.as_ref().map(cost)],
            )?;
        }
        Ok(())
    }

    /// Ends sessions, revokes access tokens, voids request tokens that wait for the exchange.
    fn end_all_of(&self, id: &UserId, now: UnixTime) -> Result<(), StoreError> {
        self.close_sessions(id)?;
        let revoked = self.all(
            "UPDATE access_tokens SET revoked_at = ?2 WHERE user = ?1 AND revoked_at IS NULL
             RETURNING token",
            params![id.as_str(), seconds(now)],
            |row| Ok(row.get(0)?),
        )?;
        for token in revoked {
            self.changed(&Change::AccessToken(token))?;
        }
        self.run(
            "UPDATE request_tokens SET state = 'voided', user = NULL, verifier = NULL
             WHERE user = ?1",
            [id.as_str()],
        )?;
        Ok(())
    }
}
