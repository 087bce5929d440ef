//! The composition root: configuration -> services -> listeners; run; reload; drain. It knows every concrete type, and
//! nothing else does.

mod admin_listener;
pub mod certificates;
mod descriptors;
pub mod inspect;
pub mod live;
pub mod own;
pub mod services;
mod signals;
mod upkeep;
mod watch;
pub mod workers;

use std::{
    io, iter,
    net::SocketAddr,
    num::NonZeroU32,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use rustix::io::Errno;
use thiserror::Error;
use tokio::{
    sync::{Notify, watch as channel},
    time::{sleep, timeout},
};

use self::{
    admin_listener::AdminListener,
    certificates::{Certificate, Stamps, Warned},
    own::{ApiIsOurs, OwnListener},
    services::{ServiceError, Services},
    signals::{Signal, Signals},
    workers::{Common, Listeners, Phase},
};
use crate::{
    admin::{self, Admin},
    clock::Clock,
    config::{Config, ListenAddress},
    policy::operations::OperationError,
    proxy::{Live, Shared},
    respond::look::LookError,
    server::{
        listener::Bounds,
        tls::{self, Tls, TlsError},
    },
    telemetry::log::LogControl,
};

/// Why the program cannot start; each names the key at fault and the fix.
#[derive(Debug, Error)]
pub enum StartError {
    /// A service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The files of TLS, on the public listener or to the API.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The operations.
    #[error(transparent)]
    Operations(#[from] OperationError),
    /// The files of the pages.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The API is a listener of this process.
    #[error(transparent)]
    Own(#[from] ApiIsOurs),
    /// A certificate that is valid at no time, or that would replace a valid one.
    #[error("{0}")]
    Certificate(String),
    /// An address.
    #[error("{key}: cannot listen on {address}: {source}; {fix}")]
    Listen {
        /// The configuration's key.
        key: &'static str,
        /// The address.
        address: String,
        /// What the system says.
        #[source]
        source: io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// The runtime or a thread.
    #[error("cannot start: {0}")]
    System(#[source] io::Error),
}

impl StartError {
    fn listen(key: &'static str, address: impl ToString, source: io::Error) -> Self {
        let fix = match source.kind() {
            io::ErrorKind::AddrInUse => "stop what listens there, or set another address",
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need a right of their own: set another port"
            }
            _ if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                "each worker needs a descriptor for each address: raise the limit (LimitNOFILE, ulimit -n), or set \
                 listen.workers lower"
            }
            io::ErrorKind::AddrNotAvailable => "the address is none of this machine's",
            _ => "check the address",
        };
        Self::Listen {
            key,
            address: address.to_string(),
            source,
            fix,
        }
    }

    /// Whether what the operator wrote is at fault, rather than the world.
    #[must_use]
    pub const fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::Tls(_)
                | Self::Operations(_)
                | Self::Look(_)
                | Self::Own(_)
                | Self::Certificate(_)
                | Self::Service(
                    ServiceError::Key { .. }
                        | ServiceError::OneFile { .. }
                        | ServiceError::NoSharedNonces,
                )
        )
    }
}

/// Reads the configuration anew.
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
    listeners: Option<Listeners>,
    admin: Option<AdminListener>,
    probe: Option<AdminListener>,
    /// The state of the certificates' files when they were read.
    stamps: Stamps,
    warned: Warned,
    /// Where every listener is bound, with its key.
    own: Vec<OwnListener>,
    /// Where the public listeners are bound.
    pub addresses: Vec<SocketAddr>,
}

/// How often certificates are looked at for a change.
const CERTIFICATES_EVERY: Duration = Duration::from_secs(5);

