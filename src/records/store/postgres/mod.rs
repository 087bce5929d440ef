//! The store in PostgreSQL: for several replicas, on an engine that operators run already.
//!
//! Every use case is one transaction on one connection. Nothing is retried: the locks of `Mode` leave no serialization
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
    Row as PostgresRow, SimpleQueryMessage,
    error::SqlState,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::{
    Opening, Result, StoreError,
    open::OpenProblem,
    port::DiskFull,
    remote::Remote,
    rows::{Row, Value},
    seal::Seal,
    sql::{
        Connection, Engine, Extensions, Limit, Mode, Outside, Pace, STEP_TIMEOUT, ServerOnly,
        Statements, TimedOut, Tx,
    },
};

mod lookup;
mod nonces;
mod pool;
mod schema;
mod url;

pub use lookup::{Lookup, LookupError, LookupParams};
pub use url::{Url, UrlError};

use pool::{Conn, PostgresPool, Purpose, Server, Timeouts, statement_timeout};

type DynError = Box<dyn std::error::Error + Sync + Send>;

/// The time for which the servers are tried when a store or a look-up is opened.
const REACH: Duration = Duration::from_secs(5);
/// The time for a change of a consumer or user, which may touch many tokens, and for any use case of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a migration waits for other writers.
const MIGRATION_WAIT: Duration = Duration::from_secs(30);

/// A store in PostgreSQL.
pub(super) struct PostgresStore {
    pool: Arc<PostgresPool>,
    extensions: Extensions,
    // Connections end with it.
    _remote: Arc<Remote>,
}

impl PostgresStore {
    /// A store at `url`; no server has been reached yet.
    ///
    /// # Errors
    /// A file of TLS, or the system gives no more threads.
    pub(super) fn open(
        url: &Url,
        seal: Arc<Seal>,
        outside: Option<Arc<dyn Outside>>,
        opening: Opening,
    ) -> Result<Self, OpenProblem> {
        let (config, tls) = url.connector()?;
        let remote = Arc::new(Remote::start("store-postgres")?);
        let changed = Arc::<Notify>::default();
        let server = Server {
            config,
            tls,
            thread: remote.handle(),
            timeouts: Timeouts::of(opening),
            search_path: Some(schema::SEARCH_PATH),
            name: "postgres",
        };
        let purposes = [Purpose::UseCases, Purpose::Nonces];
        let pool = PostgresPool::new(server, purposes, Arc::clone(&changed));
        let pool = Arc::new(pool.map_err(|error| OpenProblem::Failed(error.into()))?);
        remote.spawn(Arc::clone(&pool).listen());
        let window = (Arc::clone(&pool), Arc::clone(&remote));
        let shared = ServerOnly {
            open_window: Box::new(move || nonces::open_window(&window.0, &window.1)),
            findings: |tx| Box::pin(findings(tx)),
        };
        Ok(Self {
            pool,
            extensions: Extensions {
                changed,
                shared: Some(shared),
                ..Extensions::new(seal, outside)
            },
            _remote: remote,
        })
    }

    /// Tries to reach a server.
    pub(super) async fn reach(&self) -> Result<(), OpenProblem> {
        let reached = self.pool.reach().await;
        reached.map_err(|error| OpenProblem::Unreachable(error.into()))
    }
}

/// Why the store did not answer, other than PostgreSQL's own reasons.
#[derive(Debug, Error)]
enum PostgresFault {
    #[error("too many callers wait for PostgreSQL")]
    Overloaded,
    #[error("another process has migrated the store since it was opened; restart")]
    Replaced,
    #[error("the connection was put back")]
    PutBack,
    #[error("there are no connections for this purpose")]
    NoConnections,
    #[error(transparent)]
    Connect(tokio_postgres::Error),
}

impl From<PostgresFault> for StoreError {
    fn from(fault: PostgresFault) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Unavailable(match error.code() {
            Some(&SqlState::DISK_FULL) => DiskFull(error.into()).into(),
            _ => error.into(),
        })
    }
}

