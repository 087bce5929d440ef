//! The example in the help of each command.

use clap::Command;

/// A line that somebody would type, for each command.
const EXAMPLES: [&str; 40] = [
    "countersign demo",
    "countersign serve --config /etc/countersign/config.toml",
    "countersign check --config /etc/countersign/config.toml",
    "countersign status",
    "countersign health --ready",
    "countersign why printer",
    "countersign consumer add --name 'Photo printer' --callback https://printer.example/back --permission members.read",
    "countersign consumer list --unused-for 90d",
    "countersign consumer show printer --json",
    "countersign consumer update printer --name 'Photo printer 2'",
    "countersign consumer rotate-secret printer --grace 7d",
    "countersign consumer disable printer",
    "countersign consumer enable printer",
    "countersign consumer approve printer",
    "countersign consumer decline printer --reason 'Which data does it need?'",
    "countersign consumer link printer",
    "countersign consumer remove printer --yes",
    "countersign user add alice --display-name 'Alice Liddell'",
    "countersign user list",
    "countersign user show alice",
    "countersign user update alice --display-name 'Alice P. Liddell'",
    "countersign user passwd alice --password-stdin < password",
    "countersign user disable alice",
    "countersign user enable alice",
    "countersign user remove alice --yes",
    "countersign user sessions alice",
    "countersign user end-sessions alice",
    "countersign user unlock alice",
    "countersign token issue --consumer printer --user alice --permission members.read",
    "countersign token list --user alice",
    "countersign token show uDJRj4qK",
    "countersign token revoke --user alice --consumer printer",
    "countersign rekey --config /etc/countersign/config.toml",
    "countersign export backup.jsonl",
    "countersign import backup.jsonl --dry-run",
    "countersign completions bash > /etc/bash_completion.d/countersign",
    "countersign man /usr/local/share/man/man1",
    "countersign sign GET https://api.example.com/members/1 --consumer-key printer --consumer-secret @secret --curl",
    "countersign explain --request request.http --consumer-secret @secret --token-secret @token-secret",
    "countersign lti-key-sign launch.jwt",
];

/// Adds the examples to the definition of the command line.
pub(in crate::cli) fn add(definition: Command) -> Command {
    EXAMPLES
        .into_iter()
        .fold(definition, |definition, example| {
            let mut words = example.split(' ').skip(1);
            let [first, second] = [(); 2].map(|()| words.next().unwrap_or_default());
            definition.mut_subcommand(first, |command| match command.has_subcommands() {
                true => command.mut_subcommand(second, |command| with(command, example)),
                false => with(command, example),
            })
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
        assert_eq!(found.len(), EXAMPLES.len());
        for (path, example) in found.iter().zip(EXAMPLES) {
            let words = shlex::split(example).unwrap().into_iter();
            let words = words.take_while(|word| ![">", "<"].contains(&word.as_str()));
            let parsed = definition().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            assert!(example.starts_with(&format!("countersign {path}")));
        }
    }
}
