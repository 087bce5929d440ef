//! `serve`: runs the proxy.

use super::context::{CommandError, ConfigArgs, Output, block_on};
use crate::{
    app::{App, Surroundings},
    clock::Clock,
    telemetry::log,
};

/// Runs the proxy.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Serves until a signal ends it.
///
/// # Errors
/// [`CommandError`]
pub fn run(args: &Args) -> Result<Output, CommandError> {
    let config = args.config.load()?;
    let log = log::start(config.log.format, &config.log.level)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let file = args.config.clone();
    let surroundings = Surroundings {
        reload: Some(Box::new(move || {
            file.load().map_err(|problems| problems.to_string())
        })),
        log: Some(log),
        clock: Clock::system(),
    };
    let served = block_on(async { App::prepare(config, surroundings).await?.run().await })?;
    served.map_err(|error| CommandError::from(error).about(args.config.path().display()))?;
    Ok(Output::default())
}
