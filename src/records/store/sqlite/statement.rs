//! Statements on a connection of SQLite.

use std::sync::Arc;

use rusqlite::{
    Connection, params_from_iter,
    types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef},
};

use crate::records::values::{
    Result,
    value::{Row, Value},
};

/// Runs a statement; returns how many rows it touched.
pub(super) fn execute(sql: &Connection, statement: &str, params: Vec<Value>) -> Result<u64> {
    let mut statement = sql.prepare_cached(&numbered(statement))?;
    Ok(statement.execute(params_from_iter(params))? as u64)
}

/// Runs a statement and reads all rows that it returns.
pub(super) fn rows(sql: &Connection, statement: &str, params: Vec<Value>) -> Result<Vec<Row>> {
    let mut statement = sql.prepare_cached(&numbered(statement))?;
    let columns = statement.column_names().map(str::to_owned);
    let columns: Arc<[String]> = columns.collect();
    let mut found = statement.query(params_from_iter(params))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(Row::new(&columns, |index| row.get(index))?);
    }
    Ok(rows)
}

/// Runs statements without parameters.
pub(super) fn batch(sql: &Connection, statements: &str) -> Result<()> {
    Ok(sql.execute_batch(&without_schema(statements))?)
}

/// A statement with its parameters as SQLite numbers them, and its tables and functions without the name of the schema,
/// which SQLite does not have.
fn numbered(statement: &str) -> String {
    without_schema(statement).replace('$', "?")
}

fn without_schema(statements: &str) -> String {
    statements.replace("countersign.", "")
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
