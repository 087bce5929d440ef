//! Access tokens outside the flow: found, issued, revoked, listed.

use rusqlite::params;

use super::tx::Tx;
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

impl Tx<'_> {
    pub(super) fn access_token(&self, token: &str) -> Result<Option<AccessToken>, StoreError> {
        self.first(
            "SELECT * FROM access_tokens WHERE token = ?1",
            [token],
            |row| rows::access_token(row, self.seal),
        )
    }

    pub(super) fn access_tokens(
        &self,
        filter: &TokenFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AccessToken>, StoreError> {
        // A statement for each filter, so that each finds its index.
        let statement = match (&filter.user, &filter.consumer) {
            (None, None) => {
                "SELECT * FROM access_tokens WHERE token > ?1 AND ?3 IS NULL AND ?4 IS NULL
                 ORDER BY token LIMIT ?2"
            }
            (Some(_), None) => {
                "SELECT * FROM access_tokens WHERE token > ?1 AND user = ?3 AND ?4 IS NULL
                 ORDER BY token LIMIT ?2"
            }
            (None, Some(_)) => {
                "SELECT * FROM access_tokens WHERE token > ?1 AND ?3 IS NULL AND consumer = ?4
                 ORDER BY token LIMIT ?2"
            }
            (Some(_), Some(_)) => {
                "SELECT * FROM access_tokens WHERE token > ?1 AND user = ?3 AND consumer = ?4
                 ORDER BY token LIMIT ?2"
            }
        };
        let user = filter.user.as_ref().map(UserId::as_str);
        let consumer = filter.consumer.as_ref().map(ConsumerKey::as_str);
        self.all(
            statement,
            params![after.unwrap_or_default(), limit, user, consumer],
            |row| rows::access_token(row, self.seal),
        )
    }

    pub(super) fn issue_access_token(&self, token: &AccessToken) -> Result<Added, StoreError> {
        let may_be_issued = self.exists(
            "SELECT 1 FROM consumers, users
             WHERE consumers.key = ?1 AND users.id = ?2 AND users.enabled",
            [token.consumer.as_str(), token.user.as_str()],
        )?;
        if !may_be_issued || self.is_access_token_taken(&token.token)? {
            return Ok(Added::Taken);
        }
        self.insert_access_token(token)?;
        Ok(Added::Added)
    }

    pub(super) fn revoke_access_token(
        &self,
        token: &str,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        let is_revoked = self.run(
            "UPDATE access_tokens SET revoked_at = ?2 WHERE token = ?1 AND revoked_at IS NULL",
            params![token, seconds(now)],
        )? > 0;
        if is_revoked {
            self.changed(&Change::AccessToken(token.to_owned()))?;
            return Ok(true);
        }
        self.exists("SELECT 1 FROM access_tokens WHERE token = ?1", [token])
    }

    pub(super) fn record_uses(&self, uses: &[(String, UnixTime)]) -> Result<(), StoreError> {
        for (token, at) in uses {
            self.run(
                "UPDATE access_tokens SET last_used_at = ?2
                 WHERE token = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)",
                params![token, seconds(*at)],
            )?;
        }
        Ok(())
    }

    /// Whether an identifier is in use or was before.
    pub(super) fn is_access_token_taken(&self, token: &str) -> Result<bool, StoreError> {
        self.exists(
            "SELECT 1 FROM access_tokens WHERE token = ?1
             UNION ALL SELECT 1 FROM removed_tokens WHERE token = ?1",
            [token],
        )
    }

    pub(super) fn insert_access_token(&self, token: &AccessToken) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO access_tokens (token, secret, consumer, user, permissions,
                 issued_at, expires_at, last_used_at, revoked_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                token.token,
                self.seal
                    .close(field::ACCESS_TOKEN, &token.token, &token.secret)?,
                token.consumer.as_str(),
                token.user.as_str(),
                json(&token.permissions)?,
                seconds(token.issued_at),
                token.expires_at.map(seconds),
                token.last_used_at.map(seconds),
                token.revoked_at.map(seconds),
            ],
        )?;
        self.changed(&Change::AccessToken(token.token.clone()))
    }
}
