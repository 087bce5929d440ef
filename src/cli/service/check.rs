//! `check`: validates the configuration, reaches what it names, and warns of what is valid and unwise.

use std::{
    io,
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde_json::{Map, json};

use crate::{
    base::{clock::Clock, language::Texts, text::counted},
    cli::{
        context::{CommandError, ConfigArgs, Output, block_on},
        terminal::{
            marks::{Mark, shows_colours},
            output::json_line,
        },
    },
    operator::admin::tokens::{TokenKind, Tokens},
    provider::login::{
        http::{self, LoginEndpoint},
        settings::LoginMethod,
    },
    records::{
        nonce::{self, redis, settings::NonceScope},
        store::Store,
        values::{
            OpenProblem, Opening, grant,
            use_cases::{ResealFrom, Resealed},
        },
    },
    request::{
        bearer::BearerTokens,
        policy::settings::Ambiguous,
        route::{Page, ServiceCall, TokenCall, settings::FlowAt},
    },
    run::{
        app::{
            self, StartError,
            files::{
                certificates::Certificate,
                inspect::{self, OpenTo, Severity},
                paths,
            },
            listeners::api_loop,
            live,
            services::{self, NonceServiceError, StoreServiceError},
            traces,
        },
        config::{Config, json_schema},
    },
    wire::{address::TcpOrUnix, outbound::tls::ClientTls, server::tls::Tls, stream::tls_error},
};

/// Validates the configuration; reaches store, certificates and API; changes nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Check nothing: print the JSON schema of the configuration file, for editors
    #[arg(long)]
    schema: bool,
    /// Print JSON: one object with all findings
    #[arg(long, conflicts_with = "schema")]
    json: bool,
}

/// Checks; exit code 0 if `serve` would work and be safe, 1 if something is out of reach or unsafe, 2 if the
/// configuration is invalid.
///
/// # Errors
/// The configuration cannot be loaded.
pub fn run(args: &Args) -> Result<Output, CommandError> {
    if args.schema {
        return Ok(json_schema().into());
    }
    args.config.announce();
    let config = args.config.load()?;
    let name = args.config.path().display().to_string();
    let checks: [(&str, Check); 13] = [
        ("listeners", listeners),
        ("certificates", certificates),
        ("assertion keys", keys),
        ("operations", operations),
        ("flow", flow),
        ("pages", pages),
        ("store", store),
        ("lookup", lookup),
        ("nonces", nonces),
        ("API", api),
        ("login", login),
        ("admin API", admin_api),
        ("traces", traces),
    ];
    let (mut found, mut errors, mut worst) = (Vec::new(), Vec::new(), 0);
    let mut warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    let mut fail = |error: CommandError| {
        errors.push(error.to_string());
        worst = worst.max(error.code);
    };
    for (what, check) in checks {
        let finding = check(&config, &mut warnings).map_err(&mut fail);
        found.push((what, finding.ok()));
    }
    let trouble = issuers(&config).map_err(fail);
    warnings.extend(trouble.ok().flatten());
    warnings.extend(open_password(&config, &args.config.path()));
    let listener = app::first(&config.listen.address);
    for (severity, finding) in inspect::inspect(&config, listener) {
        match severity {
            Severity::Unsafe => {
                errors.push(finding);
                worst = worst.max(1);
            }
            Severity::Unwise => warnings.push(finding),
        }
    }
    if args.json {
        let findings = found.iter();
        let findings = findings.map(|(what, text)| ((*what).to_owned(), json!(text)));
        let report = json!({
            "file": name, "valid": errors.is_empty(), "findings": Map::from_iter(findings),
            "warnings": warnings, "errors": errors,
        });
        return Ok(Output {
            text: json_line(&report),
            notes: Vec::new(),
            code: worst,
        });
    }
    let colours = [shows_colours(&io::stdout()), shows_colours(&io::stderr())];
    let row = |(what, text): &(&str, Option<String>)| match text {
        Some(text) => Mark::Good.line(&format!("{what:<14} {text}"), colours[0]),
        None => Mark::Bad.line(&format!("{what:<14} has an error"), colours[0]),
    };
    let mut text: String = found.iter().map(row).collect();
    let problem = |mark: Mark, text: &String| mark.line(&format!("{name}: {text}"), colours[1]);
    // What needs attention comes last, and is counted in the last line.
    let warned = warnings.iter().map(|it| problem(Mark::Warning, it));
    let failed = errors.iter().map(|it| problem(Mark::Bad, it));
    let mut notes: Vec<String> = warned.chain(failed).collect();
    let (mark, verdict) = verdict(&name, errors.len() as u64, warnings.len() as u64);
    match mark {
        Mark::Good => text += &mark.line(&verdict, colours[0]),
        _ => notes.push(mark.line(&verdict, colours[1])),
    }
    Ok(Output {
        text,
        notes,
        code: worst,
    })
}

