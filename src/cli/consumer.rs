//! `consumer`: the life of a consumer.

mod details;

use std::{io, time::Duration};

use clap::Subcommand;

use self::details::{AddArgs, UpdateArgs};
use super::{
    context::{CommandError, Context},
    output::{Members, Shown},
    secret_arg::SecretArg,
};
use crate::{
    config::parse_duration,
    issue::random,
    names::ConsumerKey,
    secret::Secret,
    store::{
        port::{Added, Updated},
        record::{Consumer, ConsumerUpdate},
    },
    telemetry::audit::CommandRecord,
};

/// What to do with consumers.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
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
pub(super) struct KeyArg {
    /// Its key
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: ConsumerKey,
}

pub(super) async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    match command {
        Command::Add(args) => add(*args, context).await,
        Command::List => list(context).await,
        Command::Show(KeyArg { key }) => {
            let found = find(context, &key).await?;
            Ok(show(context, &found, Shown::WithoutSecret))
        }
        Command::Update {
            key: KeyArg { key },
            changes,
        } => {
            changes.details.warn(context);
            let update = changes.update()?;
            if update == ConsumerUpdate::default() {
                let problem = "nothing to change is given; see countersign consumer update --help";
                return Err(CommandError::usage(problem));
            }
            change(context, &key, update).await
        }
        Command::RotateSecret {
            key: KeyArg { key },
            grace,
            secret,
        } => rotate(context, &key, grace, secret).await,
        Command::Disable(KeyArg { key }) => change(context, &key, enabled(false)).await,
        Command::Enable(KeyArg { key }) => change(context, &key, enabled(true)).await,
        Command::Remove(KeyArg { key }) => {
            if !context.store()?.remove_consumer(&key).await? {
                return Err(unknown(&key));
            }
            audit(context, "consumer_removed", &key).await;
            Ok(String::new())
        }
    }
}

async fn add(args: AddArgs, context: &Context) -> Result<String, CommandError> {
    args.details.warn(context);
    let consumer = args.consumer(context.now)?;
    match context.store()?.add_consumer(consumer.clone()).await? {
        Added::Added => {
            audit(context, "consumer_registered", &consumer.key).await;
            Ok(show(context, &consumer, Shown::WithSecret))
        }
        Added::Taken => Err(CommandError::failed(format!(
            "there is a consumer with the key {:?}; give another --key, or change that one with countersign consumer update",
            consumer.key
        ))),
    }
}

async fn list(context: &Context) -> Result<String, CommandError> {
    let (store, dialect) = (context.store()?, context.config.signature.default_dialect);
    let page = async |last: Option<&Consumer>, limit| {
        store.consumers(last.map(|last| &last.key), limit).await
    };
    let members = |consumer: &_| Members::consumer(consumer, dialect, Shown::WithoutSecret);
    context.list(page, members).await
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
    audit(context, "consumer_secret_rotated", key).await;
    Ok(show(context, &consumer, Shown::WithSecret))
}

fn enabled(enabled: bool) -> ConsumerUpdate {
    ConsumerUpdate {
        enabled: Some(enabled),
        ..ConsumerUpdate::default()
    }
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
    let consumer = match context.store()?.update_consumer(key, update).await? {
        Updated::Consumer(consumer) => consumer,
        Updated::CannotSign => {
            let problem = "with --rsa-only it needs an RSA key to sign at all; give --rsa-public-key, or --no-rsa-only";
            return Err(CommandError::usage(problem));
        }
        Updated::Unknown => return Err(unknown(key)),
    };
    audit(context, event, key).await;
    Ok(show(context, &consumer, Shown::WithoutSecret))
}

async fn audit(context: &Context, event: &str, key: &ConsumerKey) {
    let about = CommandRecord {
        event: event.to_owned(),
        consumer: Some(key.to_string()),
        ..CommandRecord::default()
    };
    context.audit(about).await;
}

fn show(context: &Context, consumer: &Consumer, shown: Shown) -> String {
    let dialect = context.config.signature.default_dialect;
    context.show(Members::consumer(consumer, dialect, shown))
}

/// Finds a consumer by its key.
///
/// # Errors
/// There is none.
pub(super) async fn find(context: &Context, key: &ConsumerKey) -> Result<Consumer, CommandError> {
    let found = context.store()?.consumer(key).await?;
    found.ok_or_else(|| unknown(key))
}

fn unknown(key: &ConsumerKey) -> CommandError {
    CommandError::failed(format!(
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
        return Err(CommandError::usage(problem));
    }
    Ok(secret)
}
