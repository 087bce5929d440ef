//! The texts, links and tables that the sections of a page consist of.

use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value};

use crate::{
    base::clock::UnixTime,
    operator::manage::{FieldKind, RecordField},
    provider::issue::callback::ESCAPED,
};

/// A table. Without rows, `empty` is shown.
#[derive(Default)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<Line>>,
    pub(super) empty: &'static str,
    /// The link to the next page.
    pub(super) next: Option<String>,
}

/// Texts and links in one line.
pub(super) type Line = Vec<Cell>;

/// A text, perhaps a link.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) href: Option<String>,
    pub(super) class: &'static str,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// A line of one text.
pub(super) fn line(text: impl Into<String>) -> Line {
    vec![Cell::from(text)]
}

/// A link.
pub(super) fn link(text: impl Into<String>, href: impl Into<String>) -> Cell {
    Cell {
        text: text.into(),
        href: Some(href.into()),
        class: "",
    }
}

/// A text in a frame; the class `tag good` or `tag bad` colours it.
pub(super) fn tag(text: impl Into<String>, class: &'static str) -> Cell {
    Cell {
        text: text.into(),
        href: None,
        class,
    }
}

/// A path of the console with these parameters; empty ones are left out.
pub(super) fn path(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs =
        given.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ESCAPED)));
    let pairs = Vec::from_iter(pairs);
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

/// A number with its noun.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A time, `2026-01-31 12:00:00 UTC`.
pub(super) fn time(time: UnixTime) -> String {
    time.to_string().replace('T', " ").replace('Z', " UTC")
}

/// Whether something is enabled.
pub(super) fn enabled(is_enabled: bool) -> Cell {
    match is_enabled {
        true => tag("enabled", "tag good"),
        false => tag("disabled", "tag bad"),
    }
}

/// Names with commas between them.
pub(super) fn listed(names: &[impl ToString]) -> String {
    match names {
        [] => "none".to_owned(),
        names => Vec::from_iter(names.iter().map(ToString::to_string)).join(", "),
    }
}

/// The value of a field of a record, as a page shows it.
pub(super) fn field_text(field: &RecordField, members: &Map<String, Value>) -> String {
    let text = field.text(members);
    match field.kind {
        FieldKind::Flag if text.is_empty() => "no".to_owned(),
        FieldKind::Choice(_) if text.is_empty() => "the default".to_owned(),
        _ if text.is_empty() => "none".to_owned(),
        FieldKind::List(_) => text.replace('\n', ", "),
        _ => text,
    }
}
