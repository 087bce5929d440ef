//! No text of a file and no variable makes the configuration panic or writes a control character into its errors.

#![no_main]

use std::ffi::OsString;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    // The text before the first NUL is the file; then follow variables as `NAME=value`.
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    // A `_FILE` variable would read any path that the input makes up; this target does not test files.
    let variables = parts
        .filter_map(|part| part.split_once('='))
        .filter(|(name, _)| !name.ends_with("_FILE"))
        .map(|(name, value)| {
            let name = OsString::from(format!("COUNTERSIGN__{name}"));
            (name, OsString::from(value))
        });
    match countersign::run::config::parse(text, "config.toml", variables) {
        Ok(config) => {
            let _ = config.warnings();
        }
        Err(errors) => {
            let text = errors.to_string();
            assert!(text.lines().all(|line| !line.trim().is_empty()));
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
});
