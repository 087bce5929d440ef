//! Many access tokens at once: one round trip for each question about each of them would take hours.

use std::sync::Arc;

use super::tx::PostgresTx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        record::AccessToken,
        rows::{json, seconds},
        seal::field,
        sql::Tx as _,
    },
};

impl PostgresTx {
    pub(super) async fn record_all_uses(
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

    /// Keeps access tokens; `false` if an identifier is in use or was before.
    pub(super) async fn insert_all_tokens(
        &mut self,
        tokens: &[&AccessToken],
    ) -> Result<bool, StoreError> {
        fn column<'t, T>(
            tokens: &[&'t AccessToken],
            value: impl Fn(&'t AccessToken) -> Result<T, StoreError>,
        ) -> Result<Vec<T>, StoreError> {
            tokens.iter().map(|token| value(token)).collect()
        }
        let seal = Arc::clone(&self.seal);
        let count = self
            .run(
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
            .await?;
        for token in tokens {
            self.changed(Change::AccessToken(token.token.clone()))?;
        }
        Ok(count == tokens.len() as u64)
    }
}
