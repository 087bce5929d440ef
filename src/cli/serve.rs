//! `serve`: runs the proxy.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{context::config_path, request::with_causes};
use crate::{
    app::{App, StartError, Surroundings},
    clock::Clock,
    config::{self, Config},
    telemetry::log,
};

/// Runs the proxy.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Serves until told to end.
#[must_use]
pub fn run(args: Args) -> ExitCode {
    let path = config_path(args.config);
    let config = match config::load(&path, std::env::vars_os()) {
        Ok(config) => config,
        Err(problems) => {
            say(&problems.to_string());
            return ExitCode::from(2);
        }
    };
    let log = match log::start(&config.log_params()) {
        Ok(log) => log,
        Err(error) => {
            say(&format!("countersign: {error}"));
            return ExitCode::FAILURE;
        }
    };
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let reload = {
        let path = path.clone();
        move || config::load(&path, std::env::vars_os()).map_err(|problems| problems.to_string())
    };
    let surroundings = Surroundings {
        reload: Some(Box::new(reload)),
        log: Some(log),
        clock: Clock::system(),
    };
    match start(config, surroundings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&path, &error),
    }
}

/// Runs the program on a runtime of its own.
///
/// # Errors
/// [`StartError`]
fn start(config: Config, surroundings: Surroundings) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::System)?;
    runtime.block_on(async { App::prepare(config, surroundings).await?.run().await })
}

/// Tells why the program could not start, in one line that begins with the file whose key is at fault.
pub(super) fn fail(path: &Path, error: &StartError) -> ExitCode {
    let text = with_causes(error).replace('\n', " ");
    say(&format!("countersign: {}: {text}", path.display()));
    if error.is_configuration() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

/// Writes a line to standard error; whether anybody reads it is not this program's matter.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
}
