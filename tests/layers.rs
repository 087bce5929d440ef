//! The sources keep to the layers that `src/lib.rs` tells of.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

#[test]
fn a_module_uses_only_what_stands_below_its_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(root.join("lib.rs")).unwrap();
    let layers = layers(&lib);
    let declared: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    assert!(declared.len() > 20);
    for module in &declared {
        assert!(
            layers.contains_key(*module),
            "{module} has no line in the table of src/lib.rs"
        );
    }
    let mut uses = 0;
    for file in sources(&root) {
        let relative = file.strip_prefix(&root).unwrap();
        let module = relative
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs")
            .to_owned();
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        // What only tests use does not count: they may look down from anywhere.
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for used in used_modules(text) {
            if used == module {
                continue;
            }
            uses += 1;
            let (own, other) = (layers[&module], layers.get(&used).copied());
            let other = other.unwrap_or_else(|| panic!("{}: {used} is no module", file.display()));
            assert!(
                other > own,
                "{}: {module} uses {used}, which does not stand below it",
                file.display()
            );
        }
    }
    assert!(uses > 300, "the reading of `use` lines works: {uses}");
}

/// The number of the table's line in which each module stands, from the top.
fn layers(lib: &str) -> BTreeMap<String, usize> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let mut layers = BTreeMap::new();
    for (number, row) in rows.enumerate() {
        let modules = row.split('|').next().unwrap();
        for module in modules.split(['`', ' ']).filter(|word| !word.is_empty()) {
            layers.insert(module.to_owned(), number);
        }
    }
    layers
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if matches!(name, "tests" | "double") {
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

/// The modules named behind `crate::`, alone or in braces.
fn used_modules(text: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for (start, _) in text.match_indices("crate::") {
        let rest = &text[start + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut item = String::new();
            for character in list.chars() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => modules.extend(first_word(&std::mem::take(&mut item))),
                    other => item.push(other),
                }
            }
            modules.extend(first_word(&item));
        } else {
            modules.extend(first_word(rest));
        }
    }
    modules
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text
        .trim_start()
        .chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect();
    (!word.is_empty()).then_some(word)
}
