//! The words that the style of this project leaves out, in documents, pages, comments and messages.
//!
//! Promise (Sources and tests): Documents, pages, comments and messages follow the list of words of the style; comment lines
//! end before column 131.

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

/// The most columns of a line that is a comment; a row of a table may be longer.
const COLUMNS: usize = 130;

/// The numbers of the lines in which `phrase` begins. A part of a name, or a word in quotation marks, is the program's.
fn lines_with(phrase: &str, text: &str) -> Vec<usize> {
    let (mut joined, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        starts.push(joined.len());
        let line = line.trim().trim_start_matches(['/', '!', '#']);
        joined += &(line.trim_matches([' ', '\\']).to_lowercase() + " ");
    }
    let is_name = |next: char| next.is_alphanumeric() || "_-:".contains(next);
    let is_quote = |next: char| "\"`\\".contains(next);
    let found = joined.match_indices(phrase).filter(|(at, _)| {
        let before = joined[..*at].chars().next_back();
        let after = joined[at + phrase.len()..].chars().next();
        let is_part =
            before.is_some_and(|it| is_name(it) || it == '.') || after.is_some_and(is_name);
        let is_quoted = before.is_some_and(is_quote) && after.is_some_and(is_quote);
        let is_other = OTHERS.iter().any(|it| joined[*at..].starts_with(it));
        !(is_part || is_quoted || is_other)
    });
    found
        .map(|(at, _)| starts.partition_point(|start| *start <= at))
        .collect()
}

#[test]
fn words_that_the_style_leaves_out_are_nowhere() {
    let mut found = String::new();
    for (directory, extension) in [
        ("", "md"),
        ("locales", "ftl"),
        ("src", "rs"),
        ("src", "sql"),
        ("templates", "html"),
    ] {
        for file in files(&project(directory), extension) {
            let text = fs::read_to_string(&file).unwrap();
            for (phrase, instead) in WORDS {
                for number in lines_with(phrase, &text) {
                    let place = file.display();
                    let _ = writeln!(found, "{place}:{number}: {phrase:?}: write {instead}");
                }
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
        (
            "// `\"nobody\"` stands alone; error-nobody",
            "nobody",
            vec![],
        ),
        ("// a personal name", "a person", vec![]),
    ] {
        assert_eq!(lines_with(phrase, text), expected, "{text}");
    }
}
