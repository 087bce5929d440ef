//! The line of each key in the file.

use std::collections::BTreeMap;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The line at a place of the text, counted from 1.
pub(super) fn line(text: &str, place: usize) -> usize {
    let before = text.bytes().take(place);
    before.filter(|byte| *byte == b'\n').count() + 1
}

/// The hint for a line that is not TOML: it has quotation marks of a word processor, or the form of another program's
/// configuration.
pub(super) fn other_form(line: &str) -> &'static str {
    let line = line.trim();
    if line.contains(['“', '”', '„', '‘', '’', '«', '»']) {
        "; write texts in straight quotation marks, \"like this\""
    } else if line.ends_with(';') || !line.contains('=') && !line.starts_with('[') {
        "; the file is TOML, as config.example.toml: key = \"value\", below a line with the [section] of the key"
    } else {
        ""
    }
}

/// The line of each key, `listen.tls.key`, and of each item of a list of tables, `operation[2]`. A text that is not TOML
/// has none.
pub(super) fn by_key(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    if let Ok(table) = DeTable::parse(text) {
        add(&mut lines, text, table.get_ref(), "");
    }
    lines
}

/// A key of a table: `"listen.address" = …` is one name with a dot in it, not the key that it looks like.
pub(super) fn below(table: &str, name: &str) -> String {
    let name = match name.contains(['.', '[', ']']) {
        true => format!("{name:?}"),
        false => name.to_owned(),
    };
    match table {
        "" => name,
        table => format!("{table}.{name}"),
    }
}

fn add(lines: &mut BTreeMap<String, usize>, text: &str, table: &DeTable<'_>, of: &str) {
    for (name, value) in table {
        let key = below(of, name.get_ref());
        lines.insert(key.clone(), line(text, name.span().start));
        match value.get_ref() {
            DeValue::Table(inner) => add(lines, text, inner, &key),
            DeValue::Array(items) => {
                let tables = items.iter().enumerate().filter_map(table_of);
                for (number, start, inner) in tables {
                    let item = format!("{key}[{number}]");
                    lines.insert(item.clone(), line(text, start));
                    add(lines, text, inner, &item);
                }
            }
            _ => {}
        }
    }
}

/// A table of a list, with its number from 1 and its place in the text.
fn table_of<'t, 'i>(
    (index, item): (usize, &'t Spanned<DeValue<'i>>),
) -> Option<(usize, usize, &'t DeTable<'i>)> {
    match item.get_ref() {
        DeValue::Table(table) => Some((index + 1, item.span().start, table)),
        _ => None,
    }
}