impl App {
    /// Opens and binds everything. Runs within a tokio runtime. Without `reload` there is no file to read anew.
    ///
    /// # Errors
    /// [`StartError`]; nothing incomplete is left behind.
    pub async fn prepare(
        config: Config,
        log: LogControl,
        reload: Option<Reload>,
    ) -> Result<Self, StartError> {
        // Before anything that takes time: until then a signal to reload ends the process.
        let signals = Signals::new().map_err(StartError::System)?;
        // Everything that only reads comes first, so that a mistake there changes nothing.
        let stamps = Stamps::of(&config);
        let tls = tls_params(&config)
            .map(|params| Tls::read(&params, None))
            .transpose()?;
        let certificates = Certificate::of(&config);
        if let Some(problem) = certificates.iter().find_map(Certificate::never_valid) {
            return Err(StartError::Certificate(problem));
        }
        own::check(&config, &config.listeners()).await?;
        descriptors::raise_limit();
        let workers = config.workers().get();
        let listeners = Listeners::bind(&config.listen.address, workers)
            .map_err(|(address, error)| StartError::listen("listen.address", address, error))?;
        let addresses = listeners.addresses.clone();
        let first = first(&addresses);
        let admin = AdminListener::bind(&config.admin.listen, "admin.listen").await?;
        let probe = match &config.admin.probe_listen {
            Some(address) => Some(AdminListener::bind(address, "admin.probe_listen").await?),
            None => None,
        };
        // Once more if the system chose a port.
        let public = addresses.iter().copied().map(ListenAddress::Tcp);
        let others = iter::once(&admin).chain(&probe).map(AdminListener::bound);
        let keys = config.listeners().into_iter().map(|(key, _)| key);
        let own: Vec<OwnListener> = keys.zip(public.chain(others)).collect();
        if own != config.listeners() {
            own::check(&config, &own).await?;
        }
        let services = Arc::new(services::open(&config, Clock::system()).await?);
        let live = live::live(&config, first, &services)?;
        inspect::log(&config, first);
        let mut warned = Warned::default();
        warned.look(&certificates, services.clock.now(), &services.conditions);
        services.certificates.store(Arc::new(certificates));
        let shared = Arc::new(Shared {
            live: ArcSwap::from_pointee(live),
            generation: AtomicU64::new(0),
            verifier: Arc::clone(&services.verifier),
            in_flight: AtomicUsize::new(0),
            metrics: Arc::clone(&services.metrics),
            conditions: Arc::clone(&services.conditions),
            draining_announced: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            drain: Notify::new(),
        });
        let per_address = config.limits.connections_per_address.map(NonZeroU32::get);
        let bounds = Arc::new(Bounds::new(connections(&config), per_address));
        let (phase, receiver) = channel::channel(Phase::Serving);
        let common = Common {
            shared,
            bounds,
            tls: tls.map(|tls| Arc::new(ArcSwap::from_pointee(tls))),
            phase: receiver,
        };
        Ok(Self {
            config: Box::new(config),
            log,
            reload,
            services,
            common,
            phase,
            signals,
            listeners: Some(listeners),
            admin: Some(admin),
            probe,
            stamps,
            warned,
            own,
            addresses,
        })
    }

    /// Where the admin listener is bound.
    #[must_use]
    pub fn admin_address(&self) -> String {
        let bound = self.admin.as_ref().map(AdminListener::bound);
        bound.map(|at| at.to_string()).unwrap_or_default()
    }

