//! Records as people and programs read them.

use std::{
    borrow::Cow,
    io::{self, Write as _},
};

use rustix::termios::tcgetwinsize;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::operator::manage::{ASKED_MEMBERS, CONSUMER_FIELDS};

/// A record: as one line of JSON, or a line for each field.
pub fn record(record: &Value, as_json: bool) -> String {
    if as_json {
        return json_line(record);
    }
    let width = fields(record).map(|(name, _)| name.len()).max();
    let width = width.unwrap_or(0);
    fields(record)
        .map(|(name, value)| format!("{name:<width$}  {}\n", plain(value)))
        .collect()
}

/// A record as one line of JSON.
pub fn json_line(record: &Value) -> String {
    format!("{record}\n")
}

/// The fields of a record, in the order in which they are shown.
fn fields(record: &Value) -> impl Iterator<Item = (&String, &Value)> {
    record.as_object().into_iter().flatten()
}

/// Whether few consumers have a member. `show` prints it; a table for people does not.
fn is_rare(name: &str) -> bool {
    let field = CONSUMER_FIELDS.iter().find(|field| field.name == name);
    let further = [
        "has_rsa_public_key",
        "previous_secret_until",
        "last_signed_at",
    ];
    let is_further = ASKED_MEMBERS.iter().chain(&further).any(|it| *it == name);
    is_further || field.is_some_and(|field| !field.is_column)
}

/// A list that is rendered as it grows, so that a long one needs only the memory of its text.
pub struct Listing {
    as_json: bool,
    json: String,
    /// The rare members that the table has too.
    shown: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Listing {
    /// A list without records: an object a line, or a table with its heads first.
    /// The table has these rare members too.
    pub fn new(as_json: bool, shown: &'static [&'static str]) -> Self {
        Self {
            as_json,
            shown,
            json: String::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a record with the same fields as the others.
    pub fn push(&mut self, record: &Value) {
        if self.as_json {
            self.json.push_str(&json_line(record));
            return;
        }
        let is_shown = |name: &str| !is_rare(name) || self.shown.contains(&name);
        let columns = || fields(record).filter(|(name, _)| is_shown(name));
        if self.rows.is_empty() {
            let head = columns().map(|(name, _)| name.replace('_', " ").to_uppercase());
            self.rows.push(head.collect());
        }
        self.rows
            .push(columns().map(|(_, value)| plain(value)).collect());
    }

    /// The whole text; empty for a list without records. In a table that would be wider than `limit`, the longest cells are
    /// shortened, but for those of the first column.
    pub fn finish(self, limit: Option<usize>) -> String {
        if self.as_json {
            return self.json;
        }
        let mut widths = vec![0; self.rows.first().map_or(0, Vec::len)];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        fit(&mut widths, limit.unwrap_or(usize::MAX));
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            // Unlike `{:<width$}`, in columns of the terminal: a Chinese character takes two, a combining mark none.
            let cells = cells.map(|(cell, &width)| {
                let cell = shortened(cell, width);
                let rest = width.saturating_sub(cell.width());
                format!("{cell}{:rest$}", "")
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// The narrowest column.
const NARROWEST: usize = 8;

/// Makes columns narrower, the widest first, until the table fits.
fn fit(widths: &mut [usize], limit: usize) {
    let between = 2 * widths.len().saturating_sub(1);
    let mut total = widths.iter().sum::<usize>() + between;
    while total > limit {
        let others = widths.iter_mut().skip(1);
        match others.max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => return,
        }
        total -= 1;
    }
}

/// The beginning of a cell that is too long.
fn shortened(cell: &str, width: usize) -> Cow<'_, str> {
    if cell.width() <= width {
        return Cow::Borrowed(cell);
    }
    let mut left = width.saturating_sub(1);
    let beginning = cell.chars().map_while(|character| {
        left = left.checked_sub(character.width().unwrap_or(0))?;
        Some(character)
    });
    Cow::Owned(beginning.chain(['…']).collect())
}

/// The columns of the terminal, if standard output is one.
pub fn terminal_width() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
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

/// Writes to standard error. A failure is ignored: the exit code shows the outcome.
pub(in crate::cli) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests;
