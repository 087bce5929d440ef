//! Reports wrong usage in one line, where clap writes a paragraph, and names the help that says more.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::telemetry::log::lines::visible;

/// Whether clap's "error" is the help or the version that was asked for, or help instead of a command.
#[must_use]
pub fn is_help(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The one line for wrong usage.
pub fn line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut sentences = Vec::new();
    let mut command = "countersign".to_owned();
    for line in text.lines().map(str::trim) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            // The words of the command; the first placeholder or option ends them.
            let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
            let words: Vec<&str> = usage.split(' ').take_while(is_word).collect();
            command = words.join(" ");
            break;
        }
        let line = line.strip_prefix("error: ").unwrap_or(line);
        if !line.is_empty() && !line.starts_with("For more information") {
            sentences.push(line);
        }
    }
    let meant = meant(error);
    if meant.is_some() {
        sentences.retain(|sentence| !sentence.starts_with("tip: "));
    }
    let sentences = sentences.join("; ");
    let mut line = format!("countersign: {sentences}; see {command} --help");
    // The value given to an option that takes none may be a secret.
    if error.kind() == ErrorKind::TooManyValues
        && let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
    {
        line = line.replace(&format!("'{value}' "), "");
    }
    if let Some(meant) = meant {
        line = line.replacen("; see ", &format!("; did you mean {meant}? See "), 1);
    }
    // A list that clap puts below its sentence.
    line = line.replace(":; ", ": ");
    visible(&line)
}

/// What an unknown word may have meant: the name that other programs have for a command, or a configuration without
/// its option.
fn meant(error: &clap::Error) -> Option<String> {
    /// Words of other programs, and the commands here.
    const WORDS: [(&str, &str); 11] = [
        ("start", "serve"),
        ("run", "serve"),
        ("create", "add"),
        ("new", "add"),
        ("register", "add"),
        ("delete", "remove"),
        ("rm", "remove"),
        ("edit", "update"),
        ("get", "show"),
        ("ls", "list"),
        ("password", "passwd"),
    ];

    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    if let Some(word) = word(ContextKind::InvalidSubcommand) {
        let known = WORDS.iter().find(|(known, _)| *known == word);
        return known.map(|(_, command)| (*command).to_owned());
    }
    let argument = word(ContextKind::InvalidArg).filter(|it| it.ends_with(".toml"))?;
    Some(format!("--config {argument}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn reported(arguments: &[&str]) -> String {
        let all = std::iter::once("countersign").chain(arguments.iter().copied());
        line(&Cli::try_parse_from(all).unwrap_err())
    }

    #[test]
    fn reports_wrong_usage_in_one_line() {
        for [arguments, expected] in crate::text::rows(
            r#"
            consumer\nadd       | countersign: the following required arguments were not provided: --name <NAME>; see countersign consumer add --help
            serve\n--nonsense   | countersign: unexpected argument '--nonsense' found; see countersign serve --help
            serve\nconfig.toml  | countersign: unexpected argument 'config.toml' found; did you mean --config config.toml? See countersign serve --help
            start               | countersign: unrecognized subcommand 'start'; did you mean serve? See countersign --help
            consumer\ncreate    | countersign: unrecognized subcommand 'create'; did you mean add? See countersign consumer --help
            user\nlist\n--jsn   | countersign: unexpected argument '--jsn' found; tip: a similar argument exists: '--json'; see countersign user list --help
            consumer\nadd\n--key\n.. | countersign: invalid value '..' for '--key <KEY>': a key or an id cannot be . or ..; see countersign --help
        "#,
        ) {
            let arguments = &arguments.lines().collect::<Vec<_>>()[..];
            assert_eq!(reported(arguments), expected);
        }
    }

    #[test]
    fn an_unexpected_argument_is_named_and_a_value_is_not_shown() {
        for [arguments, expected] in crate::text::rows(
            r"
            user passwd bob alice                    | countersign: unexpected argument 'alice' found; see countersign user passwd --help
            user add bob --password-stdin=hunter2    | countersign: unexpected value for '--password-stdin' found; no more were expected; see countersign user add --help
            consumer rotate-secret k --scret=hunter2 | countersign: unexpected argument '--scret' found; tip: a similar argument exists: '--secret'; see countersign consumer rotate-secret --help
        ",
        ) {
            let arguments = &crate::text::words(arguments)[..];
            assert_eq!(reported(arguments), expected);
        }
    }

    #[test]
    fn stays_one_line_whatever_was_typed() {
        for value in ["a\nb", "\u{1b}[31m", "\n\nUsage: x\n"] {
            let line = reported(&["consumer", "add", "--key", value]);
            assert!(!line.contains(char::is_control), "{line:?}");
            assert!(line.starts_with("countersign: invalid value"), "{line:?}");
        }
    }

    #[test]
    fn distinguishes_help_from_mistakes() {
        for (arguments, expected) in [
            (&["--help"][..], true),
            (&["--version"], true),
            (&[], true),
            (&["consumer"], true),
            (&["consumer", "ad"], false),
        ] {
            let all = std::iter::once("countersign").chain(arguments.iter().copied());
            let error = Cli::try_parse_from(all).unwrap_err();
            assert_eq!(is_help(&error), expected, "{arguments:?}");
        }
    }
}
