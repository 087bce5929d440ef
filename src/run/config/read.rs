//! Reads the file, with the environment over it.
//!
//! A variable's value is TOML. A value that is not valid TOML is a string, so that `300s` needs no quotes. With `_FILE`
//! the value is the content of the file that the variable names, less one final newline; a relative name belongs to the
//! directory of the configuration file. `COUNTERSIGN_DATA` names the directory for the store and the nonce window, if their paths
//! are relative. A key that ends in `_file` itself wins over that reading:
//! `COUNTERSIGN__STORE__ENCRYPTION_KEY_FILE` is `store.encryption_key_file`. `COUNTERSIGN__OPERATION` and
//! `COUNTERSIGN__PERMISSION` take the whole list, `[{ path = "/members/{id}" }]`.
//!
//! A variable that begins with `COUNTERSIGN_` and sets nothing is remembered for a warning.
//!
//! No problem repeats a value: it may be a secret.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use serde_path_to_error::Segment;
use strsim::damerau_levenshtein;
use thiserror::Error;
use toml::{Table, Value};

use super::{SECTIONS, lines, rules::Finding, stray};
use crate::{
    base::settings::{Directories, Section, Unwritten, value_of},
    operator::manage::setting::EffectiveSetting,
    telemetry::log::lines::visible,
};

const PREFIX: &str = "COUNTERSIGN__";
/// Keys of an earlier version, each with what to do.
const REMOVED: [(&str, &str); 3] = [
    (
        "pages.contrast",
        "this key was removed: text in an accent always has a contrast of at least 4.5 to 1; remove it",
    ),
    ("store.lookup.consumer_sql", BY_SQL),
    ("store.lookup.token_sql", BY_SQL),
];
const BY_SQL: &str = "this key was removed: records are looked up over HTTP instead of by SQL; remove it, and let store.lookup.url be \
                      the URL of an endpoint of the application that runs the query (docs/lookup.md)";
/// The variable with the directory of the files that the process writes.
const DATA_VARIABLE: &str = "COUNTERSIGN_DATA";

/// Every problem of a configuration, one line for each: place, key and fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigErrors(pub(super) Vec<String>);

impl ConfigErrors {
    /// A problem of the file as a whole.
    pub fn for_file(file: &str, message: &str) -> Self {
        Self(vec![visible(&format!("{file}: {message}"))])
    }
}

/// The text of the operator, and its problems.
pub(super) struct Written<'f> {
    /// The file, as problems name it.
    file: &'f str,
    /// Its directory, to which relative paths belong.
    directory: &'f Path,
    /// The directory to which relative paths of files that the process writes belong.
    data: PathBuf,
    table: Table,
    /// The line of each key in the file.
    lines: BTreeMap<String, usize>,
    /// The variables that are over the file, by the key that each sets.
    variables: BTreeMap<String, String>,
    /// The variables that look like ours and set nothing.
    stray: Vec<Finding>,
    problems: Vec<String>,
}

impl<'f> Written<'f> {
    /// Reads a file's text, which problems call `file`, and puts the variables over it. `directory` is the file's.
    ///
    /// # Errors
    /// The file is not TOML.
    pub(super) fn read(
        text: &str,
        file: &'f str,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        directory: &'f Path,
    ) -> Result<Self, ConfigErrors> {
        let table = text.parse().map_err(|error: toml::de::Error| {
            let line = lines::line(text, error.span().map_or(0, |span| span.start));
            let words: Vec<_> = error.message().split_whitespace().collect();
            let other = lines::other_form(text.lines().nth(line - 1).unwrap_or_default());
            let message = format!("not valid TOML: {}{other}", words.join(" "));
            ConfigErrors::for_file(&format!("{file}:{line}"), &message)
        })?;
        let mut written = Self {
            file,
            directory,
            data: directory.to_owned(),
            table,
            lines: lines::by_key(text),
            variables: BTreeMap::new(),
            stray: Vec::new(),
            problems: Vec::new(),
        };
        written.put_over(environment);
        written.check_names(&written.table.clone(), "");
        Ok(written)
    }