/// The last line: whether `serve` would start, and how many problems stand above.
fn verdict(name: &str, errors: u64, warnings: u64) -> (Mark, String) {
    let (errors, warned) = (
        (errors > 0).then(|| counted(errors, "error")),
        (warnings > 0).then(|| counted(warnings, "warning")),
    );
    match (errors, warned) {
        (None, None) => (Mark::Good, format!("{name}: valid")),
        (None, Some(warned)) => (Mark::Warning, format!("{name}: valid, {warned}")),
        (Some(errors), warned) => {
            let warned = warned.map(|warned| format!(" and {warned}"));
            let warned = warned.unwrap_or_default();
            let text = format!("{name}: {errors}{warned}; correct them before you start serve");
            (Mark::Bad, text)
        }
    }
}

/// A warning if others can read the password of a server in the file at `path`.
fn open_password(config: &Config, path: &Path) -> Option<String> {
    let open = OpenTo::from_metadata(&path.metadata().ok()?)?;
    let text = std::fs::read_to_string(path).ok()?;
    let urls = [
        ("store.url", Some(&config.store.url)),
        ("nonce.url", config.nonce.url.as_ref()),
    ];
    let has_password = |url: &str| {
        let parsed = url::Url::parse(url).ok();
        let parsed = parsed.is_some_and(|url| url.password().is_some_and(|it| !it.is_empty()));
        parsed || url.contains("password=")
    };
    // It may be from the environment instead.
    let mut urls = urls
        .into_iter()
        .filter_map(|(key, url)| Some((key, url?.expose())));
    let (key, _) = urls.find(|(_, url)| has_password(url) && text.contains(url))?;
    let (who, mode, fix) = (open.who, open.mode, open.fix(path));
    Some(format!(
        "{key}: {who} can read its password (mode {mode:04o}); {fix}"
    ))
}

/// Checks one thing, and adds what is valid and unwise to the warnings.
type Check = fn(&Config, &mut Vec<String>) -> CheckResult;

/// The finding, or the problem.
type CheckResult = Result<String, CommandError>;

fn listeners(config: &Config, _: &mut Vec<String>) -> CheckResult {
    Ok(inspect::listeners(config)?)
}

fn certificates(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    let files = &config.listen_tls;
    let mut text = if config.listens_with_tls() {
        Tls::read(files, config.protocols, None).map_err(StartError::from)?;
        format!("{} read, each with its key", files.certificate.len())
    } else {
        "none: the public listener speaks plain HTTP".to_owned()
    };
    let now = Clock::system().now();
    let certificates = Certificate::read(config);
    let problem = certificates.iter().find_map(Certificate::never_valid);
    problem.map_or(Ok(()), |problem| Err(StartError::Certificate(problem)))?;
    let problems: Vec<_> = certificates
        .iter()
        .filter_map(|one| one.problem(now))
        .collect();
    if !problems.is_empty() {
        return Err(CommandError::failed(problems.join("; ")));
    }
    for one in &certificates {
        let (path, days, end) = (
            one.path.display(),
            counted(one.days_left(now), "day"),
            one.not_after,
        );
        text.push_str(&format!("; {path} has {days} left, until {end}"));
        if one.ends_soon(now) {
            warnings.push(format!(
                "{}: {path} ends in {days}, at {end}; renew it",
                one.key
            ));
        }
    }
    Ok(text)
}

fn keys(config: &Config, _: &mut Vec<String>) -> CheckResult {
    Ok(match &inspect::signing_keys(config)?[..] {
        [] => "none: nothing is signed".to_owned(),
        [first] => format!("{first} signs"),
        [first, others @ ..] => {
            format!("{first} signs; {} are published too", others.join(" "))
        }
    })
}

fn operations(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let mut text = match config.operation.len() {
        0 => "none are listed".to_owned(),
        count => format!("{count} are listed"),
    };
    let mut counts = Vec::<(&str, usize)>::new();
    for key in config.operation.iter().flat_map(|it| it.distinctions()) {
        match counts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => counts.push((key, 1)),
        }
    }
    for (key, count) in counts {
        text.push_str(&format!("; {count} with {key}"));
    }
    let all = config.paths.ambiguities().into_iter();
    let rejecting = all.filter_map(|(key, it)| (it == Ambiguous::Reject).then_some(key));
    let rejecting = Vec::from_iter(rejecting).join(", ");
    if !config.operation.is_empty() && !rejecting.is_empty() {
        text.push_str(&format!("; paths are rejected by {rejecting}"));
    }
    Ok(text)
}

