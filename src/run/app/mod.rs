//! The composition root: configuration -> services -> listeners; run; reload; drain. It knows every concrete type, and
//! nothing else does.

mod bound;
pub mod certificates;
mod descriptors;
pub mod inspect;
pub mod live;
mod manager;
pub mod own;
pub mod services;
mod signals;
pub mod sockets;
pub mod traces;
mod upkeep;
mod watch;
pub mod workers;

use std::{
    io,
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
use sd_notify::NotifyState;
use thiserror::Error;
use tokio::{
    sync::watch as channel,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use self::{
    bound::BoundListener,
    certificates::{Certificate, Dates, Stamps},
    own::{ApiIsOurs, OwnListener},
    services::{ServiceError, Services},
    signals::{Signal, Signals},
    sockets::{Addresses, PUBLIC, SocketError, Sockets},
    traces::TracesError,
    workers::{Common, Listeners},
};
use crate::{
    base::{clock::Clock, language::PageFileError, tls::TlsFileError},
    gateway::proxy::{Live, Phase, Shared},
    operator::admin::{Admin, Backend, Control, console::Console, tokens::TokenFileError},
    provider::login::PasswordPool,
    run::config::{Config, FORWARD_AUTH},
    telemetry::{log::LogControl, previous_secrets::PreviousSecrets},
    wire::{
        address::ListenAddress,
        server::{
            bounds::Bounds,
            handler::LAST_REQUEST,
            tls::{ListenerTlsParams, Tls, TlsError},
        },
    },
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
    /// The keys that sign JWTs.
    #[error("identity.assertion.key_files: {0}")]
    Keys(#[from] TlsFileError),
    /// The files of the pages.
    #[error(transparent)]
    Theme(#[from] PageFileError),
    /// The files of the admin tokens.
    #[error(transparent)]
    AdminToken(#[from] TokenFileError),
    /// The sockets that the service manager passes.
    #[error(transparent)]
    Sockets(#[from] SocketError),
    /// The export of traces.
    #[error(transparent)]
    Traces(#[from] TracesError),
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
        /// The error of the system.
        #[source]
        source: io::Error,
        /// The fix.
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
            io::ErrorKind::AddrNotAvailable => "this machine does not have the address",
            _ => "check the address",
        };
        Self::Listen {
            key,
            address: address.to_string(),
            source,
            fix,
        }
    }

    /// Whether the configuration is at fault, rather than its environment.
    #[must_use]
    pub const fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::Tls(_)
                | Self::Keys(_)
                | Self::Theme(_)
                | Self::AdminToken(_)
                | Self::Own(_)
                | Self::Sockets(_)
                | Self::Traces(TracesError::Tls(_) | TracesError::Exporter(_))
                | Self::Certificate(_)
                | Self::Service(
                    ServiceError::Key { .. }
                        | ServiceError::OneFile { .. }
                        | ServiceError::NoSharedNonces,
                )
        )
    }
}

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
    own: Vec<OwnListener>,
    /// The addresses of passed sockets.
    passed: Addresses,
    /// The bound addresses of the public listeners.
    pub addresses: Vec<SocketAddr>,
}

/// The time between two checks of the certificates for a change.
const CERTIFICATES_EVERY: Duration = Duration::from_secs(5);

/// A start waits this long after `listen.drain_delay` for the previous process to give up its lock and addresses.
const HANDOVER: Duration = Duration::from_secs(5);

/// While draining, connections that wait for a request are closed after [`LAST_REQUEST`]; a request that came last may take
/// this much longer to arrive.
const LAST_ARRIVAL: Duration = Duration::from_millis(100);

/// The time for which the hand-over waits for the last decisions of workers, and for the store.
const LAST_SYNC: Duration = Duration::from_secs(1);

/// The time for which the shutdown waits for a collector.
const LAST_TRACES: Duration = Duration::from_secs(2);

/// The time between two checks whether others are done.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The time in which the last requests must be decided, such as those whose signed form is slow to arrive, before the
/// nonce window is given up. Later ones get 503.
const LAST_DECISION: Duration = Duration::from_secs(2);

/// The parts that are made of a configuration and its files, and that a reload swaps as a whole.
struct Swap {
    live: Live,
    backend: Option<Backend>,
    /// `None` where the listener has no TLS.
    tls: Option<Tls>,
    certificates: Vec<Certificate>,
    stamps: Stamps,
}

impl App {
    /// Opens and binds everything. Runs within a tokio runtime. Without `reload` there is no file to read again.
    ///
    /// # Errors
    /// [`StartError`]; nothing incomplete remains.
    pub async fn prepare(
        mut config: Config,
        log: LogControl,
        reload: Option<Reload>,
        mut sockets: Sockets,
    ) -> Result<Self, StartError> {
        // Before anything that takes time: until then a signal to reload ends the process.
        let signals = Signals::new().map_err(StartError::System)?;
        let deadline = Instant::now() + config.listen.drain_delay + HANDOVER;
        let passed = sockets.addresses()?;
        passed.replace(&mut config)?;
        passed.log();
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
        let public = sockets.take_public();
        let mut listeners = match &public[..] {
            [] => Listeners::bind(&config.listen.address, workers)
                .map_err(|(address, error)| StartError::listen(PUBLIC, address, error))?,
            public => Listeners::share(public, workers).map_err(StartError::System)?,
        };
        drop(public);
        let addresses = listeners.addresses.clone();
        let first = first(&addresses);
        let mut admin = Vec::new();
        for (key, address) in config.listeners().into_iter().skip(addresses.len()) {
            let bound = match sockets.take(key) {
                Some(socket) => BoundListener::of(socket).map_err(StartError::System)?,
                // The previous process has it until it is about to end.
                None if !passed.is_empty() => bind_until(deadline, &address, key).await?,
                None => BoundListener::bind(&address, key)?,
            };
            if key == FORWARD_AUTH {
                listeners.forward_auth = Some(bound);
            } else {
                admin.push((key, bound));
            }
        }
        // Checked once more if the system chose a port.
        let public = addresses.iter().copied().map(ListenAddress::Tcp);
        let others = admin.iter().map(|(_, bound)| bound);
        let others = others
            .chain(&listeners.forward_auth)
            .map(|bound| bound.at.clone());
        let keys = config.listeners().into_iter().map(|(key, _)| key);
        let own: Vec<OwnListener> = keys.zip(public.chain(others)).collect();
        if own != config.listeners() {
            own::check(&config, &own).await?;
        }
        let services = Arc::new(services::open(&config, Clock::system(), deadline).await?);
        let live = live::live(&config, first, &services)?;
        let passwords = PasswordPool::start(1, PasswordPool::QUEUE).map_err(StartError::System)?;
        let console = console(&config, &services);
        let control = Arc::new(Control::new(services.clock.clone(), passwords, console));
        let backend = live::backend(&config, first, &services)?.map(Arc::new);
        control.backend.store(backend);
        inspect::log(&config, first);
        services.certificates.store(Arc::new(certificates));
        let collector = config.telemetry.otlp_endpoint.as_ref();
        let counts = &services.metrics.traces;
        let traces = collector.map(|url| traces::start(url, &services.hop, counts));
        let (phase, receiver) = channel::channel(Phase::Serving);
        let shared = Arc::new(Shared {
            live: ArcSwap::from_pointee(live),
            generation: AtomicU64::new(0),
            verifier: Arc::clone(&services.verifier),
            in_flight: AtomicUsize::new(0),
            metrics: Arc::clone(&services.metrics),
            conditions: Arc::clone(&services.conditions),
            rejections: Arc::clone(&services.rejections),
            traces: traces.transpose()?,
            previous_secrets: PreviousSecrets::new(services.clock.clone()),
            phase: receiver,
            is_leaving: AtomicBool::new(false),
        });
        let per_address = config.limits.connections_per_address.map(NonZeroU32::get);
        let connections = connections(&config);
        let common = Common {
            shared,
            bounds: Arc::new(Bounds::new(connections, per_address)),
            // All of them come from the proxy in front.
            gate_bounds: Arc::new(Bounds::new(connections, None)),
            tls: tls.map(|tls| Arc::new(ArcSwap::from_pointee(tls))),
            proxy_protocol: config.protocols.proxy_protocol,
            beat: manager::beat(),
            heartbeats: Arc::clone(&services.readiness.heartbeats),
            staying: Arc::new(AtomicUsize::new(workers)),
        };
        let mut app = Self {
            config: Box::new(config),
            log,
            reload,
            services,
            common,
            phase,
            signals,
            listeners,
            admin,
            control,
            stamps,
            dates: Dates::default(),
            own,
            passed,
            addresses,
        };
        app.look_at_dates();
        Ok(app)
    }

    /// The address of the admin listener.
    pub fn admin_address(&self) -> String {
        let first = self.admin.first();
        first
            .map(|(_, bound)| bound.at.to_string())
            .unwrap_or_default()
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
        let upkeep = upkeep::start(&self.services);
        let listeners = std::mem::take(&mut self.listeners);
        let gate = listeners
            .forward_auth
            .as_ref()
            .map(|bound| bound.at.clone());
        let threads = workers::start(&self.common, listeners).map_err(StartError::System)?;
        for address in &self.addresses {
            tracing::info!(listener = "public", %address, "listening");
        }
        if let Some(address) = gate {
            tracing::info!(listener = "forward-auth", %address, "listening");
        }
        for (key, bound) in std::mem::take(&mut self.admin) {
            let is_probe = key == "admin.probe_listen";
            let name = if is_probe { "probe" } else { "admin" };
            tracing::info!(listener = name, address = %bound.at, "listening");
            let handler = Admin {
                readiness: Arc::clone(&self.services.readiness),
                shared: Arc::clone(&self.common.shared),
                is_probe,
                // The next process listens on the passed sockets, or needs the addresses.
                until: if self.passed.is_empty() {
                    Phase::Ended
                } else {
                    Phase::Leaving
                },
                any_host: is_probe || !bound.at.is_loopback(),
                control: Arc::clone(&self.control),
            };
            bound.serve(Rc::new(handler));
        }
        manager::feed_watchdog(Arc::clone(&self.common.heartbeats));
        manager::tell(&[NotifyState::Ready, NotifyState::Status("serving")]);

        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Reload => self.reload().await,
                    Signal::End => break,
                },
                () = sleep(CERTIFICATES_EVERY) => self.look_at_certificates(),
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

    /// Reads the configuration again; a broken one changes nothing.
    async fn reload(&mut self) {
        let Some(read) = &self.reload else {
            return;
        };
        manager::tell_reloading();
        let problem = match read() {
            Ok(config) => self
                .apply(config)
                .await
                .err()
                .map(|error| error.to_string()),
            Err(problems) => Some(problems),
        };
        let status = match problem {
            None => "serving",
            Some(_) => "serving with the configuration before: the last reload failed",
        };
        manager::tell(&[NotifyState::Ready, NotifyState::Status(status)]);
        self.services.metrics.reloaded(problem.is_none());
        for problem in problem.iter().flat_map(|problems| problems.lines()) {
            tracing::error!(problem, "reload failed, keeping the current configuration");
        }
    }

    /// Applies another configuration, as far as that needs no restart.
    async fn apply(&mut self, mut config: Config) -> Result<(), StartError> {
        self.passed.replace(&mut config)?;
        let mut kept = config.keep_fixed(&self.config);
        // Everything that can fail comes first, so that a mistake changes nothing.
        own::check(&config, &self.own).await?;
        let made = self.make(&config)?;
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
        let connections = connections(&config);
        self.common.bounds.set(connections, per_address);
        self.common.gate_bounds.set(connections, None);
        self.swap(made);
        let (nonces, window) = (&self.services.nonces, config.longest_window());
        if let Err(error) = nonces.ask_for_length(self.services.clock.now(), window) {
            tracing::error!(%error, "signature.timestamp_window: nonce.path cannot be written; tried again");
        }
        if let Err(error) = nonces.set_on_lost(config.nonce.on_lost) {
            tracing::error!(%error, "nonce.on_lost: nonce.path cannot be written; a restart waits again");
        }
        inspect::log(&config, first(&self.addresses));
        tracing::info!(
            target: "audit",
            event = "configuration_reloaded",
            not_applied = (!kept.is_empty()).then(|| kept.join(" ")),
            pending = (nonces.length() != window).then_some("signature.timestamp_window"),
        );
        let settings = Arc::new(config.settings.clone());
        self.control.console.settings.store(settings);
        *self.config = config;
        Ok(())
    }

    /// Reads certificates whose files have changed. One that cannot be read changes nothing, and is read again when a
    /// file changes the next time.
    fn look_at_certificates(&mut self) {
        let stamps = Stamps::of(&self.config);
        if stamps != self.stamps {
            let made = self.make(&self.config);
            self.services.metrics.reloaded(made.is_ok());
            match made {
                Ok(made) => {
                    self.swap(made);
                    tracing::info!("certificates read");
                }
                Err(error) => {
                    self.stamps = stamps;
                    tracing::error!(problem = %error, "keeping the current certificates");
                }
            }
            inspect::log(&self.config, first(&self.addresses));
        }
        self.look_at_dates();
    }

    fn look_at_dates(&mut self) {
        let services = &self.services;
        let shown = services.certificates.load();
        let now = services.clock.now();
        self.dates.look(&shown, now, &services.conditions);
    }

    /// Makes the parts that a reload swaps. A certificate that callers reject does not replace one that they accept.
    fn make(&self, config: &Config) -> Result<Swap, StartError> {
        let (stamps, certificates) = (Stamps::of(config), Certificate::of(config));
        let shown = self.services.certificates.load();
        Certificate::may_replace(&certificates, &shown, self.services.clock.now())
            .map_err(StartError::Certificate)?;
        let tls = tls_params(config).zip(self.common.tls.as_ref());
        let mut live = live::live(config, first(&self.addresses), &self.services)?;
        let before = self.common.shared.live.load();
        let rate = live.authorizer.rate.take();
        live.authorizer.rate = rate.map(|rate| rate.or_before(before.authorizer.rate.as_ref()));
        live.endpoints.rate.clone_from(&live.authorizer.rate);
        Ok(Swap {
            live,
            backend: live::backend(config, first(&self.addresses), &self.services)?,
            tls: tls
                .map(|(params, shown)| Tls::read(&params, Some(&shown.load())))
                .transpose()?,
            certificates,
            stamps,
        })
    }

    fn swap(&mut self, made: Swap) {
        let shared = &self.common.shared;
        let live = Arc::new(made.live);
        let before = shared.live.swap(Arc::clone(&live));
        let labels = live.authorizer.operations.labels();
        for operation in before.authorizer.operations.labels() {
            if !labels.contains(operation) {
                shared.metrics.forget_operation(operation);
            }
        }
        shared.generation.fetch_add(1, Ordering::Release);
        let tokens = made.backend.as_ref().map(|backend| &backend.tokens);
        self.control.console.end_sessions_of_others(tokens);
        self.control.backend.store(made.backend.map(Arc::new));
        if let (Some(shown), Some(tls)) = (&self.common.tls, made.tls) {
            shown.store(Arc::new(tls));
        }
        self.services
            .certificates
            .store(Arc::new(made.certificates));
        self.stamps = made.stamps;
    }

    /// Reports not ready, and after the delay accepts no more connections. Once no more requests come, gives up the
    /// resources that only one process can have, and waits for the connections that are still open.
    async fn drain(&mut self, upkeep: JoinSet<()>) {
        let (drain, delay) = (self.config.listen.drain, self.config.listen.drain_delay);
        tracing::info!(?delay, limit = ?drain, "draining");
        manager::tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
        let _ = self.phase.send(Phase::Announced);
        if !delay.is_zero() {
            tokio::select! {
                () = sleep(delay) => {}
                () = self.signals.ended() => {}
            }
        }
        let deadline = Instant::now() + drain;
        let _ = self.phase.send(Phase::Draining);
        // The operator who sends a second signal does not want to wait.
        let mut is_urgent = tokio::select! {
            () = leave(&self.common, &self.phase, deadline) => false,
            () = self.signals.ended() => true,
        };
        // Undecided requests end here, while the changes of the store are still followed.
        self.common.shared.is_leaving.store(true, Ordering::Relaxed);
        let _ = self.phase.send(Phase::Left);
        all_left(&self.common, Instant::now() + LAST_SYNC).await;
        drop(upkeep);
        self.hand_over().await;
        let connections = self.common.open_connections();
        if !is_urgent && connections > 0 {
            tracing::info!(
                connections,
                "finishing what is running: another process may serve already"
            );
            manager::tell(&[NotifyState::Status("finishing what is running")]);
            tokio::select! {
                () = emptied(&self.common, deadline) => {
                    let connections = self.common.open_connections();
                    if connections > 0 {
                        tracing::warn!(connections, "drain timeout: closing remaining connections");
                    }
                }
                () = self.signals.ended() => is_urgent = true,
            }
        }
        if is_urgent {
            tracing::warn!("second signal: exiting immediately");
        }
        if let Some(traces) = self.common.shared.traces.as_ref().filter(|_| !is_urgent) {
            let _ = timeout(LAST_TRACES, traces.flush()).await;
        }
        let _ = self.phase.send(Phase::Ended);
    }

    /// Gives up the nonce window, so that another process can go on with it. By then no request is left that could use it, or
    /// the store; a signed one of a worker that hangs is rejected.
    async fn hand_over(&self) {
        // A store that hangs does not hold up the next process: only last uses would be lost. The high-water mark in the store
        // covers all that was accepted.
        match timeout(LAST_SYNC, self.services.credentials.flush_uses()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "could not write the last uses of tokens"),
            Err(_) => {
                tracing::error!("could not write the last uses of tokens: the store is too slow")
            }
        }
        if let Err(error) = self.services.nonces.window().close() {
            tracing::error!(%error, "could not close the nonce window cleanly");
        }
        // The next process may have begun by now, with files of this version or a later one.
        match timeout(LAST_SYNC, services::note_files(&self.services)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "could not note the version of the nonce window")
            }
            Err(_) => {
                tracing::error!(
                    "could not note the version of the nonce window: the store is too slow"
                )
            }
        }
    }
}

