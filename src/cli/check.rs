//! `check`: validates the configuration, reaches what it names, and warns of what is valid and unwise.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::context::{CommandError, ConfigArgs, Output, block_on};
use crate::{
    app::{
        self, StartError,
        inspect::{self, Severity},
        live, own,
        services::{self, ServiceError},
    },
    clock::Clock,
    config::{Config, LoginBackend, StoreBackend},
    forward::{Fault, pool::Pool},
    login::http,
    nonce::LocalWindow,
    server::tls,
    store::{
        Opening, Store, StoreError,
        port::{ResealFrom, Resealed},
        redis,
    },
};

/// Validates the configuration; reaches store, certificates and API; changes nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Checks; exit code 0 if `serve` would work and be safe, 1 if something is out of reach or unsafe, 2 if the
/// configuration is invalid.
///
/// # Errors
/// The configuration cannot be loaded.
pub fn run(args: &Args) -> Result<Output, CommandError> {
    let config = args.config.load()?;
    let name = args.config.path().display().to_string();
    let checks: [(&str, Check); 8] = [
        ("listeners", listeners),
        ("certificates", certificates),
        ("operations", operations),
        ("pages", pages),
        ("store", store),
        ("nonces", nonces),
        ("API", api),
        ("login", login),
    ];
    let (mut found, mut errors, mut worst) = (Vec::new(), Vec::new(), 0);
    let mut warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    for (what, check) in checks {
        match check(&config, &mut warnings) {
            Ok(text) => found.push((what, text)),
            Err(error) => {
                errors.push(error.to_string());
                worst = worst.max(error.code);
            }
        }
    }
    let listener = app::first(&config.listen.address);
    for finding in inspect::inspect(&config, listener, Clock::system().now()) {
        match finding.severity {
            Severity::Unsafe => {
                errors.push(finding.to_string());
                worst = worst.max(1);
            }
            Severity::Unwise => warnings.push(finding.to_string()),
        }
    }
    // A person who reads only the first line must not take a bad configuration for a good one.
    let verdict = match errors.len() {
        0 => format!("{name} is valid"),
        1 => format!("{name} is not fit for serve: 1 error"),
        count => format!("{name} is not fit for serve: {count} errors"),
    };
    found.insert(0, ("configuration", verdict));
    let lines = found
        .iter()
        .map(|(what, text)| format!("{what:<14} {text}\n"));
    let errors = errors
        .iter()
        .map(|error| format!("countersign: {name}: {error}"));
    let warnings = warnings
        .iter()
        .map(|warning| format!("warning: {name}: {warning}"));
    Ok(Output {
        text: lines.collect(),
        notes: errors.chain(warnings).collect(),
        code: worst,
    })
}

/// Checks one thing, and adds what is valid and unwise to the warnings.
type Check = fn(&Config, &mut Vec<String>) -> CheckResult;

/// What was found, or what is wrong.
type CheckResult = Result<String, CommandError>;

fn listeners(config: &Config, _: &mut Vec<String>) -> CheckResult {
    Ok(inspect::listeners(config)?)
}

fn certificates(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let Some(params) = app::tls_params(config) else {
        return Ok("none: the public listener speaks plain HTTP".to_owned());
    };
    tls::Tls::read(&params, None).map_err(StartError::from)?;
    let count = params.certificates.len();
    Ok(format!("{count} read, each with its key"))
}

fn operations(config: &Config, _: &mut Vec<String>) -> CheckResult {
    live::operations(config).map_err(StartError::from)?;
    Ok(match config.operation.len() {
        0 => "none are listed".to_owned(),
        count => format!("{count} are listed"),
    })
}

fn pages(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let look = live::look(config, app::first(&config.listen.address)).map_err(StartError::from)?;
    let languages: Vec<_> = look.languages.tags().collect();
    Ok(format!("in {}", languages.join(", ")))
}

fn store(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    services::check_paths(config).map_err(StartError::from)?;
    if config.store.backend != StoreBackend::Sqlite {
        return match services::open_store(config, Opening::Check) {
            Ok(store) => ask(config, &*store, "the server", warnings),
            Err(ServiceError::Store(error)) if error.is_missing() => Ok(error.to_string()),
            Err(error) => Err(StartError::from(error).into()),
        };
    }
    let path = config.store.url.sqlite_path();
    // For a link that leads nowhere, opening the store reports why.
    if !path.exists() && !path.is_symlink() {
        // The key is needed once there is a store; a wrong one is found now.
        services::read_keys(config).map_err(StartError::from)?;
        return missing("store.url", &path);
    }
    let store = services::open_store(config, Opening::Check).map_err(StartError::from)?;
    ask(config, &*store, &path.display().to_string(), warnings)
}

