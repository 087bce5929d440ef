//! The services that live as long as the process: store, cache, nonce window, login, metrics.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use sd_notify::NotifyState;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::{
    certificates::Certificate,
    manager,
    paths::{can_create, resolved},
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        random::{self, NoRandomness},
        secret::Secret,
        settings::DataPath,
    },
    operator::admin::readiness::Readiness,
    provider::{
        login::{
            self, HttpLogin, LocalLogin, PasswordPool, Throttle, http::LoginEndpoint,
            settings::LoginMethod,
        },
        pages::{PageServices, developer::DeveloperRates},
    },
    records::{
        nonce::{self, LocalWindow, Opened, SharedWindow, settings::NonceScope},
        store::{
            self, OpenProblem, Opening, Store, StoreError, StoreOpenError,
            cached::Cached,
            feed::ChangeHub,
            postgres::{self, Lookup},
            redis,
            seal::SealKey,
            settings::StoreSettingError,
        },
    },
    request::{
        rejections::Rejections,
        verify::{Verifier, nonces::Nonces},
    },
    run::config::Config,
    telemetry::{charts::Charts, conditions::Conditions, heartbeats::Heartbeats, metrics::Metrics},
    wire::server::tls::TlsError,
};

/// The time between two attempts to lock the nonce window.
const LOCK_EVERY: Duration = Duration::from_millis(20);

