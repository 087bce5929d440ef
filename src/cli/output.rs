//! Records as people and programs read them.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::secret::Secret;

/// The fields of a record in the order in which they are shown.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Members(Map<String, Value>);

impl Members {
    /// The fields of a view.
    #[must_use]
    pub fn of(view: &impl Serialize) -> Self {
        match serde_json::to_value(view) {
            Ok(Value::Object(fields)) => Self(fields),
            // Views are structs of strings, numbers and lists.
            _ => Self::default(),
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.0.insert(name.to_owned(), json!(value));
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

    /// Adds all fields of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The record as one line of JSON, or a line for each field.
    #[must_use]
    pub fn render(&self, as_json: bool) -> String {
        if as_json {
            return self.json_line();
        }
        let width = self.0.keys().map(String::len).max().unwrap_or(0);
        let line = |(name, value): (&String, &_)| format!("{name:<width$}  {}\n", plain(value));
        self.0.iter().map(line).collect()
    }

    /// The record as one line of JSON.
    #[must_use]
    pub fn json_line(&self) -> String {
        // Names and plain values: all of them can be written.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Fields that few records have. `show` prints them; a table for people does not.
const RARE: [&str; 6] = [
    "description",
    "website",
    "has_rsa_public_key",
    "rsa_only",
    "enforce",
    "previous_secret_until",
];

/// A list that is rendered as it grows, so that a long one needs no more memory than its text.
pub struct Listing {
    as_json: bool,
    json: String,
    rows: Vec<Vec<String>>,
}

impl Listing {
    /// A list without records: an object a line, or a table with its heads first.
    #[must_use]
    pub fn new(as_json: bool) -> Self {
        Self {
            as_json,
            json: String::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a record with the same fields as the others.
    pub fn push(&mut self, record: &Members) {
        if self.as_json {
            self.json.push_str(&record.json_line());
            return;
        }
        let columns = record
            .0
            .iter()
            .filter(|(name, _)| !RARE.contains(&name.as_str()));
        if self.rows.is_empty() {
            let head = |(name, _): (&String, &_)| name.replace('_', " ").to_uppercase();
            self.rows.push(columns.clone().map(head).collect());
        }
        self.rows
            .push(columns.map(|(_, value)| plain(value)).collect());
    }

    /// The whole text; empty for a list without records.
    #[must_use]
    pub fn finish(self) -> String {
        if self.as_json {
            return self.json;
        }
        let mut widths = vec![0; self.rows.first().map_or(0, Vec::len)];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
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
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests;
