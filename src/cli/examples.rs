//! The example in the help of each command.

use clap::Command;

/// Each command, and a line that somebody would type.
const EXAMPLES: [(&str, &str); 30] = [
    ("demo", "countersign demo"),
    (
        "serve",
        "countersign serve --config /etc/countersign/config.toml",
    ),
    (
        "check",
        "countersign check --config /etc/countersign/config.toml",
    ),
    ("health", "countersign health --ready"),
    (
        "consumer add",
        "countersign consumer add --name 'Photo printer' --callback https://printer.example/back --permission members.read",
    ),
    (
        "consumer list",
        "countersign consumer list --unused-for 90d",
    ),
    ("consumer show", "countersign consumer show printer --json"),
    (
        "consumer update",
        "countersign consumer update printer --name 'Photo printer 2'",
    ),
    (
        "consumer rotate-secret",
        "countersign consumer rotate-secret printer --grace 7d",
    ),
    ("consumer disable", "countersign consumer disable printer"),
    ("consumer enable", "countersign consumer enable printer"),
    (
        "consumer remove",
        "countersign consumer remove printer --yes",
    ),
    (
        "user add",
        "countersign user add alice --display-name 'Alice Liddell'",
    ),
    ("user list", "countersign user list"),
    ("user show", "countersign user show alice"),
    (
        "user passwd",
        "countersign user passwd alice --password-stdin < password",
    ),
    ("user disable", "countersign user disable alice"),
    ("user enable", "countersign user enable alice"),
    ("user remove", "countersign user remove alice --yes"),
    (
        "token issue",
        "countersign token issue --consumer printer --user alice --permission members.read",
    ),
    ("token list", "countersign token list --user alice"),
    ("token show", "countersign token show uDJRj4qK"),
    (
        "token revoke",
        "countersign token revoke --user alice --consumer printer",
    ),
    (
        "rekey",
        "countersign rekey --config /etc/countersign/config.toml",
    ),
    ("export", "countersign export backup.jsonl"),
    ("import", "countersign import backup.jsonl --dry-run"),
    (
        "completions",
        "countersign completions bash > /etc/bash_completion.d/countersign",
    ),
    ("man", "countersign man /usr/local/share/man/man1"),
    (
        "sign",
        "countersign sign GET https://api.example.com/members/1 --consumer-key printer --consumer-secret @secret --curl",
    ),
    (
        "explain",
        "countersign explain --request request.http --consumer-secret @secret --token-secret @token-secret",
    ),
];

/// Adds the examples to the definition of the command line.
pub(super) fn add(definition: Command) -> Command {
    EXAMPLES
        .into_iter()
        .fold(definition, |definition, (path, example)| {
            match path.split_once(' ') {
                Some((group, name)) => definition.mut_subcommand(group, |group| {
                    group.mut_subcommand(name, |command| with(command, example))
                }),
                None => definition.mut_subcommand(path, |command| with(command, example)),
            }
        })
}

fn with(command: Command, example: &str) -> Command {
    let text = |before: Option<String>| match before {
        Some(before) => format!("Example:\n  {example}\n\n{before}"),
        None => format!("Example:\n  {example}"),
    };
    let short = text(command.get_after_help().map(ToString::to_string));
    match command.get_after_long_help().map(ToString::to_string) {
        Some(long) => command.after_help(short).after_long_help(text(Some(long))),
        None => command.after_help(short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::definition;

    fn commands(of: &Command, path: &str, found: &mut Vec<String>) {
        for command in of
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
        {
            let path = format!("{path} {}", command.get_name());
            match command.has_subcommands() {
                true => commands(command, &path, found),
                false => found.push(path.trim().to_owned()),
            }
        }
    }

    #[test]
    fn each_command_has_an_example_which_is_right_usage() {
        let mut found = Vec::new();
        commands(&definition(), "", &mut found);
        let with_example: Vec<&str> = EXAMPLES.iter().map(|(path, _)| *path).collect();
        assert_eq!(found, with_example);
        for (path, example) in EXAMPLES {
            let words = shlex::split(example).unwrap().into_iter();
            let words = words.take_while(|word| ![">", "<"].contains(&word.as_str()));
            let parsed = definition().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            assert!(example.starts_with(&format!("countersign {path}")));
        }
    }
}
