//! The command line: arguments in, exit code out.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or an invalid configuration. An error is one line on standard error that
//! names the thing and the mend, and nothing is on standard output then.

pub mod check;
pub mod consumer;
pub mod context;
pub mod demo;
pub mod explain;
pub mod health;
pub mod lookup;
pub mod output;
pub mod password;
pub mod request;
pub mod secret_arg;
pub mod serve;
pub mod sign;
pub mod token;
pub mod transfer;
pub mod usage;
pub mod user;

use std::{io, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use self::{
    explain::ExplainArgs,
    lookup::lookup,
    serve::say,
    sign::SignArgs,
    transfer::{ExportArgs, ImportArgs},
};
use crate::clock::Clock;

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
    /// Runs everything at once, for a first look: nothing is kept
    Demo(demo::Args),
    /// Runs the proxy
    Serve(serve::Args),
    /// Validates the configuration and reaches what it names
    Check(check::Args),
    /// Asks the running process, for container health checks
    Health(health::Args),
    /// Registers and manages consumers
    Consumer(consumer::Args),
    /// Manages local accounts
    User(user::Args),
    /// Issues, lists and revokes access tokens
    Token(token::Args),
    /// Writes consumers, users and access tokens to a file
    Export(ExportArgs),
    /// Takes consumers, users and access tokens in from a file
    Import(ImportArgs),
    /// Signs a request and prints its Authorization header
    Sign {
        #[command(flatten)]
        args: SignArgs,
        /// The configuration file, for secrets that are not given [default: $COUNTERSIGN_CONFIG, else ./config.toml]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Shows how a request has to be signed, and what is wrong with its signature
    Explain {
        #[command(flatten)]
        args: ExplainArgs,
        /// The configuration file, for secrets that are not given [default: $COUNTERSIGN_CONFIG, else ./config.toml]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => cli.command.run(),
        Err(error) if usage::is_help(&error) => {
            // Whether anybody reads it is not this program's matter.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { 2 } else { 0 })
        }
        Err(error) => {
            say(&usage::line(&error));
            ExitCode::from(2)
        }
    }
}

impl Command {
    fn run(self) -> ExitCode {
        let (mut stdin, mut stdout, mut stderr) = (io::stdin(), io::stdout(), io::stderr());
        match self {
            Self::Demo(args) => demo::run(args),
            Self::Serve(args) => serve::run(args),
            Self::Check(args) => check::run(args),
            Self::Health(args) => health::run(args),
            Self::Consumer(args) => args.run(),
            Self::User(args) => args.run(),
            Self::Token(args) => args.run(),
            Self::Export(args) => args.run(),
            Self::Import(args) => args.run(),
            Self::Sign { args, config } => args.run(
                &Clock::system(),
                &mut *lookup(config),
                &mut stdin,
                &mut stdout,
                &mut stderr,
            ),
            Self::Explain { args, config } => {
                args.run(&mut *lookup(config), &mut stdin, &mut stdout, &mut stderr)
            }
        }
    }
}
