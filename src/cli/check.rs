//! `check`: validates the configuration, reaches what it names, and warns of what is valid and unwise.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use super::{context::config_path, serve::say};
use crate::{
    app::{live, services},
    config::{self, ApiUrl, Config},
    forward::pool::Pool,
    refusal::Fault,
    server::tls,
    store::Store as _,
};

/// Validates the configuration; reaches store, certificates and API; changes nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Checks; exit code 0 if `serve` would work, 1 if something is out of reach, 2 if the configuration is invalid.
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
    found("configuration", &format!("{name} is valid"));
    let mut worst = 0;
    let checks: [(&str, Check); 3] = [
        ("certificates", certificates),
        ("store", store),
        ("API", api),
    ];
    for (what, check) in checks {
        match check(&config) {
            Ok(text) => found(what, &text),
            Err((code, problem)) => {
                say(&format!(
                    "countersign: {name}: {}",
                    problem.replace('\n', " ")
                ));
                worst = worst.max(code);
            }
        }
    }
    for warning in config.warnings() {
        say(&format!("warning: {name}: {warning}"));
    }
    ExitCode::from(worst)
}

type Check = fn(&Config) -> Outcome;

/// What was found, or an exit code and what is wrong.
type Outcome = Result<String, (u8, String)>;

fn found(what: &str, text: &str) {
    let _ = writeln!(std::io::stdout(), "{what:<14} {text}");
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

fn store(config: &Config) -> Outcome {
    let path = config.store.url.sqlite_path();
    if !path.exists() {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if directory.is_some_and(|directory| !directory.is_dir()) {
            let problem = format!(
                "store.url: {}: its directory does not exist; make it",
                path.display()
            );
            return Err((1, problem));
        }
        return Ok(format!(
            "{} is not there yet; serve makes it",
            path.display()
        ));
    }
    let store = services::open_store(config, false).map_err(|error| (1, error.to_string()))?;
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

fn api(config: &Config) -> Outcome {
    let name = match &config.upstream.api_url {
        ApiUrl::Http(url) => url.to_string(),
        ApiUrl::Unix(path) => format!("unix:{}", path.display()),
    };
    let params = live::upstream_params(config).map_err(|error| (2, error.to_string()))?;
    block_on(async {
        match Pool::new(params).connect().await {
            Ok(_) => Ok(format!("{name} takes connections")),
            Err(Fault::Unreachable(error)) => Err((
                1,
                format!("upstream.api_url: {name}: {error}; start the API or mend the URL"),
            )),
            Err(_) => Err((
                1,
                format!(
                    "upstream.api_url: {name}: no connection within upstream.connect_timeout; start the API or mend the URL"
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
