//! `demo`: everything at once and no file needed: an API that echoes, the proxy in front of it, an application that goes
//! through the flow, one consumer, one user.

mod application;
mod echo;
mod lti;

use std::{
    cell::RefCell,
    error::Error,
    fs::Permissions,
    io::Write as _,
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    rc::Rc,
    sync::Arc,
};

use serde_json::json;
use tokio::task::spawn_local;

use self::{
    application::DemoApplication,
    echo::{DemoPages, echo},
};
use super::{
    context::{About as _, CommandError, Output, actor, block_on, say},
    sign::quoted,
};
use crate::{
    base::{random, secret::Secret},
    operator::manage::{self, Management, RecordDefaults, view},
    provider::login::password,
    records::store::record::{AccessToken, Consumer, Dialect},
    run::{
        app::{App, StartError, services::Services, sockets::Sockets},
        config,
    },
    telemetry::log,
    wire::server::{
        bounds::Bounds,
        handler::Handler,
        listener::{self, AcceptRules, Listener},
    },
};

/// Runs everything at once, for a first look: nothing is kept.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The address of the proxy; the other listeners take free ports
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Shows a tool of a learning platform too: an LTI 1.1 launch in a browser
    #[arg(long)]
    lti: bool,
}

/// Runs the demo until a signal ends it.
pub fn run(args: &Args) -> Result<Output, CommandError> {
    if !args.listen.ip().is_loopback() {
        say(
            "warning: the demo is reachable from other machines, without TLS; it is meant for 127.0.0.1",
        );
    }
    let directory = tempfile::Builder::new()
        .prefix("countersign-demo-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .about("no directory for the demo's store; set TMPDIR to one that can be written")?;
    let demo = demonstrate(args.listen, args.lti, directory.path());
    block_on(demo)?.map_err(|problem| CommandError::failed(problem).about("demo"))?;
    Ok(Output::default())
}

type BoxedError = Box<dyn Error>;

async fn demonstrate(listen: SocketAddr, lti: bool, directory: &Path) -> Result<(), BoxedError> {
    let (api, api_address) = local_listener()?;
    let (application, application_address) = local_listener()?;
    let platform = lti.then(lti::Platform::new).transpose()?;
    let mut text = configuration(listen, api_address, directory);
    text.extend(platform.as_ref().map(lti::Platform::operation));
    let config = config::parse(&text, "demo", std::iter::empty())?;
    let log = log::start(config.log.format, &config.log.level)?;
    let app = App::prepare(config, log, None, Sockets::default()).await;
    let app = app.map_err(|error| match error {
        StartError::Listen { .. } => {
            format!("{error}: demo --listen 127.0.0.1:0 takes a free port")
        }
        _ => error.to_string(),
    })?;
    let first = app.addresses.first().copied().unwrap_or(listen);
    let base = format!("http://{first}");
    let accounts = Accounts::create(app.services(), application_address).await?;

    let course = platform.as_ref().map(|platform| platform.url.clone());
    match platform {
        Some(platform) => platform.serve(base.clone(), api, app.services()).await?,
        None => serve(api, DemoPages(echo)),
    }
    let admin = app.admin_address();
    introduce(&base, application_address, course, &accounts, &admin);
    let handler = DemoApplication {
        authority: first.to_string(),
        accounts,
        pending: RefCell::default(),
    };
    let answer = async move |request| handler.answer(&request).await;
    serve(application, DemoPages(answer));
    Ok(app.run().await?)
}

fn local_listener() -> Result<(TcpListener, SocketAddr), BoxedError> {
    let bound = listener::bind(([127, 0, 0, 1], 0).into(), false);
    let listener = bound.map_err(|error| format!("no free port: {error}"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn serve(listener: TcpListener, handler: impl Handler) {
    let rules = AcceptRules {
        is_passed: false,
        proxy_protocol: false,
        bounds: Arc::new(Bounds::new(1000, None)),
        connections: Rc::default(),
        tls: None,
    };
    let forever = std::future::pending();
    spawn_local(listener::accept(
        Listener::Tcp(listener),
        rules,
        Rc::new(handler),
        forever,
    ));
}

fn configuration(listen: SocketAddr, api: SocketAddr, directory: &Path) -> String {
    let store = toml::Value::String(directory.join("demo.db").display().to_string());
    let public = match listen.ip().is_loopback() {
        true => String::new(),
        false => format!("allow_http = true\nbase_url = \"http://{listen}\"\n"),
    };
    format!(
        r#"
listen = {{ address = "{listen}", workers = 1 }}
upstream.api_url = "http://{api}"
store.url = {store}
signature.advice = "full"
admin.listen = "127.0.0.1:0"
operations.unlisted = "consumer"
log.level = "warn,access=info,audit=info"

[service]
realm = "countersign demo"
{public}
[[operation]]
path = "/members/{{id}}"
methods = ["GET", "PUT", "DELETE"]
permission = "members"

[[operation]]
path = "/public"
methods = ["GET", "POST"]
access = ["anonymous", "consumer", "application", "user"]

[[permission]]
name = "members"
title = "See and change members"
description = "The entries of the member list, yours and those of others."
"#
    )
}

fn management(services: &Services) -> Management {
    let settings = RecordDefaults {
        default_dialect: Dialect::default(),
        access_ttl: None,
    };
    let store = Arc::clone(&services.store);
    let feed = Some(Arc::clone(&services.feed));
    Management::new(store, services.clock.clone(), settings, feed)
}

/// The records that the demo registers.
pub(super) struct Accounts {
    consumer: Consumer,
    password: Secret,
    token: AccessToken,
    callback: String,
}

const USER: &str = "ada";

impl Accounts {
    async fn create(services: &Services, application: SocketAddr) -> Result<Self, BoxedError> {
        let manage = management(services);
        let (actor, callback) = (actor(), format!("http://{application}/callback"));
        let members = view::members(&json!({
            "name": "Demo application", "callbacks": [callback, "oob"], "permissions": ["members"],
        }));
        let consumer = manage.register_consumer(&actor, members, None).await?;
        let password = Secret::from(random::identifier()?);
        let members = view::members(&json!({ "name": USER, "display_name": "Ada Lovelace" }));
        let mut user = manage::new_user(members, services.clock.now())?;
        user.password_hash = Some(password::hash(&password)?);
        manage.add_user(&actor, &user).await?;
        let token = manage.issue_token(&actor, &consumer, &user, Vec::new());
        let token = token.await?;
        Ok(Self {
            consumer,
            password,
            token,
            callback,
        })
    }
}

fn introduce(
    base: &str,
    application: SocketAddr,
    course: Option<String>,
    accounts: &Accounts,
    admin: &str,
) {
    let program = std::env::current_exe().unwrap_or_else(|_| "countersign".into());
    let program = quoted(&program.display().to_string());
    let course = course.map(|course| {
        format!(
            "A course of a learning platform, which launches a tool (LTI 1.1):\n  {course}/\n\n"
        )
    });
    let url = format!("{base}/members/1?fields=name%20age&sort=a+b");
    let text = format!(
        "countersign listens on {base}, in front of an API that echoes each request.

{course}The whole flow in a browser (log in as {user} with the password {password}):
  http://{application}/

A signed call; each paste signs it again:
curl -sS -H \"$({program} sign GET '{url}' --consumer-key {key} --consumer-secret {secret} --token {token} --token-secret {token_secret})\" '{url}'

The same call without a signature is rejected:
  curl -i '{url}'

Metrics and health are at http://{admin}/metrics and /readyz. Ctrl-C ends the demo; nothing is kept.
",
        course = course.unwrap_or_default(),
        user = USER,
        password = *accounts.password.expose_text(),
        key = accounts.consumer.key,
        secret = *accounts.consumer.secret.expose_text(),
        token = accounts.token.token,
        token_secret = *accounts.token.secret.expose_text(),
    );
    let _ = writeln!(std::io::stdout(), "{text}");
}
