//! Credentials that an existing system keeps in the same database: found by the operator's queries, never written.
//!
//! A query runs in a read-only transaction of its own, in which names of tables are looked up by the search path of the
//! role and not by ours. It may find anything, so every value is checked: a row that is not a valid credential is
//! logged and not used.

use std::{
    hash::{BuildHasher, RandomState},
    str::FromStr,
};

use async_trait::async_trait;
use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;
use tokio::time::timeout;
use tokio_postgres::{
    Statement,
    types::{ToSql, Type},
};

use super::{COMMAND_TIMEOUT, pool::Conn};
use crate::{
    clock::{Clock, UnixTime},
    names::{ConsumerKey, InvalidName, Permission},
    store::{
        Result, StoreError,
        record::{AccessToken, Consumer},
        sql::{Outside, Tx},
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

const CONSUMER_KEY: &str = "store.lookup.consumer_sql";
const CONSUMER_COLUMNS: &[&str] = &["secret", "name", "permissions", "enabled"];
const TOKEN_KEY: &str = "store.lookup.token_sql";
const TOKEN_COLUMNS: &[&str] = &[
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

/// Runs each query once with a value that matches nothing, and checks its parameter and its columns.
pub(super) async fn check(conn: &Conn, lookup: &Lookup) -> Result<(), LookupError> {
    for (key, sql, columns) in [
        (CONSUMER_KEY, lookup.consumer_sql, CONSUMER_COLUMNS),
        (TOKEN_KEY, lookup.token_sql, TOKEN_COLUMNS),
    ] {
        let Some(sql) = sql else { continue };
        let failed = |problem: String| LookupError { key, problem };
        let nothing = format!("no such {:x}", RandomState::new().hash_one(key));
        let run = async {
            let client = conn.client()?;
            client.batch_execute(BEGIN).await?;
            let statement = client.prepare(sql).await?;
            if let Some(problem) = problem(&statement, columns) {
                return Ok(Err(problem));
            }
            let rows = client.query(&statement, &[&nothing]).await?;
            client.prepare(&wrapped(sql)).await?;
            client.batch_execute("COMMIT").await?;
            Ok::<_, StoreError>(Ok(rows.len()))
        };
        // The server's own time-out is not enough: a function may go on after it, and the server may hang.
        let rows = timeout(COMMAND_TIMEOUT, run).await;
        let rows = rows.map_err(|_| failed(format!("does not end within {COMMAND_TIMEOUT:?}")))?;
        let rows = rows.map_err(|error| failed(causes(&error)))?;
        if rows.map_err(failed)? > 0 {
            return Err(failed(
                "finds a row for a value that is in no table; compare the column with $1"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

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

/// Names of tables are looked up by the search path of the role, not by ours.
const BEGIN: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO DEFAULT";

/// The query with its row as JSON, whatever types its columns have.
fn wrapped(sql: &str) -> String {
    let sql = sql.trim_end().trim_end_matches(';');
    format!("SELECT to_jsonb(found)::text AS found FROM ({sql}\n) AS found")
}

#[derive(Deserialize)]
struct ConsumerRow {
    secret: String,
    name: Option<String>,
    permissions: Option<Names>,
    enabled: bool,
}

#[derive(Deserialize)]
struct TokenRow {
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

#[async_trait]
impl Outside for Lookup {
    async fn consumer(&self, tx: &mut Tx, key: &ConsumerKey) -> Result<Option<Consumer>> {
        let read = |row: ConsumerRow| {
            let name = row.name.unwrap_or_else(|| key.to_string());
            Ok(Consumer {
                permissions: permissions(row.permissions)?,
                enabled: row.enabled,
                ..Consumer::new(key.clone(), row.secret.into(), name, UnixTime(0))
            })
        };
        let found = find(tx, CONSUMER_KEY, self.consumer_sql, key.as_str()).await?;
        Ok(found.and_then(|row| used(CONSUMER_KEY, key.as_str(), &row, read)))
    }

    async fn access_token(&self, tx: &mut Tx, token: &str) -> Result<Option<AccessToken>> {
        // The time of issue is not known; idle time counts from here.
        let now = Clock::system().now();
        let read = |row: TokenRow| {
            let user = match row.user_id {
                NumberOrText::Number(number) => number.to_string(),
                NumberOrText::Text(text) => text,
            };
            Ok(AccessToken {
                token: token.to_owned(),
                secret: row.secret.into(),
                consumer: name("consumer", &row.consumer)?,
                user: name("user_id", &user)?,
                permissions: permissions(row.permissions)?,
                issued_at: now,
                expires_at: row.expires_at.map(time).transpose()?,
                last_used_at: None,
                revoked_at: row.revoked.then_some(now),
            })
        };
        let found = find(tx, TOKEN_KEY, self.token_sql, token).await?;
        let shown = RedactedToken(token).to_string();
        Ok(found.and_then(|row| used(TOKEN_KEY, &shown, &row, read)))
    }

    fn has_consumers(&self) -> bool {
        self.consumer_sql.is_some()
    }
}

/// Runs a query; `None`: it does not find exactly one row.
async fn find(
    tx: &mut Tx,
    key: &'static str,
    sql: Option<&str>,
    value: &str,
) -> Result<Option<String>> {
    let Some(sql) = sql else { return Ok(None) };
    tx.batch(BEGIN).await?;
    let mut rows = tx
        .rows(&wrapped(sql), &[value.into()], |row, _| row.get("found"))
        .await?;
    tx.batch("COMMIT").await?;
    if rows.len() > 1 {
        tracing::warn!(key, "the query finds several rows, so none is used");
        return Ok(None);
    }
    Ok(rows.pop())
}

/// The record in a row; `None` if the row is not a valid one.
fn used<R: DeserializeOwned, T>(
    key: &'static str,
    name: &str,
    row: &str,
    read: impl FnOnce(R) -> Result<T, String>,
) -> Option<T> {
    // The error itself could show a secret.
    let row = serde_json::from_str(row)
        .map_err(|_| "a column that is needed is null, or has another type".to_owned());
    row.and_then(read)
        .inspect_err(|problem| tracing::warn!(key, name, problem, "a row is not used"))
        .ok()
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
