//! The store in PostgreSQL: for several replicas, on an engine that operators run already.
//!
//! Every use case is one transaction on one connection. Nothing is retried: the locks of `Isolation` leave no serialization
//! failures and no deadlocks.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::BytesMut;
use thiserror::Error;
use tokio::{
    sync::Notify,
    time::{error::Elapsed, timeout_at},
};
use tokio_postgres::{
    Row as PostgresRow,
    error::SqlState,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::engine::{
    Connection, Deadline, Engine, Isolation, Migrated, STEP_TIMEOUT, Statements, TimeLimit,
    TimedOut,
};
use crate::records::{
    connection::io_thread::IoThread,
    nonce::SharedWindow,
    values::{
        Opening, Result, StoreError,
        error::{DiskFull, EngineFault, Locked, RightMissing},
        opening::OpenProblem,
        value::{Row, Value},
    },
};

mod nonce_window;
mod pool;
mod schema;
mod url;

pub use url::{PostgresUrl, PostgresUrlError};

use pool::{Conn, Connector, PostgresPool, Purpose, Timeouts, statement_timeout};

type DynError = Box<dyn std::error::Error + Sync + Send>;

/// The time for which the servers are tried when a store is opened.
const REACH: Duration = Duration::from_secs(5);
/// The time for a change of a consumer or user, which may touch many tokens, and for any use case of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a migration waits for other writers.
const MIGRATION_WAIT: Duration = Duration::from_secs(30);

/// A store in PostgreSQL.
pub(super) struct PostgresStore {
    pool: Arc<PostgresPool>,
    /// Notified when another process may have changed something.
    changed: Arc<Notify>,
    // Connections end with it.
    thread: IoThread,
}

impl PostgresStore {
    /// A store at `url`; no server has been reached yet.
    ///
    /// # Errors
    /// A file of TLS cannot be read, or the system cannot create a thread.
    pub(super) fn open(url: &PostgresUrl, opening: Opening) -> Result<Self, OpenProblem> {
        let (servers, tls) = url.connector()?;
        let thread = IoThread::start("store-postgres")?;
        let changed = Arc::<Notify>::default();
        let connector = Connector {
            servers,
            tls,
            thread: thread.handle(),
            timeouts: Timeouts::for_opening(opening),
        };
        let pool = PostgresPool::new(connector, Arc::clone(&changed));
        let pool = Arc::new(pool.map_err(|error| OpenProblem::Failed(error.into()))?);
        thread.spawn(Arc::clone(&pool).listen());
        Ok(Self {
            pool,
            changed,
            thread,
        })
    }

    /// Tries to reach a server, and checks that it can keep a store.
    pub(super) async fn reach(&self) -> Result<(), OpenProblem> {
        let session = self.pool.session().await;
        let session = session.map_err(|error| OpenProblem::Unreachable(error.into()))?;
        if !matches!(&*session.encoding, "UTF8" | "SQL_ASCII") {
            return Err(OpenProblem::Encoding(session.encoding));
        }
        match session.is_kept {
            true => Ok(()),
            false => Err(OpenProblem::SessionChanges),
        }
    }
}

/// Why the store did not answer, other than PostgreSQL's own reasons.
#[derive(Debug, Error)]
enum PostgresFault {
    #[error("too many callers wait for PostgreSQL")]
    Overloaded,
    #[error("PostgreSQL did not answer in time; make sure that it listens at that host and port")]
    Silent,
    #[error("the connection was put back")]
    PutBack,
    #[error(transparent)]
    Connect(tokio_postgres::Error),
    #[error(
        "the task that connects panicked; this is a bug: please report it with the panic in the log"
    )]
    ConnectPanicked,
}

impl EngineFault for PostgresFault {}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Unavailable(match error.code() {
            Some(&SqlState::DISK_FULL) => DiskFull(error.into()).into(),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => RightMissing(error.into()).into(),
            _ => error.into(),
        })
    }
}

#[async_trait]
impl Engine for PostgresStore {
    fn statements(&self) -> &'static Statements {
        &schema::STATEMENTS
    }

    async fn begin(
        &self,
        isolation: Isolation,
        deadline: Deadline,
    ) -> Result<(Box<dyn Connection>, TimeLimit)> {
        let whole = match deadline {
            Deadline::Request => self.pool.connector.timeouts.request,
            Deadline::Command | Deadline::Transfer => COMMAND_TIMEOUT,
        };
        let limit = TimeLimit::new(deadline, self.pool.connector.timeouts.connection + whole);
        let begun = timeout_at(limit.end(), async {
            let connection = PostgresConnection {
                conn: self.pool.take(Purpose::UseCases).await?,
                pool: Arc::clone(&self.pool),
                // Outside a transaction a statement has the time of a request.
                has_begun: match isolation {
                    Isolation::Single => deadline == Deadline::Command,
                    isolation => isolation != Isolation::NoTransaction,
                },
            };
            if connection.has_begun {
                connection.begin(isolation, deadline).await?;
            }
            Ok(connection)
        });
        let begun = begun
            .await
            .unwrap_or_else(|_: Elapsed| Err(TimedOut.into()));
        let connection = match begun {
            // A request has no time to ask.
            Err(error) if whole == COMMAND_TIMEOUT && waited_for_lock(&error) => {
                return Err(Locked(self.pool.writer().await).into());
            }
            begun => begun.map_err(|error| self.pool.failed(error))?,
        };
        Ok((Box::new(connection), limit))
    }

    async fn notified(&self) {
        self.changed.notified().await;
    }

    fn open_window(&self) -> Option<Box<dyn SharedWindow>> {
        Some(nonce_window::open_window(&self.pool, &self.thread))
    }
}

