//! The use cases of a store, written once, and the interface of the engine that keeps the records.
//!
//! A use case is a function over [`Tx`], one transaction. The traits [`Consumers`], [`Users`], [`Tokens`],
//! [`Sessions`], [`Feed`] and [`Maintenance`] have a method for each; all of them are written over [`Engine`], so that
//! another database with the same SQL (`ON CONFLICT`, `RETURNING`) implements that and nothing else. Statements have
//! their parameters as `$1`, name the schema `countersign` of each table and function, and use the functions of SQLite, in all engines; [`Statements`] has the parts that differ.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant as SystemInstant},
};

use async_trait::async_trait;
use serde::Serialize;
use thiserror::Error;
use tokio::{
    sync::Notify,
    time::{Instant, error::Elapsed, timeout_at},
};

use super::{
    Result, StoreError,
    port::{Change, Guard, RecordFilter},
    record::{AccessToken, Consumer},
    rows::{self, Read, json},
    seal::Seal,
};
use crate::{base::names::ConsumerKey, records::nonce::SharedWindow, telemetry::metrics::Metrics};

mod consumers;
mod feed;
mod flow;
mod maintenance;
pub(super) mod schema;
mod sealing;
mod sessions;
pub(super) mod tables;
#[cfg(any(test, fuzzing))]
pub mod tests;
mod tokens;
mod transfer;
mod users;

pub use super::rows::{Row, Value};
pub use consumers::Consumers;
pub use feed::Feed;
pub use maintenance::Maintenance;
pub use sessions::Sessions;
pub use tokens::Tokens;
pub use users::Users;

/// A store: every use case.
///
/// Each method is one atomic step. A method that changes something returns only once the change is durable
/// (it survives a power loss as far as the engine's medium does) and visible to every other process on the store.
/// Times come from the caller, so that tests can move them.
pub trait Store: Consumers + Users + Tokens + Sessions + Feed + Maintenance {}

impl<S: Consumers + Users + Tokens + Sessions + Feed + Maintenance + ?Sized> Store for S {}

/// A database that keeps the records of a store.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Begins a transaction for a use case. Dropped before it is committed, it changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]
    async fn begin(&self, use_case: &'static str, mode: Mode, pace: Pace) -> Result<Tx>;

    /// The parts of this engine other than transactions.
    fn extensions(&self) -> &Extensions;
}

/// The parts of an engine other than transactions.
pub struct Extensions {
    /// The way in which secrets are kept.
    pub seal: Arc<Seal>,
    /// Counts the times and the faults of use cases, once it is set.
    pub metrics: OnceLock<Arc<Metrics>>,
    /// Notified when another process may have changed something; never, if the engine reports nothing.
    pub changed: Arc<Notify>,
    /// The parts that only an engine on a server has.
    pub shared: Option<ServerOnly>,
    /// Credentials that an existing system keeps elsewhere.
    pub outside: Option<Arc<dyn Outside>>,
}

impl Extensions {
    pub(super) fn new(seal: Arc<Seal>, outside: Option<Arc<dyn Outside>>) -> Self {
        Self {
            seal,
            metrics: OnceLock::new(),
            changed: Arc::default(),
            shared: None,
            outside,
        }
    }
}

/// The parts that only an engine on a server has, which several machines share.
pub struct ServerOnly {
    /// Opens the window of nonces that all processes on the store share.
    pub open_window: Box<dyn Fn() -> Box<dyn SharedWindow> + Send + Sync>,
    /// Finds settings of the engine by which acknowledged writes may be lost, one sentence each.
    pub findings: for<'t> fn(&'t mut Tx) -> TxFuture<'t, Vec<String>>,
}

/// The result of a function over a transaction.
pub type TxFuture<'t, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 't>>;

/// Credentials that an existing system keeps. It has no part in the transactions of a store.
#[async_trait]
pub trait Outside: fmt::Debug + Send + Sync {
    /// Finds a consumer.
    async fn consumer(&self, key: &ConsumerKey) -> Result<Option<Consumer>>;
    /// Finds an access token, whether or not it was revoked here.
    async fn access_token(&self, token: &str) -> Result<Option<AccessToken>>;
    /// Whether there are consumers of the existing system at all.
    fn has_consumers(&self) -> bool;
    /// Succeeds unless the existing system is known to be out of reach, which is logged.
    fn reachable(&self) -> Result<()>;
}

/// The isolation of a use case from others that run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One statement, or several that need not see the same state; writes nothing that others rely on.
    Single,
    /// Several statements that see one state.
    Snapshot,
    /// Writes tokens or sessions. Several may run at once, because each locks the rows that it decides on; none runs together
    /// with [`Mode::Alone`], so consumers and users do not change meanwhile.
    Write,
    /// Changes consumers or users, or many records: alone among the writers of all processes.
    Alone,
    /// Makes or migrates the tables: as [`Mode::Alone`], whatever schema the database has.
    Schema,
    /// Statements that cannot be in a transaction, on the connection that writes.
    Bare,
}

