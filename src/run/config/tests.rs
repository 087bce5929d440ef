//! Whole configurations: the rejected ones with their messages, and the values of the others.

mod declared;
mod derived;
mod environment;
mod example;
mod fixed;
mod rejected;
mod settings;
mod warned;

use std::{
    collections::BTreeSet, fs, net::SocketAddr, num::NonZeroUsize, path::Path, time::Duration,
};

use proptest::prelude::*;

use self::example::{example, page, wrapped};
use super::*;
use crate::base::settings::Unwritten;

const MINIMAL: &str = "upstream.api_url = \"http://127.0.0.1:9000\"\n";

fn no_environment() -> [(OsString, OsString); 0] {
    []
}

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}

fn read(text: &str) -> Config {
    parse(text, "/etc/cs/config.toml", no_environment()).unwrap()
}

/// The error lines of a configuration that has an `api_url` on its line 1.
fn errors(text: &str) -> Vec<String> {
    errors_with(text, &[])
}

fn errors_with(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let text = format!("{MINIMAL}{text}");
    match parse(&text, "config.toml", environment(variables)) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.to_string().lines().map(str::to_owned).collect(),
    }
}

#[track_caller]
fn rejects(text: &str, expected: &[&str]) {
    assert_eq!(errors(text), expected, "{text}");
}

/// Every key with its section and the value that the example shows for it.
fn keys() -> impl Iterator<Item = (&'static SectionSchema, String, &'static str, String)> {
    SECTIONS.iter().flat_map(|section| {
        section.keys.iter().map(move |key| {
            let (Unwritten::Default(value)
            | Unwritten::Required { example: value, .. }
            | Unwritten::Absent(_, value)) = key.unwritten;
            let full = format!("{}.{}", section.name, key.name);
            (section, full, key.name, wrapped(value))
        })
    })
}

#[test]
fn says_how_to_make_the_file_that_is_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    let error = load(File::open(&path), &path, no_environment())
        .unwrap_err()
        .to_string();
    let expected = format!(
        "{}: no such file; copy config.example.toml there and set upstream.api_url, or name another file with --config or COUNTERSIGN_CONFIG",
        path.display()
    );
    assert_eq!(error, expected);
    let error = load(
        File::open(directory.path()),
        directory.path(),
        no_environment(),
    )
    .unwrap_err()
    .to_string();
    assert!(error.ends_with("; name a readable file"), "{error}");
    fs::write(&path, b"a = 1\nb = \"\xff\"").unwrap();
    let error = load(File::open(&path), &path, no_environment())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(": not valid UTF-8; save the file as UTF-8"),
        "{error}"
    );
    fs::write(&path, MINIMAL).unwrap();
    let config = load(File::open(&path), &path, no_environment()).unwrap();
    let expected = directory.path().join("countersign.db");
    assert_eq!(config.store.url.sqlite_path(), expected);
}

/// A piece of a configuration that is right, wrong, or broken.
fn piece() -> impl Strategy<Value = String> {
    let keys: Vec<_> = keys()
        .map(|(_, full, _, value)| format!("{full} = {value}\n"))
        .collect();
    let sections: Vec<_> = SECTIONS
        .iter()
        .map(|section| format!("[{}]\n", section.name))
        .collect();
    let values = "(\"[ -~]{0,12}\"|[0-9]{1,20}|true|\\[\\]|\\{ a = 1 \\}|1979-05-27)";
    prop_oneof![
        proptest::sample::select(keys.clone()),
        proptest::sample::select(sections.clone()),
        proptest::sample::select(sections).prop_map(|header| format!("[{}]\n", header.trim())),
        (proptest::sample::select(keys), values).prop_map(|(key, value)| {
            format!(
                "{} = {value}\n",
                key.split(" = ").next().unwrap_or_default()
            )
        }),
        "[\\PC\n]{0,20}",
    ]
}

proptest! {
    #[test]
    fn makes_of_every_text_a_configuration_or_one_line_a_problem(
        pieces in proptest::collection::vec(piece(), 0..12),
        variable in "[A-Z_]{0,20}",
        value in ".{0,20}",
    ) {
        let name = format!("COUNTERSIGN__{variable}");
        match parse(&pieces.concat(), "config.toml", environment(&[(&name, &value)])) {
            Ok(config) => { let _ = config.warnings(); }
            Err(errors) => {
                prop_assert!(!errors.0.is_empty());
                prop_assert_eq!(errors.to_string().lines().count(), errors.0.len());
            }
        }
    }
}
