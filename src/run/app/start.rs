//! The start, in three steps: what was read, what is bound, and the [`App`], in which all is open. Each step makes the next
//! one, so that a mistake in a file changes nothing, and an address that is taken opens no store.

use std::{
    collections::HashMap,
    io,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, AtomicUsize},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{
    sync::watch as channel,
    time::{Instant, sleep},
};

use super::{App, Reload, StartError, first, live, services::Services, traces, waiting::Entrance};
use crate::{
    gateway::live::{AnonymousCalls, Phase, Shared},
    operator::admin::{Control, console::Console},
    provider::login::PasswordPool,
    run::{
        app::{
            files::{
                certificates::{Certificate, Dates, Stamps},
                inspect,
            },
            listeners::{
                api_loop::{self, BoundAddress},
                bound::BoundListener,
                descriptors,
                sockets::{Addresses, PUBLIC, Sockets},
                workers::{Common, Listeners},
            },
            running::watch,
            system::{manager, signals::Signals},
        },
        config::{Config, FORWARD_AUTH},
    },
    telemetry::{calls::previous_secrets::PreviousSecrets, log::LogControl},
    wire::{
        address::ListenAddress,
        server::{bounds::Bounds, tls::Tls},
    },
};

/// A start waits this long after `listen.drain_delay` for the previous process to give up its lock and addresses.
const HANDOVER: Duration = Duration::from_secs(5);

/// The time between two attempts to bind an address that the previous process still has.
const BIND_EVERY: Duration = Duration::from_millis(20);

/// What a start reads: nothing is bound, opened or changed yet.
pub(super) struct Checked {
    /// Boxed: the futures that hold it stay small.
    config: Box<Config>,
    /// The sockets that the service manager passes.
    sockets: Sockets,
    /// Their addresses.
    passed: Addresses,
    /// Until then the previous process may have its lock and its addresses.
    deadline: Instant,
    /// The state of the certificates' files when they were read.
    stamps: Stamps,
    tls: Option<Tls>,
    certificates: Vec<Certificate>,
}

/// The listeners of a start: they are bound, and nothing is accepted yet.
pub(super) struct Bound {
    checked: Checked,
    listeners: Listeners,
    /// The admin listener, and the probe listener if there is one.
    admin: Vec<(&'static str, BoundListener)>,
    /// The address of every listener, with its key.
    bound: Vec<BoundAddress>,
}

impl Checked {
    /// Reads the files of TLS, and checks the addresses.
    ///
    /// # Errors
    /// [`StartError`] names the key at fault.
    pub(super) async fn read(config: Config, sockets: Sockets) -> Result<Self, StartError> {
        let mut config = Box::new(config);
        let deadline = Instant::now() + config.listen.drain_delay + HANDOVER;
        let passed = sockets.addresses();
        passed.replace(&mut config)?;
        passed.log();
        let stamps = Stamps::read(&config);
        let tls = || Tls::read(&config.listen_tls, config.protocols, None);
        let tls = config.listens_with_tls().then(tls).transpose()?;
        let certificates = Certificate::read(&config);
        if let Some(problem) = certificates.iter().find_map(Certificate::never_valid) {
            return Err(StartError::Certificate(problem));
        }
        api_loop::check(&config, &config.listeners()).await?;
        Ok(Self {
            config,
            sockets,
            passed,
            deadline,
            stamps,
            tls,
            certificates,
        })
    }