    /// The services, for a caller that has something to put into them first.
    #[must_use]
    pub const fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// # Errors
    /// [`StartError::System`]
    pub async fn run(mut self) -> Result<(), StartError> {
        upkeep::start(&self.services);
        let mut threads = Vec::new();
        if let Some(listeners) = self.listeners.take() {
            threads = workers::start(&self.common, listeners).map_err(StartError::System)?;
        }
        for address in &self.addresses {
            tracing::info!(listener = "public", %address, "listening");
        }
        let admin = [("admin", self.admin.take()), ("probe", self.probe.take())];
        for (name, listener) in admin {
            let Some(listener) = listener else { continue };
            tracing::info!(listener = name, address = %listener.bound(), "listening");
            let shared = Arc::clone(&self.common.shared);
            let is_probe = name == "probe";
            let handler = Admin::new(admin::Params {
                readiness: Arc::clone(&self.services.readiness),
                shared,
                is_probe,
                any_host: is_probe || !listener.bound().is_loopback(),
            });
            listener.serve(Rc::new(handler), self.common.phase.clone());
        }

        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Reload => self.reload().await,
                    Signal::End => break,
                },
                () = sleep(CERTIFICATES_EVERY) => self.look_at_certificates(),
            }
        }
        self.drain().await;
        for thread in threads {
            // The panic of a worker has been logged already.
            let _ = thread.join();
        }
        self.finish().await;
        Ok(())
    }

    /// Reads the configuration anew; a broken one changes nothing.
    async fn reload(&mut self) {
        let Some(read) = &self.reload else {
            return;
        };
        let mut config = match read() {
            Ok(config) => config,
            Err(problems) => {
                for problem in problems.lines() {
                    tracing::error!(problem, "reload failed, keeping the current configuration");
                }
                return;
            }
        };
        let first = first(&self.addresses);
        let mut kept = config.keep_fixed(&self.config);
        // Everything that can fail comes first, so that a mistake changes nothing.
        let stamps = Stamps::of(&config);
        let own = own::check(&config, &self.own).await;
        let made = own.map_err(StartError::from).and_then(|()| {
            let certificates = self.replacement(&config)?;
            let live = live::live(&config, first, &self.services)?;
            Ok((live, self.listener_tls(&config)?, certificates))
        });
        let (live, tls, certificates) = match made {
            Ok(made) => made,
            Err(error) => {
                tracing::error!(problem = %error, "reload failed, keeping the current configuration");
                return;
            }
        };
        if !kept.is_empty() {
            tracing::warn!(
                keys = kept.join(" "),
                "settings that changed but need a restart"
            );
        }
        if let Err(error) = self.log.set_level(&config.log.level) {
            tracing::warn!(%error, "keeping the current level of the log");
            config.log.level = self.config.log.level.clone();
            kept.push("log.level");
        }
        let throttle = &self.services.pages.throttle;
        throttle.set_limit(config.login.max_failures);
        let per_address = config.limits.connections_per_address.map(NonZeroU32::get);
        self.common.bounds.set(connections(&config), per_address);
        self.swap_live(live);
        self.swap_tls(tls);
        self.services.certificates.store(Arc::new(certificates));
        let (nonces, window) = (&self.services.nonces, config.signature.timestamp_window);
        if let Err(error) = nonces.ask_for_length(self.services.clock.now(), window) {
            tracing::error!(%error, "signature.timestamp_window: nonce.path cannot be written; tried again");
        }
        if let Err(error) = nonces.set_on_lost(config.nonce.on_lost) {
            tracing::error!(%error, "nonce.on_lost: nonce.path cannot be written; a restart waits again");
        }
        inspect::log(&config, first);
        self.stamps = stamps;
        *self.config = config;
        tracing::info!(
            target: "audit",
            event = "configuration_reloaded",
            not_applied = (!kept.is_empty()).then(|| kept.join(" ")),
            pending = (nonces.length() != window).then_some("signature.timestamp_window"),
        );
    }

    /// Reads certificates whose files have changed. One that cannot be read changes nothing, and is read again when a
    /// file changes the next time.
    fn look_at_certificates(&mut self) {
        let stamps = Stamps::of(&self.config);
        let first = first(&self.addresses);
        if stamps != self.stamps {
            let made = self.replacement(&self.config).and_then(|certificates| {
                let live = live::live(&self.config, first, &self.services)?;
                Ok((live, self.listener_tls(&self.config)?, certificates))
            });
            match made {
                Ok((live, tls, certificates)) => {
                    self.swap_live(live);
                    self.swap_tls(tls);
                    self.services.certificates.store(Arc::new(certificates));
                    tracing::info!("certificates read");
                }
                Err(error) => {
                    tracing::error!(problem = %error, "keeping the current certificates");
                }
            }
            inspect::log(&self.config, first);
        }
        self.stamps = stamps;
        self.look_at_dates();
    }

    fn look_at_dates(&mut self) {
        let (services, now) = (&self.services, self.services.clock.now());
        let shown = services.certificates.load();
        self.warned.look(&shown, now, &services.conditions);
    }

    /// The certificates of `config`, if they may replace those that are shown.
    fn replacement(&self, config: &Config) -> Result<Vec<Certificate>, StartError> {
        let (new, now) = (Certificate::of(config), self.services.clock.now());
        Certificate::may_replace(&new, &self.services.certificates.load(), now)
            .map_err(StartError::Certificate)?;
        Ok(new)
    }

    /// What the listener's TLS becomes under `config`; `None` where it has none and cannot begin to have it.
    fn listener_tls(&self, config: &Config) -> Result<Option<Tls>, TlsError> {
        let (Some(params), Some(now)) = (tls_params(config), &self.common.tls) else {
            return Ok(None);
        };
        Tls::read(&params, Some(&now.load())).map(Some)
    }

    fn swap_tls(&self, tls: Option<Tls>) {
        if let (Some(now), Some(tls)) = (&self.common.tls, tls) {
            now.store(Arc::new(tls));
        }
    }

    fn swap_live(&self, live: Live) {
        let shared = &self.common.shared;
        let live = Arc::new(live);
        let before = shared.live.swap(Arc::clone(&live));
        let labels = live.authorizer.operations.labels();
        for operation in before.authorizer.operations.labels() {
            if !labels.contains(operation) {
                shared.metrics.forget_operation(operation);
            }
        }
        shared.generation.fetch_add(1, Ordering::Release);
    }

    /// Reports not ready, after the delay accepts no more connections, and waits for what is running.
    async fn drain(&mut self) {
        let shared = &self.common.shared;
        let signals = &mut self.signals;
        shared.draining_announced.store(true, Ordering::Release);
        tracing::info!(delay = ?self.config.listen.drain_delay, limit = ?self.config.listen.drain, "draining");
        if !self.config.listen.drain_delay.is_zero() {
            tokio::select! {
                () = sleep(self.config.listen.drain_delay) => {}
                () = signals.ended() => {}
            }
        }
        shared.draining.store(true, Ordering::Release);
        let _ = self.phase.send(Phase::Draining);
        shared.drain.notify_waiters();
        let empty = async {
            // Each worker first accepts the connections that are still in the kernel's queue.
            loop {
                sleep(Duration::from_millis(20)).await;
                if self.common.bounds.is_over() {
                    return;
                }
            }
        };
        tokio::select! {
            result = timeout(self.config.listen.drain, empty) => if result.is_err() {
                tracing::warn!(connections = self.common.bounds.open(), "drain timeout: closing remaining connections");
            },
            // The operator who sends a second signal does not want to wait.
            () = signals.ended() => tracing::warn!("second signal: exiting immediately"),
        }
        let _ = self.phase.send(Phase::Ended);
    }

    /// Writes what the next start needs.
    async fn finish(&self) {
        if let Err(error) = self.services.credentials.flush_uses().await {
            tracing::error!(%error, "could not write the last uses of tokens");
        }
        let Services { nonces, store, .. } = &*self.services;
        if let Err(error) = services::mark(nonces, &**store, &self.services.clock).await {
            tracing::error!(%error, "could not persist the high-water mark of nonces");
        }
        if let Err(error) = nonces.window().close() {
            tracing::error!(%error, "could not close the nonce window cleanly");
        }
        tracing::info!("ended");
    }
}

/// The first public listener's address.
#[must_use]
pub fn first(addresses: &[SocketAddr]) -> SocketAddr {
    let first = addresses.first().copied();
    first.unwrap_or(([127, 0, 0, 1], 0).into())
}

/// How many connections are accepted.
fn connections(config: &Config) -> usize {
    let descriptors = descriptors::limit();
    let wanted = config.limits.connections.get() as usize;
    let connections = descriptors::at_most(wanted, descriptors);
    if connections < wanted {
        tracing::warn!(
            connections,
            descriptors,
            "limits.connections is more than the descriptor limit allows: accepting fewer; raise the limit \
             (LimitNOFILE, ulimit -n)"
        );
    }
    connections
}

/// The TLS of the public listener, if it has any.
#[must_use]
pub fn tls_params(config: &Config) -> Option<tls::Params> {
    config.listens_with_tls().then(|| tls::Params {
        certificates: config.listen.tls.certificate.clone(),
        keys: config.listen.tls.key.clone(),
        client_ca: config.listen.tls.client_ca.clone(),
        http2: config.listen.http2,
    })
}