    /// Adds a problem of a whole key, `listen.tls.key` or, counted from 1, `operation[2].path`.
    pub(super) fn problem(&mut self, key: &str, message: &str) {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['[', '.']);
        let sets = |known: &str| key.strip_prefix(known).is_some_and(is_below);
        let variable = self.variables.iter().find(|(known, _)| sets(known));
        // A key that is missing from an item of a list has the line of the item.
        let item = || key.rsplit_once('.').filter(|(item, _)| item.ends_with(']'));
        let line = self.lines.get(key);
        let line = line.or_else(|| self.lines.get(item()?.0));
        let place = match (variable, line) {
            (Some((_, name)), _) => name.clone(),
            (None, Some(line)) => format!("{}:{line}", self.file),
            (None, None) => self.file.to_owned(),
        };
        self.problems
            .push(visible(&format!("{place}: {key}: {message}")));
    }

    /// The value, if there is no problem. Without a value there is always one.
    pub(super) fn into_result<T>(self, value: Option<T>) -> Result<T, ConfigErrors> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(ConfigErrors(self.problems)),
        }
    }

    /// Reports the unknown keys of a table. In `place`, the table's key, items of lists are counted from 1.
    fn check_names(&mut self, table: &Table, place: &str) {
        for (name, value) in table {
            let place = lines::below(place, name);
            let key = without_numbers(&place);
            let section = SECTIONS.iter().find(|known| known.name == key);
            let is_list = section.is_some_and(|section| section.list);
            match value {
                Value::Table(inner)
                    if !inner.is_empty() && !is_list && !keys().any(|known| known == key) =>
                {
                    self.check_names(inner, &place);
                }
                Value::Array(items) if is_list => {
                    for (index, item) in items.iter().enumerate() {
                        let place = format!("{place}[{}]", index + 1);
                        item.as_table()
                            .into_iter()
                            .for_each(|inner| self.check_names(inner, &place));
                    }
                }
                Value::Table(_) if section.is_some() => {}
                _ if is_list || keys().any(|known| known == key) => {}
                value => {
                    // Only a list of tables can have meant another one.
                    let is_tables = value.as_array().is_some_and(|items| {
                        !items.is_empty() && items.iter().all(Value::is_table)
                    });
                    let lists = SECTIONS.iter().filter(|known| is_tables && known.list);
                    let list = nearest(&key, lists.map(|known| known.name.to_owned()));
                    let near = list.map(|list| format!("[[{list}]]"));
                    let near = near.or_else(|| nearest(&key, keys()));
                    let unknown = near.map_or_else(
                        || "unknown key; see config.example.toml".to_owned(),
                        |near| format!("unknown key, did you mean {near}?"),
                    );
                    let message = removed(&key).map_or(unknown, str::to_owned);
                    self.problem(&place, &message);
                }
            }
        }
    }

    /// Puts the variables that are ours over the file; those of other names are left alone.
    fn put_over(&mut self, environment: impl IntoIterator<Item = (OsString, OsString)>) {
        let mut variables: BTreeMap<String, OsString> = environment
            .into_iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
            .filter(|(name, _)| name.starts_with(stray::PREFIX))
            .collect();
        variables.retain(|name, _| {
            let is_ours = name.starts_with(PREFIX) || name == DATA_VARIABLE;
            if !is_ours {
                let names = keys().map(|key| variable(&key));
                self.stray.extend(stray::finding(name, names));
            }
            is_ours
        });
        if let Some(data) = variables.remove(DATA_VARIABLE) {
            self.data = self.directory.join(data);
        }
        // A list is one key.
        let settable = SECTIONS.iter().flat_map(|section| match section.list {
            true => vec![section.name.to_owned()],
            false => section.full_keys().collect(),
        });
        let known: BTreeMap<_, _> = settable.map(|key| (variable(&key), key)).collect();
        for (name, value) in &variables {
            let plain = name.strip_suffix("_FILE").unwrap_or_default();
            let read = if let Some(key) = known.get(name) {
                let text = value.to_str().map(|text| (key, text.to_owned()));
                text.ok_or("its value is not valid UTF-8".to_owned())
            } else if variables.contains_key(plain) {
                Err(format!("{plain} is set too; unset one of the two"))
            } else if let Some(key) = known.get(plain) {
                read_file(&self.directory.join(value)).map(|text| (key, text))
            } else {
                let key = name[PREFIX.len()..].replace("__", ".").to_ascii_lowercase();
                let near = nearest(&key, known.values().cloned());
                let hint = near.map_or(
                    "; its name is COUNTERSIGN__SECTION__KEY, with the keys of config.example.toml"
                        .to_owned(),
                    |near| format!(", did you mean {}?", variable(&near)),
                );
                let unknown = format!("unknown variable{hint}");
                Err(removed(&key).map_or(unknown, str::to_owned))
            };
            match read {
                Ok((key, text)) => {
                    insert(&mut self.table, key, value_of(&text));
                    self.variables.insert(key.clone(), name.clone());
                }
                Err(message) => self.problems.push(visible(&format!("{name}: {message}"))),
            }
        }
    }

    /// The variables that look like ours and set nothing, each with the fix.
    pub(super) fn stray(&self) -> Vec<Finding> {
        self.stray.clone()
    }

    /// The value of a key or a section, if it is written.
    fn written(&self, key: &str) -> Option<&Value> {
        let mut steps = key.split('.');
        let first = self.table.get(steps.next()?)?;
        steps.try_fold(first, |value, name| value.get(name))
    }

    fn directories(&self) -> Directories<'_> {
        Directories {
            file: self.directory,
            data: &self.data,
        }
    }

    /// Every key with its value and the source of the value.
    pub(super) fn settings(&self) -> Vec<EffectiveSetting> {
        let source = |key: &str, written: Option<&Value>| match (self.variables.get(key), written) {
            (Some(variable), _) => variable.clone(),
            (None, Some(_)) => "file".to_owned(),
            (None, None) => "default".to_owned(),
        };
        let mut settings = Vec::new();
        for section in SECTIONS {
            let written = self.written(section.name);
            if section.list {
                let count = written.and_then(Value::as_array).map_or(0, Vec::len);
                settings.push(EffectiveSetting {
                    key: format!("[[{}]]", section.name),
                    value: format!("{count} entries"),
                    source: source(section.name, written),
                });
                continue;
            }
            for (key, full) in section.keys.iter().zip(section.full_keys()) {
                let written = written.and_then(|table| table.get(key.name));
                let value = match (written, key.unwritten) {
                    (Some(value), _) => {
                        let value = (key.value_type.resolved)(value.clone(), self.directories());
                        let redacted = |value| (key.value_type.redacted)(value);
                        let redacted = value.map(|value| {
                            redacted(value).map_or("set".to_owned(), |it| it.to_string())
                        });
                        redacted.unwrap_or_else(str::to_owned)
                    }
                    (None, Unwritten::Default(text)) => value_of(text).to_string(),
                    (None, Unwritten::Absent(text, _)) => text.to_owned(),
                    (None, Unwritten::Required { .. }) => String::new(),
                };
                settings.push(EffectiveSetting {
                    source: source(&full, written),
                    key: full,
                    value,
                });
            }
        }
        settings
    }

    /// Reads a section that is written once, or a part of it.
    pub(super) fn section<S: Section>(&mut self) -> Option<S> {
        let table = self.written(S::SCHEMA.name).and_then(Value::as_table);
        self.values(S::SCHEMA.name, table.cloned().unwrap_or_default())
    }

    /// Reads a section that is written any number of times.
    pub(super) fn list<S: Section>(&mut self) -> Option<Vec<S>> {
        let name = S::SCHEMA.name;
        let Some(written) = self.written(name).cloned() else {
            return Some(Vec::new());
        };
        let Ok(items) = written.try_into::<Vec<Table>>() else {
            self.problem(name, &format!("write [[{name}]] above the keys of each"));
            return None;
        };
        let items = items.into_iter().enumerate();
        let items: Vec<_> = items
            .map(|(index, table)| self.values(&format!("{name}[{}]", index + 1), table))
            .collect();
        items.into_iter().collect()
    }

    /// Reads the known keys of a table, those that are not written by their defaults, and reports the first that is wrong.
    fn values<S: Section>(&mut self, name: &str, mut table: Table) -> Option<S> {
        table.retain(|key, _| S::SCHEMA.keys.iter().any(|known| known.name == key));
        for key in S::SCHEMA.keys {
            let full = format!("{name}.{}", key.name);
            let value = match (table.remove(key.name), key.unwritten) {
                (Some(value), Unwritten::Default(default)) => {
                    (key.value_type.over_default)(value, default)
                }
                (Some(value), _) => value,
                (None, Unwritten::Default(text)) => value_of(text),
                (
                    None,
                    Unwritten::Required {
                        unless: Some(other),
                        ..
                    },
                ) if self.written(other).is_some() => continue,
                (None, Unwritten::Required { example, .. }) => {
                    let message = format!(
                        "missing; write {} = {example}, or what it is for you",
                        key.name
                    );
                    self.problem(&full, &message);
                    return None;
                }
                (None, Unwritten::Absent(..)) => continue,
            };
            match (key.value_type.resolved)(value, self.directories()) {
                Ok(value) => drop(table.insert(key.name.to_owned(), value)),
                Err(message) => {
                    self.problem(&full, message);
                    return None;
                }
            }
        }
        let error = match serde_path_to_error::deserialize(Value::Table(table)) {
            Ok(section) => return Some(section),
            Err(error) => error,
        };
        let key = match error.path().iter().next() {
            Some(Segment::Map { key }) => format!("{name}.{key}"),
            _ => name.to_owned(),
        };
        self.problem(&key, &describe(error.inner().message()));
        None
    }
}

