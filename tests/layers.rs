//! The sources keep to the order of wings in the table of `src/lib.rs`, and links in the documents lead to files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

#[test]
fn no_file_names_anything_of_a_wing_that_stands_after_its_own_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(root.join("lib.rs")).unwrap();
    let wings = wings(&lib);
    let declared: BTreeSet<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    assert_eq!(
        wings.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        declared
    );
    let place = |module: &str| wings.iter().position(|wing| wing == module);
    for file in sources(&root) {
        let path = module_path(file.strip_prefix(&root).unwrap());
        let Some(wing) = path.first() else {
            continue;
        };
        let text = without_tests(&fs::read_to_string(&file).unwrap());
        for used in used_modules(&text, path.len()) {
            let Some(other) = place(&used) else {
                panic!("{}: {used} is no wing", file.display());
            };
            assert!(
                Some(other) <= place(wing),
                "{}: {wing} names {used}, which stands after it",
                file.display()
            );
        }
    }
}

#[test]
fn the_admin_listener_and_the_commands_use_the_store_through_manage() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let traits = sources(&root.join("records/store/sql")).into_iter();
    let traits: String = traits
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let names = traits.split("\n    async fn ").skip(1);
    let methods: BTreeSet<&str> = names
        .filter_map(|rest| rest.split(['(', '<']).next())
        .collect();
    assert!(
        methods.contains("ping") && methods.len() > 30,
        "{methods:?}"
    );
    let mut calls = BTreeSet::new();
    for directory in ["operator/admin", "cli"] {
        for file in sources(&root.join(directory)) {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
            let mut text = without_tests(&fs::read_to_string(&file).unwrap());
            text.retain(|character| !character.is_whitespace());
            for rest in text.split("store").skip(1) {
                let rest = rest.trim_start_matches("()").trim_start_matches(".ok()");
                let call = rest.trim_start_matches('?').strip_prefix('.');
                let name = call
                    .and_then(|call| call.split_once('('))
                    .map(|(name, _)| name);
                calls.extend(
                    name.filter(|name| methods.contains(name))
                        .map(|name| format!("{path} {name}")),
                );
            }
        }
    }
    let expected = [
        // `check` looks at all of the store, and the other commands are about the store itself.
        "cli/check.rs consumer",
        "cli/check.rs consumers",
        "cli/check.rs findings",
        "cli/check.rs ping",
        "cli/check.rs reseal",
        "cli/rekey.rs reseal",
        "cli/secrets.rs nonce_used",
        "cli/transfer.rs export",
        "cli/transfer.rs import",
        "cli/transfer.rs imported_nonces_until",
        "operator/admin/readiness.rs ping",
    ];
    assert_eq!(Vec::from_iter(calls), expected);
}

#[test]
fn a_field_of_a_consumer_is_described_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&root).into_iter().filter_map(|file| {
        let text = fs::read_to_string(&file).unwrap();
        let is_test = file.to_string_lossy().contains("tests");
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
        (!is_test && words.any(|word| word == "website")).then(|| path.to_owned())
    });
    let mut files = Vec::from_iter(files);
    files.sort();
    let expected = [
        // The help of `import`.
        "cli/transfer.rs",
        // The check and the pattern of a URL, which a plain text does not need.
        "operator/admin/api/openapi.rs",
        "operator/manage/fields.rs",
        // The purpose of the URL.
        "provider/pages/consent.rs",
        "provider/pages/error.rs",
        "records/store/record.rs",
        "records/store/sql/tables.rs",
    ];
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(files, expected);
}

#[test]
fn finds_every_way_to_name_a_module() {
    let text = "\
use crate::{
    a::{X, y::Z},
    b::W, c,
};
use super::{d, super::e::V};
#[cfg(test)]
use crate::only_tests::X;
#[cfg(test)]
mod tests;
/// As [`crate::f::U`].
fn g() -> crate::h::T { super::super::i::new(super::j()) }
    #[cfg(test)]
    fn k() {
        crate::only_tests::l();
    }
fn m() { crate::n::o() }
#[cfg(test)]
mod more {
    use crate::only_tests::X;
}
type P = crate::q::R;
";
    let found = used_modules(&without_tests(text), 2);
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let expected = ["a", "b", "c", "e", "f", "h", "i", "n", "q"];
    assert_eq!(found, BTreeSet::from(expected));
    // In a file of the module itself, `super` is the crate.
    let found = used_modules("use super::{a, b::C}; super::d::E", 1);
    assert_eq!(found, ["a", "b", "d"]);
}

#[test]
fn every_link_in_the_documents_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut links = 0;
    for directory in ["", "deploy", "docs", "fuzz", "benches"] {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            for rest in fs::read_to_string(&file).unwrap().split("](").skip(1) {
                let link = rest.split([')', '#']).next().unwrap();
                if link.starts_with("http") || link.is_empty() {
                    continue;
                }
                let target = file.parent().unwrap().join(link);
                assert!(target.exists(), "{} links to {link}", file.display());
                links += 1;
            }
        }
    }
    assert!(links > 100, "{links}");
}

/// The wings in the order of the table.
fn wings(lib: &str) -> Vec<String> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let wings = Vec::from_iter(rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())));
    assert!(wings.len() > 10, "{wings:?}");
    wings
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The modules that lead to the one in a file, from the crate's root: none for the root itself.
fn module_path(file: &Path) -> Vec<String> {
    let path = file.with_extension("");
    let names = path.iter().map(|name| name.to_str().unwrap().to_owned());
    names
        .filter(|name| !matches!(name.as_str(), "lib" | "main" | "mod"))
        .collect()
}

/// The text without the items that only tests compile: they may use every layer.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let end = line.replace("#[cfg(test)]", "}");
        let mut is_block = false;
        for line in lines.by_ref() {
            is_block |= line.ends_with('{');
            if line == end || !is_block && line.ends_with(';') {
                break;
            }
        }
    }
    kept
}

/// The modules of the crate's root that a text names, in `use` lines, bodies and docs: after `crate::`, and after as
/// many `super::` as lead from a module at `depth` to the root.
fn used_modules(text: &str, depth: usize) -> Vec<String> {
    let mut modules = Vec::new();
    for (start, _) in text.match_indices("crate::") {
        named(&text[start + "crate::".len()..], 0, &mut modules);
    }
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    for (start, _) in text.match_indices("super::") {
        // The beginning of a chain.
        if start == 0 || !is_word(text.as_bytes()[start - 1]) {
            let rest = &text[start + "super::".len()..];
            named(rest, depth - 1, &mut modules);
        }
    }
    modules
}

/// The names at the beginning of a path, or of each path in braces, after `above` more `super::`.
fn named(path: &str, above: usize, modules: &mut Vec<String>) {
    let path = path.trim_start();
    if let Some(list) = path.strip_prefix('{') {
        for item in items(list) {
            named(item, above, modules);
        }
    } else if let Some(rest) = path.strip_prefix("super::") {
        if above > 0 {
            named(rest, above - 1, modules);
        }
    } else if above == 0 {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let word = path.split(|character| !is_word(character)).next().unwrap();
        // A name in upper case is an item of the root itself, and a `*` is not a module.
        if word.starts_with(|first: char| first.is_lowercase()) && word != "self" {
            modules.push(word.to_owned());
        }
    }
}

/// The items of a list in braces, up to its end.
fn items(list: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    items
}
