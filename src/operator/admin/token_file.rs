//! The files of admin tokens: one token, or lines `NAME:TOKEN`, which may end with the scope `lookup`.

use std::{
    fs::File,
    io::Read as _,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::base::secret::Secret;

/// The length of a token, in bytes. A shorter one could be guessed: a right token is accepted at any rate.
const TOKEN_BYTES: RangeInclusive<usize> = 32..=1024;
/// The longest name, in bytes.
const NAME_BYTES: usize = 64;
/// The largest file, in bytes: some dozens of the longest tokens, some hundreds of those that openssl makes.
const FILE_BYTES: usize = 64 * 1024;

/// Why the file of a token cannot be used. It shows nothing of the file.
#[derive(Debug, Error)]
#[error("{key}: {}: {problem}", path.display())]
pub struct TokenFileError {
    key: &'static str,
    path: PathBuf,
    #[source]
    problem: FileProblem,
}

impl TokenFileError {
    pub(super) fn new(key: &'static str, path: &Path, problem: FileProblem) -> Self {
        let path = path.to_owned();
        Self { key, path, problem }
    }
}

#[derive(Debug, Error)]
pub(super) enum FileProblem {
    #[error("cannot read the file; check the path and its rights")]
    Read(#[from] std::io::Error),
    #[error(
        "expected one line of 32 to 1024 visible ASCII characters, as openssl rand -hex 32 makes it, or lines NAME:TOKEN"
    )]
    Shape,
    #[error("the file has more than 64 KiB; write one line NAME:TOKEN for each person")]
    Large,
    #[error("has a token of admin.token_file, with which everything can be changed; write another")]
    Same,
    #[error("line {0}: expected NAME:TOKEN, since the file has more than one line")]
    Unnamed(usize),
    #[error("line {0}: the name before the colon is empty; write whose token it is")]
    EmptyName(usize),
    #[error(
        "line {0}: a name has letters, digits and . _ @ - only, 64 at most; if the line is one token with a colon in it, make another with openssl rand -hex 32"
    )]
    Name(usize),
    #[error(
        "line {0}: the token after the colon has to have 32 to 1024 visible ASCII characters; make one with openssl rand -hex 32"
    )]
    Token(usize),
    #[error("line {0}: line {1} has the same name; write another")]
    NameTwice(usize, usize),
    #[error("line {0}: line {1} has the same token; make another with openssl rand -hex 32")]
    TokenTwice(usize, usize),
}

/// A token of a file.
pub(super) struct Entry {
    /// Its name.
    pub(super) name: Option<Arc<str>>,
    /// It can do nothing but report changes of the records of `store.lookup`.
    pub(super) is_for_lookup: bool,
    pub(super) token: Secret,
}

/// The end of the line of such a token.
const LOOKUP: &[u8] = b" lookup";

/// Reads the tokens of a file, one at least. A token with a colon in it has to have a name.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, FileProblem> {
    // Never grown, so that no copy of a token is left in freed memory.
    let mut content = Zeroizing::new(Vec::with_capacity(FILE_BYTES + 64));
    let longest = FILE_BYTES as u64 + 1;
    File::open(path)?.take(longest).read_to_end(&mut content)?;
    if content.len() > FILE_BYTES {
        return Err(FileProblem::Large);
    }
    let content = content.strip_suffix(b"\n").unwrap_or(&content);
    let lines = content.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = Vec::from_iter(lines);
    if let [line] = lines[..]
        && !line.contains(&b':')
    {
        return match is_token(line) {
            true => Ok(vec![Entry {
                name: None,
                is_for_lookup: false,
                token: line.to_vec().into(),
            }]),
            false => Err(FileProblem::Shape),
        };
    }
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or(FileProblem::Unnamed(number))?;
        let (name, token) = (&line[..colon], &line[colon + 1..]);
        let name = name_of(name, number)?;
        let scoped = token.strip_suffix(LOOKUP);
        let (is_for_lookup, token) = (scoped.is_some(), scoped.unwrap_or(token));
        if !is_token(token) {
            return Err(FileProblem::Token(number));
        }
        let token: Secret = token.to_vec().into();
        let before = |is_same: &dyn Fn(&Entry) -> bool| entries.iter().position(is_same);
        if let Some(index) = before(&|known| known.name.as_deref() == Some(name)) {
            return Err(FileProblem::NameTwice(number, index + 1));
        }
        if let Some(index) = before(&|known| known.token == token) {
            return Err(FileProblem::TokenTwice(number, index + 1));
        }
        entries.push(Entry {
            name: Some(name.into()),
            is_for_lookup,
            token,
        });
    }
    Ok(entries)
}

