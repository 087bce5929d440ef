//! What a use case works with: statements on one connection, in one transaction.

use std::{borrow::Cow, sync::Arc, time::Duration};

use tokio::time::timeout;
use tokio_postgres::{Row, SimpleQueryMessage, types::ToSql};

use super::{
    Lookup, PostgresFault, STEP_TIMEOUT,
    pool::{CHANNEL, Conn, STATEMENT_TIMEOUT},
    schema::VERSION,
};
use crate::{
    clock::UnixTime,
    names::ConsumerKey,
    store::{
        StoreError,
        port::Change,
        record::{AccessToken, Consumer},
        rows::{self, Columns, Read},
        rules::MOST_CHANGES,
        seal::Seal,
        sql::{self, Mode, Param, Statements},
    },
};

/// The key of the advisory lock: `CtSn`.
pub(super) const LOCK: u32 = 0x4374_536e;

/// A use case under way.
pub(in crate::store) struct PostgresTx {
    pub(super) conn: Conn,
    pub(super) seal: Arc<Seal>,
    pub(super) lookup: Lookup,
    changes: Vec<Change>,
    dropped_changes: u64,
}

type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl PostgresTx {
    pub(super) const fn new(conn: Conn, seal: Arc<Seal>, lookup: Lookup) -> Self {
        Self {
            conn,
            seal,
            lookup,
            changes: Vec::new(),
            dropped_changes: 0,
        }
    }

    /// Begins, in one round trip. An advisory lock, taken before the first statement sees anything, keeps those apart that
    /// could be in each other's way. `timeout_after` above the usual one is given to each statement.
    pub(super) async fn begin(
        &mut self,
        mode: Mode,
        timeout_after: Duration,
    ) -> Result<(), StoreError> {
        let (isolation, lock) = match mode {
            Mode::Single => return Ok(()),
            Mode::Snapshot => ("REPEATABLE READ READ ONLY", None),
            Mode::Shared => ("READ COMMITTED", Some("_shared")),
            Mode::Alone => ("READ COMMITTED", Some("")),
        };
        let mut batch = format!("BEGIN ISOLATION LEVEL {isolation};");
        if timeout_after > STATEMENT_TIMEOUT * 2 {
            // The server ends it before the caller gives up.
            let limit = timeout_after.min(STEP_TIMEOUT).as_millis() * 4 / 5;
            // Between the statements of an export or an import a file is read or written.
            batch += &format!(
                "SET LOCAL statement_timeout = {limit}; SET LOCAL idle_in_transaction_session_timeout = {limit};"
            );
        }
        let Some(lock) = lock else {
            return Ok(self.conn.client().batch_execute(&batch).await?);
        };
        batch += &format!(
            "SELECT pg_advisory_xact_lock{lock}({LOCK}); SELECT version FROM countersign.meta"
        );
        let messages = self.conn.client().simple_query(&batch).await?;
        // The schema may have been migrated since the store was opened.
        let version = messages.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok()?,
            _ => None,
        });
        match version.and_then(|version| version.parse().ok()) {
            Some(VERSION) => Ok(()),
            _ => Err(PostgresFault::Replaced.into()),
        }
    }

    /// Commits. What was changed goes into the feed at the very end: the row that counts changes is locked until the
    /// commit, so that positions are in the order of commits and nobody reads past one that is still to come.
    pub(super) async fn commit(&mut self, mode: Mode) -> Result<(), StoreError> {
        if mode == Mode::Single {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        if !changes.is_empty() {
            let (kinds, keys): (Vec<_>, Vec<_>) = changes.iter().map(rows::change_columns).unzip();
            let count = changes.len() as u64 + std::mem::take(&mut self.dropped_changes);
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.run(
                "WITH head AS (UPDATE feed SET position = position + $1 RETURNING position)
                 INSERT INTO changes (id, at, kind, key)
                 SELECT head.position - cardinality($3::text[]) + new.number, extract(epoch FROM clock_timestamp())::bigint,
                     new.kind, new.key
                 FROM head, unnest($2::text[], $3::text[]) WITH ORDINALITY AS new (kind, key, number)",
                &[&count, &kinds, &keys],
            )
            .await?;
            self.run("SELECT pg_notify($1, '')", &[&CHANNEL]).await?;
        }
        self.conn.client().batch_execute("COMMIT").await?;
        Ok(())
    }

    /// Runs a statement; returns how many rows it touched.
    pub(super) async fn run(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<u64, StoreError> {
        let (client, statement) = self.conn.prepare(sql).await?;
        Ok(client.execute(&statement, params).await?)
    }

    /// Reads all rows.
    pub(super) async fn read<T>(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
        read: Read<T>,
    ) -> Result<Vec<T>, StoreError> {
        let (client, statement) = self.conn.prepare(sql).await?;
        let rows = client.query(&statement, params).await?;
        rows.iter().map(|row| read(row, &self.seal)).collect()
    }
}

impl sql::Tx for PostgresTx {
    const STATEMENTS: Statements = Statements {
        user_by_name: r#"SELECT * FROM users WHERE lower(name) = lower($1 COLLATE "C")"#,
        lock_user: "SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE",
        lock_request_token: "SELECT * FROM request_tokens WHERE token = $1 OR redirect_token = $1
             ORDER BY token <> $1 LIMIT 1 FOR UPDATE",
        insert_token: r#"INSERT INTO access_tokens (token, secret, consumer, "user", permissions,
                 issued_at, expires_at, last_used_at, revoked_at)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
             WHERE NOT EXISTS (SELECT 1 FROM removed_tokens WHERE token = $1)
             ON CONFLICT (token) DO NOTHING"#,
        revoke_at: "UPDATE access_tokens
             SET revoked_at = coalesce($2, extract(epoch FROM clock_timestamp())::bigint)
             WHERE token = $1",
        feed: "SELECT position FROM feed",
        local_nonces_until: "SELECT local_nonces_until FROM meta",
        raise_local_nonces_until: "UPDATE meta SET local_nonces_until = $1
             WHERE local_nonces_until IS NULL OR local_nonces_until < $1",
        imported_nonces_until: "SELECT imported_nonces_until FROM meta",
        raise_imported_nonces_until: "UPDATE meta SET imported_nonces_until = $1
             WHERE imported_nonces_until IS NULL OR imported_nonces_until < $1",
        origin: "SELECT id, greatest(local_nonces_until, imported_nonces_until,
                 (SELECT max(second) FROM nonces),
                 (SELECT nullif(greatest(floor, lost), 0) FROM nonce_state)) AS accepted_until
             FROM meta",
        purge: [
            "DELETE FROM request_tokens WHERE token IN
             (SELECT token FROM request_tokens WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
            "DELETE FROM sessions WHERE id_hash IN
             (SELECT id_hash FROM sessions WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
            "DELETE FROM changes WHERE id IN
             (SELECT id FROM changes WHERE at < $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)",
        ],
    };

    fn seal(&self) -> &Seal {
        &self.seal
    }

    async fn execute(
        &mut self,
        sql: &'static str,
        params: sql::Params<'_>,
    ) -> Result<u64, StoreError> {
        self.run(sql, &own(params)).await
    }

    async fn rows<T: Send>(
        &mut self,
        sql: &'static str,
        params: sql::Params<'_>,
        read: Read<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(sql, &own(params), read).await
    }

    async fn row<T: Send>(
        &mut self,
        sql: &'static str,
        params: sql::Params<'_>,
        read: Read<T>,
    ) -> Result<Option<T>, StoreError> {
        let (client, statement) = self.conn.prepare(sql).await?;
        let row = client.query_opt(&statement, &own(params)).await?;
        row.map(|row| read(&row, &self.seal)).transpose()
    }

    fn changed(&mut self, change: Change) -> Result<(), StoreError> {
        self.changes.push(change);
        Ok(())
    }

    fn drop_changes(&mut self) -> Result<(), StoreError> {
        let most = usize::try_from(MOST_CHANGES).unwrap_or(usize::MAX);
        if let Some(surplus) = self.changes.len().checked_sub(most) {
            self.dropped_changes += surplus as u64;
            self.changes.drain(..surplus);
        }
        Ok(())
    }

    fn forget_changes(&mut self) {
        self.changes.clear();
        self.dropped_changes = 0;
    }

    async fn record_uses(&mut self, uses: &[(String, UnixTime)]) -> Result<(), StoreError> {
        self.record_all_uses(uses).await
    }

    async fn rows_among<T: Send>(
        &mut self,
        sql: &'static str,
        keys: &[String],
        read: Read<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(sql, &[&keys], read).await
    }

    async fn insert_tokens(&mut self, tokens: &[&AccessToken]) -> Result<bool, StoreError> {
        self.insert_all_tokens(tokens).await
    }

    async fn in_time<T: Send>(
        step: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let step = timeout(STEP_TIMEOUT, step).await;
        step.map_err(|_| PostgresFault::TimedOut)?
    }

    /// PostgreSQL has no NUL.
    fn is_text(text: &str) -> bool {
        !text.contains('\0')
    }

    fn kept_text(name: &str) -> Cow<'_, str> {
        kept_text(name)
    }

    async fn consumer_outside(
        &mut self,
        key: &ConsumerKey,
    ) -> Result<Option<Consumer>, StoreError> {
        self.find_consumer_outside(key).await
    }

    async fn access_token_outside(
        &mut self,
        token: &str,
    ) -> Result<Option<AccessToken>, StoreError> {
        self.find_access_token_outside(token).await
    }

    fn check_consumer_outside(&self) -> Result<(), StoreError> {
        match self.lookup.consumer_sql {
            None => Ok(()),
            Some(_) => Err(StoreError::Broken(
                "a consumer of store.lookup.consumer_sql gets no new tokens; register it here to let it ask users",
            )),
        }
    }
}

