//! The store in one SQLite file: for one machine, with nothing else to run.
//!
//! `serve` and the commands open the same file at the same time. One thread has the connection that writes, and a few
//! have those that read. A transaction has a thread to itself, which does its statements as they are sent, and rolls it
//! back when its task stalls between two of them.

use std::{
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::{
    InterruptHandle, params_from_iter,
    types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef},
};
use thiserror::Error;
use tokio::{
    sync::{mpsc as queue, oneshot},
    time::timeout_at,
};

use super::{
    Result, StoreError,
    open::OpenProblem,
    rows::{Row, Value},
    seal::Seal,
    sql::{Connection, Engine, Extensions, Limit, Mode, Outside, Pace, Statements, TimedOut, Tx},
};

#[cfg(any(test, fuzzing))]
mod double;
mod open;
mod schema;

/// The time that a caller waits.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a transaction may be idle between two statements. Its task has stalled then, and a caller that has
/// begun to wait for the thread since still gets it in time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The time that dropping the store waits for a thread to close its connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A store in an SQLite file.
pub(super) struct SqliteStore {
    // These close in this order, one after the other: if two connections close at the same time, SQLite takes neither
    // for the last, and the write-ahead log stays.
    readers: Threads,
    /// Reads for commands, which may take seconds.
    slow_reader: Threads,
    writer: Threads,
    extensions: Extensions,
}

impl SqliteStore {
    /// Opens the file, and makes it if it is not there. Blocks, for at most some seconds, while another process holds
    /// the file.
    ///
    /// # Errors
    /// [`OpenProblem`]; the file is as it was before then.
    pub(super) fn open(
        path: &Path,
        seal: Arc<Seal>,
        outside: Option<Arc<dyn Outside>>,
    ) -> Result<Self, OpenProblem> {
        let (writer, mut readers) = open::open(path, !seal.has_no_key())?;
        let slow_reader = Vec::from_iter(readers.pop());
        Ok(Self {
            readers: Threads::start("store-read", readers)?,
            slow_reader: Threads::start("store-list", slow_reader)?,
            writer: Threads::start("store-write", vec![writer])?,
            extensions: Extensions::new(seal, outside),
        })
    }
}

/// Why the store did not answer, other than SQLite's own reasons.
#[derive(Debug, Error)]
enum SqliteFault {
    #[error("the transaction was idle for too long, or the store is closed")]
    Ended,
    #[error("another process has migrated the store since it was opened; restart")]
    Replaced,
}

impl From<SqliteFault> for StoreError {
    fn from(fault: SqliteFault) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

/// Work of a thread on its connection.
type Job = Box<dyn FnOnce(&rusqlite::Connection) + Send>;

/// The place where transactions run.
enum Transactions {
    /// On the next free thread, each as its jobs; `None` when the store is closed. Only one waits in the queue, so that
    /// callers who gave up do not pile up while the disk hangs.
    Threads(Option<queue::Sender<mpsc::Receiver<Job>>>),
    /// On the thread of the caller, one after the other, in a database in memory.
    #[cfg(any(test, fuzzing))]
    Here(Arc<tokio::sync::Mutex<Mutex<rusqlite::Connection>>>),
}

/// Threads that have a connection each. They end when this is dropped.
struct Threads {
    transactions: Transactions,
    /// Disconnected when all connections are closed.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Threads {
    fn start(name: &str, connections: Vec<rusqlite::Connection>) -> std::io::Result<Self> {
        let (transactions, waiting) = queue::channel::<mpsc::Receiver<Job>>(1);
        let waiting = Arc::new(Mutex::new(waiting));
        let (alive, ended) = mpsc::channel();
        for sql in connections {
            let (waiting, alive) = (Arc::clone(&waiting), alive.clone());
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(move || {
                let next = || {
                    let mut waiting = waiting.lock();
                    waiting.blocking_recv()
                };
                while let Some(jobs) = next() {
                    while let Ok(job) = jobs.recv_timeout(IDLE_TIMEOUT) {
                        job(&sql);
                    }
                    roll_back(&sql);
                }
                drop(sql);
                drop(alive);
            })?;
        }
        Ok(Self {
            transactions: Transactions::Threads(Some(transactions)),
            ended: Mutex::new(ended),
        })
    }

