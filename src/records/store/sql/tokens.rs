//! Tokens: the flow in [`super::flow`], and access tokens outside it.

use std::collections::BTreeMap;

use super::{EXCLUSIVE, LIST, READ, Store, WRITE, consumers, passes, retire, sessions, tx::Tx};
use crate::{
    base::{
        clock::UnixTime,
        text::{
            hexadecimal::hexadecimal,
            names::{ConsumerKey, UserId},
        },
    },
    records::{
        store::{
            engine::Statements,
            sql::tx::{filter::Condition, rows},
        },
        values::{
            Result,
            record::{AccessToken, Consumer, TokenUse},
            seal::{Seal, field},
            use_cases::{Added, Change, Guard, OwnToken, Source, TokenFilter},
            value::{Row, json, seconds},
        },
    },
};

impl Store {
    /// Finds an access token, expired and revoked ones too: one that was given out here, else one of the application.
    pub async fn access_token(&self, token: &str) -> Result<Option<AccessToken>> {
        let found = self.access_token_from(token, None, false).await?;
        Ok(found.map(|(found, _)| found))
    }

    /// As [`Self::access_token`], with where it was found. `consumer` has sent it. `is_refresh`: it was found before.
    pub async fn access_token_from(
        &self,
        token: &str,
        consumer: Option<&ConsumerKey>,
        is_refresh: bool,
    ) -> Result<Option<(AccessToken, Source)>> {
        let found = self.run("access_token", READ, async |tx| find(tx, token).await);
        let found = found.await?;
        let external = self.external.as_deref();
        let Some(external) = external.filter(|_| found.is_none() && is_text(token)) else {
            return Ok(found.map(|found| (found, Source::Store)));
        };
        let asked = external.access_token(token, consumer, is_refresh);
        let Some(found) = self.counted("lookup_access_token", asked).await? else {
            return Ok(None);
        };
        self.run("access_token", READ, async |tx| {
            let found = ended_here(tx, found).await?;
            Ok(Some((found, Source::External)))
        })
        .await
    }

    /// Keeps an access token that was issued without the flow; `Taken` if the identifier is in use or was before,
    /// or the consumer is unknown, or the user is unknown or disabled.
    pub async fn issue_access_token(&self, token: AccessToken) -> Result<Added> {
        let find = "SELECT 1 FROM countersign.consumers, countersign.users
             WHERE consumers.key = $1 AND users.id = $2 AND users.enabled";
        self.run("issue_access_token", WRITE, async |tx| {
            let owners = [token.consumer.as_str().into(), token.user.as_str().into()];
            Ok(
                match tx.has_row(find, &owners).await?
                    && insert(tx, std::slice::from_ref(&token)).await?
                {
                    true => Added::Added,
                    false => Added::Taken,
                },
            )
        })
        .await
    }

