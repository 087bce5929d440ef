//! What the commands over the store have in common: the configuration, the store, and how they fail.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use thiserror::Error;

use super::{request::KnownSecrets, secret_arg::SecretArgError, serve::say};
use crate::{
    app::services::{self, ServiceError},
    clock::{Clock, UnixTime},
    config::{self, Config, ConfigErrors},
    names::ConsumerKey,
    oauth::RsaPublicKey,
    secret::Secret,
    store::{Store, StoreError, sqlite::SqliteStore},
};

/// The configuration file: as given, else `$COUNTERSIGN_CONFIG`, else `./config.toml`.
#[must_use]
pub fn config_path(given: Option<PathBuf>) -> PathBuf {
    given
        .or_else(|| std::env::var_os("COUNTERSIGN_CONFIG").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("config.toml"))
}

/// Options of every command over the store.
#[derive(Debug, Clone, clap::Args)]
pub struct StoreArgs {
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Print JSON: an object, or one object a line for lists
    #[arg(long, global = true)]
    pub json: bool,
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The configuration; a line for each problem.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The store cannot be opened.
    #[error("{}: {source}", path.display())]
    Service {
        /// The configuration file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: ServiceError,
    },
    /// The store does not answer.
    #[error("the store does not answer: {0}; see store.url")]
    Store(#[from] StoreError),
    /// A secret cannot be read.
    #[error("{source}: {}", cause(source))]
    Secret {
        /// Why.
        #[from]
        source: SecretArgError,
    },
    /// What was given is not acceptable.
    #[error("{0}")]
    Usage(String),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Refused(String),
    /// The system.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

fn cause(error: &SecretArgError) -> String {
    error
        .source()
        .map_or_else(|| "give it another way".to_owned(), ToString::to_string)
}

impl CommandError {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_)
            | Self::Usage(_)
            | Self::Secret {
                source: SecretArgError::StdinTwice,
            } => 2,
            Self::Service { .. }
            | Self::Store(_)
            | Self::Secret { .. }
            | Self::Refused(_)
            | Self::System(_) => 1,
        }
    }
}

/// A configuration and its store, open.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The store.
    pub store: SqliteStore,
    /// The time of the command.
    pub now: UnixTime,
}

impl Context {
    /// Loads the configuration and opens its store.
    ///
    /// # Errors
    /// [`CommandError::Config`] and [`CommandError::Service`].
    pub fn open(given: Option<&Path>) -> Result<Self, CommandError> {
        let path = config_path(given.map(Path::to_owned));
        let config = config::load(&path, std::env::vars_os())?;
        let store = services::open_store(&config)
            .map_err(|source| CommandError::Service { path, source })?;
        Ok(Self {
            config,
            store,
            now: Clock::system().now(),
        })
    }

    /// Finds the secrets of a consumer and a token in the store of the configuration, opened when first asked.
    #[expect(clippy::type_complexity, reason = "it is `request::Lookup`, by value")]
    pub fn lookup(
        given: Option<PathBuf>,
    ) -> impl FnMut(&[u8], Option<&[u8]>) -> Result<KnownSecrets, Box<dyn Error>> {
        move |consumer, token| {
            let context = Self::open(given.as_deref())?;
            let key: ConsumerKey = std::str::from_utf8(consumer)?.parse()?;
            block_on(async {
                let found = context.store.consumer(&key).await?;
                let consumer = found.ok_or("the store has no such consumer")?;
                let token_secret = match token.filter(|token| !token.is_empty()) {
                    None => Secret::from(""),
                    Some(token) => {
                        secret_of_token(&context.store, std::str::from_utf8(token)?).await?
                    }
                };
                let rsa_public_key = consumer
                    .rsa_public_key
                    .as_deref()
                    .map(RsaPublicKey::from_pem)
                    .transpose()?;
                Ok(KnownSecrets {
                    consumer_secret: consumer.secret,
                    token_secret,
                    rsa_public_key,
                })
            })?
        }
    }
}

async fn secret_of_token(store: &SqliteStore, token: &str) -> Result<Secret, Box<dyn Error>> {
    if let Some(access) = store.access_token(token).await? {
        return Ok(access.secret);
    }
    match store.request_token(token).await? {
        Some(request) => Ok(request.secret),
        None => Err("the store has no such token".into()),
    }
}

/// Runs a future to its end.
///
/// # Errors
/// The system's, if it gives no runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future))
}

/// Runs a command over the store and turns its outcome into an exit code.
pub fn run<F: Future<Output = Result<(), CommandError>>>(
    args: &StoreArgs,
    command: impl FnOnce(Context) -> F,
) -> ExitCode {
    let outcome = Context::open(args.config.as_deref())
        .and_then(|context| block_on(command(context)).unwrap_or_else(|error| Err(error.into())));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Config(problems)) => {
            say(&problems.to_string());
            ExitCode::from(2)
        }
        // Whoever reads the output has had enough.
        Err(CommandError::System(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!(
                "countersign: {}",
                error.to_string().replace('\n', " ")
            ));
            ExitCode::from(error.exit_code())
        }
    }
}
