//! Records as people and programs read them.

use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

use crate::store::record::{AccessToken, Consumer, Dialect, User};

/// A record, its members in the order they are shown.
pub struct Record(Vec<(&'static str, Value)>);

impl Record {
    /// A consumer; the secret only where it is issued.
    #[must_use]
    pub fn consumer(consumer: &Consumer, default: Dialect, with_secret: bool) -> Self {
        let mut members = vec![("key", json!(consumer.key))];
        if with_secret {
            members.push(("secret", json!(*consumer.secret.expose_text())));
        }
        members.extend([
            ("name", json!(consumer.name)),
            ("callbacks", json!(consumer.callbacks)),
            ("permissions", json!(consumer.permissions)),
            ("dialect", json!(consumer.dialect.unwrap_or(default))),
            ("enabled", json!(consumer.enabled)),
            ("created_at", json!(consumer.created_at)),
        ]);
        Self(members)
    }

    /// A user.
    #[must_use]
    pub fn user(user: &User) -> Self {
        Self(vec![
            ("id", json!(user.id)),
            ("name", json!(user.name)),
            ("display_name", json!(user.display_name)),
            ("enabled", json!(user.enabled)),
            ("created_at", json!(user.created_at)),
        ])
    }

    /// An access token; the secret only where it is issued.
    #[must_use]
    pub fn token(token: &AccessToken, with_secret: bool) -> Self {
        let mut members = vec![("token", json!(token.token))];
        if with_secret {
            members.push(("token_secret", json!(*token.secret.expose_text())));
        }
        members.extend([
            ("consumer", json!(token.consumer)),
            ("user", json!(token.user)),
            ("permissions", json!(token.permissions)),
            ("issued_at", json!(token.issued_at)),
            ("expires_at", json!(token.expires_at)),
            ("last_used_at", json!(token.last_used_at)),
            ("revoked_at", json!(token.revoked_at)),
        ]);
        Self(members)
    }

    /// Prints the record: as one line of JSON, or a member a line.
    ///
    /// # Errors
    /// The output's.
    pub fn print(self, as_json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if as_json {
            let object: Map<String, Value> = self
                .0
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            return writeln!(out, "{}", Value::Object(object));
        }
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in self.0 {
            writeln!(out, "{name:<width$}  {}", plain(&value))?;
        }
        Ok(())
    }
}

/// Prints a list: an object a line, or a table.
///
/// # Errors
/// The output's.
pub fn print_list(records: Vec<Record>, as_json: bool) -> io::Result<()> {
    if as_json {
        return records
            .into_iter()
            .try_for_each(|record| record.print(true));
    }
    let Some(first) = records.first() else {
        return Ok(());
    };
    let heads: Vec<String> = first
        .0
        .iter()
        .map(|(name, _)| name.to_uppercase())
        .collect();
    let rows = records
        .iter()
        .map(|record| record.0.iter().map(|(_, value)| plain(value)).collect());
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = io::stdout().lock();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// A value as people read it. Control characters of names that somebody else chose do not reach the terminal.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    text.chars()
        .map(|character| {
            if character.is_control() {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect()
}