    /// Keeps an access token that the owner of a consumer makes in a session, and ends the own ones of both before it: of
    /// those that are made at once, the last one stays. `guard` checks the consumer.
    pub async fn issue_own_token(
        &self,
        token: AccessToken,
        session: &[u8; 32],
        guard: Guard<'_, Consumer>,
    ) -> Result<OwnToken> {
        self.run("issue_own_token", WRITE, async |tx| {
            let (user, now) = (token.user.as_str(), token.issued_at);
            lock_user(tx, &token.user).await?;
            let found = sessions::find(tx, session, now).await?;
            let is_open = found.is_some_and(|(_, found)| found.id == token.user);
            let consumer = consumers::find(tx, &token.consumer).await?;
            if !is_open || !passes(guard, consumer.filter(|found| found.enabled)) {
                return Ok(OwnToken::Refused);
            }
            if !insert(tx, std::slice::from_ref(&token)).await? {
                return Ok(OwnToken::Taken);
            }
            let find = format!(
                r#"SELECT token FROM countersign.access_tokens WHERE "user" = $1 AND consumer = $2 AND token <> $3
                     AND began = 'own' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)
                 ORDER BY token {}"#,
                tx.statements().lock
            );
            let (consumer, own) = (token.consumer.as_str(), token.token.as_str());
            let params = [user.into(), consumer.into(), own.into(), now.into()];
            let ended = tx.rows(&find, &params, rows::token).await?;
            for before in &ended {
                revoke_at(tx, before, Some(now)).await?;
            }
            Ok(OwnToken::Issued(ended))
        })
        .await
    }

    /// Revokes an access token for good; `false` if there is none or `guard` rejects that. Revoking twice keeps the
    /// first time.
    pub async fn revoke_access_token(
        &self,
        token: &str,
        now: UnixTime,
        guard: Guard<'_, AccessToken>,
    ) -> Result<bool> {
        if !is_text(token) {
            return Ok(false);
        }
        // `None`: it is not one of ours.
        let ours = self.run("revoke_access_token", WRITE, async |tx| {
            let Some(found) = find(tx, token).await? else {
                return Ok(None);
            };
            if !passes(guard, Some(found)) {
                return Ok(Some(false));
            }
            let revoke = "UPDATE countersign.access_tokens SET revoked_at = $2 WHERE token = $1 AND revoked_at IS NULL";
            if tx.execute(revoke, &[token.into(), now.into()]).await? > 0 {
                tx.changed(Change::AccessToken(token.to_owned()));
            }
            Ok(Some(true))
        });
        if let Some(is_revoked) = ours.await? {
            return Ok(is_revoked);
        }
        if self.external.is_none() || !passes(guard, self.access_token(token).await?) {
            return Ok(false);
        }
        // A token of the application: its revocation is noted here, whatever the application says.
        self.run("revoke_access_token", WRITE, async |tx| {
            if retire(tx, "token", token).await? {
                tx.changed(Change::AccessToken(token.to_owned()));
            }
            Ok(true)
        })
        .await
    }

    /// Revokes access tokens that a filter finds, at most `limit`; returns how many were not revoked before. A filter that
    /// finds all revokes nothing. What the user or the consumer was allowed and has not exchanged ends too.
    pub async fn revoke_access_tokens(
        &self,
        filter: &TokenFilter,
        now: UnixTime,
        limit: u32,
    ) -> Result<u64> {
        if filter.user.is_none() && filter.consumer.is_none() && filter.unused_since.is_none() {
            return Ok(0);
        }
        self.run("revoke_access_tokens", EXCLUSIVE, async |tx| {
            let first = Condition::new("true", vec![now.into(), i64::from(limit).into()]);
            let Condition { sql, params } = live_condition(filter, first);
            let revoke = format!(
                "UPDATE countersign.access_tokens SET revoked_at = $1 WHERE token IN
                     (SELECT token FROM countersign.access_tokens WHERE {sql} ORDER BY {BY_USE} LIMIT $2)
                 RETURNING token"
            );
            let revoked = tx.rows(&revoke, &params, rows::token).await?;
            let count = revoked.len() as u64;
            if filter.unused_since.is_none() {
                void(tx, filter).await?;
            }
            for token in revoked {
                tx.changed(Change::AccessToken(token));
            }
            Ok(count)
        })
        .await
    }

    /// Lists access tokens that are not revoked, the longest unused first, after the one that was last used or issued
    /// at that time; at most `limit`.
    pub async fn idle_access_tokens(
        &self,
        filter: &TokenFilter,
        after: (UnixTime, &str),
        limit: u32,
    ) -> Result<Vec<AccessToken>> {
        let first = Condition::new(
            "(coalesce(last_used_at, issued_at), token) > ($1, $2)",
            vec![after.0.into(), after.1.into()],
        );
        let (list, params) = live_condition(filter, first).list("access_tokens", BY_USE, limit);
        self.rows(
            "idle_access_tokens",
            LIST,
            &list,
            &params,
            rows::access_token,
        )
        .await
    }

    /// Lists access tokens that are not revoked, the one that was last used or issued first, after the one of that time and
    /// identifier; at most `limit`.
    pub async fn recent_access_tokens(
        &self,
        filter: &TokenFilter,
        after: Option<(UnixTime, &str)>,
        limit: u32,
    ) -> Result<Vec<AccessToken>> {
        let (at, token) = after.map_or((i64::MAX, ""), |(at, token)| (seconds(at), token));
        let first = Condition::new(
            "(coalesce(last_used_at, issued_at), token) < ($1, $2)",
            vec![at.into(), token.into()],
        );
        let order = "coalesce(last_used_at, issued_at) DESC, token DESC";
        let (list, params) = live_condition(filter, first).list("access_tokens", order, limit);
        self.rows(
            "recent_access_tokens",
            LIST,
            &list,
            &params,
            rows::access_token,
        )
        .await
    }

    /// Counts the access tokens of a filter that are not revoked, up to `limit`.
    pub async fn count_access_tokens(&self, filter: &TokenFilter, limit: u32) -> Result<u64> {
        let first = Condition::new("true", vec![i64::from(limit).into()]);
        let Condition { sql, params } = live_condition(filter, first);
        let count = format!(
            "SELECT count(*) AS count FROM
                 (SELECT 1 FROM countersign.access_tokens WHERE {sql} ORDER BY {BY_USE} LIMIT $1) AS counted"
        );
        let read = |row: &Row, _: &Seal| row.get("count").map(i64::cast_unsigned);
        let counted = self.row("count_access_tokens", LIST, &count, &params, read);
        Ok(counted.await?.unwrap_or_default())
    }

    /// Lists access tokens in the order of their identifiers, after `after`, at most `limit`.
    pub async fn access_tokens(
        &self,
        filter: &TokenFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AccessToken>> {
        let first = Condition::new("token > $1", vec![after.unwrap_or_default().into()]);
        let (list, params) = condition(filter, first).list("access_tokens", "token", limit);
        self.rows("access_tokens", LIST, &list, &params, rows::access_token)
            .await
    }

    /// Writes last uses; an earlier time never replaces a later one. Not reported by the feed. Many uses are written in
    /// several transactions: each is written or not, and all can be written again.
    pub async fn record_uses(&self, mut uses: Vec<TokenUse>) -> Result<()> {
        uses.sort_by_key(|used| used.last_used_at);
        // The last use of each.
        let last: BTreeMap<_, _> = uses
            .iter()
            .map(|used| {
                (
                    &used.token,
                    (seconds(used.last_used_at), used.last_used_from),
                )
            })
            .collect();
        // Each token is there once. Grouped, they are read once; otherwise SQLite would read all of them for each.
        // Rows are locked in one order: otherwise two processes could wait for each other.
        let record = |Statements { lock, .. }: &Statements| {
            format!(
                "WITH used AS (
                     SELECT value ->> 0 AS token, max(CAST(value -> 1 ->> 0 AS bigint)) AS at, max(value -> 1 ->> 1) AS address
                     FROM countersign.json_each($1) GROUP BY 1
                 ), locked AS (
                     SELECT token FROM countersign.access_tokens WHERE token IN (SELECT token FROM used)
                     ORDER BY token {lock}
                 )
                 UPDATE countersign.access_tokens SET last_used_at = used.at, last_used_from = used.address
                 FROM locked, used
                 WHERE access_tokens.token = locked.token AND used.token = locked.token
                     AND (last_used_at IS NULL OR last_used_at < used.at)"
            )
        };
        self.record_in_parts("record_uses", last.into_iter().collect(), record)
            .await
    }
}

