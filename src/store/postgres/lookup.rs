//! Credentials that an existing system keeps in the same database: found by the operator's queries, never written.
//!
//! A query runs in a read-only transaction of its own, in which names of tables mean what they mean for the role and not
//! what they mean here. What it finds may be anything, so every value is checked: a row that is no credential is logged
//! and taken for none.

use std::{
    hash::{BuildHasher, RandomState},
    time::SystemTime,
};

use thiserror::Error;
use tokio_postgres::{
    Column, Row, Statement,
    types::{FromSql, ToSql, Type},
};

use super::{pool::Conn, tx::PostgresTx};
use crate::{
    clock::{Clock, UnixTime},
    names::{ConsumerKey, InvalidName, Permission},
    secret::Secret,
    store::{
        StoreError,
        port::Change,
        record::{AccessToken, Consumer},
        sql::Tx as _,
    },
    telemetry::{causes::causes, redact::RedactedToken},
};

/// The operator's queries, each with one parameter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lookup {
    /// Finds a consumer by its key.
    pub consumer_sql: Option<&'static str>,
    /// Finds an access token.
    pub token_sql: Option<&'static str>,
}

/// A query that cannot be used.
#[derive(Debug, Error)]
#[error("{key}: {problem}")]
pub struct LookupError {
    key: &'static str,
    problem: String,
}

/// What a column holds, and the types that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Text,
    /// A text, or a number as text.
    Id,
    /// A list of texts, or a text with spaces between.
    List,
    Flag,
    Time,
}

impl ColumnKind {
    fn accepts(self, of: &Type) -> bool {
        let text = <&str as ToSql>::accepts(of);
        match self {
            Self::Text => text,
            Self::Id => text || is_integer(of),
            Self::List => text || [Type::TEXT_ARRAY, Type::VARCHAR_ARRAY].contains(of),
            Self::Flag => *of == Type::BOOL,
            Self::Time => *of == Type::TIMESTAMPTZ || is_integer(of),
        }
    }

    const fn types(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Id => "text or bigint",
            Self::List => "text[], or text with spaces between the names",
            Self::Flag => "boolean",
            Self::Time => "timestamptz, or bigint for seconds since 1970",
        }
    }
}

fn is_integer(of: &Type) -> bool {
    [Type::INT8, Type::INT4, Type::INT2].contains(of)
}

const CONSUMER_KEY: &str = "store.lookup.consumer_sql";
const CONSUMER_COLUMNS: &[(&str, ColumnKind)] = &[
    ("secret", ColumnKind::Text),
    ("name", ColumnKind::Text),
    ("permissions", ColumnKind::List),
    ("enabled", ColumnKind::Flag),
];
const TOKEN_KEY: &str = "store.lookup.token_sql";
const TOKEN_COLUMNS: &[(&str, ColumnKind)] = &[
    ("secret", ColumnKind::Text),
    ("consumer", ColumnKind::Text),
    ("user_id", ColumnKind::Id),
    ("permissions", ColumnKind::List),
    ("expires_at", ColumnKind::Time),
    ("revoked", ColumnKind::Flag),
];

