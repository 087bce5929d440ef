//! `docs/promises.md`, made from the heads of the test files.
//!
//! The head of a file has a line `Promise (GROUP): SENTENCE`, which may go on in the next lines, for each promise that the file
//! tests. At its end it names the other files that test the promise: `` Also in `FILE`, `FILE`. ``
//!
//! Promise (Sources and tests): Every file with tests has its promises in this list.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use super::{file, files, read};

/// The groups, in the order of the page.
const GROUPS: [&str; 10] = [
    "Signatures",
    "Replay",
    "Permissions and identity",
    "Flow and pages",
    "Console",
    "HTTP",
    "TLS",
    "Admin API",
    "Storage and operation",
    "Sources and tests",
];

const PAGE: &str = "docs/promises.md";

/// The lines around what is made.
const MARKS: [&str; 2] = [
    "<!-- From here on it is made of the heads of the test files: tests/deploy/promises.rs -->\n",
    "<!-- Up to here -->\n",
];

/// A sentence, and the files that test it.
struct Promise {
    group: String,
    sentence: String,
    files: Vec<String>,
}

/// The text of each file with tests that may have promises, by its path from the root of the project.
fn test_files() -> BTreeMap<String, String> {
    let root = file("");
    let of = |directory| {
        let found = files(&file(directory), "rs").into_iter();
        found.map(|path| {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
    };
    of("src").chain(of("tests")).collect()
}

/// The promises in the head of a file.
fn promises(path: &str, text: &str) -> Vec<Promise> {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let head = Vec::from_iter(head.map(str::trim)).join("\n");
    let paragraphs = head
        .split("\n\n")
        .flat_map(|paragraph| paragraph.split("\nPromise ("));
    let promises = paragraphs.map(|text| text.trim_start_matches("Promise (").replace('\n', " "));
    let is_promise = |text: &String| {
        GROUPS
            .iter()
            .any(|group| text.starts_with(&format!("{group}): ")))
    };
    promises
        .filter(is_promise)
        .map(|text| {
            let (group, text) = text.split_once("): ").unwrap();
            let (sentence, others) = text.split_once(" Also in ").unwrap_or((text, ""));
            let others = others.split('`').skip(1).step_by(2).map(str::to_owned);
            Promise {
                group: group.to_owned(),
                sentence: sentence.to_owned(),
                files: [path.to_owned()].into_iter().chain(others).collect(),
            }
        })
        .collect()
}

fn all_promises() -> Vec<Promise> {
    let files = test_files();
    let promises = files.iter().flat_map(|(path, text)| promises(path, text));
    // Those of the program seen from outside come first.
    let (outside, inside): (Vec<_>, Vec<_>) =
        promises.partition(|it| it.files[0].starts_with("tests/"));
    outside.into_iter().chain(inside).collect()
}

/// The name of a file in a link: with its folder where the name alone says little.
fn label(path: &str) -> String {
    let path = path.strip_suffix("/mod.rs").unwrap_or(path);
    let (folder, name) = path.rsplit_once('/').unwrap();
    match name {
        "tests" | "tests.rs" => format!("{}/{name}", folder.rsplit('/').next().unwrap()),
        name => name.to_owned(),
    }
}

#[test]
fn the_page_is_made_of_the_heads_of_the_test_files() {
    let promises = all_promises();
    let mut tables = String::new();
    for group in GROUPS {
        let _ = write!(tables, "\n## {group}\n\n");
        for promise in promises.iter().filter(|promise| promise.group == group) {
            let links = promise
                .files
                .iter()
                .map(|path| format!("[{}](../{path})", label(path)));
            let links = Vec::from_iter(links).join(", ");
            let _ = writeln!(tables, "- {} {links}", promise.sentence);
        }
    }
    let page = read(PAGE);
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let made = format!("{before}{}{tables}\n{}{after}", MARKS[0], MARKS[1]);
    if std::env::var_os("COUNTERSIGN_WRITE_EXAMPLE").is_some() {
        fs::write(file(PAGE), &made).unwrap();
    }
    let fix = "COUNTERSIGN_WRITE_EXAMPLE=1 cargo test --test deploy promises writes it again";
    assert!(
        read(PAGE) == made,
        "{PAGE} is not what the heads say: {fix}"
    );
}

#[test]
fn every_file_with_tests_has_a_promise() {
    let promises = all_promises();
    let named = BTreeSet::from_iter(promises.iter().flat_map(|promise| &promise.files));
    for (path, text) in test_files() {
        // A test in a macro has no name there.
        let has_tests = text
            .split("#[test]")
            .skip(1)
            .any(|rest| rest.trim_start().starts_with("fn "));
        let has_tests = has_tests && !text.contains("fn $");
        let is_named = named.contains(&path);
        assert!(
            is_named || !has_tests || path.starts_with("src/"),
            "{path}: write a promise in its head"
        );
    }
}

#[test]
fn a_promise_is_a_plain_sentence_in_one_group() {
    let mut sentences = BTreeSet::new();
    for promise in all_promises() {
        let (sentence, path) = (promise.sentence, &promise.files[0]);
        assert!(sentence.ends_with('.'), "{path}: {sentence}");
        assert!(
            sentences.insert(sentence.clone()),
            "{path}: {sentence} is there twice"
        );
    }
    assert!(sentences.len() > 150);
    for (path, text) in test_files() {
        let written = text
            .lines()
            .filter(|line| line.starts_with("//! Promise ("));
        assert_eq!(
            written.count(),
            promises(&path, &text).len(),
            "{path}: a group is not one of {GROUPS:?}"
        );
    }
}