/// Parameters as tokio-postgres takes them.
fn own<'p>(params: sql::Params<'p>) -> Vec<&'p (dyn ToSql + Sync)> {
    let own = |param: &&'p dyn Param| -> &'p (dyn ToSql + Sync) { *param };
    params.iter().map(own).collect()
}

/// A column's value; what is not there is `None`, and another type is a broken record.
macro_rules! column {
    ($row:ident, $column:ident) => {
        $row.try_get($column)
            .map_err(|_| StoreError::Broken("a column has a value of another type"))
    };
}

impl Columns for Row {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        let kept: Option<String> = column!(self, column)?;
        Ok(match column {
            "name" | "display_name" | "description" => kept.map(read_text),
            _ => kept,
        })
    }

    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
        column!(self, column)
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        column!(self, column)
    }

    fn flag(&self, column: &str) -> Result<Option<bool>, StoreError> {
        column!(self, column)
    }
}

/// A name as a column holds it: PostgreSQL has no NUL, so it and the character that stands for it are escaped.
fn kept_text(name: &str) -> Cow<'_, str> {
    if name.contains(['\0', '\u{1}']) {
        let escaped = name.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0");
        Cow::Owned(escaped)
    } else {
        Cow::Borrowed(name)
    }
}

fn read_text(kept: String) -> String {
    if kept.contains('\u{1}') {
        kept.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
    } else {
        kept
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_character_of_a_name() {
        for name in ["", "Ä", "a\0b", "\u{1}", "\u{1}0", "\u{1}1\0", "\0\u{1}01"] {
            let kept = kept_text(name);
            assert!(!kept.contains('\0'));
            assert_eq!(read_text(kept.into_owned()), name);
        }
    }
}
