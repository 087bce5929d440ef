//! The store in one SQLite file: for one machine, with nothing else to run.
//!
//! `serve` and the commands open the same file at the same time. One thread has the connection that writes, and a few
//! have those that read. A transaction has a thread to itself, which does its statements as they are sent, and rolls it
//! back when its task stalls between two of them.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::InterruptHandle;
use thiserror::Error;
use tokio::{
    sync::{mpsc as queue, oneshot},
    time::timeout_at,
};

use super::engine::{
    Connection, Deadline, Engine, Isolation, Migrated, STEP_TIMEOUT, Statements, TimeLimit,
    TimedOut,
};
use crate::records::values::{
    Result, StoreError,
    error::{EngineFault, Locked},
    opening::OpenProblem,
    value::{Row, Value},
};

mod holder;
mod open;
mod schema;
mod statement;
#[cfg(any(test, fuzzing))]
pub(super) mod test_double;

use open::is_busy;

/// The time that a caller waits.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a transaction may be idle between two statements. Its task has stalled then, and a caller that has
/// begun to wait for the thread since still gets it in time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The cache of the connection that writes during an import, in KiB: keys come in any order, and pages of an index that do
/// not fit are written and read again for each record.
const IMPORT_CACHE: i64 = 32 << 10;
/// SQLite's default.
const CACHE: i64 = 2000;
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
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the file, and makes it if it is not there. With `is_sealed`, secrets in clear are overwritten when they are
    /// replaced. Blocks, for at most some seconds, while another process holds the file.
    ///
    /// # Errors
    /// [`OpenProblem`]; the file is as it was before then.
    pub(super) fn open(path: &Path, is_sealed: bool) -> Result<Self, OpenProblem> {
        let (writer, mut readers) = open::open(path, is_sealed)?;
        let slow_reader = Vec::from_iter(readers.pop());
        Ok(Self {
            readers: Threads::start("store-read", readers)?,
            slow_reader: Threads::start("store-list", slow_reader)?,
            writer: Threads::start("store-write", vec![writer])?,
            path: path.to_owned(),
        })
    }
}

/// Why the store did not answer, other than SQLite's own reasons.
#[derive(Debug, Error)]
enum SqliteFault {
    #[error("the transaction was idle for too long, or the store is closed")]
    Ended,
}

impl EngineFault for SqliteFault {}

/// Work of a thread on its connection.
type Job = Box<dyn FnOnce(&rusqlite::Connection) + Send>;

/// A transaction as its thread gets it.
struct Transaction {
    jobs: mpsc::Receiver<Job>,
    /// The time that it may be idle between two of them.
    idle: Duration,
    is_import: bool,
}

