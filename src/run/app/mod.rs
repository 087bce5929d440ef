//! The composition root: configuration -> services -> listeners; run; reload; drain. It knows every concrete type, and
//! nothing else does.

mod error;
pub mod files;
pub mod listeners;
pub mod live;
mod reload;
mod running;
pub mod services;
mod start;
mod system;
#[cfg(test)]
mod tests {
    mod memory;
}
pub mod traces;
mod waiting;

use std::{net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use sd_notify::NotifyState;
use tokio::{sync::watch as channel, time::sleep};

pub use self::error::StartError;
use self::{services::Services, start::Checked, waiting::PROBE};
use crate::{
    gateway::live::Phase,
    operator::admin::{Admin, Control},
    run::{
        app::{
            files::certificates::{Dates, Stamps},
            listeners::{
                api_loop::BoundAddress,
                bound::BoundListener,
                sockets::{Addresses, Sockets},
                workers::{Common, Listeners},
            },
            system::signals::{Signal, Signals},
        },
        config::Config,
    },
    telemetry::log::LogControl,
};

/// The time between two checks of the certificates for a change.
const CERTIFICATES_EVERY: Duration = Duration::from_secs(5);

/// Reads the configuration again.
pub type Reload = Box<dyn Fn() -> Result<Config, String>>;

/// A program that is ready to run: everything is open and bound, nothing is served yet.
pub struct App {
    /// Boxed: the futures that hold it stay small.
    config: Box<Config>,
    log: LogControl,
    reload: Option<Reload>,
    services: Arc<Services>,
    common: Common,
    phase: channel::Sender<Phase>,
    signals: Signals,
    listeners: Listeners,
    /// The admin listener, and the probe listener if there is one.
    admin: Vec<(&'static str, BoundListener)>,
    control: Arc<Control>,
    /// The state of the certificates' files when they were read.
    stamps: Stamps,
    dates: Dates,
    /// The address of every listener, with its key.
    bound: Vec<BoundAddress>,
    /// The addresses of passed sockets.
    passed: Addresses,
    /// The log has the addresses of the listeners.
    is_logged: bool,
    /// The bound addresses of the public listeners.
    pub addresses: Vec<SocketAddr>,
}

impl App {
    /// Opens and binds everything. Runs within a tokio runtime. Without `reload` there is no file to read again. `None`: a signal
    /// has ended the start.
    ///
    /// # Errors
    /// [`StartError`]; nothing incomplete remains.
    pub async fn prepare(
        config: Config,
        log: LogControl,
        reload: Option<Reload>,
        sockets: Sockets,
    ) -> Result<Option<Self>, StartError> {
        // Before anything that takes time: until then a signal to reload ends the process.
        let signals = Signals::new().map_err(StartError::System)?;
        let checked = Box::pin(Checked::read(config, sockets)).await?;
        let bound = Box::pin(checked.bind()).await?;
        let mut app = Box::pin(bound.open(log, reload, signals)).await?;
        match &mut app {
            Some(app) => app.note_certificate_dates(),
            None => tracing::info!("ended"),
        }
        Ok(app)
    }

    /// The address of the admin listener.
    pub fn admin_address(&self) -> String {
        let first = self.admin.first();
        first
            .map(|(_, bound)| bound.at.to_string())
            .unwrap_or_default()
    }

    /// The state of the console, for a caller that invites an operator.
    pub const fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// The services, for a caller that has something to put into them first.
    pub const fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// # Errors
    /// [`StartError::System`]
    pub async fn run(mut self) -> Result<(), StartError> {
        running::upkeep::hold_unapproved(&self.services, &self.config.permission).await;
        let upkeep = running::upkeep::start(&self.services);
        let listeners = std::mem::take(&mut self.listeners);
        let threads =
            listeners::workers::start(&self.common, listeners).map_err(StartError::System)?;
        if !self.is_logged {
            waiting::log_listeners(&self.bound);
        }
        for (key, bound) in std::mem::take(&mut self.admin) {
            let is_probe = key == PROBE;
            let handler = Admin {
                readiness: Arc::clone(&self.services.readiness),
                shared: Arc::clone(&self.common.shared),
                is_probe,
                // The next process listens on the passed sockets, or needs the addresses.
                until: if self.passed.is_empty() {
                    Phase::Ended
                } else {
                    Phase::DecidingLast
                },
                any_host: is_probe || !bound.at.is_loopback(),
                control: Arc::clone(&self.control),
                serving: Arc::default(),
            };
            bound.serve(Rc::new(handler));
        }
        let _watchdog = system::manager::feed_watchdog(Arc::clone(&self.common.heartbeats));
        system::manager::tell(&[NotifyState::Ready, NotifyState::Status("serving")]);

        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Reload => self.reload().await,
                    Signal::End => break,
                },
                () = sleep(CERTIFICATES_EVERY) => self.reread_certificates(),
            }
        }
        self.drain(upkeep).await;
        for thread in threads {
            // The panic of a worker has been logged already.
            let _ = thread.join();
        }
        tracing::info!("ended");
        Ok(())
    }
}

/// The first public listener's address.
pub fn first(addresses: &[SocketAddr]) -> SocketAddr {
    let first = addresses.first().copied();
    first.unwrap_or(([127, 0, 0, 1], 0).into())
}
