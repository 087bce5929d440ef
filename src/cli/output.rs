//! Records as people and programs read them.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::{
    secret::Secret,
    store::record::{AccessToken, Consumer, Dialect, User},
};

/// The members of a record in the order in which they are shown.
#[derive(Default)]
pub struct Members(Vec<(&'static str, Value)>);

/// Whether a record is shown with its secret: only where that is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// With it.
    WithSecret,
    /// Without.
    WithoutSecret,
}

impl Members {
    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Serialize) -> Self {
        // Strings, numbers and lists: all of them can be written.
        self.0.push((name, json!(value)));
        self
    }

    /// Adds a secret under the first name; one that is not UTF-8 as base64 under the second, so that the
    /// base64 is not mistaken for the secret.
    #[must_use]
    pub fn with_secret(self, names: [&'static str; 2], secret: &Secret) -> Self {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        match std::str::from_utf8(secret.expose()) {
            Ok(text) => self.with(names[0], text),
            Err(_) => self.with(names[1], STANDARD.encode(secret.expose())),
        }
    }

    /// Adds all of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// A consumer; `default` is the dialect of one registered without.
    #[must_use]
    pub fn consumer(consumer: &Consumer, default: Dialect, shown: Shown) -> Self {
        let mut members = Self::default().with("key", &consumer.key);
        if shown == Shown::WithSecret {
            members = members.with_secret(["secret", "secret_base64"], &consumer.secret);
        }
        let until = consumer.previous_secret.as_ref().map(|(_, until)| until);
        members
            .with("name", &consumer.name)
            .with("callbacks", &consumer.callbacks)
            .with("permissions", &consumer.permissions)
            .with("dialect", consumer.dialect.unwrap_or(default))
            .with("description", &consumer.description)
            .with("website", &consumer.website)
            .with("has_rsa_public_key", consumer.rsa_public_key.is_some())
            .with("rsa_only", consumer.rsa_only)
            .with("enforce", consumer.enforce)
            .with("enabled", consumer.enabled)
            .with("created_at", consumer.created_at)
            .with("previous_secret_until", until)
    }

    /// A user.
    #[must_use]
    pub fn user(user: &User) -> Self {
        Self::default()
            .with("id", &user.id)
            .with("name", &user.name)
            .with("display_name", &user.display_name)
            .with("enabled", user.enabled)
            .with("created_at", user.created_at)
    }

    /// An access token.
    #[must_use]
    pub fn token(token: &AccessToken, shown: Shown) -> Self {
        let mut members = Self::default().with("token", &token.token);
        if shown == Shown::WithSecret {
            members = members.with_secret(["token_secret", "token_secret_base64"], &token.secret);
        }
        members
            .with("consumer", &token.consumer)
            .with("user", &token.user)
            .with("permissions", &token.permissions)
            .with("issued_at", token.issued_at)
            .with("expires_at", token.expires_at)
            .with("last_used_at", token.last_used_at)
            .with("revoked_at", token.revoked_at)
    }

    /// The record as one line of JSON, or a member a line.
    #[must_use]
    pub fn render(&self, as_json: bool) -> String {
        if as_json {
            return self.json_line();
        }
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, value): &(_, _)| format!("{name:<width$}  {}\n", plain(value));
        self.0.iter().map(line).collect()
    }

    /// The record as one line of JSON.
    #[must_use]
    pub fn json_line(&self) -> String {
        // Names and plain values: all of them can be written.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

impl Serialize for Members {
    /// An object whose members keep their order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Members that few records have: `show` prints them, a table for people is better without.
const RARE: [&str; 6] = [
    "description",
    "website",
    "has_rsa_public_key",
    "rsa_only",
    "enforce",
    "previous_secret_until",
];

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
    pub fn push(&mut self, record: &Members) {
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
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
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
