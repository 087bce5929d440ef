//! The environment over the file: `COUNTERSIGN__SECTION__KEY` and `COUNTERSIGN__SECTION__KEY_FILE`.
//!
//! A variable's value is TOML; what is no TOML value is taken as a string, so that `300s` needs no quotes. With
//! `_FILE` the value is the content of the file that the variable names, less one final newline. A key that ends in
//! `_file` itself wins over that reading: `COUNTERSIGN__STORE__ENCRYPTION_KEY_FILE` is `store.encryption_key_file`.
//! `COUNTERSIGN__OPERATION` and `COUNTERSIGN__PERMISSION` take the whole list, `[{ path = "/members/{id}" }]`.

use std::{collections::BTreeMap, ffi::OsString, fs, path::Path, sync::Arc};

use super::{
    SECTIONS,
    error::{Place, Problem, Problems},
    suggest::nearest_key,
    tree::{Node, Table},
};

const PREFIX: &str = "COUNTERSIGN__";
const FILE: &str = "_FILE";

/// Puts what the environment says over `tree`; variables of other names are not ours and are left alone.
pub(super) fn overlay(
    tree: &mut Table,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    problems: &mut Problems,
) {
    let variables: BTreeMap<String, OsString> = environment
        .into_iter()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    let known = known();
    for (name, value) in &variables {
        let place = Place::Variable(Arc::from(name.as_str()));
        let node = match meaning(name, &known) {
            Meaning::Value(key) => read_value(value, &place).map(|node| (key, node)),
            Meaning::File(key, plain) if variables.contains_key(plain) => Err(Problem::new(
                &place,
                key,
                format!("{plain} is set too; unset one of the two"),
            )),
            Meaning::File(key, _) => read_file(value, key, &place).map(|node| (key, node)),
            Meaning::Unknown => Err(Problem::without_key(&place, unknown(name, &known))),
        };
        match node {
            Ok((key, node)) => {
                // Where a step of the key is no table in the file, that is told as the file's problem.
                tree.insert(key, node);
            }
            Err(problem) => problems.push(problem),
        }
    }
}

/// What a variable sets.
enum Meaning<'a> {
    /// This key.
    Value(&'a str),
    /// This key, from a file; and the variable that would set it directly.
    File(&'a str, &'a str),
    Unknown,
}

/// The key of each variable, by the variable's name.
fn known() -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for section in SECTIONS {
        if section.list {
            known.insert(variable(section.name), section.name.to_owned());
            continue;
        }
        for (key, _) in section.full_keys() {
            known.insert(variable(&key), key);
        }
    }
    known
}

/// The variable that sets `key`.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

fn meaning<'a>(name: &'a str, known: &'a BTreeMap<String, String>) -> Meaning<'a> {
    if let Some(key) = known.get(name) {
        return Meaning::Value(key);
    }
    name.strip_suffix(FILE)
        .and_then(|plain| known.get(plain).map(|key| Meaning::File(key, plain)))
        .unwrap_or(Meaning::Unknown)
}

fn unknown(name: &str, known: &BTreeMap<String, String>) -> String {
    for section in SECTIONS.iter().filter(|section| section.list) {
        let list = variable(section.name);
        if name.starts_with(&format!("{list}__")) {
            return format!("unknown variable; {list} takes the whole list, as TOML");
        }
    }
    let key = name[PREFIX.len()..].replace("__", ".").to_ascii_lowercase();
    let with_file = known.values().map(|key| format!("{key}_file"));
    let candidates: Vec<_> = known.values().cloned().chain(with_file).collect();
    match nearest_key(&key, candidates.iter().map(String::as_str)) {
        Some(near) => format!("unknown variable, did you mean {}?", variable(near)),
        None => "unknown variable; its name is COUNTERSIGN__SECTION__KEY, with the keys of \
                 config.example.toml"
            .to_owned(),
    }
}

fn read_value(value: &OsString, place: &Place) -> Result<Node, Problem> {
    let text = value
        .to_str()
        .ok_or_else(|| Problem::without_key(place, "its value is not valid UTF-8"))?;
    Ok(Node::from_variable(text, place, true))
}

fn read_file(path: &OsString, key: &str, place: &Place) -> Result<Node, Problem> {
    let path = Path::new(path);
    let text = fs::read_to_string(path).map_err(|error| {
        let message = format!(
            "the file {} cannot be read: {error}; name a readable one",
            path.display()
        );
        Problem::new(place, key, message)
    })?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Node::from_variable(text, place, false))
}