/// Why a service cannot be opened.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The store cannot be opened.
    #[error("store.url: {0}")]
    Store(#[from] StoreOpenError),
    /// A URL of PostgreSQL or a key of the store cannot be used.
    #[error(transparent)]
    StoreSetting(#[from] StoreSettingError),
    /// The credentials of an existing system cannot be looked up.
    #[error(transparent)]
    Lookup(#[from] postgres::LookupError),
    /// There is no store.
    #[error(
        "store.url: {}: no such file; correct store.url, or create a store with countersign serve, consumer add, user add or import",
        .0.display()
    )]
    Missing(PathBuf),
    /// The nonce window cannot be opened.
    #[error("nonce.path: {0}")]
    Nonces(#[from] nonce::WindowOpenError),
    /// The Redis for shared nonces cannot be opened.
    #[error("nonce.url: {0}")]
    NonceRedis(#[from] redis::RedisOpenError),
    /// `nonce.url` is not a URL of Redis.
    #[error("nonce.url: {0}")]
    NonceUrl(&'static str),
    /// The store cannot share nonces.
    #[error("nonce.scope: this store cannot share nonces between replicas")]
    NoSharedNonces,
    /// Store and nonce window are one file.
    #[error(
        "nonce.path: {} is the store's own file, store.url; write another, or leave it out",
        path.display()
    )]
    OneFile {
        /// The file, as `nonce.path` has it.
        path: PathBuf,
    },
    /// The store does not respond.
    #[error("store.url: {0}")]
    Unavailable(#[from] StoreError),
    /// The high-water mark of accepted nonces cannot be written.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// The system gives no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The certificates of the login endpoint's authorities.
    #[error(transparent)]
    LoginTls(#[from] TlsError),
    /// Two metrics have one name.
    #[error("cannot count: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The system gives no more threads.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// Why the high-water mark of accepted timestamps cannot be recorded.
#[derive(Debug, Error)]
pub enum MarkError {
    /// The store cannot write it.
    #[error("store.url: {0}")]
    Store(#[from] StoreError),
    /// The file of the nonce window cannot be written.
    #[error("nonce.path: {0}")]
    Window(#[from] io::Error),
}

/// The services of a process.
pub struct Services {
    /// Tells the time.
    pub clock: Clock,
    /// The name of this process in the requests it forwards: random, and the same until the process ends.
    pub instance_id: Arc<str>,
    /// Consumers, users and tokens.
    pub store: Arc<Store>,
    /// Credentials ready for use.
    pub credentials: Arc<Cached>,
    /// Reports the changes of all processes.
    pub feed: Arc<ChangeHub>,
    /// Used nonces.
    pub nonces: Arc<Nonces>,
    /// Verifies signed requests.
    pub verifier: Arc<Verifier>,
    /// The services of the pages.
    pub pages: PageServices,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The conditions that last.
    pub conditions: Arc<Conditions>,
    /// The last calls that were rejected or failed.
    pub rejections: Arc<Rejections>,
    /// Examines the requests that developers have checked.
    pub developer_checks: Arc<PasswordPool>,
    /// The counts of each minute of the last hour, and of each quarter of an hour of the last day.
    pub charts: Arc<Charts>,
    /// The certificates of the listeners.
    pub certificates: Arc<ArcSwap<Vec<Certificate>>>,
    /// Checks whether signed calls can be served.
    pub readiness: Arc<Readiness>,
    /// The time for which audit records are kept.
    pub keep_audit: Duration,
    /// The time for which access tokens are kept past their end.
    pub keep_expired: Duration,
}

/// Opens the store that the configuration names.
///
/// # Errors
/// [`ServiceError`] names key and file.
pub fn open_store(config: &Config, opening: Opening) -> Result<Arc<Store>, ServiceError> {
    open_store_with(config, opening, open_lookup(config, opening)?)
}

fn open_store_with(
    config: &Config,
    opening: Opening,
    lookup: Option<Arc<Lookup>>,
) -> Result<Arc<Store>, ServiceError> {
    if opening == Opening::Existing && is_store_missing(config) {
        return Err(ServiceError::Missing(config.store.url.sqlite_path()));
    }
    Ok(store::open_store(config.store.params(opening, lookup)?)?)
}

/// Whether the store is a file that does not exist.
#[must_use]
pub fn is_store_missing(config: &Config) -> bool {
    // If the path cannot be inspected, opening the store reports why.
    let file = config.store.file();
    file.is_some_and(|file| matches!(file.try_exists(), Ok(false)))
}

/// Opens the store for a command, and creates it if there is none; then it also returns the location of the new store.
///
/// # Errors
/// [`ServiceError`] names key and file.
pub fn open_or_create_store(config: &Config) -> Result<(Arc<Store>, Option<String>), ServiceError> {
    let location = match open_store(config, Opening::Existing) {
        Err(ServiceError::Missing(path)) => path.display().to_string(),
        Err(ServiceError::Store(StoreOpenError {
            location,
            problem: OpenProblem::Missing,
        })) => location,
        opened => return Ok((opened?, None)),
    };
    Ok((open_store(config, Opening::Command)?, Some(location)))
}

/// The look-up of credentials of an existing system, if there is one. No server is reached yet.
///
/// # Errors
/// [`ServiceError::Lookup`]: a file of TLS.
pub fn open_lookup(config: &Config, opening: Opening) -> Result<Option<Arc<Lookup>>, ServiceError> {
    let params = config.lookup.params()?;
    let lookup = params.map(|params| Lookup::open(params, opening));
    Ok(lookup.transpose()?.map(Arc::new))
}

/// Checks the paths of store and nonce window before either is created.
///
/// # Errors
/// [`ServiceError::OneFile`], and [`ServiceError::Store`] for a directory that is missing or cannot be written: the window,
/// which is beside the store, would complain of a key that nobody wrote.
pub fn check_paths(config: &Config) -> Result<(), ServiceError> {
    let Some(store) = config.store.file() else {
        return Ok(());
    };
    match &config.nonce.path {
        Some(DataPath(path)) if resolved(path) == resolved(&store) => {
            Err(ServiceError::OneFile { path: path.clone() })
        }
        Some(_) => Ok(()),
        None => {
            let problem = match can_create(&resolved(&store)) {
                Ok(()) => return Ok(()),
                Err(error) => match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                        OpenProblem::DirectoryMissing
                    }
                    _ => OpenProblem::NotWritable(error.into()),
                },
            };
            Err(ServiceError::Store(StoreOpenError {
                location: store.display().to_string(),
                problem,
            }))
        }
    }
}

/// Opens the nonce window. If the previous process is ending, it gives up the lock about a second after its SIGTERM and
/// `listen.drain_delay`; this waits for the lock until `deadline`.
async fn open_window(
    params: &nonce::WindowParams,
    deadline: Instant,
) -> Result<Opened, nonce::WindowOpenError> {
    let mut is_logged = false;
    loop {
        match LocalWindow::open(params) {
            Err(nonce::WindowOpenError::Locked { path }) if Instant::now() < deadline => {
                if !std::mem::replace(&mut is_logged, true) {
                    let path = tracing::field::display(path.display());
                    tracing::info!(
                        path,
                        "another process has the nonce window: waiting until it ends"
                    );
                    let status = "waiting for another process to give up the nonce window";
                    manager::tell(&[NotifyState::Status(status)]);
                }
                sleep(LOCK_EVERY).await;
            }
            opened => return opened,
        }
    }
}

/// Opens all services. Waits until `deadline` for an ending process to give up the nonce window.
///
/// # Errors
/// [`ServiceError`] names key and file.
pub async fn open(
    config: &Config,
    clock: Clock,
    deadline: Instant,
) -> Result<Services, ServiceError> {
    check_paths(config)?;
    // The window first: one process locks it, and another one must not migrate the store of that process.
    let (scope, path) = (config.nonce_scope(), config.nonce_path());
    let params = config.nonce.window(scope, path, config.longest_window());
    let new_file = params.path.clone().filter(|path| !path.exists());
    let opened = open_window(&params, deadline).await?;
    let store = open_checked_store(config).await.inspect_err(|_| {
        // A failed start leaves no new file.
        if let Some(path) = &new_file {
            let _ = std::fs::remove_file(path);
        }
    })?;
    let metrics = Arc::new(Metrics::new()?);
    store.count_with(Arc::clone(&metrics));
    let known = store.local_nonces_until().await?;
    let version = match opened.files() {
        Some(files) => store.nonce_files(&files.id).await?,
        None => None,
    };
    let opened = opened.after_version(version);
    let window = opened.start(clock.now(), known, config.nonce.on_lost)?;
    let throttle = Arc::new(throttle(config)?);
    let cached = Cached::new(Arc::clone(&store), &config.cache, clock.clone());
    let credentials = Arc::new(cached);
    let (counts, reads) = (Arc::clone(&throttle), clock.clone());
    let apply = move |report: &str| counts.apply_report(report, reads.now());
    let cached = Arc::clone(&credentials);
    let rejections = Arc::new(Rejections::new(clock.clone()));
    let feed = Arc::new(ChangeHub::new(
        Arc::clone(&store),
        clock.clone(),
        cached,
        Arc::clone(&rejections),
        apply,
    ));
    feed.follow().await?;
    let shared = shared_window(config, &store, clock.now()).await?;
    let nonces = Arc::new(Nonces::new(window, shared));
    nonces
        .set_on_lost(config.nonce.on_lost)
        .map_err(MarkError::from)?;
    write_high_water_mark(&nonces, &store, &clock).await?;
    note_imported(&nonces, &store).await?;
    let (cached, used) = (Arc::clone(&credentials), Arc::clone(&nonces));
    let store_itself = Arc::clone(&store);
    let verifier = Arc::new(Verifier::new(cached, store_itself, used, clock.clone()));
    let (login, passwords) = login_backend(config, &store, &clock)?;
    let pages = PageServices {
        store: Arc::clone(&store),
        feed: Arc::clone(&feed),
        login,
        passwords,
        throttle,
        clock: clock.clone(),
        rejections: Arc::clone(&rejections),
        developer_rates: DeveloperRates::default(),
    };
    let developer_checks = PasswordPool::start(1, PasswordPool::QUEUE)
        .map(Arc::new)
        .map_err(ServiceError::Thread)?;
    let conditions = Arc::new(Conditions::new(clock.clone()));
    let readiness = Arc::new(Readiness {
        store: Arc::clone(&store),
        verifier: Arc::clone(&verifier),
        nonces: Arc::clone(&nonces),
        max_nonces: config.nonce.max_entries.get(),
        heartbeats: Arc::new(Heartbeats::new(config.workers().get())),
        conditions: Arc::clone(&conditions),
    });
    let certificates = Arc::<ArcSwap<_>>::default();
    Ok(Services {
        clock,
        instance_id: random::identifier()?.into(),
        store,
        credentials,
        feed,
        nonces,
        verifier,
        pages,
        metrics,
        conditions,
        rejections,
        developer_checks,
        charts: Arc::default(),
        certificates,
        readiness,
        keep_audit: config.audit.keep,
        keep_expired: config.ended_tokens.keep_expired,
    })
}

/// The store to serve from. What a query for credentials of an existing system runs must not reach it: the role is
/// checked once there is a schema.
async fn open_checked_store(config: &Config) -> Result<Arc<Store>, ServiceError> {
    let lookup = open_lookup(config, Opening::Serve)?;
    let store = open_store_with(config, Opening::Serve, lookup.clone())?;
    if let Some(lookup) = lookup {
        for finding in lookup.check().await? {
            tracing::warn!("store.lookup.url: {finding}");
        }
    }
    Ok(store)
}

/// The service that checks passwords, and the pool that hashes new ones.
type Logins = (Arc<dyn login::LoginBackend>, Option<Arc<PasswordPool>>);

fn login_backend(
    config: &Config,
    store: &Arc<Store>,
    clock: &Clock,
) -> Result<Logins, ServiceError> {
    let store = Arc::clone(store);
    let Some(endpoint) = LoginEndpoint::new(&config.password_check)? else {
        let pool = PasswordPool::start(PasswordPool::THREADS, PasswordPool::QUEUE)
            .map_err(ServiceError::Thread)?;
        let pool = Arc::new(pool);
        let is_local = config.password_check.backend == LoginMethod::Local;
        let passwords = is_local.then(|| Arc::clone(&pool));
        return Ok((Arc::new(LocalLogin::new(store, pool)), passwords));
    };
    let login = HttpLogin::new(endpoint, store, clock.clone());
    Ok((Arc::new(login), None))
}

/// The throttle of logins; all processes of a store read its reports.
///
/// # Errors
/// The keys of the store cannot be read.
pub fn throttle(config: &Config) -> Result<Throttle, ServiceError> {
    let keys = config.store.keys()?;
    let shared_key = keys.first().map(SealKey::for_logins);
    let shared_key = shared_key.unwrap_or_else(|| Secret::from(""));
    Ok(Throttle::new(config.login.max_failures, &shared_key))
}

/// The Redis for shared nonces, if there is one.
///
/// # Errors
/// [`ServiceError::NonceUrl`]
pub fn nonce_target(config: &Config) -> Result<Option<redis::RedisUrl>, ServiceError> {
    let url = config.nonce.url.as_ref();
    let target = url.map(|url| redis::RedisUrl::parse(url.expose()));
    target.transpose().map_err(ServiceError::NonceUrl)
}

/// The shared window, if `nonce.scope` asks for one.
async fn shared_window(
    config: &Config,
    store: &Store,
    now: UnixTime,
) -> Result<Option<Box<dyn SharedWindow>>, ServiceError> {
    match (config.nonce_scope(), nonce_target(config)?) {
        (NonceScope::Local, _) => Ok(None),
        (NonceScope::Shared, Some(target)) => {
            let location = store.nonce_location().await?;
            let length = config.longest_window();
            let window = redis::open_nonces(target, location, now, length).await?;
            // Only now: another process that finds the note relies on the window in Redis.
            store.keep_nonces_elsewhere().await?;
            Ok(Some(window))
        }
        (NonceScope::Shared, None) => match store.shared_window() {
            None => Err(ServiceError::NoSharedNonces),
            shared => Ok(shared),
        },
    }
}

/// Rejects requests that a store whose records were imported may have accepted, unless `nonce.on_lost` waives that.
///
/// # Errors
/// [`MarkError`]
pub async fn note_imported(nonces: &Nonces, store: &Store) -> Result<(), MarkError> {
    if let Some(until) = store.imported_nonces_until().await? {
        nonces.note_imported(until)?;
    }
    Ok(())
}

/// Writes into the store the version of the closed files of the nonce window: a start with an older copy of them notices that.
///
/// # Errors
/// The store's.
pub async fn note_files(services: &Services) -> Result<(), StoreError> {
    let (nonces, store) = (&services.nonces, &services.store);
    match nonces.window().files().filter(|_| !nonces.are_shared()) {
        Some(files) => {
            store
                .set_local_nonces_until(nonces.high_water_mark(), Some(files))
                .await
        }
        None => Ok(()),
    }
}

/// Writes into the store the last timestamp of requests that this run may accept, before it accepts them. A wider
/// configured window takes effect from then on.
///
/// # Errors
/// [`MarkError`]; once the written mark no longer covers the present, signed requests are rejected.
pub async fn write_high_water_mark(
    nonces: &Nonces,
    store: &Store,
    clock: &Clock,
) -> Result<(), MarkError> {
    if !nonces.are_shared() {
        let mark = nonces.next_high_water_mark(clock.now())?;
        let files = nonces.window().files();
        store.set_local_nonces_until(mark, files).await?;
        nonces.note_written_mark(mark, clock.now())?;
    }
    Ok(())
}