fn is_token(text: &[u8]) -> bool {
    TOKEN_BYTES.contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

fn name_of(text: &[u8], number: usize) -> Result<&str, FileProblem> {
    if text.is_empty() {
        return Err(FileProblem::EmptyName(number));
    }
    let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || b"._@-".contains(byte);
    let is_name = text.len() <= NAME_BYTES && text.iter().all(is_known);
    let name = str::from_utf8(text).ok().filter(|_| is_name);
    name.ok_or(FileProblem::Name(number))
}

/// Whether a name looks like a part of a random text: long and without a separator, or of digits and letters of both cases that
/// do not only begin with a capital.
pub(super) fn is_like_token(name: &str) -> bool {
    let has = |is: fn(&u8) -> bool| name.bytes().skip(1).any(|byte| is(&byte));
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_whole = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_random = name.len() >= 8 && is_mixed || name.len() >= 16 && is_whole;
    is_random && has(u8::is_ascii_digit) && !name.contains(['.', '@'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "a-token-of-32-characters-0123456";
    const OTHER: &str = "b-token-of-32-characters-0123456";

    fn read_text(content: &str) -> Result<Vec<(Option<String>, String)>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        std::fs::write(&path, content).unwrap();
        let entries = read(&path).map_err(|problem| problem.to_string())?;
        let text = |Entry {
                        name,
                        is_for_lookup,
                        token,
                    }| {
            let scope = if is_for_lookup { " for lookup" } else { "" };
            let name = name.as_deref().map(|name| format!("{name}{scope}"));
            (name, token.expose_text().to_string())
        };
        Ok(entries.into_iter().map(text).collect())
    }

    #[test]
    fn reads_one_token_or_a_named_one_a_line() {
        for content in [GOOD.to_owned(), format!("{GOOD}\n"), format!("{GOOD}\r\n")] {
            assert_eq!(read_text(&content), Ok(vec![(None, GOOD.to_owned())]));
        }
        let entry = |name: &str, token: &str| (Some(name.to_owned()), token.to_owned());
        let one = vec![entry("alice", GOOD)];
        assert_eq!(read_text(&format!("alice:{GOOD}")), Ok(one));
        let scoped = vec![entry("shop for lookup", GOOD), entry("bob", OTHER)];
        let content = format!("shop:{GOOD} lookup\nbob:{OTHER}\n");
        assert_eq!(read_text(&content), Ok(scoped));
        let content = format!("alice:{GOOD}\r\nbob@example.com:{OTHER}:x\r\n");
        let two = vec![
            entry("alice", GOOD),
            entry("bob@example.com", &format!("{OTHER}:x")),
        ];
        assert_eq!(read_text(&content), Ok(two));
    }

    #[test]
    fn a_half_of_a_token_is_told_from_a_name() {
        for half in ["f3a94c01b27d88e0", "q8Xk2-Lp", "Zt7_aQ9sWe"] {
            assert!(is_like_token(half), "{half}");
        }
        for name in [
            "alice",
            "Alice2026",
            "ALICE2026",
            "alice.Smith2@example.com",
            "ci-deployment-of-production-2",
            "deploymentpipeline",
        ] {
            assert!(!is_like_token(name), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_line_and_shows_nothing_of_the_file() {
        let lines = |lines: &[&str]| lines.join("\n");
        let (alice, long) = (format!("alice:{GOOD}"), "x".repeat(1025));
        let name = "n".repeat(65);
        for (content, problem) in [
            (String::new(), "expected one line of 32"),
            ("\n".to_owned(), "expected one line of 32"),
            (GOOD[1..].to_owned(), "expected one line of 32"),
            (format!("{GOOD} b"), "expected one line of 32"),
            (format!("{GOOD}é"), "expected one line of 32"),
            (format!("{GOOD} lookup"), "expected one line of 32"),
            (
                format!("bob:{GOOD} read"),
                "line 1: the token after the colon",
            ),
            (
                format!("bob:{GOOD}  lookup"),
                "line 1: the token after the colon",
            ),
            (long.clone(), "expected one line of 32"),
            (lines(&[GOOD, GOOD]), "line 1: expected NAME:TOKEN"),
            (lines(&[&alice, OTHER]), "line 2: expected NAME:TOKEN"),
            (lines(&[&alice, "", ""]), "line 2: expected NAME:TOKEN"),
            (
                format!(":{GOOD}"),
                "line 1: the name before the colon is empty",
            ),
            (format!(" bob:{GOOD}"), "line 1: a name has letters"),
            (format!("bób:{GOOD}"), "line 1: a name has letters"),
            (["b\u{1b}:", GOOD].concat(), "line 1: a name has letters"),
            (format!("{name}:{GOOD}"), "line 1: a name has letters"),
            (format!("bob: {GOOD}"), "line 1: the token after the colon"),
            (
                format!("bob:{}", &GOOD[1..]),
                "line 1: the token after the colon",
            ),
            (format!("bob:{long}"), "line 1: the token after the colon"),
            (
                lines(&[&alice, &format!("alice:{OTHER}")]),
                "line 2: line 1 has the same name",
            ),
            (
                lines(&[&alice, &format!("bob:{OTHER}"), &format!("carol:{GOOD}")]),
                "line 3: line 1 has the same token",
            ),
            (lines(&vec![&*alice; 2_000]), "more than 64 KiB"),
        ] {
            let error = read_text(&content).unwrap_err();
            assert!(error.contains(problem), "{content:?}: {error}");
            for shown in ["token-of", "alice", "carol"] {
                assert!(!error.contains(shown), "{error}");
            }
        }
        let missing = read(Path::new("/nowhere/token")).err().unwrap();
        assert!(missing.to_string().contains("cannot read"));
    }
}
