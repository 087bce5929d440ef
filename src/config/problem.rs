//! What is wrong with a configuration: every problem on one line, all of them together.

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use thiserror::Error;

use crate::telemetry::lines::Visible;

/// Where a setting was written. Problems are sorted by it, as an operator reads: down the file, then what the file as a
/// whole lacks, then the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// In a file, on a line counted from 1, or `None` where the file as a whole is meant.
    File(Arc<str>, Option<usize>),
    /// In an environment variable.
    Variable(Arc<str>),
}

impl Position {
    fn rank(&self) -> (u8, usize) {
        match self {
            Self::File(_, line) => (0, line.unwrap_or(usize::MAX)),
            Self::Variable(_) => (1, 0),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name, Some(line)) => write!(f, "{name}:{line}"),
            Self::File(name, None) | Self::Variable(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong, with its place, its key and its fix. Prints as exactly one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    place: Position,
    key: Option<String>,
    message: String,
}

impl Problem {
    pub(super) fn new(place: &Position, key: &str, message: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            key: Some(key.to_owned()),
            message: message.into(),
        }
    }

    pub(super) fn without_key(place: &Position, message: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            key: None,
            message: message.into(),
        }
    }

    /// The key that is wrong, such as `listen.address` or `operation[1].path`; `None` if no key is wrong.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key in a file may have a line break in it.
        let mut line = Visible(f);
        write!(line, "{}: ", self.place)?;
        if let Some(key) = &self.key {
            write!(line, "{key}: ")?;
        }
        line.write_str(&self.message)
    }
}

/// Every problem of a configuration; prints one line for each.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ConfigErrors(Vec<Problem>);

impl ConfigErrors {
    /// The problems in the order of the file, those of the environment last. There is at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl From<Problem> for ConfigErrors {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Collects problems while the reading goes on.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, place: &Position, key: &str, message: impl Into<String>) {
        self.0.push(Problem::new(place, key, message));
    }

    pub(super) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Whether `key` already has an error; rules on placeholder values would produce misleading follow-up errors.
    pub(super) fn concern(&self, key: &str) -> bool {
        self.0.iter().any(|problem| problem.key() == Some(key))
    }

    /// The value, if there is no problem. Without a value there is always one.
    pub(super) fn into_result<T>(mut self, value: Option<T>) -> Result<T, ConfigErrors> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => {
                self.0.sort_by_key(|problem| problem.place.rank());
                Err(ConfigErrors(self.0))
            }
        }
    }
}

/// Reports to `$to.add(&[key, …], message)`, where a condition holds; the first key is the one to change.
macro_rules! report {
    ($to:ident;) => {};
    ($to:ident; [$($key:expr),+] if let $found:pat = $option:expr => $text:literal $(, $argument:expr)*; $($rest:tt)*) => {
        if let $found = $option {
            $to.add(&[$($key),+], format!($text $(, $argument)*));
        }
        report! { $to; $($rest)* }
    };
    ($to:ident; [$($key:expr),+] if $condition:expr => $text:literal $(, $argument:expr)*; $($rest:tt)*) => {
        if $condition {
            $to.add(&[$($key),+], format!($text $(, $argument)*));
        }
        report! { $to; $($rest)* }
    };
}
pub(super) use report;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_one_line_whatever_the_key_holds() {
        let place = Position::File(Arc::from("a.toml"), Some(3));
        let problem = Problem::new(&place, "a\nb", "tab\there");
        assert_eq!(problem.to_string(), "a.toml:3: a\\nb: tab\\there");
    }

    #[test]
    fn sorts_by_line_and_puts_the_environment_last() {
        let name: Arc<str> = Arc::from("a.toml");
        let mut problems = Problems::default();
        problems.add(&Position::Variable(Arc::from("V")), "c", "x");
        problems.add(&Position::File(Arc::clone(&name), None), "b", "x");
        problems.add(&Position::File(name, Some(2)), "a", "x");
        let errors = problems.into_result(Some(())).unwrap_err();
        assert_eq!(errors.to_string(), "a.toml:2: a: x\na.toml: b: x\nV: c: x");
    }
}
