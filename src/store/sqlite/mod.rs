//! The store in one SQLite file: for one machine, with nothing else to run.
//!
//! `serve` and the commands open the same file at the same time. One thread has the connection that writes, another the
//! one that reads; who has locked a connection sends it statements.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::{
    params_from_iter,
    types::{ToSqlOutput, ValueRef},
};
use thiserror::Error;
use tokio::{
    sync::{Mutex as Lock, OwnedMutexGuard, oneshot},
    time::timeout_at,
};

use super::{
    StoreError,
    open::OpenProblem,
    rows::{Row, Value},
    seal::Seal,
    sql::{Connection, Engine, Extensions, Limit, Mode, Pace, Params, Statements, TimedOut, Tx},
};

mod open;
mod schema;

/// How long a caller waits.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long dropping the store waits for a thread to close its connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A store in an SQLite file.
pub struct SqliteStore {
    // Closed in this order, one after the other: of two connections that close at the same time, SQLite takes neither for
    // the last, and the write-ahead log stays.
    reader: Thread,
    writer: Thread,
    extensions: Extensions,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, and makes it if it is not there. Blocks, for at most some seconds, while another process holds
    /// the file.
    ///
    /// # Errors
    /// [`OpenProblem`] tells why; the file is as it was before then.
    pub(super) fn open(path: &Path, seal: Arc<Seal>) -> Result<Self, OpenProblem> {
        let (writer, reader) = open::open(path, !seal.has_no_key())?;
        Ok(Self {
            reader: Thread::start("store-read", reader)?,
            writer: Thread::start("store-write", writer)?,
            extensions: Extensions::new(seal, None),
        })
    }
}

#[cfg(any(test, fuzzing))]
impl SqliteStore {
    /// A store in memory, which works on the thread of its caller and does not check that what a record names is there.
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    pub(super) fn in_memory() -> Self {
        let sql = rusqlite::Connection::open_in_memory().unwrap();
        sql.pragma_update(None, "foreign_keys", false).unwrap();
        sql.pragma_update(None, "ignore_check_constraints", true)
            .unwrap();
        let jobs = Jobs::Here(Arc::new(Mutex::new(sql)));
        let jobs = Some(Arc::new(Lock::new(jobs)));
        let thread = || Thread {
            jobs: jobs.clone(),
            ended: Mutex::new(mpsc::channel().1),
        };
        Self {
            reader: thread(),
            writer: thread(),
            extensions: Extensions::new(Arc::default(), None),
        }
    }
}

/// Why the store did not answer, other than SQLite's own reasons.
#[derive(Debug, Error)]
enum SqliteFault {
    #[error("the store's thread gave no answer")]
    Stopped,
    #[error("another process has migrated the store since it was opened; restart")]
    Replaced,
}

