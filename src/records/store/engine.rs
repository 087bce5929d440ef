//! The interface between a store and the database that keeps its records.
//!
//! There are two engines, SQLite and PostgreSQL, and most statements are the same for both: they have their parameters as
//! `$1`, name the schema `countersign` of each table and function, and call three functions of SQLite (`unixepoch`, `unhex`,
//! `json_each`), which the schema of PostgreSQL defines. [`Statements`] has those that differ.
//!
//! A third engine also needs `ON CONFLICT`, `RETURNING`, `UPDATE … FROM`, `IS DISTINCT FROM`, `->>` on any JSON value,
//! comparisons of rows, recursive queries, savepoints, and indexes on expressions and on some of the rows. MySQL, for
//! one, lacks most of these: there the use cases in [`super::sql`] need statements of their own.

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;
use tokio::time::Instant;

use crate::records::{
    nonce::SharedWindow,
    values::{
        Result, StoreError,
        error::EngineFault,
        value::{Row, Value},
    },
};

/// A database that keeps the records of a store.
#[async_trait]
pub(super) trait Engine: Send + Sync {
    /// The tables, and the statements that differ between engines.
    fn statements(&self) -> &'static Statements;

    /// Begins a transaction. Dropped before [`Connection::commit`] has succeeded, it changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]
    async fn begin(
        &self,
        isolation: Isolation,
        deadline: Deadline,
    ) -> Result<(Box<dyn Connection>, TimeLimit)>;

    /// Waits until another process may have changed something; never completes if the engine does not report that.
    async fn notified(&self) {
        std::future::pending().await
    }

    /// Opens the window of nonces that all processes on the store share; `None`: the store is for one machine.
    fn open_window(&self) -> Option<Box<dyn SharedWindow>> {
        None
    }
}

/// A connection of an engine for one user alone, mostly with a transaction.
#[async_trait]
pub(super) trait Connection: Send + Sync {
    /// Runs a statement; returns how many rows it touched.
    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64>;
    /// Runs a statement and reads all rows that it returns.
    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>>;
    /// Runs statements without parameters.
    async fn batch(&mut self, sql: &str) -> Result<()>;
    /// Makes the changes durable.
    async fn commit(&mut self) -> Result<()>;
    /// Examines an error of this connection or a time-out; returns the error for the caller.
    fn failed(&self, error: StoreError) -> StoreError {
        error
    }
}

/// The isolation of a use case from others that run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    /// One statement, or several that need not see the same state; writes nothing that others rely on.
    Single,
    /// Several statements that see one state.
    Snapshot,
    /// Writes tokens or sessions. Several may run at once, because each locks the rows that it decides on; none runs together
    /// with [`Isolation::Exclusive`], so consumers and users do not change meanwhile.
    Write,
    /// Changes consumers or users, or many records: alone among the writers of all processes.
    Exclusive,
    /// Makes or migrates the tables: as [`Isolation::Exclusive`], whatever schema the database has.
    Migration,
    /// Statements that cannot be in a transaction, on the connection that writes.
    NoTransaction,
}

impl Isolation {
    /// What a transaction of [`Deadline::Transfer`] is for.
    pub(super) const fn transfer(self) -> &'static str {
        match self {
            Self::Migration => "migration",
            _ => "import",
        }
    }
}

/// The time that the caller of a use case waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadline {
    /// As long as a request may wait: less than a second where the engine is on another machine, unless a command asks.
    Request,
    /// Some seconds: a command, or work without a waiting caller.
    Command,
    /// [`STEP_TIMEOUT`] for each statement: an export, an import, a migration.
    Transfer,
}

/// The time that a statement may take under [`Deadline::Transfer`].
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(600);

/// The time by which a transaction that has begun must end.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeLimit {
    /// All of it.
    Until(Instant),
    /// Each statement takes at most this long.
    Step(Duration),
}

impl TimeLimit {
    /// The limit of a transaction that begins now: `whole`, or with [`Deadline::Transfer`] for each step.
    pub(super) fn new(deadline: Deadline, whole: Duration) -> Self {
        match deadline {
            Deadline::Request | Deadline::Command => Self::Until(Instant::now() + whole),
            Deadline::Transfer => Self::Step(STEP_TIMEOUT),
        }
    }

    /// The time by which a statement that begins now has to end.
    pub(super) fn end(self) -> Instant {
        match self {
            Self::Until(end) => end,
            Self::Step(step) => Instant::now() + step,
        }
    }
}

/// The engine did not answer in time.
#[derive(Debug, Error)]
#[error("the store did not answer in time")]
pub(super) struct TimedOut;

impl EngineFault for TimedOut {}

/// Another process has migrated the store since this one opened it.
#[derive(Debug, Error)]
#[error("another process has migrated the store since it was opened; restart")]
pub(super) struct Migrated;

impl EngineFault for Migrated {}

/// The statements that differ between engines.
pub(super) struct Statements {
    /// The tables.
    pub(super) schema: Schema,
    /// The condition that a column is in the list `$1` of texts, which is JSON; uses an index, also of a new table.
    pub(super) among: &'static str,
    /// Added to a statement that finds rows, keeps others from writing them until the transaction ends.
    pub(super) lock: &'static str,
    /// Moves the feed on by `$1` changes that are not reported one by one.
    pub(super) skip_changes: &'static str,
    /// Reports the changes `$1`, a list of objects with `kind` and `key`, in the feed.
    pub(super) report_changes: &'static str,
    /// Finds the `position` of the last change.
    pub(super) feed: &'static str,
    /// The table whose column `until` has timestamps that may have been accepted.
    pub(super) accepted: &'static str,
    /// Added to a statement that finds rows to delete, leaves out those that others have locked.
    pub(super) skip_locked: &'static str,
    /// Finds, as `name` and `sql`, the indexes of the access tokens that an import into an empty table makes at its end, in
    /// sorted order; empty: it would keep others from reading.
    pub(super) late_indexes: &'static str,
    /// Overwrites the remains of clear secrets in the engine's files.
    pub(super) wipe: &'static str,
    /// Finds settings by which acknowledged writes may be lost: a `finding` in each row, one sentence.
    pub(super) findings: &'static str,
}

/// The tables of an engine, and how a database gets them.
pub(super) struct Schema {
    /// The steps from an empty database to the newest schema. A step that was released is never changed.
    pub(super) steps: &'static [&'static str],
    /// Returns a row if there is a schema.
    pub(super) exists: &'static str,
    /// Returns a row if a build before the first release made the tables, which this program does not know.
    pub(super) unreleased: &'static str,
    /// Finds the `version` of the schema, which counts the steps that were taken.
    pub(super) version: &'static str,
    /// Sets the version, which is appended to it.
    pub(super) set_version: &'static str,
    /// Finds, as `rights`, the statement that gives this role the rights to make the tables; no row if it has them. Empty: an
    /// engine without roles.
    pub(super) rights: &'static str,
    /// Whether processes on other machines use the database: then `serve` alone migrates it.
    pub(super) is_shared: bool,
}

impl Schema {
    /// The version that this program knows.
    pub(super) const fn known(&self) -> i64 {
        self.steps.len() as i64
    }
}