    /// Binds every listener.
    ///
    /// # Errors
    /// [`StartError::Descriptors`], [`StartError::Listen`], [`StartError::ApiLoop`] and [`StartError::System`]; then none
    /// stays bound.
    pub(super) async fn bind(mut self) -> Result<Bound, StartError> {
        descriptors::raise_limit();
        let (config, workers) = (&self.config, self.config.workers().get());
        let (limit, addresses) = (descriptors::limit(), config.listen.address.len());
        if let Some(needed) = descriptors::missing(limit, workers, addresses) {
            let limit = limit.unwrap_or_default();
            return Err(StartError::Descriptors { limit, needed });
        }
        let public = self.sockets.take_public();
        let mut listeners = match &public[..] {
            [] => Listeners::bind(&config.listen.address, workers)
                .map_err(|(address, error)| StartError::listen(PUBLIC, address, error))?,
            public => Listeners::share(public, workers).map_err(StartError::System)?,
        };
        drop(public);
        let addresses = listeners.addresses.clone();
        let mut admin = Vec::new();
        for (key, address) in config.listeners().into_iter().skip(addresses.len()) {
            let bound = match self.sockets.take(key) {
                Some(passed) => passed,
                // The previous process has it until it is about to end.
                None if !self.passed.is_empty() => bind_until(self.deadline, &address, key).await?,
                None => BoundListener::bind(&address, key)?,
            };
            if key == FORWARD_AUTH {
                listeners.forward_auth = Some(bound);
            } else {
                admin.push((key, bound));
            }
        }
        // Checked once more if the system chose a port.
        let public = addresses.into_iter().map(ListenAddress::Tcp);
        let others = admin.iter().map(|(_, bound)| bound);
        let others = others
            .chain(&listeners.forward_auth)
            .map(|bound| bound.at.clone());
        let keys = config.listeners().into_iter().map(|(key, _)| key);
        let bound: Vec<BoundAddress> = keys.zip(public.chain(others)).collect();
        if bound != config.listeners() {
            api_loop::check(config, &bound).await?;
        }
        Ok(Bound {
            checked: self,
            listeners,
            admin,
            bound,
        })
    }
}

impl Bound {
    /// Opens the services, and makes what requests need. `None`: a signal has ended the start.
    ///
    /// # Errors
    /// [`StartError`] names the key at fault.
    pub(super) async fn open(
        mut self,
        log: LogControl,
        reload: Option<Reload>,
        mut signals: Signals,
    ) -> Result<Option<App>, StartError> {
        let tls = self.checked.tls.take();
        let tls = tls.map(|tls| Arc::new(ArcSwap::from_pointee(tls)));
        let entrance = Entrance {
            config: &self.checked.config,
            deadline: self.checked.deadline,
            tls: tls.as_ref(),
            listeners: &self.listeners,
            admin: &self.admin,
            bound: &self.bound,
        };
        let opened = entrance.open(&mut signals).await?;
        let Some((services, is_logged)) = opened else {
            return Ok(None);
        };
        let services = Arc::new(services);
        let Checked {
            config,
            passed,
            stamps,
            certificates,
            ..
        } = self.checked;
        let addresses = self.listeners.addresses.clone();
        let listener = first(&addresses);
        watch::watch(&services);
        let live = live::live(&config, listener, &services)?;
        services.bearer.store(live.authorizer.bearer.clone());
        let passwords = PasswordPool::start(1, PasswordPool::QUEUE).map_err(StartError::System)?;
        let console = console(&config, &services);
        let control = Arc::new(Control::new(services.clock.clone(), passwords, console));
        let backend = live::backend(&config, listener, &services)?.map(Arc::new);
        control.backend.store(backend);
        inspect::log(&config, listener);
        services.certificates.store(Arc::new(certificates));
        let collector = config.telemetry.otlp_endpoint.as_ref();
        let counts = &services.metrics.traces;
        let traces = collector.map(|url| traces::start(url, &services.instance_id, counts));
        let (phase, receiver) = channel::channel(Phase::Serving);
        let (observes, now) = (live.authorizer.observes(), services.clock.now());
        services.charts.observes(observes, now, 0, HashMap::new());
        let shared = Arc::new(Shared {
            live: ArcSwap::from_pointee(live),
            generation: AtomicU64::new(0),
            verifier: Arc::clone(&services.verifier),
            anonymous: AnonymousCalls::default(),
            metrics: Arc::clone(&services.metrics),
            conditions: Arc::clone(&services.conditions),
            rejections: Arc::clone(&services.rejections),
            traces: traces.transpose()?,
            previous_secrets: PreviousSecrets::new(services.clock.clone()),
            phase: receiver,
            reached: AtomicU8::new(Phase::Serving as u8),
        });
        let per_address = config.limits.connections_per_address.map(NonZeroU32::get);
        let connections = connections(&config);
        let common = Common {
            shared,
            bounds: Arc::new(Bounds::new(connections, per_address)),
            // All of them come from the proxy in front.
            forward_auth_bounds: Arc::new(Bounds::new(connections, None)),
            tls,
            proxy_protocol: config.protocols.proxy_protocol,
            beat: manager::beat(),
            heartbeats: Arc::clone(&services.readiness.heartbeats),
            staying: Arc::new(AtomicUsize::new(config.workers().get())),
        };
        Ok(Some(App {
            config,
            log,
            reload,
            services,
            common,
            phase,
            signals,
            listeners: self.listeners,
            admin: self.admin,
            control,
            stamps,
            dates: Dates::default(),
            bound: self.bound,
            passed,
            is_logged,
            addresses,
        }))
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
                sleep(BIND_EVERY).await;
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
    show(&console, config);
    console
}

/// Shows the configuration in the console.
pub(super) fn show(console: &Console, config: &Config) {
    let warnings = config.warnings();
    let warnings = warnings.iter().map(ToString::to_string);
    console.show(&config.settings, warnings.collect());
}

/// The number of connections that are accepted.
pub(super) fn connections(config: &Config) -> usize {
    let descriptors = descriptors::limit();
    let wanted = config.limits.connections.get() as usize;
    let connections = descriptors::at_most(wanted, descriptors);
    let few = "limits.connections is more than the descriptor limit allows: accepting fewer; raise the limit \
               (LimitNOFILE, ulimit -n)";
    // The usual hard limits of systems are just below the default.
    if connections < wanted / 2 {
        tracing::warn!(connections, descriptors, "{few}");
    } else if connections < wanted {
        tracing::info!(connections, descriptors, "{few}");
    }
    connections
}
