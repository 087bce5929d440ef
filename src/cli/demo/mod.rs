//! `demo`: everything at once and no file needed: an API that echoes, the proxy in front of it, an application that goes
//! through the flow, one consumer, one user.

mod application;
mod echo;

use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    rc::Rc,
    sync::Arc,
};

use tokio::{
    net::TcpListener,
    task::{LocalSet, spawn_local},
};

use self::{application::Application, echo::Echo};
use super::serve::say;
use crate::{
    app::{App, StartError, Surroundings, services::Services},
    clock::Clock,
    config,
    issue::random,
    login::password,
    names::{ConsumerKey, Permission, UserId},
    secret::Secret,
    server::listener::{self, Bounds, Tcp},
    store::record::{AccessToken, Consumer, User},
    telemetry::log,
};

/// Runs everything at once, for a first look: nothing is kept.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the proxy listens; the other listeners take free ports
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
}

/// Runs the demo until told to end.
#[must_use]
pub fn run(args: Args) -> ExitCode {
    if !args.listen.ip().is_loopback() {
        say(
            "warning: the demo is reachable from other machines, without TLS; it is meant for 127.0.0.1",
        );
    }
    let directory = match Directory::make() {
        Ok(directory) => directory,
        Err(error) => {
            say(&format!(
                "countersign: no directory for the demo's store: {error}; set TMPDIR to one that can be written"
            ));
            return ExitCode::FAILURE;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("countersign: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match LocalSet::new().block_on(&runtime, demonstrate(args.listen, &directory.0)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&format!(
                "countersign: demo: {}",
                problem.replace('\n', " ")
            ));
            ExitCode::FAILURE
        }
    }
}

/// A directory that is there as long as the demo.
struct Directory(PathBuf);