/// The time that the caller of a use case waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As long as a request may wait: less than a second where the engine is on another machine, unless a command asks.
    Request,
    /// Some seconds: a command, or work that nobody waits for.
    Command,
    /// Ten minutes for each statement: an export, an import, a migration.
    Transfer,
}

/// Reads, for a request.
const READ: (Mode, Pace) = (Mode::Single, Pace::Request);
/// Reads one state by several statements, for a request.
const SNAPSHOT: (Mode, Pace) = (Mode::Snapshot, Pace::Request);
/// Writes tokens or sessions, for a request.
const WRITE: (Mode, Pace) = (Mode::Write, Pace::Request);
/// Reads many records, for a command.
const LIST: (Mode, Pace) = (Mode::Single, Pace::Command);
/// Changes consumers or users, or many records, for a command.
const ALONE: (Mode, Pace) = (Mode::Alone, Pace::Command);

/// The most changes that are reported one by one; above that it is cheaper to read every record again.
const MOST_CHANGES: i64 = 10_000;

/// The time that a statement may take under [`Pace::Transfer`].
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(600);

/// The engine did not answer in time.
#[derive(Debug, Error)]
#[error("the store did not answer in time")]
pub(super) struct TimedOut;

impl From<TimedOut> for StoreError {
    fn from(error: TimedOut) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// A connection of an engine with a transaction under way. Dropped before [`Connection::commit`] has succeeded, it
/// changes nothing.
#[async_trait]
pub trait Connection: Send + Sync {
    /// The statements of the engine.
    fn statements(&self) -> &'static Statements;
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

/// Statements that differ between engines.
pub struct Statements {
    /// The tables.
    pub schema: schema::Schema,
    /// The condition that a column is in the list `$1` of texts, which is JSON; uses an index, also of a new table.
    pub among: &'static str,
    /// Added to a statement that finds rows, keeps others from writing them until the transaction ends.
    pub lock: &'static str,
    /// Moves the feed on by `$1` changes that are not reported one by one.
    pub skip_changes: &'static str,
    /// Reports the changes `$1`, a list of objects with `kind` and `key`, in the feed.
    pub report_changes: &'static str,
    /// Finds the `position` of the last change.
    pub feed: &'static str,
    /// The table whose column `until` has timestamps that may have been accepted.
    pub accepted: &'static str,
    /// Added to a statement that finds rows to delete, leaves out those that others have locked.
    pub skip_locked: &'static str,
    /// Overwrites the remains of clear secrets in the engine's files.
    pub wipe: &'static str,
}

/// The limit on the duration of a transaction.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// Until then.
    Until(Instant),
    /// Each statement, this long.
    Step(Duration),
}

impl Limit {
    /// The limit of a use case that begins now: `whole`, or with [`Pace::Transfer`] for each step.
    pub(super) fn of(pace: Pace, whole: Duration) -> Self {
        match pace {
            Pace::Request | Pace::Command => Self::Until(Instant::now() + whole),
            Pace::Transfer => Self::Step(STEP_TIMEOUT),
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

/// A transaction under way.
pub struct Tx {
    connection: Box<dyn Connection>,
    seal: Arc<Seal>,
    limit: Limit,
    changes: Vec<Change>,
    skipped_changes: i64,
}

impl Tx {
    /// A transaction that an engine has begun.
    pub(super) fn new(connection: Box<dyn Connection>, seal: Arc<Seal>, limit: Limit) -> Self {
        Self {
            connection,
            seal,
            limit,
            changes: Vec::new(),
            skipped_changes: 0,
        }
    }

    fn statements(&self) -> &'static Statements {
        self.connection.statements()
    }

    /// The way in which secrets are kept.
    fn seal(&self) -> &Seal {
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
    async fn rows_among<T>(
        &mut self,
        table: &str,
        key: &str,
        keys: &[&str],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let among = self.statements().among;
        let find = format!("SELECT * FROM {table} WHERE {key} {among}");
        self.rows(&find, &[json(keys)?.into()], read).await
    }

    /// Runs statements without parameters.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        let done = timeout_at(self.limit.end(), self.connection.batch(sql)).await;
        self.checked(done)
    }

    /// Writes a row of these columns; `ending` says what happens to an existing row.
    async fn insert(
        &mut self,
        table: &str,
        columns: Vec<(String, Value)>,
        ending: &str,
    ) -> Result<u64> {
        let (names, params): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let places: Vec<_> = (1..=names.len()).map(|place| format!("${place}")).collect();
        let (names, places) = (names.join(r#"", ""#), places.join(", "));
        let insert =
            format!(r#"INSERT INTO countersign.{table} ("{names}") VALUES ({places}) {ending}"#);
        self.execute(&insert, &params).await
    }

    /// Reports a change to every cache on the store, with the commit.
    fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Keeps no more changes than are reported one by one: a cache that finds this many, or a gap, treats every record as
    /// changed.
    fn drop_changes(&mut self) {
        let most = usize::try_from(MOST_CHANGES).unwrap_or(usize::MAX);
        let surplus = self.changes.len().saturating_sub(most);
        self.changes.drain(..surplus);
        self.skipped_changes += i64::try_from(surplus).unwrap_or(i64::MAX);
    }

    /// Commits. The changes go into the feed at the very end: the feed is locked until the commit, so that positions
    /// are in the order of commits and nobody reads past one that is still to come.
    pub(super) async fn commit(mut self) -> Result<()> {
        if self.skipped_changes > 0 {
            let skipped = self.skipped_changes;
            self.execute(self.statements().skip_changes, &[skipped.into()])
                .await?;
        }
        if !self.changes.is_empty() {
            let changes = json(&self.changes)?;
            self.execute(self.statements().report_changes, &[changes.into()])
                .await?;
        }
        let done = timeout_at(self.limit.end(), self.connection.commit()).await;
        self.checked(done)
    }
}

/// Whether there is a record and `guard` accepts its change.
fn passes<T>(guard: Guard<'_, T>, found: Option<T>) -> bool {
    found.is_some_and(|found| guard.is_none_or(|guard| guard(&found)))
}

/// The condition of a filter on records that follow `after` by the column `key`, and its parameters.
fn condition(filter: &RecordFilter, key: &str, after: &str) -> (String, Vec<Value>) {
    let (mut condition, mut params) = (format!("{key} > $1"), vec![after.into()]);
    if let Some(enabled) = filter.enabled {
        params.push(enabled.into());
        condition += &format!(" AND enabled = ${}", params.len());
    }
    if let Some(q) = &filter.q {
        // The tables have collations by which `lower` folds ASCII letters alone.
        let escaped = q.to_ascii_lowercase().replace('!', "!!");
        let escaped = escaped.replace('%', "!%").replace('_', "!_");
        params.push(rows::kept_text(&format!("%{escaped}%")).into());
        let like = format!("LIKE ${} ESCAPE '!'", params.len());
        let shown = if key == "id" {
            "display_name"
        } else {
            "description"
        };
        condition +=
            &format!(" AND (lower({key}) {like} OR lower(name) {like} OR lower({shown}) {like})");
    }
    (condition, params)
}

/// Whether a record of this kind and key was removed.
async fn is_removed(tx: &mut Tx, kind: &str, key: &str) -> Result<bool> {
    let find = "SELECT 1 FROM countersign.removed WHERE kind = $1 AND key = $2";
    tx.has_row(find, &[kind.into(), key.into()]).await
}

/// Marks a key as never to be used again; `false` if it was marked before.
async fn retire(tx: &mut Tx, kind: &str, key: &str) -> Result<bool> {
    let insert =
        "INSERT INTO countersign.removed (kind, key) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let params = [kind.into(), key.into()];
    Ok(tx.execute(insert, &params).await? > 0)
}

/// Writes the last uses of tokens or consumers by the statement that `sql` returns: some in each transaction, so that
/// others do not wait for long.
async fn record_uses<T: Serialize>(
    engine: &(impl Engine + ?Sized),
    use_case: &'static str,
    uses: Vec<T>,
    sql: impl Fn(&Statements) -> String,
) -> Result<()> {
    for some in uses.chunks(5_000) {
        let record = async |tx: &mut Tx| {
            let sql = sql(tx.statements());
            tx.execute(&sql, &[json(some)?.into()]).await.map(drop)
        };
        run(engine, use_case, (Mode::Write, Pace::Command), record).await?;
    }
    Ok(())
}

/// Runs a use case, and counts its time and its faults.
pub(super) async fn run<T>(
    engine: &(impl Engine + ?Sized),
    use_case: &'static str,
    (mode, pace): (Mode, Pace),
    work: impl AsyncFnOnce(&mut Tx) -> Result<T>,
) -> Result<T> {
    let attempt = async {
        let mut tx = engine.begin(use_case, mode, pace).await?;
        let value = work(&mut tx).await?;
        tx.commit().await?;
        Ok(value)
    };
    counted(engine, use_case, attempt).await
}

/// Counts the time and the faults of `work`.
async fn counted<T>(
    engine: &(impl Engine + ?Sized),
    use_case: &'static str,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let begun = SystemInstant::now();
    let result = work.await;
    if let Some(metrics) = engine.extensions().metrics.get() {
        metrics.store(use_case, begun.elapsed(), result.is_err());
    }
    result
}
