//! The sources keep to the order of wings in the table of `src/lib.rs`, no files of a wing use each other in a circle, no
//! folder has too many, only some wings name some crates, and names of functions are short.
//!
//! Promise (Sources and tests): A wing of the sources uses only the wings before it, and no files use each other in a circle.
//! Also in `tests/layers/picture.rs`.

#![cfg(test)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Crates that only some modules may name.
const CRATES: &[(&str, &[&str])] = &[
    ("deadpool_postgres", &["records/store/postgres"]),
    ("hyper", &["request/forward", "wire"]),
    ("hyper_util", &["request/forward", "wire"]),
    ("redis", &["records/nonce/redis"]),
    ("rusqlite", &["records/store/sqlite"]),
    ("tokio_postgres", &["records/store/postgres"]),
];

#[path = "layers/picture.rs"]
mod picture;
#[path = "layers/words.rs"]
mod words;

#[test]
fn files_name_nothing_of_a_wing_after_their_own() {
    let lib = fs::read_to_string(project("src/lib.rs")).unwrap();
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let wings = Vec::from_iter(rows.filter_map(|row| Some(row.split_once('`')?.0)));
    let declared = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert_eq!(
        BTreeSet::from_iter(wings.iter().copied()),
        BTreeSet::from_iter(declared)
    );
    let position = |module: &str| wings.iter().position(|wing| *wing == module);
    for (module, text) in modules() {
        let wing = &module[0];
        for path in paths(&text, &module) {
            let used = &path[0];
            let Some(other) = position(used) else {
                panic!("{}: {used} is not a wing", module.join("/"));
            };
            assert!(
                Some(other) <= position(wing),
                "{}: {wing} names {used}, which stands after it",
                module.join("/")
            );
        }
    }
}

#[test]
fn no_files_of_a_wing_use_each_other_in_a_circle() {
    assert_eq!(circles(&uses(&modules())), BTreeSet::new());
}

#[test]
fn a_folder_of_the_sources_has_at_most_twelve_modules() {
    let mut rooms: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    for mut module in modules().into_keys().filter(|it| it.len() > 1) {
        // Its own file counts as one of the modules of a folder.
        rooms
            .entry(module.clone())
            .or_default()
            .insert("mod".to_owned());
        while module.len() > 1 {
            let name = module.pop().unwrap();
            if name != "fuzzing" {
                rooms.entry(module.clone()).or_default().insert(name);
            }
        }
    }
    for (folder, rooms) in rooms {
        assert!(rooms.len() <= 12, "{}: {rooms:?}", folder.join("/"));
    }
}

#[test]
fn a_crate_is_named_only_by_the_modules_that_may() {
    for (module, text) in modules() {
        let text = without_comments(&text);
        let used = paths(&text, &module);
        let module = module.join("/");
        for (name, allowed) in CRATES {
            let is_allowed = allowed
                .iter()
                .any(|path| Path::new(&module).starts_with(path));
            let names = chains(&text, &format!("{name}::")).next().is_some();
            // A module of ours may have the name of a crate.
            let is_named = names && used.iter().all(|path| path.last().unwrap() != name);
            assert!(is_allowed || !is_named, "{module} names {name}");
        }
    }
}

#[test]
fn suites_that_watch_the_program_name_nothing_of_the_library() {
    let allowed = [
        "commands/users.rs",
        "deploy/documents.rs",
        "deploy/schema.rs",
        "store_contract",
        "vectors",
    ];
    let root = project("tests");
    for file in files(&root, "rs") {
        let text = without_comments(&fs::read_to_string(&file).unwrap());
        let path = file.strip_prefix(&root).unwrap();
        let is_allowed = allowed.iter().any(|it| path.starts_with(it));
        let names = chains(&text, &format!("{}::", env!("CARGO_PKG_NAME"))).next();
        assert!(is_allowed || names.is_none(), "{}", path.display());
    }
}

#[test]
fn names_of_functions_have_at_most_60_letters() {
    for file in ["src", "tests"]
        .map(|folder| files(&project(folder), "rs"))
        .concat()
    {
        let text = fs::read_to_string(&file).unwrap();
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let names =
            chains(&text, "fn ").filter_map(|chain| chain[3..].split(|it| !is_letter(it)).next());
        for name in names {
            assert!(name.len() <= 60, "{}: {name}", file.display());
        }
    }
}

#[test]
fn finds_every_way_to_name_a_module() {
    let text = "\
use crate::{
    a::{X, y::Z},
    b::W, c,
};
use super::d;
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
    let module = ["m1", "m2"].map(str::to_owned);
    let found = paths(&without_tests(text), &module);
    let found = found.iter().map(|path| path.join("::"));
    let expected = [
        "a::X", "a::y::Z", "b::W", "c", "f::U", "h::T", "i::new", "m1::d", "m1::j", "n::o", "q::R",
    ];
    assert_eq!(
        BTreeSet::from_iter(found),
        BTreeSet::from(expected.map(str::to_owned))
    );
}

