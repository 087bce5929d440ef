//! Credentials that an existing system keeps in a database of its own: found by the operator's queries, never written.
//!
//! A query may run code of whoever owns the tables or may create functions there. So the look-up has its own URL, a role
//! without rights on our schema, and connections that are used for nothing else, not even for the other query. Each
//! query runs in a read-only transaction that is rolled back, which also undoes settings of the session. The result may be anything,
//! so every value is checked: a row that is not a valid credential is logged and not used.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;
use tokio::time::timeout;
use tokio_postgres::{
    Statement,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{
    COMMAND_TIMEOUT,
    pool::{PostgresPool, Purpose, Server, Timeouts},
    url::PostgresUrl,
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        names::{ConsumerKey, InvalidName, Permission},
    },
    records::store::{
        Opening, Result, StoreError,
        engine::TimedOut,
        io_thread::IoThread,
        record::{AccessToken, Consumer, TokenBeginning},
    },
    telemetry::{causes::causes, redact::RedactedToken},
};

/// The database of an existing system, and the operator's queries, each with one parameter.
#[derive(Debug, Clone)]
pub struct LookupParams {
    /// The database, with a role that may read the tables of the queries and nothing of ours.
    pub url: PostgresUrl,
    /// Finds a consumer by its key.
    pub consumer_sql: Option<String>,
    /// Finds an access token.
    pub token_sql: Option<String>,
}

/// Finds credentials of an existing system.
pub struct Lookup {
    location: String,
    pool: Arc<PostgresPool>,
    consumers: Option<Query>,
    tokens: Option<Query>,
    // Connections end with it.
    _thread: IoThread,
}

/// A query of the operator.
struct Query {
    /// Its key in the configuration.
    key: &'static str,
    /// As the operator wrote it.
    sql: String,
    /// As it is run.
    wrapped: String,
    columns: &'static [&'static str],
    purpose: Purpose,
    /// A row of another spelling was logged; any caller can cause one.
    other_is_logged: AtomicBool,
}

/// A look-up that cannot be used: the key of the configuration, and the problem with its fix.
#[derive(Debug, Error)]
#[error("{key}: {problem}")]
pub struct LookupError {
    key: &'static str,
    problem: String,
    is_outage: bool,
}

impl LookupError {
    /// Whether the server cannot be reached, rather than the configuration wrong.
    pub const fn is_outage(&self) -> bool {
        self.is_outage
    }
}

/// A query has failed, and nothing is known about the credential.
#[derive(Debug, Error)]
#[error("the database of store.lookup.url is unavailable")]
struct Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>);

const URL_KEY: &str = "store.lookup.url";
const CONSUMER_KEY: &str = "store.lookup.consumer_sql";
const CONSUMER_COLUMNS: &[&str] = &["key", "secret", "name", "permissions", "enabled"];
const TOKEN_KEY: &str = "store.lookup.token_sql";
const TOKEN_COLUMNS: &[&str] = &[
    "token",
    "secret",
    "consumer",
    "user_id",
    "permissions",
    "expires_at",
    "revoked",
];

/// The types that a column may have; `None`: it has one of them.
fn expected_types(column: &str, of: &Type) -> Option<&'static str> {
    let is_text = <&str as ToSql>::accepts(of);
    let is_integer = [Type::INT8, Type::INT4, Type::INT2].contains(of);
    let is_list = [Type::TEXT_ARRAY, Type::VARCHAR_ARRAY].contains(of);
    let (is_right, types) = match column {
        "user_id" => (is_text || is_integer, "text or bigint"),
        "permissions" => (
            is_text || is_list,
            "text[], or text with spaces between the names",
        ),
        "enabled" | "revoked" => (*of == Type::BOOL, "boolean"),
        "expires_at" => (
            *of == Type::TIMESTAMPTZ || is_integer,
            "timestamptz, or bigint for seconds since 1970",
        ),
        _ => (is_text, "text"),
    };
    (!is_right).then_some(types)
}