/// Finds the access tokens that a user has allowed a consumer here, and what they were shown of it: those that are valid at
/// `now`, and were used or issued after `used_after`; the last used ones, if there are very many. No other transaction
/// ends them before this one is over.
pub(super) async fn allowed(
    tx: &mut Tx,
    (user, consumer): (&UserId, &ConsumerKey),
    now: UnixTime,
    used_after: Option<UnixTime>,
) -> Result<Vec<(AccessToken, Option<String>)>> {
    // Rows are locked in the order in which others lock them.
    let lock = tx.statements().lock;
    let find = format!(
        r#"SELECT * FROM countersign.access_tokens WHERE revoked_at IS NULL AND token IN (
             SELECT token FROM countersign.access_tokens
             WHERE "user" = $1 AND consumer = $2 AND revoked_at IS NULL AND began = 'consent'
                 AND (expires_at IS NULL OR expires_at > $3) AND coalesce(last_used_at, issued_at) > $4
             ORDER BY coalesce(last_used_at, issued_at) DESC LIMIT 250
         ) ORDER BY token {lock}"#
    );
    let params = [
        user.as_str().into(),
        consumer.as_str().into(),
        now.into(),
        used_after.map_or(-1, seconds).into(),
    ];
    let read = |row: &Row, seal: &Seal| Ok((rows::access_token(row, seal)?, row.get("shown")?));
    tx.rows(&find, &params, read).await
}

/// Makes others that give out tokens of this user wait until the transaction ends.
pub(super) async fn lock_user(tx: &mut Tx, user: &UserId) -> Result<()> {
    let lock = tx.statements().lock;
    let lock = format!("SELECT 1 FROM countersign.users WHERE id = $1 {lock}");
    tx.has_row(&lock, &[user.as_str().into()]).await.map(drop)
}

/// Whether an identifier that a caller names can be in a column: PostgreSQL has no NUL.
pub(super) fn is_text(token: &str) -> bool {
    !token.contains('\0')
}

async fn find(tx: &mut Tx, token: &str) -> Result<Option<AccessToken>> {
    if !is_text(token) {
        return Ok(None);
    }
    let find = "SELECT * FROM countersign.access_tokens WHERE token = $1";
    tx.row(find, &[token.into()], rows::access_token).await
}

