//! `consumer`: the life of a consumer.

mod details;

use std::{io, process::ExitCode, time::Duration};

use clap::Subcommand;

use self::details::{AddArgs, UpdateArgs};
use super::{
    context::{self, CommandError, Context, OutputArgs, StoreArgs, StoreFile},
    output::{Record, Shown},
    secret_arg::SecretArg,
};
use crate::{
    config::parse_duration,
    issue::random,
    names::ConsumerKey,
    secret::Secret,
    store::{
        port::Added,
        record::{Consumer, ConsumerUpdate},
    },
};

/// Registers and manages consumers.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Registers a consumer and prints its key and secret
    Add(Box<AddArgs>),
    /// Lists all consumers
    List,
    /// Shows a consumer
    Show(KeyArg),
    /// Changes what is given; a list is replaced whole
    Update {
        #[command(flatten)]
        key: KeyArg,
        #[command(flatten)]
        changes: Box<UpdateArgs>,
    },
    /// Gives it a new secret and prints it
    RotateSecret {
        #[command(flatten)]
        key: KeyArg,
        /// How long the old secret verifies too, such as 24h [default: not at all]
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        grace: Option<Duration>,
        /// The new secret, @FILE, or - for standard input [default: a random one]
        #[arg(long, allow_hyphen_values = true)]
        secret: Option<SecretArg>,
    },
    /// Refuses its calls until it is enabled
    Disable(KeyArg),
    /// Accepts its calls again
    Enable(KeyArg),
    /// Removes it with all its tokens
    Remove(KeyArg),
}

/// The consumer meant.
#[derive(Debug, clap::Args)]
struct KeyArg {
    /// Its key
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: ConsumerKey,
}

impl Args {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let file = match self.command {
            Command::Add(_) => StoreFile::MayBeMade,
            _ => StoreFile::IsThere,
        };
        context::run(&self.store, self.output.json, file, async |context| {
            execute(self.command, context).await
        })
    }
}

async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    match command {
        Command::Add(args) => add(*args, context).await,
        Command::List => list(context).await,
        Command::Show(KeyArg { key }) => {
            let found = context.store()?.consumer(&key).await?;
            Ok(show(context, &found.ok_or_else(|| unknown(&key))?))
        }
        Command::Update {
            key: KeyArg { key },
            changes,
        } => {
            if changes.is_empty() {
                let problem = "nothing to change is given; see countersign consumer update --help";
                return Err(CommandError::Usage(problem.to_owned()));
            }
            changes.warn(context);
            change(context, &key, changes.update()?).await
        }
        Command::RotateSecret {
            key: KeyArg { key },
            grace,
            secret,
        } => rotate(context, &key, grace, secret).await,
        Command::Disable(KeyArg { key }) => enable(context, &key, false).await,
        Command::Enable(KeyArg { key }) => enable(context, &key, true).await,
        Command::Remove(KeyArg { key }) => {
            if !context.store()?.remove_consumer(&key).await? {
                return Err(unknown(&key));
            }
            tracing::info!(target: "audit", event = "consumer_removed", by = "command", consumer = %key);
            Ok(String::new())
        }
    }
}

async fn add(args: AddArgs, context: &Context) -> Result<String, CommandError> {
    args.warn(context);
    let consumer = args.consumer(context.now)?;
    match context.store()?.add_consumer(consumer.clone()).await? {
        Added::Added => {
            tracing::info!(target: "audit", event = "consumer_registered", by = "command", consumer = %consumer.key);
            Ok(show_secret(context, &consumer))
        }
        Added::Taken => Err(CommandError::Refused(format!(
            "there is a consumer with the key {:?}; give another --key, or change that one with countersign consumer update",
            consumer.key
        ))),
    }
}

async fn list(context: &Context) -> Result<String, CommandError> {
    /// So many are asked of the store at once.
    const PAGE: u32 = 500;

    let dialect = context.config.signature.default_dialect;
    let mut listing = context.listing();
    let mut after = None;
    loop {
        let page = context.store()?.consumers(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        for consumer in &page {
            listing.push(&Record::consumer(consumer, dialect, Shown::WithoutSecret));
        }
    }
    Ok(listing.finish())
}

async fn rotate(
    context: &Context,
    key: &ConsumerKey,
    grace: Option<Duration>,
    secret: Option<SecretArg>,
) -> Result<String, CommandError> {
    let secret = given_or_random(secret)?;
    let until = grace.map(|grace| context.now.after(grace));
    let store = context.store()?;
    let rotated = store.rotate_consumer_secret(key, secret, until).await?;
    let consumer = rotated.ok_or_else(|| unknown(key))?;
    tracing::info!(target: "audit", event = "consumer_secret_rotated", by = "command", consumer = %key);
    Ok(show_secret(context, &consumer))
}

async fn enable(
    context: &Context,
    key: &ConsumerKey,
    enabled: bool,
) -> Result<String, CommandError> {
    let update = ConsumerUpdate {
        enabled: Some(enabled),
        ..ConsumerUpdate::default()
    };
    change(context, key, update).await
}

async fn change(
    context: &Context,
    key: &ConsumerKey,
    update: ConsumerUpdate,
) -> Result<String, CommandError> {
    let event = match update.enabled {
        Some(true) => "consumer_enabled",
        Some(false) => "consumer_disabled",
        None => "consumer_changed",
    };
    let changed = context.store()?.update_consumer(key, update).await?;
    let consumer = changed.ok_or_else(|| unknown(key))?;
    tracing::info!(target: "audit", event, by = "command", consumer = %key);
    Ok(show(context, &consumer))
}

fn show(context: &Context, consumer: &Consumer) -> String {
    let dialect = context.config.signature.default_dialect;
    context.show(Record::consumer(consumer, dialect, Shown::WithoutSecret))
}

fn show_secret(context: &Context, consumer: &Consumer) -> String {
    let dialect = context.config.signature.default_dialect;
    context.show(Record::consumer(consumer, dialect, Shown::WithSecret))
}

/// There is no consumer of that key.
pub(super) fn unknown(key: &ConsumerKey) -> CommandError {
    CommandError::Refused(format!(
        "no consumer has the key {key:?}; list them with countersign consumer list"
    ))
}

/// The secret that was given, or a new one.
fn given_or_random(argument: Option<SecretArg>) -> Result<Secret, CommandError> {
    let Some(argument) = argument else {
        return Ok(random::secret()?);
    };
    let secret = argument.read(&mut io::stdin())?;
    if secret.is_empty() {
        let problem = "--secret: an empty secret proves nothing; leave it out for a random one";
        return Err(CommandError::Usage(problem.to_owned()));
    }
    Ok(secret)
}
