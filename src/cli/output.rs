//! Records as people and programs read them.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::{
    secret::Secret,
    store::{
        record::{AccessToken, Consumer, Dialect, User},
        transfer::Imported,
    },
};

/// A record, its members in the order they are shown.
pub struct Record(Vec<(&'static str, Value)>);

/// Whether a record is shown with its secret: only where that is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// With it.
    WithSecret,
    /// Without.
    WithoutSecret,
}

impl Record {
    /// A consumer; `default` is the dialect of one registered without.
    #[must_use]
    pub fn consumer(consumer: &Consumer, default: Dialect, shown: Shown) -> Self {
        let mut members = vec![("key", json!(consumer.key))];
        if shown == Shown::WithSecret {
            members.push(secret(&consumer.secret, "secret", "secret_base64"));
        }
        let until = consumer.previous_secret.as_ref().map(|(_, until)| until);
        members.extend([
            ("name", json!(consumer.name)),
            ("callbacks", json!(consumer.callbacks)),
            ("permissions", json!(consumer.permissions)),
            ("dialect", json!(consumer.dialect.unwrap_or(default))),
            (
                "has_rsa_public_key",
                json!(consumer.rsa_public_key.is_some()),
            ),
            ("enforce", json!(consumer.enforce)),
            ("enabled", json!(consumer.enabled)),
            ("created_at", json!(consumer.created_at)),
            ("previous_secret_until", json!(until)),
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

    /// An access token.
    #[must_use]
    pub fn token(token: &AccessToken, shown: Shown) -> Self {
        let mut members = vec![("token", json!(token.token))];
        if shown == Shown::WithSecret {
            members.push(secret(&token.secret, "token_secret", "token_secret_base64"));
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

    /// What an import did.
    #[must_use]
    pub fn imported(imported: &Imported) -> Self {
        Self(vec![
            ("added", json!(imported.added)),
            ("unchanged", json!(imported.unchanged)),
            ("revoked", json!(imported.revoked)),
            ("kept_out", json!(imported.kept_out)),
        ])
    }

    /// The record as one line of JSON, or a member a line.
    #[must_use]
    pub fn render(self, as_json: bool) -> String {
        if as_json {
            return self.json_line();
        }
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = self
            .0
            .iter()
            .map(|(name, value)| format!("{name:<width$}  {}\n", plain(value)));
        lines.collect()
    }

    fn json_line(&self) -> String {
        // Names and plain values: there is nothing in it that could not be written.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

impl Serialize for Record {
    /// An object whose members keep their order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A secret as text; one that is none as base64 under another name, lest somebody take it for the secret.
fn secret(
    secret: &Secret,
    text_name: &'static str,
    base64_name: &'static str,
) -> (&'static str, Value) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    match std::str::from_utf8(secret.expose()) {
        Ok(text) => (text_name, json!(text)),
        Err(_) => (base64_name, json!(STANDARD.encode(secret.expose()))),
    }
}

/// Members that few records have: `show` tells them, a table for people is better without.
const RARE: [&str; 3] = ["has_rsa_public_key", "enforce", "previous_secret_until"];

/// A list that is rendered as it grows, so that a long one takes no more room than its text.
pub enum Listing {
    /// An object a line.
    Json(String),
    /// A table, the heads first.
    Table(Vec<Vec<String>>),
}

impl Listing {
    /// A list without records.
    #[must_use]
    pub fn new(as_json: bool) -> Self {
        if as_json {
            Self::Json(String::new())
        } else {
            Self::Table(Vec::new())
        }
    }

    /// Adds a record with the same members as the others.
    pub fn push(&mut self, record: &Record) {
        match self {
            Self::Json(text) => text.push_str(&record.json_line()),
            Self::Table(rows) => {
                let columns = record.0.iter().filter(|(name, _)| !RARE.contains(name));
                if rows.is_empty() {
                    rows.push(columns.clone().map(|(name, _)| head(name)).collect());
                }
                rows.push(columns.map(|(_, value)| plain(value)).collect());
            }
        }
    }

    /// The whole text; empty for a list without records.
    #[must_use]
    pub fn finish(self) -> String {
        match self {
            Self::Json(text) => text,
            Self::Table(rows) => table(&rows),
        }
    }
}

fn head(name: &str) -> String {
    name.replace('_', " ").to_uppercase()
}

fn table(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
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
    let visible = |character: char| match character.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => character,
    };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests;