/// Threads that have a connection each. They end when this is dropped.
struct Threads {
    /// A transaction goes to the next free thread, as its jobs; `None` when the store is closed. Only one waits in the
    /// queue, so that callers who gave up do not pile up while the disk hangs.
    transactions: Option<queue::Sender<Transaction>>,
    /// Disconnected when all connections are closed.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Threads {
    fn start(name: &str, connections: Vec<rusqlite::Connection>) -> std::io::Result<Self> {
        let (transactions, waiting) = queue::channel::<Transaction>(1);
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
                while let Some(transaction) = next() {
                    if transaction.is_import {
                        set_cache(&sql, IMPORT_CACHE);
                    }
                    while let Ok(job) = transaction.jobs.recv_timeout(transaction.idle) {
                        job(&sql);
                    }
                    roll_back(&sql);
                    if transaction.is_import {
                        set_cache(&sql, CACHE);
                    }
                }
                drop(sql);
                drop(alive);
            })?;
        }
        Ok(Self {
            transactions: Some(transactions),
            ended: Mutex::new(ended),
        })
    }

    /// Waits for a thread, which then does the jobs that are sent to it.
    async fn take(&self, idle: Duration, is_import: bool) -> Result<mpsc::Sender<Job>> {
        let (sender, jobs) = mpsc::channel();
        let transactions = self.transactions.as_ref().ok_or(SqliteFault::Ended)?;
        let transaction = Transaction {
            jobs,
            idle,
            is_import,
        };
        let sent = transactions.send(transaction).await;
        sent.map_err(|_| SqliteFault::Ended)?;
        Ok(sender)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.transactions = None;
        // The last connection to close empties the write-ahead log into the file. A thread that hangs in the disk is
        // not waited for: the log is read at the next start.
        let ended = self.ended.get_mut();
        let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

/// Sets the size of the cache, in KiB, and gives back the memory of a larger one.
fn set_cache(sql: &rusqlite::Connection, size: i64) {
    let set = sql.pragma_update(None, "cache_size", -size);
    if let Err(error) = set.and_then(|()| sql.release_memory()) {
        tracing::warn!(%error, "the cache of the store keeps its size");
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
    fn statements(&self) -> &'static Statements {
        &schema::STATEMENTS
    }

    async fn begin(
        &self,
        isolation: Isolation,
        deadline: Deadline,
    ) -> Result<(Box<dyn Connection>, TimeLimit)> {
        let limit = TimeLimit::new(deadline, TIMEOUT);
        let readers = match deadline {
            Deadline::Request => &self.readers,
            Deadline::Command | Deadline::Transfer => &self.slow_reader,
        };
        let (threads, begin) = match isolation {
            Isolation::Single => (readers, ""),
            Isolation::Snapshot => (readers, "BEGIN DEFERRED"),
            Isolation::Write | Isolation::Exclusive | Isolation::Migration => {
                (&self.writer, "BEGIN IMMEDIATE")
            }
            Isolation::NoTransaction => (&self.writer, ""),
        };
        let idle = match deadline {
            Deadline::Request | Deadline::Command => IDLE_TIMEOUT,
            // It reads or writes a file meanwhile.
            Deadline::Transfer => STEP_TIMEOUT,
        };
        let is_import = (isolation, deadline) == (Isolation::Exclusive, Deadline::Transfer);
        let reads = matches!(isolation, Isolation::Single | Isolation::Snapshot);
        let begun = async {
            let connection = SqliteConnection {
                jobs: threads.take(idle, is_import).await?,
                has_begun: !begin.is_empty(),
                reading: reads.then(Arc::default),
            };
            let path = self.path.clone();
            let begun = connection.call(move |sql| {
                sql.execute_batch(begin)
                    .map_err(|error| match is_busy(&error) {
                        true => StoreError::from(Locked(holder::writer(&path))),
                        false => error.into(),
                    })?;
                let writes = matches!(isolation, Isolation::Write | Isolation::Exclusive);
                if writes && schema::version(sql)? != schema::STATEMENTS.schema.known() {
                    return Err(Migrated.into());
                }
                Ok(())
            });
            begun.await?;
            Ok::<_, StoreError>(connection)
        };
        let connection = timeout_at(limit.end(), begun)
            .await
            .map_err(|_| TimedOut)??;
        Ok((Box::new(connection), limit))
    }
}

/// An exclusive connection until this is dropped; uncommitted changes are rolled back then.
struct SqliteConnection {
    /// The jobs of its thread.
    jobs: mpsc::Sender<Job>,
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
        self.jobs.send(job).map_err(|_| SqliteFault::Ended)?;
        answer.await.unwrap_or(Err(SqliteFault::Ended.into()))
    }
}

#[async_trait]
impl Connection for SqliteConnection {
    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let (statement, params) = (sql.to_owned(), params.to_vec());
        self.call(move |sql| statement::execute(sql, &statement, params))
            .await
    }

    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let (statement, params) = (sql.to_owned(), params.to_vec());
        self.call(move |sql| statement::rows(sql, &statement, params))
            .await
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        let statements = sql.to_owned();
        self.call(move |sql| statement::batch(sql, &statements))
            .await
    }

    async fn commit(&mut self) -> Result<()> {
        match self.has_begun {
            true => self.batch("COMMIT").await,
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