fn flow(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let paths = config.flow_paths();
    if config.is_guard() {
        let paths: Vec<_> = paths.of_api().map(ToString::to_string).collect();
        return Ok(format!(
            "of the API, whose own check decides; signed calls, and token calls at {}, pass once, and every credential goes on as it came",
            paths.join(", ")
        ));
    }
    let calls = [
        ServiceCall::Token(TokenCall::RequestToken),
        ServiceCall::Page(Page::Authorize),
        ServiceCall::Token(TokenCall::AccessToken),
    ];
    let ours = calls.map(|call| paths.best_of(call)).join(", ");
    Ok(match config.flow_at() {
        FlowAt::Here => format!("is here, at {ours}"),
        FlowAt::Api => {
            let theirs: Vec<_> = paths.of_api().map(ToString::to_string).collect();
            format!(
                "of the API continues at {}; ours is at {ours}; set service.flow = \"here\" when it takes its place",
                theirs.join(", ")
            )
        }
    })
}

fn pages(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    let theme =
        live::theme(config, app::first(&config.listen.address)).map_err(StartError::from)?;
    let languages: Vec<_> = theme.languages.all().map(Texts::tag).collect();
    for (key, scheme, colour, shown) in config.pages.changed_accents() {
        let other = match scheme {
            "light" => "darker",
            _ => "lighter",
        };
        warnings.push(format!(
            "{key}: {scheme} pages show {shown} instead of {colour}, so that text in it has a contrast of 4.5 to 1; a {other} colour is shown as it is"
        ));
    }
    Ok(format!("in {}", languages.join(", ")))
}

fn traces(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    let Some(url) = &config.telemetry.otlp_endpoint else {
        return Ok("none: no telemetry.otlp_endpoint".to_owned());
    };
    Ok(
        match block_on(traces::reach(url))?.map_err(StartError::from)? {
            Ok(()) => format!("{url} takes connections"),
            // Only traces are lost.
            Err(error) => {
                warnings.push(format!(
                "telemetry.otlp_endpoint: {url} cannot be reached: {error}; start the collector, or correct the URL"
            ));
                "are dropped now".to_owned()
            }
        },
    )
}

/// Reads the admin tokens.
fn admin_api(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    let tokens = config.admin.tokens().map_err(StartError::from)?;
    for kind in tokens.iter().flat_map(Tokens::doubtful_names) {
        let key = match kind {
            TokenKind::Write => "admin.token_file",
            TokenKind::Read | TokenKind::Lookup => "admin.read_token_file",
        };
        warnings.push(format!(
            "{key}: the one line is read as NAME:TOKEN, and its name looks like half of a token; audit records show the name. If the \
             whole line was the token, make another with openssl rand -hex 32"
        ));
    }
    let kinds = match tokens {
        None => "off: no admin.token_file".to_owned(),
        Some(tokens) => {
            let kinds = [
                (TokenKind::Write, "write"),
                (TokenKind::Read, "read"),
                (TokenKind::Lookup, "report changes of a lookup"),
            ];
            let counts = kinds.map(|(kind, act)| (tokens.count(kind), act));
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let counts = counts.map(|(count, act)| format!("{count} to {act}"));
            format!("tokens: {}", Vec::from_iter(counts).join(", "))
        }
    };
    Ok(kinds)
}

fn store(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    services::check_paths(config)?;
    let file = config.store.file();
    // For a link that leads nowhere, opening the store reports why.
    if let Some(path) = &file
        && !path.exists()
        && !path.is_symlink()
    {
        // The key is needed once there is a store; a wrong one is found now.
        let keys = config.store.keys().map_err(StoreServiceError::from);
        keys.map_err(StartError::from)?;
        return missing("store.url", path);
    }
    let location = match &file {
        Some(path) => path.display().to_string(),
        None => "the server".to_owned(),
    };
    let store = match services::open_store(config, Opening::Check) {
        Err(StoreServiceError::Open(error))
            if file.is_none() && matches!(error.problem, OpenProblem::Missing) =>
        {
            return Ok(error.to_string());
        }
        opened => opened.map_err(StartError::from)?,
    };
    block_on(ask(config, &store, &location, warnings))?
}