/// Waits until no more requests come to this process and the last ones are decided, or until the time for both is over.
async fn leave(common: &Common, phase: &channel::Sender<Phase>, deadline: Instant) {
    let last = Instant::now() + LAST_REQUEST + LAST_ARRIVAL;
    emptied(common, deadline.min(last)).await;
    common.shared.is_leaving.store(true, Ordering::Relaxed);
    let _ = phase.send(Phase::Leaving);
    all_left(common, deadline.min(Instant::now() + LAST_DECISION)).await;
}

/// Waits until no worker has a request that is not decided.
async fn all_left(common: &Common, deadline: Instant) {
    while common.staying.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
        sleep(LOOK_EVERY).await;
    }
}

/// Waits until there are no connections. Each worker first accepts those that are still in the kernel's queue.
async fn emptied(common: &Common, deadline: Instant) {
    while !common.all_bounds().all(Bounds::is_over) && Instant::now() < deadline {
        sleep_until(deadline.min(Instant::now() + LOOK_EVERY)).await;
    }
}

/// Binds an admin listener, as soon as the previous process has given up its address.
async fn bind_until(
    deadline: Instant,
    address: &ListenAddress,
    key: &'static str,
) -> Result<BoundListener, StartError> {
    loop {
        match BoundListener::bind(address, key) {
            Err(StartError::Listen { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline =>
            {
                sleep(LOOK_EVERY).await;
            }
            bound => return bound,
        }
    }
}

/// The state of the operator's console.
fn console(config: &Config, services: &Services) -> Console {
    let (certificates, clock) = (Arc::clone(&services.certificates), services.clock.clone());
    let shown = move || {
        let now = clock.now();
        certificates
            .load()
            .iter()
            .map(|one| one.shown(now))
            .collect()
    };
    let (charts, clock) = (Arc::clone(&services.charts), services.clock.clone());
    let console = Console::new(Box::new(shown), charts, clock);
    console.settings.store(Arc::new(config.settings.clone()));
    console
}

/// The first public listener's address.
pub fn first(addresses: &[SocketAddr]) -> SocketAddr {
    let first = addresses.first().copied();
    first.unwrap_or(([127, 0, 0, 1], 0).into())
}

/// The number of connections that are accepted.
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
pub fn tls_params(config: &Config) -> Option<ListenerTlsParams> {
    config.listens_with_tls().then(|| ListenerTlsParams {
        certificates: config.listen_tls.certificate.clone(),
        keys: config.listen_tls.key.clone(),
        client_ca: config.listen_tls.client_ca.clone(),
        http2: config.protocols.http2,
    })
}