impl Directory {
    fn make() -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let name = random::identifier().map_err(std::io::Error::other)?;
        let path = std::env::temp_dir().join(format!("countersign-demo-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A demo that ends leaves nothing; what cannot be removed is in a directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn demonstrate(listen: SocketAddr, directory: &Path) -> Result<(), String> {
    let api = local_listener().await?;
    let application = local_listener().await?;
    let api_address = address(&api)?;
    let application_address = address(&application)?;

    let text = configuration(listen, api_address, directory);
    let config = config::parse(&text, "demo", std::iter::empty())
        .map_err(|problems| problems.to_string())?;
    let log = log::start(&config.log_params()).map_err(|error| error.to_string())?;
    let surroundings = Surroundings {
        reload: None,
        log: Some(log),
        clock: Clock::system(),
    };
    let app = App::prepare(config, surroundings)
        .await
        .map_err(|error| match error {
            StartError::Listen { .. } => {
                format!("{error}: demo --listen 127.0.0.1:0 takes a free port")
            }
            _ => error.to_string(),
        })?;
    let base = format!(
        "http://{}",
        app.addresses.first().copied().unwrap_or(listen)
    );
    let accounts = Accounts::make(app.services(), application_address).await?;

    spawn_local(listener::accept(
        plain(api),
        Rc::new(Echo),
        std::future::pending(),
    ));
    let application_handler = Application::new(&base, &accounts);
    spawn_local(listener::accept(
        plain(application),
        Rc::new(application_handler),
        std::future::pending(),
    ));
    introduce(&base, application_address, &accounts, &app.admin_address());
    app.run().await.map_err(|error| error.to_string())
}

async fn local_listener() -> Result<TcpListener, String> {
    TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(|error| format!("no free port: {error}"))
}

fn address(listener: &TcpListener) -> Result<SocketAddr, String> {
    listener.local_addr().map_err(|error| error.to_string())
}

fn plain(listener: TcpListener) -> Tcp {
    let bounds = Arc::new(Bounds::new(1000, None));
    Tcp {
        listener,
        bounds,
        tls: None,
    }
}

fn configuration(listen: SocketAddr, api: SocketAddr, directory: &Path) -> String {
    let store = toml::Value::String(directory.join("demo.db").display().to_string());
    let allow = if listen.ip().is_loopback() {
        ""
    } else {
        "allow_http = true\n"
    };
    let base = match listen.ip() {
        ip if ip.is_loopback() => String::new(),
        _ => format!("base_url = \"http://{listen}\"\n"),
    };
    format!(
        r#"
[listen]
address = "{listen}"
workers = 1

[service]
realm = "countersign demo"
{allow}{base}
[upstream]
api_url = "http://{api}"

[store]
url = {store}

[signature]
advice = "full"

[admin]
listen = "127.0.0.1:0"

[operations]
unlisted = "consumer"

[[operation]]
path = "/members/{{id}}"
methods = ["GET", "PUT", "DELETE"]
permission = "members"

[[operation]]
path = "/public"
methods = ["GET"]
access = ["anonymous", "consumer", "application", "user"]

[[permission]]
name = "members"
title = "See and change members"
description = "The entries of the member list, yours and those of others."

[log]
level = "warn,access=info,audit=info"
"#
    )
}

/// What the demo registers.
pub(super) struct Accounts {
    consumer_key: ConsumerKey,
    consumer_secret: Secret,
    user_name: &'static str,
    password: Secret,
    token: String,
    token_secret: Secret,
    callback: String,
}

impl Accounts {
    async fn make(services: &Services, application: SocketAddr) -> Result<Self, String> {
        let fault = |error: random::NoRandomness| error.to_string();
        let drawn = |drawn: Result<String, _>| drawn.map_err(fault);
        let secret = || random::secret().map_err(fault);
        let members: Permission = "members"
            .parse()
            .map_err(|_| "a permission's name".to_owned())?;
        let consumer_key: ConsumerKey = drawn(random::identifier())?
            .parse()
            .map_err(|_| "a consumer's key".to_owned())?;
        let user: UserId = drawn(random::identifier())?
            .parse()
            .map_err(|_| "a user's id".to_owned())?;
        let accounts = Self {
            consumer_key,
            consumer_secret: secret()?,
            user_name: "ada",
            password: Secret::from(drawn(random::identifier())?),
            token: drawn(random::token())?,
            token_secret: secret()?,
            callback: format!("http://{application}/callback"),
        };
        let now = services.clock.now();
        let unavailable = |error: crate::store::StoreError| error.to_string();
        let store = &services.store;
        let consumer = Consumer {
            key: accounts.consumer_key.clone(),
            secret: accounts.consumer_secret.clone(),
            previous_secret: None,
            rsa_public_key: None,
            name: "Demo application".to_owned(),
            callbacks: vec![accounts.callback.clone(), "oob".to_owned()],
            permissions: vec![members.clone()],
            dialect: None,
            enforce: false,
            enabled: true,
            created_at: now,
        };
        store.add_consumer(consumer).await.map_err(unavailable)?;
        let hash = password::hash(&accounts.password).map_err(|error| error.to_string())?;
        let record = User {
            id: user.clone(),
            name: accounts.user_name.to_owned(),
            display_name: Some("Ada Lovelace".to_owned()),
            password_hash: Some(hash),
            enabled: true,
            created_at: now,
        };
        store.add_user(record).await.map_err(unavailable)?;
        let token = AccessToken {
            token: accounts.token.clone(),
            secret: accounts.token_secret.clone(),
            consumer: accounts.consumer_key.clone(),
            user,
            permissions: vec![members],
            issued_at: now,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        store.issue_access_token(token).await.map_err(unavailable)?;
        Ok(accounts)
    }
}

fn introduce(base: &str, application: SocketAddr, accounts: &Accounts, admin: &str) {
    let program = std::env::current_exe().map_or_else(
        |_| "countersign".to_owned(),
        |path| path.display().to_string(),
    );
    let program = quoted(&program);
    let url = format!("{base}/members/1?fields=name%20age&sort=a+b");
    let text = format!(
        "countersign stands at {base}, in front of an API that echoes what reaches it.

The whole flow in a browser (log in as {user} with the password {password}):
  http://{application}/

A signed call, signed anew each time it is pasted:
curl -sS -H \"$({program} sign GET '{url}' --consumer-key {key} --consumer-secret {secret} --token {token} --token-secret {token_secret})\" '{url}'

The same call without a signature is refused:
  curl -i '{url}'

Metrics and health are at http://{admin}/metrics and /readyz. Ctrl-C ends the demo; nothing is kept.
",
        user = accounts.user_name,
        password = *accounts.password.expose_text(),
        key = accounts.consumer_key,
        secret = *accounts.consumer_secret.expose_text(),
        token = accounts.token,
        token_secret = *accounts.token_secret.expose_text(),
    );
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if path.bytes().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}
