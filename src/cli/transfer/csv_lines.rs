//! CSV in the place of JSON Lines: each row becomes a line of [`mod@super::format`], at the row's own number, so that
//! both are read by the same rules and errors name the row.

use std::io::{self, Read, Write};

use csv::{ErrorKind, StringRecord};
use serde_json::{Map, Value};
use thiserror::Error;

use super::format::HEAD;
use crate::clock::UnixTime;

/// A member of a record and the column that holds it.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    member: String,
    column: String,
}

impl Mapping {
    /// Reads `key=consumer_key`, or `key` where both have one name.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (member, column) = text.split_once('=').unwrap_or((text, text));
        if member.is_empty() || column.is_empty() {
            return Err("write MEMBER=COLUMN, as in key=consumer_key");
        }
        Ok(Self {
            member: member.to_owned(),
            column: column.to_owned(),
        })
    }
}

/// What is wrong with the CSV itself, and on which line.
#[derive(Debug, Error)]
#[error("{line}: {problem}")]
pub(super) struct CsvError {
    line: u64,
    problem: String,
}

impl From<CsvError> for io::Error {
    fn from(error: CsvError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// Writes the rows of a CSV file with a header as JSON Lines. Without a `map` all its columns are members; without a
/// `kind`, `key` among the members makes the rows consumers, `token` tokens, and neither users.
///
/// # Errors
/// Those of input and output, or a [`CsvError`].
pub(super) fn convert(
    input: impl Read,
    map: &[Mapping],
    kind: Option<&str>,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut rows = csv::Reader::from_reader(input);
    let members = members(rows.headers().map_err(explain)?, map)?;
    let has = |name: &str| members.iter().any(|(member, _)| member == name);
    let kind = match kind {
        Some(kind) => kind,
        None if has("key") => "consumer",
        None if has("token") => "token",
        None => "user",
    };
    output.write_all(HEAD.as_bytes())?;
    let (mut row, mut last) = (StringRecord::new(), 1);
    while rows.read_record(&mut row).map_err(explain)? {
        let line = row.position().map_or(0, csv::Position::line).max(last + 1);
        let mut record = Map::new();
        record.insert("kind".to_owned(), kind.into());
        for (member, column) in &members {
            let cell = row.get(*column).unwrap_or_default();
            if !cell.is_empty() {
                let value = value(member, cell).map_err(|problem| CsvError { line, problem })?;
                record.insert(member.clone(), value);
            }
        }
        for _ in last..line {
            output.write_all(b"\n")?;
        }
        write!(output, "{}", Value::Object(record))?;
        last = line;
    }
    Ok(())
}

/// Each member and the number of its column.
fn members(header: &StringRecord, map: &[Mapping]) -> Result<Vec<(String, usize)>, CsvError> {
    let failed = |problem: String| Err(CsvError { line: 1, problem });
    let all: Vec<Mapping> = match map {
        [] => header
            .iter()
            .filter_map(|name| Mapping::parse(name).ok())
            .collect(),
        map => map.to_vec(),
    };
    let mut members: Vec<(String, usize)> = Vec::new();
    for Mapping { member, column } in all {
        let mut found = header
            .iter()
            .enumerate()
            .filter(|(_, name)| *name == column);
        let (first, second) = (found.next(), found.next());
        let Some((index, _)) = first else {
            let columns: Vec<&str> = header.iter().collect();
            let columns = columns.join(", ");
            return failed(format!(
                "there is no column {column:?}; the columns are {columns}"
            ));
        };
        if second.is_some() {
            return failed(format!("there are two columns {column:?}; rename one"));
        }
        if members.iter().any(|(known, _)| *known == member) {
            return failed(format!("{member} is mapped twice; take one of the two out"));
        }
        members.push((member, index));
    }
    Ok(members)
}

/// A cell as the JSON value of its member.
fn value(member: &str, cell: &str) -> Result<Value, String> {
    match member {
        "callbacks" | "permissions" => Ok(cell.split_whitespace().collect()),
        "rsa_only" | "enforce" | "enabled" => match &*cell.to_ascii_lowercase() {
            "true" | "t" | "yes" | "y" | "1" => Ok(true.into()),
            "false" | "f" | "no" | "n" | "0" => Ok(false.into()),
            _ => Err(format!("{member}: {cell:?} is neither true nor false")),
        },
        _ if member.ends_with("_at") || member.ends_with("_until") => Ok(time(cell).into()),
        _ => Ok(cell.into()),
    }
}

/// Seconds since 1970, and `2026-01-31 12:00:00` as databases write UTC, in the form of RFC 3339.
fn time(cell: &str) -> String {
    if let Ok(seconds) = cell.parse() {
        return UnixTime(seconds).to_string();
    }
    match cell.split_once(' ') {
        Some((date, time)) if !time.contains(['+', '-', 'Z']) => format!("{date}T{time}Z"),
        Some((date, time)) => format!("{date}T{time}"),
        None => cell.to_owned(),
    }
}

fn explain(error: csv::Error) -> io::Error {
    let line = error.position().map_or(1, csv::Position::line);
    let problem = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("has {len} cells and the header {expected_len}")
        }
        ErrorKind::Utf8 { .. } => "is not UTF-8".to_owned(),
        _ => return error.into(),
    };
    CsvError { line, problem }.into()
}