/// Runs each query once with a value that matches nothing, and checks its parameter and its columns.
pub(super) async fn check(conn: &mut Conn, lookup: &Lookup) -> Result<(), LookupError> {
    for (key, sql, columns) in [
        (CONSUMER_KEY, lookup.consumer_sql, CONSUMER_COLUMNS),
        (TOKEN_KEY, lookup.token_sql, TOKEN_COLUMNS),
    ] {
        let Some(sql) = sql else { continue };
        let failed = |problem: String| LookupError { key, problem };
        let nothing = format!("no such {:x}", RandomState::new().hash_one(key));
        let run = async {
            begin(conn).await?;
            let (_, statement) = conn.prepare(sql).await?;
            if let Some(problem) = problem(&statement, columns) {
                return Ok(Err(problem));
            }
            let rows = conn.client().query(&statement, &[&nothing]).await?;
            end(conn).await?;
            Ok::<_, tokio_postgres::Error>(Ok(rows.len()))
        };
        let rows = run.await.map_err(|error| failed(causes(&error)))?;
        if rows.map_err(failed)? > 0 {
            return Err(failed(
                "finds a row for a value that is in no table; compare the column with $1"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// What is wrong with the parameters and columns of a query.
fn problem(statement: &Statement, columns: &[(&str, ColumnKind)]) -> Option<String> {
    match statement.params() {
        [one] if ColumnKind::Text.accepts(one) => {}
        [one] => {
            return Some(format!(
                "$1 is compared with a column of the type {one}; write column::text = $1"
            ));
        }
        _ => return Some("the query has one parameter, $1".to_owned()),
    }
    let names = || columns.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    columns.iter().find_map(|(name, kind)| {
        let mut found = statement.columns().iter();
        match found.find(|column| column.name() == *name) {
            None => Some(format!(
                "has no column {name}; select {}",
                names().join(", ")
            )),
            Some(column) if !kind.accepts(column.type_()) => Some(format!(
                "the column {name} has the type {}; make it {}",
                column.type_(),
                kind.types()
            )),
            Some(_) => None,
        }
    })
}

/// Names of tables are looked up as the role has it, and not where ours are.
async fn begin(conn: &Conn) -> Result<(), tokio_postgres::Error> {
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO DEFAULT";
    conn.client().batch_execute(begin).await
}

async fn end(conn: &Conn) -> Result<(), tokio_postgres::Error> {
    conn.client().batch_execute("COMMIT").await
}

impl PostgresTx {
    /// Finds a consumer of the existing system.
    pub(super) async fn find_consumer_outside(
        &mut self,
        key: &ConsumerKey,
    ) -> Result<Option<Consumer>, StoreError> {
        let Some(sql) = self.lookup.consumer_sql else {
            return Ok(None);
        };
        let row = self.outside(CONSUMER_KEY, sql, key.as_str()).await?;
        Ok(row.and_then(|row| used(CONSUMER_KEY, key.as_str(), consumer(&row, key))))
    }

    /// Finds a token of the existing system; it is revoked too if it was revoked here, or if its user is disabled or removed
    /// here.
    pub(super) async fn find_access_token_outside(
        &mut self,
        token: &str,
    ) -> Result<Option<AccessToken>, StoreError> {
        let Some(sql) = self.lookup.token_sql else {
            return Ok(None);
        };
        let Some(row) = self.outside(TOKEN_KEY, sql, token).await? else {
            return Ok(None);
        };
        let name = RedactedToken(token).to_string();
        let Some(mut found) = used(TOKEN_KEY, &name, access_token(&row, token)) else {
            return Ok(None);
        };
        let ended = self
            .has_row(
                "SELECT 1 WHERE EXISTS (SELECT 1 FROM removed_tokens WHERE token = $1)
                 OR EXISTS (SELECT 1 FROM removed_users WHERE id = $2)
                 OR EXISTS (SELECT 1 FROM users WHERE id = $2 AND NOT enabled)",
                &[&token, &found.user.as_str()],
            )
            .await?;
        if ended {
            found.revoked_at = Some(found.issued_at);
        }
        Ok(Some(found))
    }

    /// Notes that a token of the existing system is revoked, whatever that system says.
    pub(super) async fn revoke_outside(&mut self, token: String) -> Result<(), StoreError> {
        let note = "INSERT INTO removed_tokens (token) VALUES ($1) ON CONFLICT DO NOTHING";
        if self.execute(note, &[&token]).await? > 0 {
            self.changed(Change::AccessToken(token))?;
        }
        Ok(())
    }

    async fn outside(
        &mut self,
        key: &'static str,
        sql: &'static str,
        value: &str,
    ) -> Result<Option<Row>, StoreError> {
        begin(&self.conn).await?;
        let (client, statement) = self.conn.prepare(sql).await?;
        let mut rows = client.query(&statement, &[&value]).await?;
        end(&self.conn).await?;
        if rows.len() > 1 {
            tracing::warn!(key, "the query finds several rows, so none is used");
            return Ok(None);
        }
        Ok(rows.pop())
    }
}

/// A record that was found, if it is one.
fn used<T>(key: &'static str, name: &str, read: Result<T, String>) -> Option<T> {
    read.inspect_err(|problem| {
        tracing::warn!(key, name, problem, "a row is not used");
    })
    .ok()
}

fn consumer(row: &Row, key: &ConsumerKey) -> Result<Consumer, String> {
    Ok(Consumer {
        key: key.clone(),
        secret: secret(row)?,
        previous_secret: None,
        rsa_public_key: None,
        rsa_only: false,
        name: value(row, "name")?.unwrap_or_else(|| key.to_string()),
        description: None,
        website: None,
        callbacks: Vec::new(),
        permissions: permissions(row)?,
        dialect: None,
        enforce: false,
        enabled: needed(row, "enabled")?,
        created_at: UnixTime(0),
    })
}

fn access_token(row: &Row, token: &str) -> Result<AccessToken, String> {
    // Nobody says when it was given out; idle time counts from here.
    let now = Clock::system().now();
    let name = |column: &str, text: &str, error| format!("{column} {text:?} is no name: {error}");
    let consumer: String = needed(row, "consumer")?;
    let user = match integer(row, "user_id")? {
        Some(number) => number.to_string(),
        None => needed(row, "user_id")?,
    };
    let is_revoked: bool = needed(row, "revoked")?;
    Ok(AccessToken {
        token: token.to_owned(),
        secret: secret(row)?,
        consumer: consumer
            .parse()
            .map_err(|error: InvalidName| name("consumer", &consumer, error))?,
        user: user
            .parse()
            .map_err(|error: InvalidName| name("user_id", &user, error))?,
        permissions: permissions(row)?,
        issued_at: now,
        expires_at: time(row, "expires_at")?,
        last_used_at: None,
        revoked_at: is_revoked.then_some(now),
    })
}

fn value<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<Option<T>, String> {
    row.try_get(column)
        .map_err(|_| format!("the column {column} cannot be read"))
}

fn needed<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, String> {
    value(row, column)?.ok_or_else(|| format!("the column {column} is null"))
}

fn secret(row: &Row) -> Result<Secret, String> {
    needed::<&str>(row, "secret").map(Secret::from)
}

fn type_of<'r>(row: &'r Row, column: &str) -> Option<&'r Type> {
    let mut columns = row.columns().iter();
    columns
        .find(|found| found.name() == column)
        .map(Column::type_)
}

/// `None`: no number, or of another type.
fn integer(row: &Row, column: &str) -> Result<Option<i64>, String> {
    Ok(match type_of(row, column) {
        Some(&Type::INT8) => value(row, column)?,
        Some(&Type::INT4) => value::<i32>(row, column)?.map(i64::from),
        Some(&Type::INT2) => value::<i16>(row, column)?.map(i64::from),
        _ => None,
    })
}

fn time(row: &Row, column: &str) -> Result<Option<UnixTime>, String> {
    // What was before 1970 is over all the same.
    if type_of(row, column).is_some_and(is_integer) {
        let seconds = integer(row, column)?;
        return Ok(seconds.map(|seconds| UnixTime(u64::try_from(seconds).unwrap_or(0))));
    }
    let at: Option<SystemTime> = value(row, column)?;
    Ok(at.map(|at| {
        let since = at.duration_since(SystemTime::UNIX_EPOCH);
        UnixTime(since.map_or(0, |since| since.as_secs()))
    }))
}

fn permissions(row: &Row) -> Result<Vec<Permission>, String> {
    let is_list = type_of(row, "permissions").is_some_and(|of| !ColumnKind::Text.accepts(of));
    let names: Vec<String> = match is_list {
        true => value(row, "permissions")?.unwrap_or_default(),
        false => {
            let text: Option<&str> = value(row, "permissions")?;
            let names = text.unwrap_or_default().split_whitespace();
            names.map(str::to_owned).collect()
        }
    };
    let parsed = names.iter().map(|name| {
        let parsed = name.parse();
        parsed.map_err(|error| format!("the permission {name:?} is no name: {error}"))
    });
    parsed.collect()
}