/// Asks a store that is open.
fn ask(config: &Config, store: &dyn Store, place: &str, warnings: &mut Vec<String>) -> CheckResult {
    let (findings, consumers) = block_on(async {
        store.ping().await?;
        let findings = store.findings().await?;
        Ok::<_, StoreError>((findings, store.consumers(None, 1).await?))
    })??;
    let findings = findings.iter();
    warnings.extend(findings.map(|finding| format!("store.url: {finding}")));
    let hint = match consumers.is_empty() {
        true => ", without any consumer: countersign consumer add registers one",
        false => "",
    };
    let keys = &config.store.encryption_key_file;
    let secrets = match keys.is_empty() {
        true => "",
        false => secrets(store, keys.len() > 1, warnings)?,
    };
    Ok(format!("{place} answers{hint}{secrets}"))
}

/// How long secrets that are under an older key are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Looks at secrets, all of them in a store that is not large: whether they are under the first key, and open at all.
fn secrets(
    store: &dyn Store,
    has_more_keys: bool,
    warnings: &mut Vec<String>,
) -> Result<&'static str, CommandError> {
    let (all, is_whole) = block_on(async {
        let (mut all, begun) = (Resealed::default(), Instant::now());
        let mut next = Some(ResealFrom::default());
        while let Some(from) = next.take_if(|_| begun.elapsed() < LOOK) {
            next = all.add(store.reseal(from, true).await?);
        }
        Ok::<_, StoreError>((all, next.is_none()))
    })??;
    if let Some((count, error)) = all.unopened {
        let seen = all.seen;
        return Err(CommandError::failed(format!(
            "store.encryption_key_file: {count} of {seen} secrets cannot be decrypted: {error}"
        )));
    }
    if all.older > 0 {
        let (older, seen) = (all.older, all.seen);
        warnings.push(format!(
            "store.encryption_key_file: {older} of {seen} secrets are in clear or under another key than the first; \
             countersign rekey encrypts them anew"
        ));
    }
    Ok(match has_more_keys && is_whole && all.older == 0 {
        true => ", every secret is under the first key: the other keys can be left out",
        false => "",
    })
}

/// What `serve` will do about a file that does not exist.
fn missing(key: &str, path: &Path) -> CheckResult {
    let file = path.display();
    match inspect::can_create(path) {
        Ok(()) => Ok(format!("{file} is not there yet; serve makes it")),
        Err(error) => Err(CommandError::failed(format!(
            "{key}: {file}: serve cannot make it: {error}; make its directory, writable for this user"
        ))),
    }
}

fn nonces(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    if let Some(target) = services::nonce_target(config).map_err(StartError::from)? {
        let place = target.to_string();
        let findings = block_on(redis::check_nonces(target))?.map_err(ServiceError::from)?;
        let findings = findings.iter();
        warnings.extend(findings.map(|finding| format!("nonce.url: {finding}")));
        return Ok(format!("{place} answers"));
    }
    let Some(path) = config.nonce_path() else {
        return Ok("kept in memory".to_owned());
    };
    if !path.exists() {
        return missing("nonce.path", &path);
    }
    LocalWindow::check_file(&path).map_err(ServiceError::from)?;
    Ok(format!("{} is a nonce window", path.display()))
}

fn api(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let params = live::upstream_params(config).map_err(StartError::from)?;
    let name = &config.upstream.api_url;
    block_on(async {
        let own = own::check(config, &config.listeners()).await;
        own.map_err(StartError::from)?;
        let problem = match Pool::new(params).connect(false).await {
            Ok(_) => return Ok(format!("{name} takes connections")),
            Err(Fault::Unreachable(error)) => error.to_string(),
            Err(_) => "no connection within upstream.connect_timeout".to_owned(),
        };
        Err(CommandError::failed(format!(
            "upstream.api_url: {name}: {problem}; start the API or correct the URL"
        )))
    })?
}

fn login(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let Some(params) = services::login_params(config).map_err(StartError::from)? else {
        return Ok(match config.login.backend {
            LoginBackend::Header => "a proxy in front names the user".to_owned(),
            LoginBackend::Local | LoginBackend::Http => "accounts of the store".to_owned(),
        });
    };
    let url = format!("{}{}", params.origin, params.path);
    block_on(http::reach(&params))?.map_err(|error| {
        CommandError::failed(format!(
            "login.url: {url}: {error}; start it, or correct login.url or login.ca"
        ))
    })?;
    Ok(format!("{url} takes connections"))
}
