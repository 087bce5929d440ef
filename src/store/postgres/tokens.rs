//! Many access tokens at once: one round trip for each question about each of them would take hours.

use std::{collections::BTreeSet, sync::Arc};

use super::tx::PostgresTx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        record::AccessToken,
        rows::{self, json, needed, seconds},
        rules::{self, Take, World},
        seal::field,
        sql::{self, Rejected, Tx as _},
        transfer::{Imported, Numbered, Record},
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

    /// Takes the access tokens of an import in; returns the one that is rejected.
    pub(super) async fn take_all_tokens(
        &mut self,
        batch: &[Numbered],
        imported: &mut Imported,
    ) -> Result<Rejected, StoreError> {
        let tokens = || {
            batch.iter().filter_map(|(index, record)| match record {
                Record::AccessToken(token) => Some((*index, token, record)),
                _ => None,
            })
        };
        let ids: Vec<&str> = tokens().map(|(_, token, _)| &*token.token).collect();
        let consumers: BTreeSet<&str> = tokens()
            .map(|(_, token, _)| token.consumer.as_str())
            .collect();
        let users: BTreeSet<&str> = tokens().map(|(_, token, _)| token.user.as_str()).collect();
        let (consumers, users): (Vec<_>, Vec<_>) =
            (consumers.into_iter().collect(), users.into_iter().collect());
        let mut here = World::default();
        let find = "SELECT * FROM access_tokens WHERE token = ANY($1)";
        let found = self.read(find, &[&ids], rows::access_token).await?;
        here.tokens
            .extend(found.into_iter().map(|found| (found.token.clone(), found)));
        let find = "SELECT token FROM removed_tokens WHERE token = ANY($1)";
        let removed = self
            .read(find, &[&ids], |row, _| needed(row.text("token")?))
            .await?;
        here.removed_tokens.extend(removed);
        let find = "SELECT * FROM consumers WHERE key = ANY($1)";
        let found = self.read(find, &[&consumers], rows::consumer).await?;
        here.consumers
            .extend(found.into_iter().map(|found| (found.key.clone(), found)));
        let find = "SELECT * FROM users WHERE id = ANY($1)";
        let found = self.read(find, &[&users], rows::user).await?;
        here.users
            .extend(found.into_iter().map(|found| (found.id.clone(), found)));
        let find = "SELECT id FROM removed_users WHERE id = ANY($1)";
        let removed = self
            .read(find, &[&users], |row, _| needed(row.text("id")?))
            .await?;
        here.removed_users.extend(removed);
        let mut new = Vec::new();
        for (index, token, record) in tokens() {
            let take = match rules::take(record, &here) {
                Ok(take) => take,
                Err(refusal) => return Ok(Some((index, refusal))),
            };
            match take {
                Take::Add => new.push(token),
                Take::Revoke => {
                    sql::tokens::revoke_at(self, &token.token, token.revoked_at).await?
                }
                Take::Unchanged | Take::KeepOut => {}
            }
            imported.count(take);
        }
        if self.insert_access_tokens(&new).await? < new.len() as u64 {
            return Err(StoreError::Broken("a token comes twice in the import"));
        }
        for token in new {
            self.changed(Change::AccessToken(token.token.clone()))?;
        }
        Ok(None)
    }

    /// Keeps tokens, but for those whose identifier is in use or was before; returns how many. Caches are not told.
    async fn insert_access_tokens(&mut self, tokens: &[&AccessToken]) -> Result<u64, StoreError> {
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
