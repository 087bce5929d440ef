//! Access tokens outside the flow: found, issued, revoked, listed.

use std::sync::Arc;

use super::{tx::Tx, users::is_text};
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

impl Tx {
    pub(super) async fn access_token(
        &mut self,
        token: &str,
    ) -> Result<Option<AccessToken>, StoreError> {
        if !is_text(token) {
            return Ok(None);
        }
        let row = self
            .first("SELECT * FROM access_tokens WHERE token = $1", &[&token])
            .await?;
        row.map(|row| rows::access_token(&row, &self.seal))
            .transpose()
    }

    pub(super) async fn access_tokens(
        &mut self,
        filter: &TokenFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AccessToken>, StoreError> {
        let user = filter.user.as_ref().map(UserId::as_str);
        let consumer = filter.consumer.as_ref().map(ConsumerKey::as_str);
        let (after, limit) = (after.unwrap_or_default(), i64::from(limit));
        // A statement for each filter, so that each finds its index.
        let found = match (&user, &consumer) {
            (None, None) => {
                self.all(
                    "SELECT * FROM access_tokens WHERE token > $1 ORDER BY token LIMIT $2",
                    &[&after, &limit],
                )
                .await?
            }
            (Some(user), None) => {
                self.all(
                    r#"SELECT * FROM access_tokens WHERE token > $1 AND "user" = $3
                     ORDER BY token LIMIT $2"#,
                    &[&after, &limit, user],
                )
                .await?
            }
            (None, Some(consumer)) => {
                self.all(
                    "SELECT * FROM access_tokens WHERE token > $1 AND consumer = $3
                     ORDER BY token LIMIT $2",
                    &[&after, &limit, consumer],
                )
                .await?
            }
            (Some(user), Some(consumer)) => {
                self.all(
                    r#"SELECT * FROM access_tokens WHERE token > $1 AND "user" = $3 AND consumer = $4
                     ORDER BY token LIMIT $2"#,
                    &[&after, &limit, user, consumer],
                )
                .await?
            }
        };
        let tokens = found.iter().map(|row| rows::access_token(row, &self.seal));
        tokens.collect()
    }

    pub(super) async fn issue_access_token(
        &mut self,
        token: &AccessToken,
    ) -> Result<Added, StoreError> {
        let may_be_issued = self
            .exists(
                "SELECT 1 FROM consumers, users
                 WHERE consumers.key = $1 AND users.id = $2 AND users.enabled",
                &[&token.consumer.as_str(), &token.user.as_str()],
            )
            .await?;
        if may_be_issued && self.insert_access_token(token).await? {
            Ok(Added::Added)
        } else {
            Ok(Added::Taken)
        }
    }

    pub(super) async fn revoke_access_token(
        &mut self,
        token: &str,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        if !is_text(token) {
            return Ok(false);
        }
        let revoked = self
            .run(
                "UPDATE access_tokens SET revoked_at = $2 WHERE token = $1 AND revoked_at IS NULL",
                &[&token, &seconds(now)],
            )
            .await?;
        if revoked > 0 {
            self.changed(Change::AccessToken(token.to_owned()));
            return Ok(true);
        }
        self.exists("SELECT 1 FROM access_tokens WHERE token = $1", &[&token])
            .await
    }

    pub(super) async fn record_uses(
        &mut self,
        uses: &[(String, UnixTime)],
    ) -> Result<(), StoreError> {
        let tokens: Vec<&str> = uses.iter().map(|(token, _)| token.as_str()).collect();
        let times: Vec<i64> = uses.iter().map(|(_, at)| seconds(*at)).collect();
        // Rows are locked in one order, or two processes could wait for each other. A token may be listed twice.
        self.run(
            "WITH latest AS (
                 SELECT token, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS used (token, at)
                 GROUP BY token
             ), locked AS (
                 SELECT access_tokens.token, latest.at FROM access_tokens
                 JOIN latest ON latest.token = access_tokens.token
                 WHERE last_used_at IS NULL OR last_used_at < latest.at
                 ORDER BY access_tokens.token FOR NO KEY UPDATE OF access_tokens
             )
             UPDATE access_tokens SET last_used_at = locked.at FROM locked
             WHERE access_tokens.token = locked.token",
            &[&tokens, &times],
        )
        .await?;
        Ok(())
    }

    /// Whether an identifier is in use or was before.
    pub(super) async fn is_access_token_taken(&mut self, token: &str) -> Result<bool, StoreError> {
        self.exists(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM access_tokens WHERE token = $1)
             OR EXISTS (SELECT 1 FROM removed_tokens WHERE token = $1)",
            &[&token],
        )
        .await
    }

    /// Keeps a token; `false` if its identifier is in use or was before.
    pub(super) async fn insert_access_token(
        &mut self,
        token: &AccessToken,
    ) -> Result<bool, StoreError> {
        let added = self.insert_access_tokens(&[token]).await? > 0;
        if added {
            self.changed(Change::AccessToken(token.token.clone()));
        }
        Ok(added)
    }

    /// Keeps tokens, but for those whose identifier is in use or was before; returns how many. Caches are not told.
    pub(super) async fn insert_access_tokens(
        &mut self,
        tokens: &[&AccessToken],
    ) -> Result<u64, StoreError> {
        fn column<'t, T>(
            tokens: &[&'t AccessToken],
            value: impl Fn(&'t AccessToken) -> Result<T, StoreError>,
        ) -> Result<Vec<T>, StoreError> {
            tokens.iter().map(|token| value(token)).collect()
        }
        let seal = Arc::clone(&self.seal);
        self.run(
            r#"INSERT INTO access_tokens (token, secret, consumer, "user", permissions,
                 issued_at, expires_at, last_used_at, revoked_at)
             SELECT new.* FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[],
                 $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[]) AS new (token)
             WHERE NOT EXISTS (SELECT 1 FROM removed_tokens WHERE removed_tokens.token = new.token)
             ON CONFLICT (token) DO NOTHING"#,
            &[
                &column(tokens, |token| Ok(&*token.token))?,
                &column(tokens, |token| {
                    seal.close(field::ACCESS_TOKEN, &token.token, &token.secret)
                })?,
                &column(tokens, |token| Ok(token.consumer.as_str()))?,
                &column(tokens, |token| Ok(token.user.as_str()))?,
                &column(tokens, |token| json(&token.permissions))?,
                &column(tokens, |token| Ok(seconds(token.issued_at)))?,
                &column(tokens, |token| Ok(token.expires_at.map(seconds)))?,
                &column(tokens, |token| Ok(token.last_used_at.map(seconds)))?,
                &column(tokens, |token| Ok(token.revoked_at.map(seconds)))?,
            ],
        )
        .await
    }
}
