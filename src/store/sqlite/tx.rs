//! What a use case works with: statements on one connection, in one transaction, and how secrets are kept.

use std::sync::Arc;

use rusqlite::{Connection, Row, params_from_iter};

use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        record::AccessToken,
        rows::{self, Columns, Read, json, seconds},
        rules::MOST_CHANGES,
        seal::Seal,
        sql::{self, FIND_REQUEST_TOKEN, Params, Statements},
    },
};

/// A connection, and the transaction on it.
pub(in crate::store) struct SqliteTx {
    pub(super) sql: Connection,
    pub(super) seal: Arc<Seal>,
}

impl SqliteTx {
    /// Runs a statement that returns no rows; returns how many rows it touched.
    pub(super) fn run(
        &self,
        statement: &str,
        params: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        Ok(self.sql.prepare_cached(statement)?.execute(params)?)
    }

    /// Reads all rows.
    pub(super) fn all<T>(
        &self,
        statement: &str,
        params: impl rusqlite::Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.sql.prepare_cached(statement)?;
        let mut rows = statement.query(params)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// Whether the statement returns any row.
    pub(super) fn exists(
        &self,
        statement: &str,
        params: impl rusqlite::Params,
    ) -> Result<bool, StoreError> {
        Ok(self.sql.prepare_cached(statement)?.exists(params)?)
    }
}

impl sql::Tx for SqliteTx {
    const STATEMENTS: Statements = Statements {
        // The column's collation folds ASCII letters and no others.
        user_by_name: "SELECT * FROM users WHERE name = $1",
        // A transaction that writes is alone.
        lock_user: "SELECT 1 FROM users WHERE id = $1",
        lock_request_token: FIND_REQUEST_TOKEN,
        insert_token: r#"INSERT INTO access_tokens (token, secret, consumer, "user", permissions,
                 issued_at, expires_at, last_used_at, revoked_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (token) DO NOTHING"#,
        revoke_at: "UPDATE access_tokens SET revoked_at = coalesce($2, unixepoch()) WHERE token = $1",
        feed: "SELECT seq AS position FROM sqlite_sequence WHERE name = 'changes'",
        local_nonces_until: "SELECT
             (SELECT value FROM meta WHERE name = 'local_nonces_until') AS local_nonces_until",
        raise_local_nonces_until: "INSERT INTO meta (name, value) VALUES ('local_nonces_until', $1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > value",
        imported_nonces_until:
            "SELECT
             (SELECT value FROM meta WHERE name = 'imported_nonces_until') AS imported_nonces_until",
        raise_imported_nonces_until:
            "INSERT INTO meta (name, value) VALUES ('imported_nonces_until', $1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > value",
        origin:
            "SELECT (SELECT value FROM meta WHERE name = 'id') AS id, (SELECT max(value) FROM meta
             WHERE name IN ('local_nonces_until', 'imported_nonces_until')) AS accepted_until",
        purge: [
            "DELETE FROM request_tokens WHERE rowid IN
             (SELECT rowid FROM request_tokens WHERE expires_at < $1 LIMIT $2)",
            "DELETE FROM sessions WHERE id_hash IN
             (SELECT id_hash FROM sessions WHERE expires_at < $1 LIMIT $2)",
            "DELETE FROM changes WHERE id IN
             (SELECT id FROM changes WHERE at < $1 ORDER BY id LIMIT $2)",
        ],
    };

    fn seal(&self) -> &Seal {
        &self.seal
    }

    async fn execute(&mut self, sql: &'static str, params: Params<'_>) -> Result<u64, StoreError> {
        Ok(self.run(&numbered(sql), own(params))? as u64)
    }

    async fn rows<T: Send>(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
        read: Read<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.all(&numbered(sql), own(params), |row| read(row, &self.seal))
    }

    async fn row<T: Send>(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
        read: Read<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.sql.prepare_cached(&numbered(sql))?;
        let mut rows = statement.query(own(params))?;
        rows.next()?.map(|row| read(row, &self.seal)).transpose()
    }

    fn changed(&mut self, change: Change) -> Result<(), StoreError> {
        let (kind, key) = rows::change_columns(&change);
        // Not the caller's clock but the system's: this time is only compared with those of other processes.
        let insert = "INSERT INTO changes (at, kind, key) VALUES (unixepoch(), ?1, ?2)";
        self.run(insert, [kind, key]).map(drop)
    }

    fn drop_changes(&mut self) -> Result<(), StoreError> {
        let delete = "DELETE FROM changes
             WHERE id < (SELECT seq FROM sqlite_sequence WHERE name = 'changes') - ?1";
        self.run(delete, [MOST_CHANGES]).map(drop)
    }

    /// Beforehand, as a transaction that writes is alone: an INSERT that selects, journals the pages it touches and takes
    /// twice as long.
    fn is_token_removed(&self, token: &str) -> Result<bool, StoreError> {
        self.exists("SELECT 1 FROM removed_tokens WHERE token = ?1", [token])
    }

    async fn record_uses(&mut self, uses: &[(String, UnixTime)]) -> Result<(), StoreError> {
        let update = "UPDATE access_tokens SET last_used_at = ?2
             WHERE token = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";
        for (token, at) in uses {
            self.run(update, (token, seconds(*at)))?;
        }
        Ok(())
    }

    async fn rows_among<T: Send>(
        &mut self,
        sql: &'static str,
        keys: &[String],
        read: Read<T>,
    ) -> Result<Vec<T>, StoreError> {
        let sql = sql.replace("= ANY($1)", "IN (SELECT value FROM json_each(?1))");
        self.all(&sql, [json(keys)?], |row| read(row, &self.seal))
    }

    async fn insert_tokens(&mut self, tokens: &[&AccessToken]) -> Result<bool, StoreError> {
        for token in tokens {
            if !sql::tokens::insert(self, token).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A statement with its parameters as SQLite numbers them.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

/// Parameters as rusqlite takes them.
fn own<'p>(params: Params<'p>) -> impl rusqlite::Params + use<'p> {
    params_from_iter(params.iter().copied())
}

impl Columns for Row<'_> {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.get(column)?)
    }

    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get(column)?)
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn flag(&self, column: &str) -> Result<Option<bool>, StoreError> {
        Ok(self.get(column)?)
    }
}
