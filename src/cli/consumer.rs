//! `consumer`: the life of a consumer.

use std::{io, path::PathBuf, process::ExitCode};

use clap::{Subcommand, ValueEnum};

use super::{
    context::{self, CommandError, Context, StoreArgs},
    output::{Record, print_list},
    secret_arg::SecretArg,
    serve::say,
};
use crate::{
    config::parse_duration,
    issue::{callback, random},
    names::{ConsumerKey, Permission},
    oauth::RsaPublicKey,
    secret::Secret,
    store::{
        Store as _,
        port::Added,
        record::{Consumer, ConsumerUpdate, Dialect},
    },
};

/// Registers and manages consumers.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Registers a consumer and prints its key and secret
    Add {
        /// What the consent page calls it
        #[arg(long)]
        name: String,
        /// Its key [default: a random one]
        #[arg(long, allow_hyphen_values = true)]
        key: Option<ConsumerKey>,
        /// Its secret, @FILE, or - for standard input [default: a random one]
        #[arg(long, allow_hyphen_values = true)]
        secret: Option<SecretArg>,
        #[command(flatten)]
        details: Details,
    },
    /// Lists all consumers
    List,
    /// Shows a consumer
    Show {
        /// Its key
        key: ConsumerKey,
    },
    /// Changes what is given; a list is replaced whole
    Update {
        /// Its key
        key: ConsumerKey,
        /// What the consent page calls it
        #[arg(long)]
        name: Option<String>,
        /// Takes all callbacks away
        #[arg(long, conflicts_with = "callbacks")]
        no_callbacks: bool,
        /// Takes all permissions away
        #[arg(long, conflicts_with = "permissions")]
        no_permissions: bool,
        /// Takes the RSA key away
        #[arg(long, conflicts_with = "rsa_public_key")]
        no_rsa_public_key: bool,
        /// Whether its calls are enforced even where the configuration only observes
        #[arg(long, value_name = "YES")]
        enforce: Option<bool>,
        #[command(flatten)]
        details: Details,
    },
    /// Gives it a new secret
    RotateSecret {
        /// Its key
        key: ConsumerKey,
        /// How long the old secret verifies too, such as 24h
        #[arg(long, value_name = "DURATION")]
        grace: Option<String>,
        /// The new secret, @FILE, or - for standard input [default: a random one]
        #[arg(long, allow_hyphen_values = true)]
        secret: Option<SecretArg>,
    },
    /// Refuses its calls until it is enabled
    Disable {
        /// Its key
        key: ConsumerKey,
    },
    /// Accepts its calls again
    Enable {
        /// Its key
        key: ConsumerKey,
    },
    /// Removes it with all its tokens
    Remove {
        /// Its key
        key: ConsumerKey,
    },
}

/// What `add` and `update` have in common.
#[derive(Debug, clap::Args)]
struct Details {
    /// A callback, or oob; may be given again
    #[arg(long = "callback", value_name = "URL|oob")]
    callbacks: Vec<String>,
    /// A permission that it may ask for; may be given again
    #[arg(long = "permission", value_name = "P")]
    permissions: Vec<Permission>,
    /// Which base string it signs protected calls with [default: signature.default_dialect]
    #[arg(long)]
    dialect: Option<DialectArg>,
    /// PEM file with its public key, for the RSA methods
    #[arg(long, value_name = "FILE")]
    rsa_public_key: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DialectArg {
    Rfc5849,
    Legacy,
}

impl From<DialectArg> for Dialect {
    fn from(argument: DialectArg) -> Self {
        match argument {
            DialectArg::Rfc5849 => Self::Rfc5849,
            DialectArg::Legacy => Self::Legacy,
        }
    }
}

impl Args {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let Self { command, store } = self;
        let json = store.json;
        context::run(&store, |context| async move {
            execute(command, &context, json).await
        })
    }
}

