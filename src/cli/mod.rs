//! The command line: arguments in, exit code out.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or an invalid configuration. An error is on standard error
//! and names the thing and the fix. Most commands that fail print nothing on standard output; `check` and `explain` print
//! what they found, and `import --replace` and `--update` print the changes before they make them.

pub mod arguments;
mod config_file;
pub mod context;
pub mod demo;
pub mod help;
pub mod records;
pub mod service;
pub mod signature;
pub mod terminal;
pub mod transfer;

use std::{fs, io, path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use self::{
    context::{About as _, CommandError, ConfigArgs, Output, RecordArgs, finish},
    transfer::{ExportArgs, ImportArgs},
};
use crate::{
    base::clock::Clock,
    cli::{
        arguments::signing_secrets::lookup,
        signature::{explain::ExplainArgs, sign::SignArgs},
        terminal::output::say,
    },
    records::values::Opening,
    telemetry::log,
};

const EXAMPLES: &str = "\
Examples:
  countersign demo
      everything at once, for a first look
  countersign consumer add --name 'My application' --callback https://app.example/callback
      registers a consumer, also while countersign serve runs";

/// Verifies OAuth 1.0a (RFC 5849) in front of an API that stays as it is.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything at once, for a first look; nothing is kept without --keep
    Demo(demo::Args),
    /// Runs the proxy
    Serve(service::serve::Args),
    /// Checks the configuration, the store, the certificates and the API
    Check(service::check::Args),
    /// Shows the running process: ready, API, rate, and who needs attention
    Status(service::status::Args),
    /// Asks the running process, for container health checks
    Health(service::health::Args),
    /// Prints why calls of a consumer were rejected, and what to do
    #[command(after_help = service::why::HELP)]
    Why(service::why::Args),
    /// Registers and manages consumers
    Consumer {
        #[command(subcommand)]
        command: records::consumer::Command,
        #[command(flatten)]
        args: RecordArgs,
    },
    /// Manages local accounts
    User {
        #[command(subcommand)]
        command: records::user::Command,
        #[command(flatten)]
        args: RecordArgs,
    },
    /// Issues, lists and revokes access tokens
    Token {
        #[command(subcommand)]
        command: records::token::Command,
        #[command(flatten)]
        args: RecordArgs,
    },
    /// Encrypts every secret of the store with the first key of store.encryption_key_file
    #[command(after_help = service::rekey::HELP)]
    Rekey(RecordArgs),
    /// Writes consumers, users and access tokens to a file
    Export(ExportArgs),
    /// Reads consumers, users and access tokens from a file
    Import(ImportArgs),
    /// Prints the completions of the command line for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes a manual page for each command
    Man {
        /// The directory, made if it does not exist
        directory: PathBuf,
    },
    /// Signs a request and prints its Authorization header
    Sign {
        #[command(flatten)]
        args: SignArgs,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Shows how a request has to be signed, and what is wrong with its signature
    Explain {
        #[command(flatten)]
        args: ExplainArgs,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Checks that a platform of LTI 1.3 has the secret of a key of LTI 1.1, by its claim oauth_consumer_key_sign
    LtiKeySign(records::lti_key_sign::Args),
}

/// The commands of each group, as the help lists them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["demo", "serve", "check"]),
    ("Operate", &["status", "health", "why"]),
    ("Records", &["consumer", "user", "token"]),
    ("Store", &["export", "import", "rekey"]),
    ("Develop", &["sign", "explain", "lti-key-sign"]),
    ("Shell", &["completions", "man", "help"]),
];

/// The definition of the command line, with the examples and the groups of commands.
fn definition() -> clap::Command {
    let mut definition = help::examples::add(Cli::command());
    // It gets the command `help`.
    definition.build();
    let about = |name: &str| {
        let command = definition.find_subcommand(name);
        let about = command.and_then(clap::Command::get_about);
        about.map(ToString::to_string).unwrap_or_default()
    };
    let styles = definition.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let group = |(title, names): &(&str, &[&str])| {
        let row = |name: &&str| format!("  {literal}{name:<12}{literal:#} {}\n", about(name));
        let rows: String = names.iter().map(row).collect();
        format!("{header}{title}:{header:#}\n{rows}\n")
    };
    let groups: String = GROUPS.iter().map(group).collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    definition.help_template(template)
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let parsed = definition().try_get_matches();
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            let result = cli.command.run();
            log::flush();
            finish(result)
        }
        Err(error) if help::usage::is_help(&error) => {
            // A closed standard output does not make the help fail.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { 2 } else { 0 })
        }
        Err(error) => {
            say(&help::usage::line(&error));
            ExitCode::from(2)
        }
    }
}

impl Command {
    fn run(self) -> Result<Output, CommandError> {
        match self {
            Self::Demo(args) => demo::run(&args),
            Self::Serve(args) => service::serve::run(&args),
            Self::Check(args) => service::check::run(&args),
            Self::Status(args) => service::status::run(&args),
            Self::Health(args) => service::health::run(&args),
            Self::Why(args) => service::why::run(&args),
            Self::Consumer { command, args } => {
                let opening = opening(matches!(command, records::consumer::Command::Add(_)));
                args.store.run(args.json, opening, async |context| {
                    records::consumer::execute(command, context).await
                })
            }
            Self::User { command, args } => {
                let opening = opening(matches!(command, records::user::Command::Add(_)));
                args.store.run(args.json, opening, async |context| {
                    records::user::execute(command, context).await
                })
            }
            Self::Token { command, args } => {
                args.store
                    .run(args.json, Opening::Existing, async |context| {
                        records::token::execute(command, context).await
                    })
            }
            Self::Rekey(args) => {
                args.store
                    .run(args.json, Opening::Reseal, service::rekey::execute)
            }
            Self::Export(args) => args.run(),
            Self::Import(args) => args.run(),
            Self::Completions { shell } => {
                let (mut definition, mut script) = (definition(), Vec::new());
                clap_complete::generate(shell, &mut definition, "countersign", &mut script);
                Ok(String::from_utf8_lossy(&script).into_owned().into())
            }
            Self::Man { directory } => {
                fs::create_dir_all(&directory)
                    .and_then(|()| clap_mangen::generate_to(definition(), &directory))
                    .about(format!("{}: cannot be written", directory.display()))?;
                Ok(Output::default())
            }
            Self::Sign { args, config } => {
                args.run(&Clock::system(), &mut *lookup(config), &mut io::stdin())
            }
            Self::Explain { args, config } => args.run(&mut *lookup(config), &mut io::stdin()),
            Self::LtiKeySign(args) => args.run(),
        }
    }
}

/// Only a command that adds a record may create the store: for others, the configuration is wrong.
const fn opening(adds: bool) -> Opening {
    match adds {
        true => Opening::Command,
        false => Opening::Existing,
    }
}
