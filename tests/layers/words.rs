//! The words that the style of this project leaves out, in documents, pages, and the names, comments and messages of the sources
//! and of the tests.
//!
//! Promise (Sources and tests): Documents, pages, names, comments and messages follow the list of words of the style.

use std::{fmt::Write as _, fs};

use super::{files, project};

/// Each phrase that is left out, and what to write. Phrases are whole words, in any letter case, also over two lines.
const WORDS: [(&str, &str); 12] = [
    ("in place of", "instead of"),
    ("no more", "no longer; at most"),
    ("any more", "no longer"),
    ("is none of", "is not one of"),
    ("are none of", "are not"),
    ("nobody", "no caller, no task; the condition"),
    ("stranger", "an unauthenticated caller, an attacker"),
    ("strangers", "unauthenticated callers, attackers"),
    ("a person", "a user, an operator"),
    ("look-up", "lookup"),
    ("look-ups", "lookups"),
    ("anew", "again"),
];

/// Texts of other programs, which ours print.
const OTHERS: [&str; 1] = ["no more were expected"];

/// The extensions of files that are read. This file is not: it has the words.
const READ: [&str; 10] = [
    "c", "ftl", "html", "js", "md", "py", "rs", "sh", "sql", "yaml",
];

/// The most columns of a line that is a comment; a row of a table may be longer.
const COLUMNS: usize = 130;

/// The numbers of the lines in which these phrases begin, also as words of a name. After a path, between quotation marks or as
/// the text of an element a phrase is a value of the program's.
fn lines_with<'p>(phrases: &[&'p str], text: &str) -> Vec<(usize, &'p str)> {
    let (mut joined, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        starts.push(joined.len());
        let line = line.trim().trim_start_matches(['/', '!', '#']);
        let words = line.trim_matches([' ', '\\']).replace('_', " ");
        joined += &(words + " ");
    }
    // A constant has the name of a value.
    let lower = joined.to_ascii_lowercase();
    let is_word = |next: char| next.is_alphanumeric() || next == '-';
    let is_quote = |next: char| "\"'`\\<>".contains(next);
    let is_left_out = |phrase: &str, at: usize| {
        let (left, right) = (&joined[..at], &joined[at + phrase.len()..]);
        let (before, after) = (left.chars().next_back(), right.chars().next());
        let is_part = before.is_some_and(is_word) || after.is_some_and(is_word);
        let is_value = left.ends_with("::") || left.ends_with('.') || right.starts_with("::");
        let is_quoted = before.is_some_and(is_quote) && after.is_some_and(is_quote);
        let is_constant = joined[at..][..phrase.len()] == phrase.to_uppercase();
        let is_other = OTHERS.iter().any(|it| lower[at..].starts_with(it));
        !(is_part || is_value || is_quoted || is_constant || is_other)
    };
    let mut found = Vec::new();
    for phrase in phrases {
        for (at, _) in lower.match_indices(phrase) {
            if is_left_out(phrase, at) {
                found.push((starts.partition_point(|start| *start <= at), *phrase));
            }
        }
    }
    found
}

#[test]
fn words_that_the_style_leaves_out_are_nowhere() {
    let (mut found, phrases) = (String::new(), WORDS.map(|(phrase, _)| phrase));
    for extension in READ {
        for file in files(&project(""), extension) {
            if file.ends_with(file!()) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            for (number, phrase) in lines_with(&phrases, &text) {
                let (_, instead) = WORDS.iter().find(|(it, _)| *it == phrase).unwrap();
                let place = file.display();
                let _ = writeln!(found, "{place}:{number}: {phrase:?}: write {instead}");
            }
        }
    }
    assert!(found.is_empty(), "\n{found}");
}

#[test]
fn lines_of_comments_end_before_the_limit() {
    let mut found = String::new();
    for directory in ["src", "tests", "benches", "fuzz"] {
        for file in files(&project(directory), "rs") {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                let comment = line.trim_start().strip_prefix("//");
                let is_row = |it: &str| it.trim_start_matches(['/', '!', ' ']).starts_with('|');
                if comment.is_some_and(|it| !is_row(it)) && line.chars().count() > COLUMNS {
                    let _ = writeln!(found, "{}:{number}", file.display());
                }
            }
        }
    }
    assert!(found.is_empty(), "longer than {COLUMNS} columns:\n{found}");
}

#[test]
fn a_phrase_is_found_as_whole_words() {
    for (text, phrase, expected) in [
        ("// Nobody knows.", "nobody", vec![1]),
        (
            "one\n    /// in place\n    /// of two",
            "in place of",
            vec![2],
        ),
        (
            "fail(\"no caller \\\n  reads any more\")",
            "any more",
            vec![2],
        ),
        ("Access::NOBODY, group.nobody", "nobody", vec![]),
        ("let nobody = f(&by_nobody);", "nobody", vec![1, 1]),
        ("fn takes_no_more_than_one()", "no more", vec![1]),
        ("x = 'nobody'; <b>nobody</b>", "nobody", vec![]),
        (
            "// `\"nobody\"` stands alone; error-nobody",
            "nobody",
            vec![],
        ),
        ("// a personal name", "a person", vec![]),
    ] {
        let expected = Vec::from_iter(expected.into_iter().map(|line| (line, phrase)));
        assert_eq!(lines_with(&[phrase], text), expected, "{text}");
    }
}
