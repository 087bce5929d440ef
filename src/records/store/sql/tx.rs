//! A transaction of a use case.

pub(crate) mod filter;
pub(crate) mod names;
pub(crate) mod rows;
pub(crate) mod sealing;

use std::sync::Arc;

use tokio::time::{error::Elapsed, timeout_at};

use crate::records::{
    store::{
        engine::{Connection, Statements, TimeLimit, TimedOut},
        sql::tx::rows::Read,
    },
    values::{
        Result,
        seal::Seal,
        use_cases::Change,
        value::{Value, json},
    },
};

/// The most changes that are reported one by one; above that it is cheaper to read every record again.
pub(super) const MOST_CHANGES: i64 = 10_000;

/// A transaction under way.
pub(crate) struct Tx {
    connection: Box<dyn Connection>,
    seal: Arc<Seal>,
    limit: TimeLimit,
    statements: &'static Statements,
    changes: Vec<Change>,
    skipped_changes: i64,
}

impl Tx {
    /// A transaction that an engine has begun.
    pub(super) fn new(
        (connection, limit): (Box<dyn Connection>, TimeLimit),
        statements: &'static Statements,
        seal: Arc<Seal>,
    ) -> Self {
        Self {
            connection,
            seal,
            limit,
            statements,
            changes: Vec::new(),
            skipped_changes: 0,
        }
    }

    /// The statements of the engine that differ from those of the other.
    pub(super) fn statements(&self) -> &'static Statements {
        self.statements
    }

    /// Seals and opens secrets.
    pub(super) fn seal(&self) -> &Seal {
        &self.seal
    }

    fn checked<T>(&self, done: Result<Result<T>, Elapsed>) -> Result<T> {
        done.unwrap_or_else(|_| Err(TimedOut.into()))
            .map_err(|error| self.connection.failed(error))
    }

    /// Runs a statement; returns how many rows it touched.
    pub(super) async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let work = self.connection.execute(sql, params);
        let done = timeout_at(self.limit.end(), work).await;
        self.checked(done)
    }

    /// Reads all rows.
    pub(super) async fn rows<T>(
        &mut self,
        sql: &str,
        params: &[Value],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let work = self.connection.rows(sql, params);
        let done = timeout_at(self.limit.end(), work).await;
        let rows = self.checked(done)?;
        rows.iter().map(|row| read(row, &self.seal)).collect()
    }

    /// Reads the first row.
    pub(super) async fn row<T>(
        &mut self,
        sql: &str,
        params: &[Value],
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, params, read).await?.into_iter().next())
    }

    /// Whether the statement returns a row.
    pub(super) async fn has_row(&mut self, sql: &str, params: &[Value]) -> Result<bool> {
        Ok(self.row(sql, params, |_, _| Ok(())).await?.is_some())
    }

    /// Reads the rows of `table` whose column `key` is one of `keys`.
    pub(super) async fn rows_among<T>(
        &mut self,
        table: &str,
        key: &str,
        keys: &[&str],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let among = self.statements.among;
        let find = format!("SELECT * FROM {table} WHERE {key} {among}");
        self.rows(&find, &[json(keys)?.into()], read).await
    }

    /// Runs statements without parameters.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        let done = timeout_at(self.limit.end(), self.connection.batch(sql)).await;
        self.checked(done)
    }

    /// Writes a row of these columns; `ending` says what happens to an existing row.
    pub(super) async fn insert(
        &mut self,
        table: &str,
        columns: Vec<(&str, Value)>,
        ending: &str,
    ) -> Result<u64> {
        let (names, params): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let numbers: Vec<_> = (1..=names.len()).map(|n| format!("${n}")).collect();
        let (names, values) = (names.join(r#"", ""#), numbers.join(", "));
        let insert =
            format!(r#"INSERT INTO countersign.{table} ("{names}") VALUES ({values}) {ending}"#);
        self.execute(&insert, &params).await
    }

    /// Reports a change to every cache on the store, with the commit.
    pub(super) fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Forgets the changes of a part that was rolled back.
    pub(super) fn clear_changes(&mut self) {
        self.changes.clear();
        self.skipped_changes = 0;
    }

    /// Keeps only as many changes as are reported one by one: a cache that finds this many, or a gap, treats every record as
    /// changed.
    pub(super) fn drop_changes(&mut self) {
        let most = usize::try_from(MOST_CHANGES).unwrap_or(usize::MAX);
        let surplus = self.changes.len().saturating_sub(most);
        self.changes.drain(..surplus);
        self.skipped_changes += i64::try_from(surplus).unwrap_or(i64::MAX);
    }

    /// Commits. The changes go into the feed at the very end: the feed is locked until the commit, so that positions
    /// are in the order of commits and no process reads past one that is still to come.
    pub(super) async fn commit(mut self) -> Result<()> {
        if self.skipped_changes > 0 {
            let skipped = self.skipped_changes;
            self.execute(self.statements.skip_changes, &[skipped.into()])
                .await?;
        }
        if !self.changes.is_empty() {
            let changes = json(&self.changes)?;
            self.execute(self.statements.report_changes, &[changes.into()])
                .await?;
        }
        let done = timeout_at(self.limit.end(), self.connection.commit()).await;
        self.checked(done)
    }
}