#[async_trait]
impl Engine for PostgresStore {
    async fn begin(&self, _: &'static str, mode: Mode, pace: Pace) -> Result<Tx> {
        let whole = match pace {
            Pace::Request => self.pool.timeouts.request,
            Pace::Command | Pace::Transfer => COMMAND_TIMEOUT,
        };
        let limit = Limit::of(pace, self.pool.timeouts.connection + whole);
        let begun = timeout_at(limit.end(), async {
            let connection = PostgresConnection {
                conn: self.pool.take(Purpose::UseCases).await?,
                pool: Arc::clone(&self.pool),
                // Outside a transaction a statement has the time of a request.
                has_begun: match mode {
                    Mode::Single => pace == Pace::Command,
                    mode => mode != Mode::Bare,
                },
            };
            if connection.has_begun {
                connection.begin(mode, pace).await?;
            }
            Ok(connection)
        });
        let begun = begun
            .await
            .unwrap_or_else(|_: Elapsed| Err(TimedOut.into()));
        let connection = begun.map_err(|error| self.pool.failed(error))?;
        let seal = Arc::clone(&self.extensions.seal);
        Ok(Tx::new(Box::new(connection), seal, limit))
    }

    fn extensions(&self) -> &Extensions {
        &self.extensions
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
    async fn begin(&self, mode: Mode, pace: Pace) -> Result<()> {
        let (isolation, lock) = match mode {
            Mode::Single | Mode::Bare | Mode::Snapshot => ("REPEATABLE READ READ ONLY", None),
            Mode::Write => ("READ COMMITTED", Some(schema::LOCK_SHARED)),
            Mode::Alone => ("READ COMMITTED", Some(schema::LOCK_ALONE)),
            Mode::Schema => ("READ COMMITTED", Some(schema::LOCK_SCHEMA)),
        };
        let mut batch = format!("BEGIN ISOLATION LEVEL {isolation};");
        let statement = match pace {
            Pace::Request => None,
            Pace::Command => Some(COMMAND_TIMEOUT),
            Pace::Transfer => Some(STEP_TIMEOUT),
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
        if mode == Mode::Schema {
            let wait = MIGRATION_WAIT.as_millis();
            batch += &format!("SET LOCAL lock_timeout = {wait};");
        }
        batch += lock.unwrap_or_default();
        if !matches!(mode, Mode::Write | Mode::Alone) {
            return Ok(self.conn.client()?.batch_execute(&batch).await?);
        }
        // The schema may have been migrated since the store was opened.
        batch += schema::SCHEMA.version;
        let messages = self.conn.client()?.simple_query(&batch).await?;
        let version = messages.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        match version == Some(&schema::SCHEMA.known().to_string()) {
            true => Ok(()),
            false => Err(PostgresFault::Replaced.into()),
        }
    }
}

#[async_trait]
impl Connection for PostgresConnection {
    fn statements(&self) -> &'static Statements {
        &schema::STATEMENTS
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let (client, statement) = self.conn.prepare(sql).await?;
        Ok(client.execute(&statement, &own(params)).await?)
    }

    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let (client, statement) = self.conn.prepare(sql).await?;
        let found = client.query(&statement, &own(params)).await?;
        let columns = statement.columns().iter();
        let columns: Arc<[String]> = columns.map(|column| column.name().to_owned()).collect();
        let row = |row: &PostgresRow| {
            let values = (0..columns.len()).map(|place| row.try_get(place));
            let values = values.collect::<Result<_, _>>();
            Ok(Row {
                values: values
                    .map_err(|_| StoreError::Broken("a column has a value of another type"))?,
                columns: Arc::clone(&columns),
            })
        };
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

/// Parameters as tokio-postgres takes them.
fn own(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
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

/// Settings of the server by which acknowledged writes may be lost.
async fn findings(tx: &mut Tx) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let settings = "SELECT name FROM pg_settings
         WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes') AND setting = 'off' ORDER BY name";
    for name in tx
        .rows(settings, &[], |row, _| row.get::<String>("name"))
        .await?
    {
        let loses = match &*name {
            "synchronous_commit" => {
                "the server acknowledges before it has written, so its crash revives a used token or a revoked one"
            }
            "fsync" => "a power loss can destroy the whole database",
            _ => "a power loss can damage pages of the database",
        };
        findings.push(format!("{name} is off: {loses}; set {name} = on"));
    }
    // A write can only reach the primary; this is true while a failover is under way.
    if tx
        .has_row("SELECT 1 WHERE pg_is_in_recovery()", &[])
        .await?
    {
        findings.push(
            "the server is a standby, which takes no writes; name the primary, or all hosts"
                .to_owned(),
        );
    }
    Ok(findings)
}