impl Lookup {
    /// A look-up in the database of `params`; no server has been reached yet.
    ///
    /// # Errors
    /// [`LookupError`]: a file of TLS, or the system gives no more threads.
    pub fn open(params: LookupParams, opening: Opening) -> Result<Self, LookupError> {
        let failed = |error: &(dyn std::error::Error + 'static)| LookupError {
            key: URL_KEY,
            problem: causes(error),
            is_outage: false,
        };
        let location = params.url.location();
        let (servers, tls) = params.url.for_reading().map_err(|error| failed(&error))?;
        let thread = IoThread::start("store-lookup").map_err(|error| failed(&error))?;
        let server = Server {
            servers,
            tls,
            thread: thread.handle(),
            timeouts: Timeouts::of(opening),
            search_path: None,
            name: "postgres of store.lookup.url",
        };
        let purposes = [Purpose::Consumers, Purpose::Tokens];
        let pool = PostgresPool::new(server, purposes, Arc::default());
        let query = |key, columns, purpose, sql: String| Query {
            key,
            wrapped: wrapped(&sql),
            sql,
            columns,
            purpose,
            other_is_logged: AtomicBool::new(false),
        };
        let consumers = |sql| query(CONSUMER_KEY, CONSUMER_COLUMNS, Purpose::Consumers, sql);
        let tokens = |sql| query(TOKEN_KEY, TOKEN_COLUMNS, Purpose::Tokens, sql);
        Ok(Self {
            location,
            pool: Arc::new(pool.map_err(|error| failed(&error))?),
            consumers: params.consumer_sql.map(consumers),
            tokens: params.token_sql.map(tokens),
            _thread: thread,
        })
    }

    /// The hosts and the database, for messages.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Reaches the database, checks that its role has no right on our schema, and runs each query once with a value that
    /// matches nothing. Returns settings of the database that are unwise, one sentence each.
    ///
    /// # Errors
    /// [`LookupError`]
    pub async fn check(&self) -> Result<Vec<String>, LookupError> {
        let location = &self.location;
        let failed = |problem: String| LookupError {
            key: URL_KEY,
            problem: format!("{location}: {problem}"),
            is_outage: false,
        };
        let reached = self.pool.reach().await;
        reached.map_err(|error| {
            let cause = cause(&error);
            let problem =
                format!("cannot be reached; correct the URL or start the server: {cause}");
            LookupError {
                is_outage: true,
                ..failed(problem)
            }
        })?;
        // Before a connection runs code of others.
        let role = timeout(COMMAND_TIMEOUT, self.role()).await;
        let role = role.unwrap_or_else(|_| Err(TimedOut.into()));
        let role = role.map_err(|error| failed(cause(&error)))?;
        if let Some((role, right)) = role.right {
            return Err(failed(format!(
                "its role {role} {right}, and a query can run code of others; give it a role of its own that may only \
                 read the tables of the queries"
            )));
        }
        for query in self.consumers.iter().chain(&self.tokens) {
            self.check_query(query).await?;
        }
        Ok(role.findings)
    }