/// Asks the application for a record that it does not have, also with a wrong secret.
fn lookup(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    let lookup = services::open_lookup(config).map_err(StartError::from)?;
    let Some(lookup) = lookup else {
        return Ok("none: no store.lookup.url".to_owned());
    };
    let unwise = block_on(lookup.check())?.map_err(StoreServiceError::from)?;
    warnings.extend(unwise);
    Ok(format!("{} answers", lookup.url()))
}

/// Reads the keys of the issuers of Bearer tokens, and returns why that fails.
fn issuers(config: &Config) -> Result<Option<String>, CommandError> {
    let tokens = BearerTokens::new(None, &config.issuer, None).map_err(StartError::from)?;
    match tokens {
        Some(tokens) => block_on(tokens.trouble()),
        None => Ok(None),
    }
}

/// Asks a store that is open: its settings, whether there is a consumer, and whether its secrets are under the first key.
async fn ask(
    config: &Config,
    store: &Store,
    location: &str,
    warnings: &mut Vec<String>,
) -> CheckResult {
    /// The time limit of the search for secrets under an older key: enough for a store that is not large.
    const LOOK: Duration = Duration::from_secs(1);

    store.ping().await?;
    let findings = store.findings().await?.into_iter();
    warnings.extend(findings.map(|finding| format!("store.url: {finding}")));
    let mut text = format!("{location} answers");
    if config.lookup.url.is_none()
        && store
            .consumers(&Default::default(), None, 1)
            .await?
            .is_empty()
    {
        text += ", without any consumer: countersign consumer add registers one";
    }
    let brown_outs = config.brown_out.iter().flat_map(|one| &one.consumers);
    for key in config.sunset.consumers.iter().chain(brown_outs) {
        if store.consumer(key).await?.is_none() {
            warnings.push(format!(
                "sunset: no consumer has the key {key}; correct it, or remove it from the list"
            ));
        }
    }
    let keys = config.store.encryption_key_file.len();
    let (mut all, begun) = (Resealed::default(), Instant::now());
    let mut next = (keys > 0).then(ResealFrom::default);
    while let Some(from) = next.take_if(|_| begun.elapsed() < LOOK) {
        next = all.add(store.reseal(from, true).await?);
    }
    let (seen, older) = (all.seen, all.older);
    if let Some((count, error)) = all.unopened {
        return Err(CommandError::failed(format!(
            "store.encryption_key_file: {count} of {seen} secrets cannot be decrypted: {error}"
        )));
    }
    if older > 0 {
        warnings.push(format!(
            "store.encryption_key_file: {older} of {seen} secrets are in clear or under another key than the first; \
             countersign rekey encrypts them again"
        ));
    } else if keys > 1 && next.is_none() {
        text += ", every secret is under the first key: the other keys can be left out";
    }
    Ok(text)
}

/// Whether `serve` can make a file that does not exist.
fn missing(key: &str, path: &Path) -> CheckResult {
    let file = path.display();
    match paths::can_create(path) {
        Ok(()) => Ok(format!("{file} is not there yet; serve makes it")),
        Err(error) => {
            let fix = match error.kind() {
                io::ErrorKind::ReadOnlyFilesystem => "mount its file system for writing".to_owned(),
                _ => format!(
                    "make its directory if it is missing, writable {}",
                    grant(path)
                ),
            };
            Err(CommandError::failed(format!(
                "{key}: {file}: serve cannot make it: {error}; {fix}"
            )))
        }
    }
}

fn nonces(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    /// The most bytes of memory that a nonce takes.
    const BYTES: u64 = 25;

    let location = nonce_location(config, warnings)?;
    let window = config.longest_window().as_secs();
    // A timestamp is accepted from one window before it to one after it.
    let seconds = 2 * window;
    let mebibytes = |nonces: u64| nonces.saturating_mul(BYTES).div_ceil(1 << 20);
    let (busy, most) = (
        mebibytes(100 * seconds),
        mebibytes(config.nonce.max_entries.get()),
    );
    Ok(format!(
        "{location}; each is kept for up to {seconds}s, twice the longest timestamp_window: {busy} MiB of memory for 100 signed requests \
         a second, {most} MiB at nonce.max_entries"
    ))
}