/// What to do with a key of an earlier version.
fn removed(key: &str) -> Option<&'static str> {
    let found = REMOVED.iter().find(|(name, _)| *name == key);
    found.map(|(_, advice)| *advice)
}

/// Puts a value under its whole key, unless a part of the key is not a table.
fn insert(table: &mut Table, key: &str, value: Value) {
    let Some((step, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let empty = || Value::Table(Table::new());
    if let Value::Table(inner) = table.entry(step).or_insert_with(empty) {
        insert(inner, rest, value);
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let mut text = fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        format!("the file {path} cannot be read: {error}; name a readable one")
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The key without the numbers of items: `operation[2].path` is `operation.path`.
fn without_numbers(place: &str) -> String {
    let mut key = place.to_owned();
    while let Some((start, end)) = key.find('[').zip(key.find(']')) {
        key.replace_range(start..=end.max(start), "");
    }
    key
}

/// The variable that sets `key`.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// Every key, with its section.
fn keys() -> impl Iterator<Item = String> {
    SECTIONS.iter().flat_map(|section| section.full_keys())
}

/// The known key that was most likely meant: one of its section that others call so, one of the same name in another section, or
/// one with a few typing mistakes.
fn nearest(key: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let name = |key: &str| key.rsplit('.').next().map(str::to_owned);
    let distance = |known: &String| damerau_levenshtein(key, known);
    let known: Vec<_> = known.collect();
    if let Some(called) = called_otherwise(key, &known) {
        return Some(called);
    }
    let same_name = known.iter().filter(|other| name(other) == name(key));
    let near = known
        .iter()
        .filter(|other| distance(other) <= other.len() / 3);
    let nearest = same_name.min_by_key(|other| distance(other));
    nearest
        .or(near.min_by_key(|other| distance(other)))
        .cloned()
}

/// Names that other programs have for one key.
const OTHER_NAMES: [&[&str]; 2] = [
    &[
        "address",
        "listen",
        "bind",
        "host",
        "port",
        "listen_address",
    ],
    &[
        "url", "path", "file", "dsn", "uri", "database", "address", "host",
    ],
];

/// The key of the same section with another name for the same thing: the name is a word of it, or in one row of [`OTHER_NAMES`]
/// with it. `listen.admin` is the address of the section `admin`.
fn called_otherwise(key: &str, known: &[String]) -> Option<String> {
    let (section, name) = key.rsplit_once('.')?;
    let of_section = known
        .iter()
        .filter_map(|key| Some((key, key.strip_prefix(section)?.strip_prefix('.')?)))
        .filter(|(_, other)| !other.contains('.'));
    let with_word = of_section
        .clone()
        .filter(|(_, other)| other.split('_').any(|word| word == name))
        .min_by_key(|(_, other)| other.len());
    let rows = OTHER_NAMES.iter().filter(|row| row.contains(&name));
    let same = || rows.flat_map(|row| of_section.clone().find(|(_, other)| row.contains(other)));
    if let Some((key, _)) = with_word.or_else(|| same().next()) {
        return Some(key.clone());
    }
    let listener = name
        .split(['_', '-'])
        .next()
        .filter(|_| section == "listen")?;
    let listener = format!("{listener}.listen");
    known.contains(&listener).then_some(listener)
}

/// serde's own messages repeat the value, so only what they expected is taken from them.
fn describe(message: &str) -> String {
    let of_serde = ["invalid ", "unknown "];
    if !of_serde.iter().any(|start| message.starts_with(start)) {
        return message.to_owned();
    }
    let expected = message.rsplit_once(", expected ");
    format!(
        "expected {}",
        match expected.map_or("another value", |(_, expected)| expected) {
            "u16" | "u32" | "u64" => "a whole number",
            "a nonzero u16" | "a nonzero u32" | "a nonzero u64" => "a whole number above 0",
            "a boolean" => "true or false",
            "a string" => "a text in quotes",
            "path string" => "a path in quotes",
            expected => expected,
        }
    )
}