impl From<SqliteFault> for StoreError {
    fn from(fault: SqliteFault) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

/// What a thread does with its connection.
type Job = Box<dyn FnOnce(&rusqlite::Connection) + Send>;

/// Where jobs are done.
#[derive(Clone)]
enum Jobs {
    /// On the thread that has the connection.
    Sent(mpsc::Sender<Job>),
    /// At once, on a database in memory.
    #[cfg(any(test, fuzzing))]
    Here(Arc<Mutex<rusqlite::Connection>>),
}

impl Jobs {
    /// Has a job done; `false`: nobody does it.
    fn send(&self, job: Job) -> bool {
        match self {
            Self::Sent(jobs) => jobs.send(job).is_ok(),
            #[cfg(any(test, fuzzing))]
            Self::Here(sql) => sql.lock().map(|sql| job(&sql)).is_ok(),
        }
    }
}

/// A thread with a connection. It ends when this is dropped.
struct Thread {
    jobs: Option<Arc<Lock<Jobs>>>,
    /// Disconnected when the connection is closed.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Thread {
    fn start(name: &str, sql: rusqlite::Connection) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let (alive, ended) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || {
            for job in waiting {
                job(&sql);
            }
            drop(sql);
            drop(alive);
        })?;
        Ok(Self {
            jobs: Some(Arc::new(Lock::new(Jobs::Sent(jobs)))),
            ended: Mutex::new(ended),
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.jobs = None;
        // The last connection to close empties the write-ahead log into the file. A thread that hangs in the disk is
        // not waited for: the log is read at the next start.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

#[async_trait]
impl Engine for SqliteStore {
    async fn begin(&self, _: &'static str, mode: Mode, pace: Pace) -> Result<Tx, StoreError> {
        let limit = Limit::of(pace, TIMEOUT);
        let (thread, begin) = match mode {
            Mode::Single => (&self.reader, ""),
            Mode::Snapshot => (&self.reader, "BEGIN DEFERRED"),
            Mode::Shared | Mode::Alone | Mode::Schema => (&self.writer, "BEGIN IMMEDIATE"),
            Mode::Bare => (&self.writer, ""),
        };
        let jobs = thread.jobs.clone().ok_or(SqliteFault::Stopped)?;
        let locked = timeout_at(limit.end(), jobs.lock_owned()).await;
        let connection = SqliteConnection {
            locked: Some(locked.map_err(|_| TimedOut)?),
            has_begun: !begin.is_empty(),
        };
        let begun = connection.call(move |sql| {
            sql.execute_batch(begin)?;
            let writes = matches!(mode, Mode::Shared | Mode::Alone);
            if writes && schema::version(sql)? != schema::SCHEMA.known() {
                return Err(SqliteFault::Replaced.into());
            }
            Ok(())
        });
        timeout_at(limit.end(), begun)
            .await
            .map_err(|_| TimedOut)??;
        let seal = Arc::clone(&self.extensions.seal);
        Ok(Tx::new(Box::new(connection), seal, limit))
    }

    fn extensions(&self) -> &Extensions {
        &self.extensions
    }
}

/// A connection that is locked until this is dropped and what was not committed is rolled back.
struct SqliteConnection {
    locked: Option<OwnedMutexGuard<Jobs>>,
    /// Whether there is a transaction.
    has_begun: bool,
}

impl SqliteConnection {
    /// Runs `work` on the thread.
    ///
    /// # Cancel safety
    /// Dropped before `work` has begun, it is never begun.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answer) = oneshot::channel();
        let job: Job = Box::new(move |sql| {
            if !sender.is_closed() {
                // A caller that has gone away needs no answer.
                let _ = sender.send(work(sql));
            }
        });
        if !self.locked.as_ref().is_some_and(|jobs| jobs.send(job)) {
            return Err(SqliteFault::Stopped.into());
        }
        let stopped = |_| Err(SqliteFault::Stopped.into());
        answer.await.unwrap_or_else(stopped)
    }
}

impl Drop for SqliteConnection {
    fn drop(&mut self) {
        let Some(locked) = self.locked.take() else {
            return;
        };
        let jobs = locked.clone();
        // Unlocked by the thread when it has come so far, so that nothing piles up before a disk that hangs.
        jobs.send(Box::new(move |sql| {
            if !sql.is_autocommit()
                && let Err(error) = sql.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "a transaction of the store cannot be rolled back");
            }
            drop(locked);
        }));
    }
}

#[async_trait]
impl Connection for SqliteConnection {
    fn statements(&self) -> &'static Statements {
        &schema::STATEMENTS
    }

    async fn execute(&mut self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        let (statement, params) = (numbered(sql), owned(params)?);
        self.call(move |sql| {
            let mut statement = sql.prepare_cached(&statement)?;
            Ok(statement.execute(params_from_iter(params))? as u64)
        })
        .await
    }

    async fn rows(&mut self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        let (statement, params) = (numbered(sql), owned(params)?);
        self.call(move |sql| {
            let mut statement = sql.prepare_cached(&statement)?;
            let columns = statement.column_names().map(str::to_owned);
            let columns: Arc<[String]> = columns.collect();
            let mut found = statement.query(params_from_iter(params))?;
            let mut rows = Vec::new();
            while let Some(row) = found.next()? {
                let values = (0..columns.len()).map(|place| value(row.get_ref(place)?));
                rows.push(Row {
                    values: values.collect::<Result<_, _>>()?,
                    columns: Arc::clone(&columns),
                });
            }
            Ok(rows)
        })
        .await
    }

    async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        let statements = sql.to_owned();
        self.call(move |sql| Ok(sql.execute_batch(&statements)?))
            .await
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        match self.has_begun {
            true => self.batch("COMMIT").await,
            false => Ok(()),
        }
    }
}

/// A statement with its parameters as SQLite numbers them.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

/// Parameters that can go to another thread.
fn owned(params: Params<'_>) -> Result<Vec<rusqlite::types::Value>, StoreError> {
    let own = |param: &&dyn super::sql::Param| {
        Ok(match rusqlite::ToSql::to_sql(*param)? {
            ToSqlOutput::Borrowed(value) => value.try_into().map_err(rusqlite::Error::from)?,
            ToSqlOutput::Owned(value) => value,
            _ => return Err(StoreError::Broken("a parameter is of no known type")),
        })
    };
    params.iter().map(own).collect()
}

fn value(value: ValueRef<'_>) -> Result<Value, StoreError> {
    const OTHER: StoreError = StoreError::Broken("a column has a value of another type");
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).map_err(|_| OTHER)?),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(OTHER),
    })
}