/// The memory, file or server that holds nonces.
fn nonce_location(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    if let Some(target) = services::nonce_target(config).map_err(StartError::from)? {
        let location = target.to_string();
        let findings = block_on(redis::check_nonces(target))?.map_err(NonceServiceError::from)?;
        let findings = findings.iter();
        warnings.extend(findings.map(|finding| format!("nonce.url: {finding}")));
        return Ok(format!("{location} answers"));
    }
    if config.nonce_scope() == NonceScope::Shared {
        return Ok("kept in the store, for all replicas".to_owned());
    }
    let Some(path) = config.nonce_path() else {
        return Ok("kept in memory".to_owned());
    };
    if !path.exists() {
        return missing("nonce.path", &path);
    }
    nonce::check_file(&path).map_err(NonceServiceError::from)?;
    Ok(format!("{} is a nonce window", path.display()))
}

fn api(config: &Config, warnings: &mut Vec<String>) -> CheckResult {
    let params = live::upstream_params(config).map_err(StartError::from)?;
    let Some((name, mut params)) = config.upstream.api_url.as_ref().zip(params) else {
        return Ok("none: the proxy in front forwards what forward-auth permits".to_owned());
    };
    let address = params.address.to_string();
    let asked = params.tls.as_mut().and_then(ClientTls::note_demand);
    let is_asked = || {
        asked
            .as_ref()
            .is_some_and(|asked| asked.load(Ordering::Relaxed))
    };
    block_on(async {
        let apart = api_loop::check(config, &config.listeners()).await;
        apart.map_err(StartError::from)?;
        const IDENTITY: &str = "name one in upstream.tls.certificate and upstream.tls.key";
        let Err(error) = inspect::reach_api(params).await else {
            if is_asked() {
                warnings.push(format!(
                    "upstream.api_url: {name} asks for a client certificate; if it demands one, {IDENTITY}"
                ));
            }
            return Ok(format!("{name} takes connections"));
        };
        let is_ours = matches!(
            tls_error(&error),
            Some(rustls::Error::InvalidCertificate(_))
        );
        let fix = match is_asked() && !is_ours {
            true => Some(format!("it asks for a client certificate: {IDENTITY}")),
            false => certificate_fix(&error, "upstream.tls.ca", "upstream.tls.server_name"),
        };
        let fix = fix.unwrap_or("start the API or correct the URL".to_owned());
        Err(CommandError::failed(format!(
            "upstream.api_url: {name}: {address} cannot be reached: {error}; {fix}"
        )))
    })?
}

/// The fix for a server's certificate that is not accepted, if that is the error.
fn certificate_fix(error: &io::Error, ca: &str, name: &str) -> Option<String> {
    use rustls::{
        CertificateError::{self as Invalid, NotValidForNameContext as OtherName},
        Error::InvalidCertificate,
    };
    match tls_error(error)? {
        InvalidCertificate(Invalid::UnknownIssuer) => Some(format!(
            "name the file of the authority that signed its certificate, or of this certificate itself, in {ca}"
        )),
        InvalidCertificate(Invalid::Expired | Invalid::ExpiredContext { .. }) => {
            Some("renew its certificate".to_owned())
        }
        InvalidCertificate(OtherName { presented, .. }) if presented.is_empty() => {
            Some(format!("{ca} can name the file of this certificate itself"))
        }
        InvalidCertificate(Invalid::Other(_)) => {
            Some(format!("{ca} can name the file of this certificate itself"))
        }
        InvalidCertificate(Invalid::BadSignature) | rustls::Error::AlertReceived(_) => {
            Some("docs/api.md has the ways".to_owned())
        }
        InvalidCertificate(Invalid::NotValidForName | Invalid::NotValidForNameContext { .. }) => {
            Some(format!(
                "its certificate is for another name: correct the URL, or set {name}"
            ))
        }
        _ => None,
    }
}

fn login(config: &Config, _: &mut Vec<String>) -> CheckResult {
    let Some(endpoint) = LoginEndpoint::new(&config.password_check).map_err(StartError::from)?
    else {
        return Ok(match config.password_check.backend {
            LoginMethod::Header => "a proxy in front names the user".to_owned(),
            LoginMethod::Local | LoginMethod::Http => "accounts of the store".to_owned(),
        });
    };
    let url = &endpoint.url;
    block_on(http::reach(&endpoint))?.map_err(|error| {
        let address = match &url.server {
            TcpOrUnix::Tcp(origin) => format!("{}:{}", origin.host, origin.port),
            TcpOrUnix::Unix(path) => path.display().to_string(),
        };
        let fix = certificate_fix(&error, "login.ca", "login.url");
        let fix = fix.unwrap_or("start it, or correct login.url".to_owned());
        CommandError::failed(format!(
            "login.url: {url}: {address} cannot be reached: {error}; {fix}"
        ))
    })?;
    Ok(format!("{url} takes connections"))
}
