//! `serve`: runs the proxy.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::{
    base::memory,
    cli::context::{CommandError, ConfigArgs, Output, block_on},
    run::app::{App, Reload, StartError, listeners::sockets::Sockets},
    telemetry::log,
};

/// Runs the proxy.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Serves until a signal ends it.
pub fn run(args: &Args) -> Result<Output, CommandError> {
    // A core dump would hold keys, secrets and passwords.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(std::io::Error::from)?;
    let sockets = Sockets::passed().map_err(StartError::from)?;
    args.config.announce();
    let config = args.config.load()?;
    memory::limit_heaps(config.workers());
    let log = log::start(config.log.format, &config.log.level)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let file = args.config.clone();
    let reload: Reload = Box::new(move || file.load().map_err(|problems| problems.to_string()));
    let served = block_on(async {
        match App::prepare(config, log, Some(reload), sockets).await? {
            Some(app) => app.run().await,
            None => Ok(()),
        }
    })?;
    served.map_err(|error| CommandError::from(error).about(args.config.path().display()))?;
    Ok(Output::default())
}
