//! Marks at the beginning of a line, and colours for a terminal.

use std::io::{self, IsTerminal};

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Mark {
    Good,
    Warning,
    Bad,
}

impl Mark {
    const fn sign_and_colour(self) -> (char, &'static str) {
        match self {
            Self::Good => ('✓', "\u{1b}[32m"),
            Self::Warning => ('!', "\u{1b}[33m"),
            Self::Bad => ('✗', "\u{1b}[31m"),
        }
    }

    /// A line with this mark; `colours` as [`shows_colours`] says.
    pub(in crate::cli) fn line(self, text: &str, colours: bool) -> String {
        let (sign, colour) = self.sign_and_colour();
        match colours {
            true => format!("{colour}{sign}\u{1b}[0m {text}\n"),
            false => format!("{sign} {text}\n"),
        }
    }

    /// A text in the colour of this mark.
    pub(in crate::cli) fn coloured(self, text: &str, colours: bool) -> String {
        match colours {
            true => format!("{}{text}\u{1b}[0m", self.sign_and_colour().1),
            false => text.to_owned(),
        }
    }
}

/// Whether an output gets colours: a terminal that knows them, without `NO_COLOR` (<https://no-color.org>).
pub(in crate::cli) fn shows_colours(output: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    output.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// A line for standard error; the word `warning`, or the name of the program before an error, has a colour on a terminal.
pub(in crate::cli) fn for_standard_error(line: &str, is_error: bool) -> String {
    let colours = shows_colours(&io::stderr());
    let (mark, word) = match is_error {
        true => (Mark::Bad, "countersign:"),
        false => (Mark::Warning, "warning:"),
    };
    line.replacen(word, &mark.coloured(word, colours), 1)
}
