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
pub mod output;
pub mod request;
pub mod secret_arg;
pub mod serve;
pub mod sign;
pub mod token;
pub mod user;

use std::{io, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use self::{context::Context, explain::ExplainArgs, sign::SignArgs};
use crate::clock::Clock;

const EXAMPLES: &str = "\
Examples:
  countersign demo
      everything at once, for a first look
  countersign check --config config.toml && countersign serve --config config.toml
      the proxy in front of an API of yours
  countersign consumer add --name 'My application' --callback https://app.example/callback
      registers a consumer, also while serve runs";

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
    let (mut stdin, mut stdout, mut stderr) = (io::stdin(), io::stdout(), io::stderr());
    match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Check(args) => check::run(args),
        Command::Health(args) => health::run(args),
        Command::Consumer(args) => args.run(),
        Command::User(args) => args.run(),
        Command::Token(args) => args.run(),
        Command::Sign { args, config } => {
            let mut lookup = Context::lookup(config);
            args.run(
                &Clock::system(),
                &mut lookup,
                &mut stdin,
                &mut stdout,
                &mut stderr,
            )
        }
        Command::Explain { args, config } => {
            let mut lookup = Context::lookup(config);
            args.run(&mut lookup, &mut stdin, &mut stdout, &mut stderr)
        }
    }
}