/// A token of the application, which is revoked too if it was revoked here, or if its user is disabled or removed here.
async fn ended_here(tx: &mut Tx, mut found: AccessToken) -> Result<AccessToken> {
    let find =
        "SELECT 1 FROM countersign.removed WHERE kind = 'token' AND key = $1 OR kind = 'user' AND key = $2
         UNION ALL SELECT 1 FROM countersign.users WHERE id = $2 AND NOT enabled";
    if tx
        .has_row(
            find,
            &[found.token.as_str().into(), found.user.as_str().into()],
        )
        .await?
    {
        found.revoked_at = Some(found.issued_at);
    }
    Ok(found)
}

/// The order of the indexes of tokens that are not revoked, also for queries that need no order, to use the indexes.
const BY_USE: &str = "coalesce(last_used_at, issued_at), token";

/// As [`condition`], for tokens that are not revoked, written so that their indexes match it.
fn live_condition(filter: &TokenFilter, first: Condition) -> Condition {
    let mut condition = condition(filter, first);
    condition.sql += " AND revoked_at IS NULL";
    if filter.user.is_none() {
        condition.sql += " AND issued_at >= 0";
    }
    condition
}

/// The condition of a filter, after another one.
fn condition(filter: &TokenFilter, first: Condition) -> Condition {
    let mut condition = first;
    let unused_since = filter.unused_since.map_or(i64::MAX, seconds);
    condition.and("coalesce(last_used_at, issued_at) <= ?", unused_since);
    if filter.live {
        condition.sql += " AND revoked_at IS NULL";
    }
    if let Some((after, last)) = filter.ends {
        condition.and("revoked_at IS NULL AND expires_at > ?", after);
        condition.and("expires_at <= ?", last);
    }
    owners(filter, condition)
}

/// The condition of a filter on user and consumer, after another one.
fn owners(filter: &TokenFilter, mut condition: Condition) -> Condition {
    if let Some(user) = &filter.user {
        condition.and(r#""user" = ?"#, user.as_str());
    }
    if let Some(consumer) = &filter.consumer {
        condition.and("consumer = ?", consumer.as_str());
    }
    condition
}

/// Ends what the user or the consumer of a filter was allowed, where no access token was given for it yet.
async fn void(tx: &mut Tx, filter: &TokenFilter) -> Result<()> {
    let authorized = Condition::new("state = 'authorized'", Vec::new());
    let Condition { sql, params } = owners(filter, authorized);
    let void = format!(
        r#"UPDATE countersign.request_tokens SET state = 'voided', "user" = NULL, verifier = NULL
         WHERE {sql}"#
    );
    tx.execute(&void, &params).await.map(drop)
}

/// Revokes a token at the time that an import says, else now.
pub(super) async fn revoke_at(tx: &mut Tx, token: &str, at: Option<UnixTime>) -> Result<()> {
    let revoke = "UPDATE countersign.access_tokens SET revoked_at = coalesce($2, countersign.unixepoch()) WHERE token = $1";
    tx.execute(revoke, &[token.into(), at.into()]).await?;
    tx.changed(Change::AccessToken(token.to_owned()));
    Ok(())
}

/// Keeps tokens; `false` if an identifier is in use or was before.
pub(super) async fn insert(tx: &mut Tx, tokens: &[AccessToken]) -> Result<bool> {
    let columns = tokens.iter().map(|token| {
        let secret = tx
            .seal()
            .close(field::ACCESS_TOKEN, &token.token, &token.secret)?;
        Ok((
            &token.token,
            hexadecimal(&secret),
            token.consumer.as_str(),
            token.user.as_str(),
            json(&token.permissions)?,
            seconds(token.issued_at),
            token.expires_at.map(seconds),
            token.last_used_at.map(seconds),
            token.revoked_at.map(seconds),
            token.began,
            u8::from(token.with_display_name),
            token.last_used_from,
        ))
    });
    let columns: Vec<_> = columns.collect::<Result<_>>()?;
    let insert = r#"INSERT INTO countersign.access_tokens (token, secret, consumer, "user", permissions,
             issued_at, expires_at, last_used_at, revoked_at, began, with_display_name, last_used_from)
         SELECT value ->> 0, countersign.unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS bigint),
             CAST(value ->> 6 AS bigint), CAST(value ->> 7 AS bigint), CAST(value ->> 8 AS bigint), value ->> 9,
             CAST(value ->> 10 AS bigint) = 1, value ->> 11
         FROM countersign.json_each($1)
         WHERE NOT EXISTS (SELECT 1 FROM countersign.removed WHERE removed.kind = 'token' AND removed.key = value ->> 0)
         ON CONFLICT (token) DO NOTHING"#;
    if tx.execute(insert, &[json(&columns)?.into()]).await? != tokens.len() as u64 {
        return Ok(false);
    }
    for token in tokens {
        tx.changed(Change::AccessToken(token.token.clone()));
    }
    Ok(true)
}