    /// Looks at the rights of the role.
    async fn role(&self) -> Result<Role> {
        let mut conn = self.pool.take(Purpose::Consumers).await?;
        let client = conn.client()?;
        let begin = format!("{BEGIN}; SET LOCAL search_path = pg_catalog, pg_temp");
        client.batch_execute(&begin).await?;
        let right = client.query_opt(RIGHT, &[]).await?;
        client.batch_execute("ROLLBACK").await?;
        let open = client.query(OPEN_SCHEMAS, &[]).await?;
        conn.put_back();
        let findings = open.iter().map(|row| {
            let schema: &str = row.try_get(0)?;
            Ok(format!(
                "every role may create objects in the schema {schema}, in which the queries look for operators and \
                 functions: REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC"
            ))
        });
        Ok(Role {
            right: right
                .map(|row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?)))
                .transpose()?,
            findings: findings.collect::<Result<_, tokio_postgres::Error>>()?,
        })
    }

    async fn check_query(&self, query: &Query) -> Result<(), LookupError> {
        let failed = |problem: String| LookupError {
            key: query.key,
            problem,
            is_outage: false,
        };
        let nothing = format!("no such {:x}", RandomState::new().hash_one(query.key));
        let run = async {
            let mut conn = self.pool.take(query.purpose).await?;
            let client = conn.client()?;
            client.batch_execute(BEGIN).await?;
            let statement = client.prepare(&query.sql).await?;
            if let Some(problem) = problem(&statement, query.columns) {
                return Ok(Err(problem));
            }
            let rows = client.query(&query.wrapped, &[&nothing]).await?;
            client.batch_execute("ROLLBACK").await?;
            conn.put_back();
            Ok::<_, StoreError>(Ok(rows.len()))
        };
        // The server's own time-out is not enough: a function may go on after it, and the server may hang.
        let rows = timeout(COMMAND_TIMEOUT, run).await;
        let rows = rows.map_err(|_| failed(format!("does not end within {COMMAND_TIMEOUT:?}")))?;
        let rows = rows.map_err(|error| failed(cause(&error)))?;
        if rows.map_err(failed)? > 0 {
            return Err(failed(
                "finds a row for a value that is in no table; compare the column with $1"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Runs a query; `None`: it does not find exactly one row.
    async fn find(&self, query: &Query, value: &str) -> Result<Option<String>> {
        // PostgreSQL has no text with NUL.
        if value.contains('\0') {
            return Ok(None);
        }
        let Timeouts {
            connection,
            request,
        } = self.pool.timeouts;
        let run = async {
            let mut conn = self.pool.take(query.purpose).await?;
            conn.client()?.batch_execute(BEGIN).await?;
            let (client, statement) = conn.prepare(&query.wrapped).await?;
            let rows = match client.query(&statement, &[&value]).await {
                // Text that the encoding of that database lacks is in none of its tables.
                Err(error) if is_unknown_text(&error) => Vec::new(),
                rows => rows?,
            };
            // Not a commit: a setting that a function changed would stay.
            client.batch_execute("ROLLBACK").await?;
            conn.put_back();
            Ok(rows)
        };
        let rows = timeout(connection + request, run).await;
        let rows = rows.unwrap_or_else(|_| Err(TimedOut.into()));
        let rows = rows.map_err(|error| match self.pool.failed(error) {
            StoreError::Unavailable(cause) => StoreError::Unavailable(Box::new(Unavailable(cause))),
            error => error,
        })?;
        match &rows[..] {
            [] => Ok(None),
            [row] => Ok(row.try_get(0)?),
            _ => {
                let key = query.key;
                tracing::warn!(key, "the query finds several rows, so none is used");
                Ok(None)
            }
        }
    }

    /// Finds a consumer.
    ///
    /// # Errors
    /// The existing system cannot be asked.
    pub(in crate::records::store) async fn consumer(
        &self,
        key: &ConsumerKey,
    ) -> Result<Option<Consumer>> {
        let Some(query) = &self.consumers else {
            return Ok(None);
        };
        let read = |row: ConsumerRow| {
            let name = row.name.unwrap_or_else(|| key.to_string());
            Ok(Consumer {
                permissions: permissions(row.permissions)?,
                enabled: row.enabled,
                ..Consumer::new(key.clone(), row.secret.into(), name, UnixTime(0))
            })
        };
        let found = self.find(query, key.as_str()).await?;
        Ok(found.and_then(|row| query.used(key.as_str(), key.as_str(), &row, read)))
    }

    /// Finds an access token, whether or not it was revoked here.
    ///
    /// # Errors
    /// As [`Self::consumer`].
    pub(in crate::records::store) async fn access_token(
        &self,
        token: &str,
    ) -> Result<Option<AccessToken>> {
        let Some(query) = &self.tokens else {
            return Ok(None);
        };
        // The time of issue is not known; idle time counts from here.
        let now = Clock::system().now();
        let read = |row: TokenRow| {
            let user = match row.user_id {
                NumberOrText::Number(number) => number.to_string(),
                NumberOrText::Text(text) => text,
            };
            Ok(AccessToken {
                token: row.token,
                secret: row.secret.into(),
                consumer: name("consumer", &row.consumer)?,
                user: name("user_id", &user)?,
                permissions: permissions(row.permissions)?,
                issued_at: now,
                expires_at: row.expires_at.map(time).transpose()?,
                last_used_at: None,
                last_used_from: None,
                revoked_at: row.revoked.then_some(now),
                began: TokenBeginning::Imported,
                with_display_name: false,
            })
        };
        let found = self.find(query, token).await?;
        let shown = RedactedToken(token).to_string();
        Ok(found.and_then(|row| query.used(token, &shown, &row, read)))
    }

    /// Whether there are consumers of the existing system at all.
    pub(in crate::records::store) const fn has_consumers(&self) -> bool {
        self.consumers.is_some()
    }

    /// Succeeds unless the existing system is known to be out of reach, which is logged.
    pub(in crate::records::store) fn reachable(&self) -> Result<()> {
        self.pool.check()
    }
}

/// Whether the encoding of the database has no such text.
fn is_unknown_text(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    code.is_some_and(|code| {
        [
            SqlState::UNTRANSLATABLE_CHARACTER,
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        ]
        .contains(code)
    })
}

/// The causes of a failure; this database is not the store.
fn cause(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable(cause) => causes(&**cause),
        error => causes(error),
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").finish_non_exhaustive()
    }
}

/// The role of the look-up.
struct Role {
    /// A role that it can act as, and a right of that role on our schema.
    right: Option<(String, String)>,
    findings: Vec<String>,
}

/// Finds a right on our schema that the role has, or a role that it can act as.
const RIGHT: &str = "
    WITH role AS (
        SELECT oid, rolname::text AS name FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER')
    ), ours AS (
        SELECT oid, nspowner FROM pg_namespace WHERE nspname = 'countersign'
    ), objects AS (
        SELECT class.oid, class.relname::text AS name, class.relowner, class.relkind
        FROM pg_class AS class JOIN ours ON ours.oid = class.relnamespace
    )
    SELECT name, 'owns the schema countersign' AS what, 1 AS rank FROM role JOIN ours ON ours.nspowner = role.oid
    UNION ALL
    SELECT role.name, 'has rights on the schema countersign', 2 FROM role, ours
    WHERE has_schema_privilege(role.oid, ours.oid, 'USAGE, CREATE')
    UNION ALL
    SELECT role.name, 'has rights on countersign.' || objects.name, 3 FROM role, objects
    WHERE objects.relkind IN ('r', 'p', 'v', 'm', 'f') AND (objects.relowner = role.oid
        OR has_table_privilege(role.oid, objects.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(role.oid, objects.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
    UNION ALL
    SELECT role.name, 'can read the files of the server, or run programs there', 4 FROM role, ours
    WHERE role.name IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
    UNION ALL
    SELECT rolname::text, 'may replicate the whole server', 5 FROM pg_roles, ours
    WHERE rolname = session_user AND rolreplication
    ORDER BY rank, name LIMIT 1";

/// Finds the schemas in which names of the queries are looked up and everybody may create objects.
const OPEN_SCHEMAS: &str = "
    SELECT schema::pg_catalog.text FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS schema
    WHERE pg_catalog.has_schema_privilege('public', schema::pg_catalog.text, 'CREATE')";

/// The problem of the parameters or columns of a query, if there is one.
fn problem(statement: &Statement, columns: &[&str]) -> Option<String> {
    match statement.params() {
        [one] if <&str as ToSql>::accepts(one) => {}
        [one] => {
            return Some(format!(
                "$1 is compared with a column of the type {one}; write column::text = $1"
            ));
        }
        _ => return Some("the query has one parameter, $1".to_owned()),
    }
    columns.iter().find_map(|name| {
        let found = statement.columns().iter();
        let found: Vec<_> = found.filter(|column| column.name() == *name).collect();
        match found[..] {
            [] => Some(format!(
                "has no column {name}; select {}",
                columns.join(", ")
            )),
            [column] => expected_types(name, column.type_()).map(|types| {
                let of = column.type_();
                format!("the column {name} has the type {of}; make it {types}")
            }),
            // A row has one value for each name, which could be either of the two.
            _ => Some(format!("has the column {name} twice; select it once")),
        }
    })
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The query with its row as JSON, whatever types its columns have: at most two rows, each cut off at 64 KiB, which makes
/// it invalid.
fn wrapped(sql: &str) -> String {
    let sql = sql.trim_end().trim_end_matches(';');
    format!(
        "SELECT pg_catalog.left(pg_catalog.to_jsonb(found)::pg_catalog.text, 65536) FROM ({sql}\n) AS found LIMIT 2"
    )
}

/// A row with a credential.
trait Found: DeserializeOwned {
    /// The key or the token, and its secret.
    fn credential(&self) -> (&str, &str);
}

#[derive(Deserialize)]
struct ConsumerRow {
    key: String,
    secret: String,
    name: Option<String>,
    permissions: Option<Names>,
    enabled: bool,
}

#[derive(Deserialize)]
struct TokenRow {
    token: String,
    secret: String,
    consumer: String,
    user_id: NumberOrText,
    permissions: Option<Names>,
    expires_at: Option<NumberOrText>,
    revoked: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Spaced(String),
}

impl Found for ConsumerRow {
    fn credential(&self) -> (&str, &str) {
        (&self.key, &self.secret)
    }
}

impl Found for TokenRow {
    fn credential(&self) -> (&str, &str) {
        (&self.token, &self.secret)
    }
}

impl Query {
    /// The record in the row that was found for `asked`, which the log shows as `name`; `None` if the row is not a valid
    /// one.
    fn used<R: Found, T>(
        &self,
        asked: &str,
        name: &str,
        row: &str,
        read: impl FnOnce(R) -> Result<T, String>,
    ) -> Option<T> {
        let key = self.key;
        let unused = |problem: &str| tracing::warn!(key, name, problem, "a row is not used");
        // The error itself could show a secret.
        let Ok(row) = serde_json::from_str::<R>(row) else {
            unused(
                "a column that is needed is null, or has another type, or the row is longer than 64 KiB",
            );
            return None;
        };
        // The database may compare without case or trailing spaces. Here, one credential has one spelling.
        if row.credential().0 != asked {
            if !self.other_is_logged.swap(true, Ordering::Relaxed) {
                unused(
                    "it is for another spelling; select the column as it was issued, without padding (logged once)",
                );
            }
            return None;
        }
        if row.credential().1.is_empty() {
            unused("the secret is empty, so that anybody could sign");
            return None;
        }
        read(row).inspect_err(|problem| unused(problem)).ok()
    }
}

fn name<T: FromStr<Err = InvalidName>>(column: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error| format!("{column} {text:?} is not a name: {error}"))
}

fn time(value: NumberOrText) -> Result<UnixTime, String> {
    let text = match value {
        NumberOrText::Number(seconds) => seconds.to_string(),
        NumberOrText::Text(text) => text,
    };
    UnixTime::from_written(&text).map_err(|error| format!("expires_at: {error}"))
}

fn permissions(names: Option<Names>) -> Result<Vec<Permission>, String> {
    let names = match names {
        None => Vec::new(),
        Some(Names::List(names)) => names,
        Some(Names::Spaced(text)) => text.split_whitespace().map(str::to_owned).collect(),
    };
    names.iter().map(|text| name("permission", text)).collect()
}