async fn execute(command: Command, context: &Context, json: bool) -> Result<(), CommandError> {
    let store = &context.store;
    let dialect = context.config.signature.default_dialect;
    let show = |consumer: Consumer, with_secret| {
        Record::consumer(&consumer, dialect, with_secret).print(json)
    };
    match command {
        Command::Add {
            name,
            key,
            secret,
            details,
        } => {
            details.check(context)?;
            let consumer = Consumer {
                key: key.map_or_else(random_key, Ok)?,
                secret: given_or_random(secret)?,
                previous_secret: None,
                rsa_public_key: details.rsa()?,
                name: named(name)?,
                callbacks: details.callbacks,
                permissions: details.permissions,
                dialect: details.dialect.map(Into::into),
                enforce: false,
                enabled: true,
                created_at: context.now,
            };
            match store.add_consumer(consumer.clone()).await? {
                Added::Added => Ok(show(consumer, true)?),
                Added::Taken => Err(CommandError::Refused(format!(
                    "the key {:?} is taken; give another --key, or change that consumer with consumer update",
                    consumer.key
                ))),
            }
        }
        Command::List => {
            let mut records = Vec::new();
            let mut after = None;
            loop {
                let page = store.consumers(after.as_ref(), PAGE).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.key.clone());
                records.extend(
                    page.iter()
                        .map(|consumer| Record::consumer(consumer, dialect, false)),
                );
            }
            Ok(print_list(records, json)?)
        }
        Command::Show { key } => {
            let found = store.consumer(&key).await?;
            Ok(show(found.ok_or_else(|| unknown(&key))?, false)?)
        }
        Command::Update {
            key,
            name,
            no_callbacks,
            no_permissions,
            no_rsa_public_key,
            enforce,
            details,
        } => {
            details.check(context)?;
            let rsa = details.rsa()?;
            let update = ConsumerUpdate {
                name: name.map(named).transpose()?,
                callbacks: replaced(details.callbacks, no_callbacks),
                permissions: replaced(details.permissions, no_permissions),
                dialect: details.dialect.map(|dialect| Some(dialect.into())),
                rsa_public_key: if no_rsa_public_key {
                    Some(None)
                } else {
                    rsa.map(Some)
                },
                enforce,
                enabled: None,
            };
            change(context, &key, update, json).await
        }
        Command::RotateSecret { key, grace, secret } => {
            let grace = grace.as_deref().map(parse_duration).transpose();
            let grace = grace.map_err(|error| CommandError::Usage(format!("--grace: {error}")))?;
            let secret = given_or_random(secret)?;
            let until = grace.map(|grace| context.now.after(grace));
            let rotated = store.rotate_consumer_secret(&key, secret, until).await?;
            Ok(show(rotated.ok_or_else(|| unknown(&key))?, true)?)
        }
        Command::Disable { key } => enable(context, &key, false, json).await,
        Command::Enable { key } => enable(context, &key, true, json).await,
        Command::Remove { key } => {
            if store.remove_consumer(&key).await? {
                Ok(())
            } else {
                Err(unknown(&key))
            }
        }
    }
}

/// So many records are asked of the store at once.
const PAGE: u32 = 500;

async fn enable(
    context: &Context,
    key: &ConsumerKey,
    enabled: bool,
    json: bool,
) -> Result<(), CommandError> {
    let update = ConsumerUpdate {
        enabled: Some(enabled),
        ..ConsumerUpdate::default()
    };
    change(context, key, update, json).await
}

async fn change(
    context: &Context,
    key: &ConsumerKey,
    update: ConsumerUpdate,
    json: bool,
) -> Result<(), CommandError> {
    let changed = context
        .store
        .update_consumer(key, update)
        .await?
        .ok_or_else(|| unknown(key))?;
    Ok(Record::consumer(&changed, context.config.signature.default_dialect, false).print(json)?)
}

fn unknown(key: &ConsumerKey) -> CommandError {
    CommandError::Refused(format!(
        "no consumer has the key {key:?}; list them with countersign consumer list"
    ))
}

fn named(name: String) -> Result<String, CommandError> {
    if name.trim().is_empty() || name.chars().any(char::is_control) || name.len() > 255 {
        return Err(CommandError::Usage(
            "--name: 1 to 255 characters without control characters".to_owned(),
        ));
    }
    Ok(name)
}

fn random_key() -> Result<ConsumerKey, CommandError> {
    let drawn = random::identifier().map_err(io::Error::other)?;
    drawn
        .parse()
        .map_err(|error| CommandError::System(io::Error::other(error)))
}

fn given_or_random(argument: Option<SecretArg>) -> Result<Secret, CommandError> {
    match argument {
        None => Ok(random::secret().map_err(io::Error::other)?),
        Some(argument) => {
            let secret = argument.read(&mut io::stdin())?;
            if secret.is_empty() {
                return Err(CommandError::Usage(
                    "--secret: an empty secret proves nothing; leave it out for a random one"
                        .to_owned(),
                ));
            }
            Ok(secret)
        }
    }
}

fn replaced<T>(given: Vec<T>, clear: bool) -> Option<Vec<T>> {
    (clear || !given.is_empty()).then_some(given)
}

impl Details {
    /// Checks what can be checked without the store; warns of what is valid and unwise.
    fn check(&self, context: &Context) -> Result<(), CommandError> {
        for callback in &self.callbacks {
            if callback == callback::OOB {
                continue;
            }
            match callback::check_registration(callback) {
                Ok(None) => {}
                Ok(Some(warning)) => say(&format!("warning: --callback {callback}: {warning}")),
                Err(error) => {
                    return Err(CommandError::Usage(format!(
                        "--callback {callback:?}: {error}"
                    )));
                }
            }
        }
        let declared = &context.config.permission;
        for permission in &self.permissions {
            if !declared.is_empty() && !declared.iter().any(|entry| entry.name == *permission) {
                say(&format!(
                    "warning: --permission {permission}: no [[permission]] of that name is configured"
                ));
            }
        }
        Ok(())
    }

    fn rsa(&self) -> Result<Option<String>, CommandError> {
        let Some(path) = &self.rsa_public_key else {
            return Ok(None);
        };
        let at = |problem: String| {
            CommandError::Refused(format!("--rsa-public-key {}: {problem}", path.display()))
        };
        let pem = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        RsaPublicKey::from_pem(&pem).map_err(|error| at(error.to_string()))?;
        Ok(Some(pem))
    }
}
