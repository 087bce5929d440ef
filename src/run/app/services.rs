//! The services that live as long as the process: store, cache, nonce window, login, metrics.

mod nonces;
mod store;

use std::{io, sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption};
use strum::VariantArray as _;
use tokio::{task::spawn_blocking, time::Instant};

use self::nonces::{open_window, shared_window};
pub use self::{
    nonces::{NonceServiceError, nonce_target, note_files, note_imported, write_high_water_mark},
    store::{StoreServiceError, is_store_missing, open_lookup, open_or_create_store, open_store},
};
use super::StartError;
use crate::{
    base::{
        clock::Clock,
        secret::{Secret, random},
        settings::DataPath,
    },
    operator::{admin::readiness::Readiness, lookup::Lookup},
    provider::{
        login::{
            self, HttpLogin, LocalLogin, PasswordPool, Throttle, http::LoginEndpoint,
            settings::LoginMethod,
        },
        pages::{PageServices, developer::DeveloperRates},
    },
    records::{
        self,
        credentials::{Cached, feed::ChangeHub},
        nonce::Nonces,
        store::Store,
        values::{OpenProblem, Opening, StoreOpenError, seal::SealKey},
    },
    request::{bearer::BearerTokens, verify::Verifier},
    run::{
        app::files::{
            certificates::Certificate,
            paths::{can_create, resolved},
        },
        config::Config,
    },
    telemetry::{
        calls::rejections::Rejections, charts::Charts, conditions::Conditions,
        heartbeats::Heartbeats, metrics::Metrics,
    },
    wire::server::tls::HandshakeFailure,
};

/// The services of a process.
pub struct Services {
    /// Tells the time.
    pub clock: Clock,
    /// The name of this process in the requests it forwards: random, and the same until the process ends.
    pub instance_id: Arc<str>,
    /// Consumers, users and tokens.
    pub store: Arc<Store>,
    /// The application in which others are looked up.
    pub lookup: Option<Arc<Lookup>>,
    /// Credentials ready for use.
    pub credentials: Arc<Cached>,
    /// Reports the changes of all processes.
    pub feed: Arc<ChangeHub>,
    /// Used nonces.
    pub nonces: Arc<Nonces>,
    /// Verifies signed requests.
    pub verifier: Arc<Verifier>,
    /// The rules of Bearer tokens in effect, if any are accepted.
    pub bearer: ArcSwapOption<BearerTokens>,
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

/// Checks the paths of store and nonce window before either is created.
///
/// # Errors
/// [`NonceServiceError::OneFile`], and [`StoreServiceError::Open`] if a directory is missing or cannot be written: the window,
/// which is beside the store, would complain of a key that is not written.
pub fn check_paths(config: &Config) -> Result<(), StartError> {
    let Some(store) = config.store.file() else {
        return Ok(());
    };
    match &config.nonce.path {
        Some(DataPath(path)) if resolved(path) == resolved(&store) => {
            Err(NonceServiceError::OneFile(path.clone()).into())
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
            Err(StoreServiceError::from(StoreOpenError {
                location: store.display().to_string(),
                problem,
            })
            .into())
        }
    }
}

/// Opens all services. Waits until `deadline` for an ending process to give up the nonce window.
///
/// # Errors
/// [`StartError`] names key and file.
pub async fn open(
    config: &Config,
    clock: Clock,
    deadline: Instant,
) -> Result<Services, StartError> {
    check_paths(config)?;
    // The window first: one process locks it, and another one must not migrate the store of that process.
    let (scope, path) = (config.nonce_scope(), config.nonce_path());
    let params = config.nonce.window(scope, path, config.longest_window());
    let new_file = params.path.clone().filter(|path| !path.exists());
    let opened = open_window(&params, deadline).await;
    let opened = opened.map_err(NonceServiceError::from)?;
    let lookup = open_lookup(config)?;
    let store = open_for_service(config, lookup.as_ref())
        .await
        .inspect_err(|_| {
            // A failed start leaves no new file.
            if let Some(path) = &new_file {
                let _ = std::fs::remove_file(path);
            }
        })?;
    let metrics = Arc::new(Metrics::default());
    for failure in HandshakeFailure::VARIANTS {
        let reason = [("reason", failure.into())];
        metrics.handshakes.get_or_create_owned(&reason);
    }
    store.count_with(Arc::clone(&metrics));
    let known = store.local_nonces_until().await?;
    let version = match opened.files() {
        Some(files) => store.nonce_files(&files.id).await?,
        None => None,
    };
    let opened = opened.after_version(version);
    let window = opened.start(clock.now(), known, config.nonce.on_lost);
    let window = window.map_err(NonceServiceError::from)?;
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
        .map_err(NonceServiceError::from)?;
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
        .map_err(StartError::System)?;
    let conditions = Arc::new(Conditions::new(clock.clone()));
    let readiness = Arc::new(Readiness {
        store: Arc::clone(&store),
        verifier: Arc::clone(&verifier),
        nonces: Arc::clone(&nonces),
        max_nonces: config.nonce.max_entries.get(),
        heartbeats: Arc::new(Heartbeats::new(config.workers().get())),
        metrics: Arc::clone(&metrics),
        conditions: Arc::clone(&conditions),
    });
    let certificates = Arc::<ArcSwap<_>>::default();
    Ok(Services {
        clock,
        instance_id: random::identifier()?.into(),
        store,
        lookup,
        credentials,
        feed,
        nonces,
        verifier,
        bearer: ArcSwapOption::empty(),
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

/// The store to serve from.
async fn open_for_service(
    config: &Config,
    lookup: Option<&Arc<Lookup>>,
) -> Result<Arc<Store>, StartError> {
    let params = config.store.params(Opening::Serve, store::external(lookup));
    let params = params.map_err(StoreServiceError::from)?;
    // It blocks, and meanwhile others are answered.
    let opened = spawn_blocking(|| records::store::open_store(params)).await;
    let opened = opened.map_err(|error| StartError::System(io::Error::other(error)))?;
    Ok(opened.map_err(StoreServiceError::from)?)
}

/// The service that checks passwords, and the pool that hashes new ones.
type Logins = (Arc<dyn login::LoginBackend>, Option<Arc<PasswordPool>>);

fn login_backend(config: &Config, store: &Arc<Store>, clock: &Clock) -> Result<Logins, StartError> {
    let store = Arc::clone(store);
    let Some(endpoint) = LoginEndpoint::new(&config.password_check)? else {
        let pool = PasswordPool::start(PasswordPool::THREADS, PasswordPool::QUEUE)
            .map_err(StartError::System)?;
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
/// [`StoreServiceError::Setting`], if the keys of the store cannot be read.
pub fn throttle(config: &Config) -> Result<Throttle, StoreServiceError> {
    let keys = config.store.keys()?;
    let shared_key = keys.first().map(SealKey::for_logins);
    let shared_key = shared_key.unwrap_or_else(|| Secret::from(""));
    Ok(Throttle::new(config.login.max_failures, &shared_key))
}