/// A connection, and the transaction on it. Dropped before the commit, the connection is closed and the transaction with it.
struct PostgresConnection {
    conn: Conn,
    pool: Arc<PostgresPool>,
    /// Whether there is a transaction.
    has_begun: bool,
}

impl PostgresConnection {
    /// Begins, in one round trip. A lock, taken before the first statement sees anything, serializes transactions that
    /// could conflict.
    async fn begin(&self, isolation: Isolation, deadline: Deadline) -> Result<()> {
        let (level, lock) = match isolation {
            Isolation::Single | Isolation::NoTransaction | Isolation::Snapshot => {
                ("REPEATABLE READ READ ONLY", None)
            }
            Isolation::Write => ("READ COMMITTED", Some(schema::LOCK_SHARED)),
            Isolation::Exclusive => ("READ COMMITTED", Some(schema::LOCK_EXCLUSIVE)),
            Isolation::Migration => ("READ COMMITTED", Some(schema::LOCK_MIGRATION)),
        };
        let mut batch = format!("BEGIN ISOLATION LEVEL {level};");
        let statement = match deadline {
            Deadline::Request => None,
            Deadline::Command => Some(COMMAND_TIMEOUT),
            Deadline::Transfer => Some(STEP_TIMEOUT),
        };
        if let Some(statement) = statement {
            let limit = statement_timeout(statement);
            // An export or an import reads or writes a file between statements. A list that finds many rows needs
            // another plan than a list that finds none.
            batch += &format!(
                "SET LOCAL statement_timeout = {limit}; SET LOCAL idle_in_transaction_session_timeout = {limit}; \
                 SET LOCAL plan_cache_mode = force_custom_plan;"
            );
        }
        if deadline == Deadline::Transfer && lock.is_some() {
            // Names this process to those that wait for it.
            let (what, pid) = (isolation.transfer(), std::process::id());
            batch += &format!("SET LOCAL application_name = 'countersign {what}, process {pid}';");
        }
        if isolation == Isolation::Migration {
            let wait = MIGRATION_WAIT.as_millis();
            batch += &format!("SET LOCAL lock_timeout = {wait};");
        }
        batch += lock.unwrap_or_default();
        if !matches!(isolation, Isolation::Write | Isolation::Exclusive) {
            return Ok(self.conn.client()?.batch_execute(&batch).await?);
        }
        // The schema may have been migrated since the store was opened.
        batch += schema::STATEMENTS.schema.version;
        let version = pool::first_value(self.conn.client()?, &batch).await?;
        match version == schema::STATEMENTS.schema.known().to_string() {
            true => Ok(()),
            false => Err(Migrated.into()),
        }
    }
}

#[async_trait]
impl Connection for PostgresConnection {
    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let (client, statement) = self.conn.prepare(sql).await?;
        Ok(client.execute(&statement, &parameters(params)).await?)
    }

    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let (client, statement) = self.conn.prepare(sql).await?;
        let found = client.query(&statement, &parameters(params)).await?;
        let columns = statement.columns().iter();
        let columns: Arc<[String]> = columns.map(|column| column.name().to_owned()).collect();
        let row = |row: &PostgresRow| Row::new(&columns, |index| row.try_get(index));
        found.iter().map(row).collect()
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        Ok(self.conn.client()?.batch_execute(sql).await?)
    }

    async fn commit(&mut self) -> Result<()> {
        if self.has_begun {
            self.batch("COMMIT").await?;
        }
        self.conn.put_back();
        Ok(())
    }

    fn failed(&self, error: StoreError) -> StoreError {
        self.pool.failed(error)
    }
}

/// Whether a transaction that writes did not get its lock in time: nothing else that it begins with takes long.
fn waited_for_lock(error: &StoreError) -> bool {
    let StoreError::Unavailable(source) = error else {
        return false;
    };
    let code = source.downcast_ref().and_then(tokio_postgres::Error::code);
    matches!(
        code,
        Some(&SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE)
    )
}

/// Parameters as tokio-postgres takes them.
fn parameters(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| param as _).collect()
}

impl ToSql for Value {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, DynError> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) if *of == Type::BOOL => (*number != 0).to_sql(of, out),
            Self::Integer(number) => number.to_sql(of, out),
            Self::Text(text) => text.to_sql(of, out),
            Self::Bytes(bytes) => bytes.to_sql(of, out),
        }
    }

    /// Statements are written for the types of their parameters.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'r> FromSql<'r> for Value {
    fn from_sql(of: &Type, raw: &'r [u8]) -> Result<Self, DynError> {
        Ok(match *of {
            Type::BOOL => bool::from_sql(of, raw)?.into(),
            Type::INT4 => i64::from(i32::from_sql(of, raw)?).into(),
            Type::INT8 => i64::from_sql(of, raw)?.into(),
            Type::BYTEA => Vec::from_sql(of, raw)?.into(),
            // The result of a function that returns nothing.
            Type::VOID => Self::Null,
            _ => String::from_sql(of, raw)?.into(),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, DynError> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