#[test]
fn finds_a_circle_of_modules_and_the_module_of_a_path() {
    let texts = [
        ("a", "use crate::b::{self, X};"),
        ("b", "fn f() { super::c::d::g() }"),
        ("c", "use crate::c::d; // use crate::a;"),
        ("c/d", "use super::Y; use crate::a::Z;"),
        ("e", "use crate::a;"),
    ];
    let modules = texts.map(|(name, text)| (segments(Path::new(name)), text.to_owned()));
    let expected = ["a", "b", "c/d"].map(str::to_owned);
    assert_eq!(
        circles(&uses(&BTreeMap::from(modules))),
        BTreeSet::from([BTreeSet::from(expected)])
    );
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// All files with this extension, except those that are hidden, built or installed.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || matches!(name, "target" | "node_modules") {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    found
}

/// Each module of the sources by its path from the crate's root, with its text, but no tests.
fn modules() -> BTreeMap<Vec<String>, String> {
    let root = project("src");
    let mut modules = BTreeMap::new();
    for file in files(&root, "rs") {
        let mut module = segments(&file.strip_prefix(&root).unwrap().with_extension(""));
        module.pop_if(|name| name == "mod");
        let last = module.last().map(String::as_str);
        if module.iter().any(|name| name == "tests") || matches!(last, Some("lib" | "main")) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        modules.insert(module, without_tests(&text));
    }
    modules
}

fn segments(path: &Path) -> Vec<String> {
    let names = path.iter().map(|name| name.to_str().unwrap().to_owned());
    names.collect()
}

/// The text without the items that only tests compile: they may use every wing.
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

fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap());
    code.collect::<Vec<_>>().join("\n")
}

/// For each module the modules that its code names, without those that hold it.
fn uses(modules: &BTreeMap<Vec<String>, String>) -> BTreeMap<String, BTreeSet<String>> {
    let uses = modules.iter().map(|(module, text)| {
        let paths = paths(&without_comments(text), module).into_iter();
        let used = paths.filter_map(|mut path| {
            while !path.is_empty() && !modules.contains_key(&path) {
                path.pop();
            }
            (!module.starts_with(&path)).then(|| path.join("/"))
        });
        (module.join("/"), used.collect())
    });
    uses.collect()
}

/// The sets of modules that reach each other.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<BTreeSet<String>> {
    let reached = uses.keys().map(|from| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            open.extend(uses[module].iter().filter(|used| reached.insert(*used)));
        }
        (from, reached)
    });
    let reached: BTreeMap<&String, BTreeSet<&String>> = reached.collect();
    let circle = |module: &&String| {
        let others = reached[*module].iter();
        let circle = others.filter(|other| reached[**other].contains(*module));
        circle
            .map(|other| (*other).clone())
            .collect::<BTreeSet<_>>()
    };
    let circles = reached.keys().map(circle);
    circles.filter(|circle| circle.len() > 1).collect()
}

/// The paths from the crate's root that a text in a module names, in `use` lines, bodies and docs.
fn paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for chain in chains(text, start) {
            expand(chain, &[], &mut paths);
        }
    }
    let from_root = paths.into_iter().filter_map(|path| {
        let above = path.iter().take_while(|name| *name == "super").count();
        let base = match path[0].as_str() {
            "crate" => &[],
            _ => &module[..module.len().checked_sub(above)?],
        };
        let rest = path[above.max(1)..].iter();
        let path = Vec::from_iter(base.iter().chain(rest).cloned());
        // A name in upper case is an item of the root itself.
        let is_module = path
            .first()?
            .starts_with(|first: char| first.is_lowercase());
        is_module.then_some(path)
    });
    from_root.collect()
}

/// The text from each place on where a path begins with `start`.
fn chains<'t>(text: &'t str, start: &str) -> impl Iterator<Item = &'t str> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    text.match_indices(start)
        .filter(move |(at, _)| *at == 0 || !is_word(text.as_bytes()[at - 1]))
        .map(|(at, _)| &text[at..])
}

/// The path at the beginning of a text, or each path in its braces.
fn expand(text: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        for item in items(list) {
            expand(item, before, paths);
        }
        return;
    }
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let end = text.find(|character| !is_word(character));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut path = before.to_vec();
    if !word.is_empty() && (word != "self" || before.is_empty()) {
        path.push(word.to_owned());
    }
    match rest.strip_prefix("::") {
        Some(rest) => expand(rest, &path, paths),
        None if path.is_empty() => {}
        None => paths.push(path),
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
