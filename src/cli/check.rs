//! `check`: validates the configuration, reaches what it names, and warns of what is valid and unwise.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use super::{context::config_path, request::with_causes, serve::say};
use crate::{
    app::{
        StartError,
        inspect::{self, Severity},
        live, own,
        services::{self, ServiceError},
    },
    clock::Clock,
    config::{self, Config},
    forward::{Fault, pool::Pool},
    nonce::LocalWindow,
    server::tls,
    store::Opening,
};

/// Validates the configuration; reaches store, certificates and API; changes nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Checks; exit code 0 if `serve` would work and be safe, 1 if something is out of reach or unsafe, 2 if the
/// configuration is invalid.
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
    let name = path.display().to_string();
    let checks: [(&str, Check); 6] = [
        ("listeners", listeners),
        ("certificates", certificates),
        ("operations", operations),
        ("store", store),
        ("nonces", nonces),
        ("API", api),
    ];
    let (mut found, mut errors, mut worst) = (Vec::new(), Vec::new(), 0);
    for (what, check) in checks {
        match check(&config) {
            Ok(text) => found.push((what, text)),
            Err((code, problem)) => {
                errors.push(problem.replace('\n', " "));
                worst = worst.max(code);
            }
        }
    }
    let mut warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    let listener = config.listen.address.first().copied();
    let listener = listener.unwrap_or(([127, 0, 0, 1], 0).into());
    for finding in inspect::inspect(&config, listener, Clock::system().now()) {
        match finding.severity {
            Severity::Unsafe => {
                errors.push(finding.to_string());
                worst = worst.max(1);
            }
            Severity::Unwise => warnings.push(finding.to_string()),
        }
    }
    // Whoever reads the first line alone must not take a configuration for good that is not.
    let verdict = match errors.len() {
        0 => format!("{name} is valid"),
        1 => format!("{name} is not fit for serve: 1 error"),
        count => format!("{name} is not fit for serve: {count} errors"),
    };
    found.insert(0, ("configuration", verdict));
    for (what, text) in found {
        let _ = writeln!(std::io::stdout(), "{what:<14} {text}");
    }
    for error in errors {
        say(&format!("countersign: {name}: {error}"));
    }
    for warning in warnings {
        say(&format!("warning: {name}: {warning}"));
    }
    ExitCode::from(worst)
}

type Check = fn(&Config) -> Outcome;

/// What was found, or an exit code and what is wrong.
type Outcome = Result<String, (u8, String)>;

fn listeners(config: &Config) -> Outcome {
    inspect::listeners(config).map_err(|error| (1, error.to_string()))
}

fn certificates(config: &Config) -> Outcome {
    if !config.listens_with_tls() {
        return Ok("none: the public listener speaks plain HTTP".to_owned());
    }
    let params = tls::Params {
        certificates: config.listen.tls.certificate.clone(),
        keys: config.listen.tls.key.clone(),
        client_ca: config.listen.tls.client_ca.clone(),
        http2: config.listen.http2,
    };
    tls::Tls::read(&params, None).map_err(|error| (2, error.to_string()))?;
    Ok(format!(
        "{} read, each with its key",
        params.certificates.len()
    ))
}

fn operations(config: &Config) -> Outcome {
    live::operations(config).map_err(|error| (2, error.to_string()))?;
    Ok(match config.operation.len() {
        0 => "none are listed".to_owned(),
        count => format!("{count} are listed"),
    })
}

fn store(config: &Config) -> Outcome {
    services::check_paths(config).map_err(service_error)?;
    let path = config.store.url.sqlite_path();
    // A link that leads nowhere is for opening to explain.
    if !path.exists() && !path.is_symlink() {
        // The key is needed once there is a store; a wrong one is found now.
        services::read_key(config).map_err(service_error)?;
        inspect::can_create(&path).map_err(|error| {
            let path = path.display();
            let problem = format!(
                "store.url: {path}: serve cannot make it: {error}; make its directory, writable for this user"
            );
            (1, problem)
        })?;
        return Ok(format!(
            "{} is not there yet; serve makes it",
            path.display()
        ));
    }
    let store = services::open_store(config, Opening::Check).map_err(service_error)?;
    block_on(async {
        store
            .ping()
            .await
            .map_err(|error| (1, format!("store.url: {error}")))?;
        let consumers = store
            .consumers(None, 1)
            .await
            .map_err(|error| (1, error.to_string()))?;
        let hint = if consumers.is_empty() {
            ", without any consumer: countersign consumer add registers one"
        } else {
            ""
        };
        Ok(format!("{} answers{hint}", path.display()))
    })
}

fn service_error(error: ServiceError) -> (u8, String) {
    let text = with_causes(&error);
    let is_configuration = StartError::from(error).is_configuration();
    (if is_configuration { 2 } else { 1 }, text)
}

fn nonces(config: &Config) -> Outcome {
    let Some(path) = config.nonce_path() else {
        return Ok("kept in memory".to_owned());
    };
    if path.exists() {
        LocalWindow::check_file(&path)
            .map_err(|error| (1, format!("nonce.path: {}", with_causes(&error))))?;
        return Ok(format!("{} is a nonce window", path.display()));
    }
    inspect::can_create(&path).map_err(|error| {
        let path = path.display();
        let problem = format!(
            "nonce.path: {path}: serve cannot make it: {error}; make its directory, writable for this user"
        );
        (1, problem)
    })?;
    Ok(format!(
        "{} is not there yet; serve makes it",
        path.display()
    ))
}

fn api(config: &Config) -> Outcome {
    let name = &config.upstream.api_url;
    let params = live::upstream_params(config).map_err(|error| (2, error.to_string()))?;
    block_on(async {
        own::check(config, &own::listeners(config))
            .await
            .map_err(|error| (2, error.to_string()))?;
        match Pool::new(params).connect(false).await {
            Ok(_) => Ok(format!("{name} takes connections")),
            Err(Fault::Unreachable(error)) => Err((
                1,
                format!("upstream.api_url: {name}: {error}; start the API or correct the URL"),
            )),
            Err(_) => Err((
                1,
                format!(
                    "upstream.api_url: {name}: no connection within upstream.connect_timeout; start the API or correct the URL"
                ),
            )),
        }
    })
}

fn block_on<T>(future: impl Future<Output = Result<T, (u8, String)>>) -> Result<T, (u8, String)> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| (1, format!("cannot start: {error}")))?
        .block_on(future)
}
