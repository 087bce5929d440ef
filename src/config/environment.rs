//! The environment over the file: `COUNTERSIGN__SECTION__KEY` and `COUNTERSIGN__SECTION__KEY_FILE`.
//!
//! A variable's value is TOML. A value that is not valid TOML is a string, so that `300s` needs no quotes. With
//! `_FILE` the value is the content of the file that the variable names, less one final newline; a relative name belongs
//! to the directory of the configuration file. A key that ends in `_file` itself wins over that reading: `COUNTERSIGN__STORE__ENCRYPTION_KEY_FILE` is `store.encryption_key_file`.
//! `COUNTERSIGN__OPERATION` and `COUNTERSIGN__PERMISSION` take the whole list, `[{ path = "/members/{id}" }]`.

use std::{collections::BTreeMap, ffi::OsString, fs, path::Path, sync::Arc};

use super::{
    SECTIONS,
    names::nearest_key,
    problem::{Position, Problem, Problems},
};

const PREFIX: &str = "COUNTERSIGN__";
const FILE: &str = "_FILE";

/// A variable that sets a key.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The whole key.
    pub(super) key: String,
    /// The value: TOML, or else a string.
    pub(super) text: String,
    /// The value is the content of a file, so it may be a secret.
    pub(super) from_file: bool,
}

/// Reads the variables that are ours; those of other names are left alone. `directory` is the configuration file's.
pub(super) fn read(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    directory: &Path,
    problems: &mut Problems,
) -> Vec<Variable> {
    let variables: BTreeMap<String, OsString> = environment
        .into_iter()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    let known = known();
    let mut set = Vec::new();
    for (name, value) in &variables {
        let place = Position::Variable(Arc::from(name.as_str()));
        let plain = name.strip_suffix(FILE).unwrap_or_default();
        let read = if let Some(key) = known.get(name) {
            let invalid = || Problem::without_key(&place, "its value is not valid UTF-8");
            let text = value.to_str().ok_or_else(invalid);
            text.map(|text| (key, text.to_owned(), false))
        } else if let Some(key) = known.get(plain) {
            if variables.contains_key(plain) {
                let message = format!("{plain} is set too; unset one of the two");
                Err(Problem::new(&place, key, message))
            } else {
                read_file(&directory.join(value), key, &place).map(|text| (key, text, true))
            }
        } else {
            Err(Problem::without_key(&place, unknown(name, &known)))
        };
        match read {
            Ok((key, text, from_file)) => set.push(Variable {
                name: name.clone(),
                key: key.clone(),
                text,
                from_file,
            }),
            Err(problem) => problems.push(problem),
        }
    }
    set
}

/// The key of each variable, by the variable's name.
fn known() -> BTreeMap<String, String> {
    let keys = SECTIONS.iter().flat_map(|section| {
        // A list is one key.
        let list = section.list.then(|| section.name.to_owned());
        let keys = section.full_keys().filter(|_| !section.list);
        keys.chain(list)
    });
    keys.map(|key| (variable(&key), key)).collect()
}

/// The variable that sets `key`.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
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

fn read_file(path: &Path, key: &str, place: &Position) -> Result<String, Problem> {
    let mut text = fs::read_to_string(path).map_err(|error| {
        let message = format!(
            "the file {} cannot be read: {error}; name a readable one",
            path.display()
        );
        Problem::new(place, key, message)
    })?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
