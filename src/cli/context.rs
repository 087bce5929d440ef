//! What the commands over the store have in common: configuration, store, output, and how they fail.
//!
//! A command returns the text for standard output, and only then is anything written there; warnings follow on
//! standard error. A command that fails writes one line to standard error and nothing else.
//!
//! # Log and audit records
//!
//! What a command does is an audit event like any other. Its records go where those of `serve` go, to standard error,
//! but only with `--log`: whoever types a command reads its output, and a job that has to leave a trace asks for it.

use std::{
    cell::{OnceCell, RefCell},
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use thiserror::Error;

use super::{
    output::{Listing, Record},
    request::report,
    secret_arg::SecretArgError,
    serve::say,
};
use crate::{
    app::services::{self, ServiceError},
    clock::{Clock, UnixTime},
    config::{self, Config, ConfigErrors, StoreBackend},
    issue::random::NoRandomness,
    store::{Opening, Store, StoreError},
    telemetry::log::{self, LogError},
};

/// The configuration file: as given, else `$COUNTERSIGN_CONFIG`, else `./config.toml`.
#[must_use]
pub fn config_path(given: Option<PathBuf>) -> PathBuf {
    let named = || std::env::var_os("COUNTERSIGN_CONFIG").filter(|name| !name.is_empty());
    given
        .or_else(|| named().map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("config.toml"))
}

/// Options of every command over the store.
#[derive(Debug, Clone, clap::Args)]
pub struct StoreArgs {
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml]
    #[arg(long, value_name = "FILE", global = true, display_order = 900)]
    config: Option<PathBuf>,
    /// Write log and audit records to standard error too, as log.format and log.level say
    #[arg(long, global = true, display_order = 902)]
    log: bool,
}

impl StoreArgs {
    /// Those of a command that has no other option than the configuration.
    #[must_use]
    pub fn of(config: Option<PathBuf>) -> Self {
        Self { config, log: false }
    }
}

/// The option of every command that prints records.
#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// Print JSON: an object, or one object a line for lists
    #[arg(long, global = true, display_order = 901)]
    pub json: bool,
}

/// Whether a command may begin a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFile {
    /// The command registers something, perhaps the first thing of all.
    MayBeMade,
    /// There is nothing to find in a store that is not there, so another one is meant.
    IsThere,
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
        source: ServiceError,
    },
    /// There is no store.
    #[error(
        "{}: store.url: {}: no such file; correct store.url, or begin a store with countersign serve, consumer add, user add or import",
        path.display(),
        store.display()
    )]
    StoreMissing {
        /// The configuration file.
        path: PathBuf,
        /// The store's.
        store: PathBuf,
    },
    /// The store does not answer.
    #[error("store.url: {0}")]
    Store(#[from] StoreError),
    /// The log cannot be started.
    #[error("--log: {0}")]
    Log(#[from] LogError),
    /// A secret cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretArgError),
    /// The system gave no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// What was given is not acceptable.
    #[error("{0}")]
    Usage(String),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be read or written.
    #[error("{what}")]
    File {
        /// The file, and what was to be done with it.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// The system gives no runtime.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
}

impl CommandError {
    /// 2 for wrong usage and an invalid configuration, 1 for everything else.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Usage(_) | Self::Secret(SecretArgError::StdinTwice) => 2,
            Self::Service { .. }
            | Self::StoreMissing { .. }
            | Self::Store(_)
            | Self::Log(_)
            | Self::Secret(_)
            | Self::Randomness(_)
            | Self::Refused(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Runtime(_) => 1,
        }
    }
}

/// A configuration and its store, which is opened when it is first asked for: what fails before leaves none behind.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The time of the command.
    pub now: UnixTime,
    path: PathBuf,
    store: OnceCell<Arc<dyn Store>>,
    json: bool,
    warnings: RefCell<Vec<String>>,
}

impl Context {
    /// Loads the configuration.
    ///
    /// # Errors
    /// [`CommandError::Config`], `Log` and `StoreMissing`.
    pub fn load(args: &StoreArgs, json: bool, file: StoreFile) -> Result<Self, CommandError> {
        let path = config_path(args.config.clone());
        let config = config::load(&path, std::env::vars_os())?;
        if args.log {
            log::start(&config.log_params())?;
        }
        let context = Self {
            config,
            now: Clock::system().now(),
            path,
            store: OnceCell::new(),
            json,
            warnings: RefCell::default(),
        };
        if file == StoreFile::IsThere && !context.is_store_there() {
            return Err(CommandError::StoreMissing {
                store: context.config.store.url.sqlite_path(),
                path: context.path,
            });
        }
        Ok(context)
    }

    /// Whether there is a store to open, rather than one to begin.
    #[must_use]
    pub fn is_store_there(&self) -> bool {
        let settings = &self.config.store;
        // What is there and cannot be looked at is for opening to explain.
        settings.backend != StoreBackend::Sqlite
            || !matches!(settings.url.sqlite_path().try_exists(), Ok(false))
    }

    /// The store.
    ///
    /// # Errors
    /// [`CommandError::Service`] if it cannot be opened.
    pub fn store(&self) -> Result<&dyn Store, CommandError> {
        if let Some(store) = self.store.get() {
            return Ok(&**store);
        }
        let opened = services::open_store(&self.config, Opening::Command);
        let store = opened.map_err(|source| CommandError::Service {
            path: self.path.clone(),
            source,
        })?;
        Ok(&**self.store.get_or_init(|| store))
    }

    /// Tells, when all is done, what is valid and unwise.
    pub fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    /// A record as the caller wants to read it.
    #[must_use]
    pub fn show(&self, record: Record) -> String {
        record.render(self.json)
    }

    /// A list of records as the caller wants to read it.
    #[must_use]
    pub fn listing(&self) -> Listing {
        Listing::new(self.json)
    }
}

/// Runs a future to its end.
///
/// # Errors
/// [`CommandError::Runtime`]
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CommandError::Runtime)?;
    Ok(runtime.block_on(future))
}

/// Runs a command over the store and turns its outcome into an exit code.
pub fn run(
    args: &StoreArgs,
    json: bool,
    file: StoreFile,
    command: impl AsyncFnOnce(&Context) -> Result<String, CommandError>,
) -> ExitCode {
    match print(args, json, file, command) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has had enough.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error @ CommandError::Config(_)) => {
            say(&error.to_string());
            ExitCode::from(error.exit_code())
        }
        Err(error) => report(&mut io::stderr(), &error, error.exit_code()),
    }
}

fn print(
    args: &StoreArgs,
    json: bool,
    file: StoreFile,
    command: impl AsyncFnOnce(&Context) -> Result<String, CommandError>,
) -> Result<(), CommandError> {
    let context = Context::load(args, json, file)?;
    let text = block_on(command(&context))??;
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    for warning in context.warnings.borrow().iter() {
        say(&format!("countersign: warning: {warning}"));
    }
    written.map_err(CommandError::Output)
}