    /// Waits for a thread.
    async fn take(&self) -> Result<Jobs> {
        match &self.transactions {
            Transactions::Threads(transactions) => {
                let (jobs, waiting) = mpsc::channel();
                let transactions = transactions.as_ref().ok_or(SqliteFault::Ended)?;
                let sent = transactions.send(waiting).await;
                sent.map_err(|_| SqliteFault::Ended)?;
                Ok(Jobs::Sent(jobs))
            }
            #[cfg(any(test, fuzzing))]
            Transactions::Here(sql) => Ok(Jobs::Here(Arc::clone(sql).lock_owned().await)),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.transactions = Transactions::Threads(None);
        // The last connection to close empties the write-ahead log into the file. A thread that hangs in the disk is
        // not waited for: the log is read at the next start.
        let ended = self.ended.get_mut();
        let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

fn roll_back(sql: &rusqlite::Connection) {
    if !sql.is_autocommit()
        && let Err(error) = sql.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "a transaction of the store cannot be rolled back");
    }
}

#[async_trait]
impl Engine for SqliteStore {
    async fn begin(&self, _: &'static str, mode: Mode, pace: Pace) -> Result<Tx> {
        let limit = Limit::of(pace, TIMEOUT);
        let readers = match pace {
            Pace::Request => &self.readers,
            Pace::Command | Pace::Transfer => &self.slow_reader,
        };
        let (threads, begin) = match mode {
            Mode::Single => (readers, ""),
            Mode::Snapshot => (readers, "BEGIN DEFERRED"),
            Mode::Write | Mode::Alone | Mode::Schema => (&self.writer, "BEGIN IMMEDIATE"),
            Mode::Bare => (&self.writer, ""),
        };
        let begun = async {
            let connection = SqliteConnection {
                jobs: threads.take().await?,
                has_begun: !begin.is_empty(),
                reading: matches!(mode, Mode::Single | Mode::Snapshot).then(Arc::default),
            };
            let begun = connection.call(move |sql| {
                sql.execute_batch(begin)?;
                let writes = matches!(mode, Mode::Write | Mode::Alone);
                if writes && schema::version(sql)? != schema::SCHEMA.known() {
                    return Err(SqliteFault::Replaced.into());
                }
                Ok(())
            });
            begun.await?;
            Ok::<_, StoreError>(connection)
        };
        let connection = timeout_at(limit.end(), begun)
            .await
            .map_err(|_| TimedOut)??;
        let seal = Arc::clone(&self.extensions.seal);
        Ok(Tx::new(Box::new(connection), seal, limit))
    }

    fn extensions(&self) -> &Extensions {
        &self.extensions
    }
}

/// The place where the jobs of a transaction are done.
enum Jobs {
    Sent(mpsc::Sender<Job>),
    #[cfg(any(test, fuzzing))]
    Here(tokio::sync::OwnedMutexGuard<Mutex<rusqlite::Connection>>),
}

/// A connection that nobody else has until this is dropped; uncommitted changes are rolled back then.
struct SqliteConnection {
    jobs: Jobs,
    /// Whether there is a transaction.
    has_begun: bool,
    /// Interrupts the running statement of a transaction that only reads.
    reading: Option<Arc<Mutex<Option<InterruptHandle>>>>,
}

impl Drop for SqliteConnection {
    fn drop(&mut self) {
        // The caller no longer waits, but others wait for the thread.
        if let Some(reading) = &self.reading {
            let running = reading.lock();
            if let Some(running) = &*running {
                running.interrupt();
            }
        }
        #[cfg(any(test, fuzzing))]
        if let Jobs::Here(sql) = &self.jobs {
            roll_back(&sql.lock());
        }
    }
}

impl SqliteConnection {
    /// Runs `work` on the thread.
    ///
    /// # Cancel safety
    /// If the call is dropped before `work` has begun, it never begins.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, answer) = oneshot::channel();
        let reading = self.reading.clone();
        let job: Job = Box::new(move |sql| {
            let note = |handle| {
                if let Some(reading) = &reading {
                    *reading.lock() = handle;
                }
            };
            note(Some(sql.get_interrupt_handle()));
            if !sender.is_closed() {
                let done = work(sql);
                note(None);
                // A caller that has gone away needs no answer.
                let _ = sender.send(done);
            }
            note(None);
        });
        match &self.jobs {
            Jobs::Sent(jobs) => jobs.send(job).map_err(|_| SqliteFault::Ended)?,
            #[cfg(any(test, fuzzing))]
            Jobs::Here(sql) => job(&sql.lock()),
        }
        answer.await.unwrap_or(Err(SqliteFault::Ended.into()))
    }
}

#[async_trait]
impl Connection for SqliteConnection {
    fn statements(&self) -> &'static Statements {
        &schema::STATEMENTS
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let (statement, params) = (own(sql), params.to_vec());
        self.call(move |sql| {
            let mut statement = sql.prepare_cached(&statement)?;
            Ok(statement.execute(params_from_iter(params))? as u64)
        })
        .await
    }

    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let (statement, params) = (own(sql), params.to_vec());
        self.call(move |sql| {
            let mut statement = sql.prepare_cached(&statement)?;
            let columns = statement.column_names().map(str::to_owned);
            let columns: Arc<[String]> = columns.collect();
            let mut found = statement.query(params_from_iter(params))?;
            let mut rows = Vec::new();
            while let Some(row) = found.next()? {
                let values = (0..columns.len()).map(|place| row.get(place));
                let values = values.collect::<Result<_, _>>();
                rows.push(Row {
                    values: values
                        .map_err(|_| StoreError::Broken("a column has a value of another type"))?,
                    columns: Arc::clone(&columns),
                });
            }
            Ok(rows)
        })
        .await
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        let statements = without_schema(sql);
        self.call(move |sql| Ok(sql.execute_batch(&statements)?))
            .await
    }

    async fn commit(&mut self) -> Result<()> {
        match self.has_begun {
            true => self.batch("COMMIT").await,
            false => Ok(()),
        }
    }
}

/// A statement with its parameters as SQLite numbers them, and its tables and functions without the name of the schema,
/// which SQLite does not have.
fn own(sql: &str) -> String {
    without_schema(sql).replace('$', "?")
}

fn without_schema(sql: &str) -> String {
    sql.replace("countersign.", "")
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl FromSql for Value {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Text(_) => value.as_str()?.into(),
            ValueRef::Blob(bytes) => bytes.to_vec().into(),
            ValueRef::Real(_) => return Err(FromSqlError::InvalidType),
        })
    }
}

#[cfg(test)]
mod tests;
