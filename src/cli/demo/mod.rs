//! `demo`: everything at once and no file needed: an API that echoes, the proxy in front of it, an application that goes
//! through the flow, one user, and three consumers that make mistakes.

mod application;
mod echo;
mod lti;
mod traffic;

use std::{
    cell::RefCell,
    error::Error,
    fs::{DirBuilder, OpenOptions, Permissions},
    io::{self, IsTerminal as _, Write as _},
    net::{SocketAddr, TcpListener},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    thread,
};

use rustix::{process::getpgrp, termios::tcgetpgrp};
use serde_json::json;
use tokio::task::spawn_local;

use self::{
    application::DemoApplication,
    echo::{DemoPages, echo},
    traffic::Traffic,
};
use super::context::{About as _, CommandError, Output, actor, block_on};
use crate::{
    base::{
        clock::Clock,
        secret::{Secret, random},
    },
    cli::{signature::sign::quoted, terminal::output::say},
    operator::{
        admin::{Control, console::INVITATION_LIFETIME},
        manage::{self, Management, view},
    },
    provider::login::password,
    records::values::record::{AccessToken, Consumer},
    run::{
        app::{App, StartError, listeners::sockets::Sockets},
        config,
    },
    telemetry::log,
    wire::server::{
        bounds::Bounds,
        handler::Handler,
        listener::{self, AcceptRules},
    },
};

/// Runs everything at once, for a first look; nothing is kept without `--keep`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The address of the proxy; the other listeners take free ports
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Shows a tool of a learning platform too: an LTI 1.1 launch in a browser
    #[arg(long)]
    lti: bool,
    /// Keeps configuration, records and admin token in a new directory, as a start for your own API
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
}

/// Runs the demo until a signal ends it.
pub fn run(args: &Args) -> Result<Output, CommandError> {
    if !args.listen.ip().is_loopback() {
        say(
            "warning: the demo is reachable from other machines, without TLS; it is meant for 127.0.0.1",
        );
    }
    if let Some(directory) = &args.keep {
        DirBuilder::new()
            .mode(0o700)
            .create(directory)
            .about("--keep: name a directory that does not exist, in one that can be written")?;
        let directory = directory.canonicalize().about("--keep")?;
        return demonstrated(args, &directory);
    }
    let directory = tempfile::Builder::new()
        .prefix("countersign-demo-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .about("no directory for the demo's store; set TMPDIR to one that can be written")?;
    demonstrated(args, directory.path())
}

fn demonstrated(args: &Args, directory: &Path) -> Result<Output, CommandError> {
    let demo = demonstrate(args, directory);
    block_on(demo)?.map_err(|problem| CommandError::failed(problem).about("demo"))?;
    Ok(Output::default())
}

type BoxedError = Box<dyn Error>;

async fn demonstrate(args: &Args, directory: &Path) -> Result<(), BoxedError> {
    let listen = args.listen;
    let (api, api_address) = local_listener()?;
    let (application, application_address) = local_listener()?;
    let platform = args.lti.then(lti::Platform::new).transpose()?;
    write_private(
        &directory.join(ADMIN_TOKEN),
        &format!("{}\n", *random::secret()?.expose_text()),
    )?;
    let operation = platform.as_ref().map(lti::Platform::operation);
    let configuration = |listen, admin: &str| {
        let mut text = configuration(listen, admin, api_address, directory);
        text.extend(operation.clone());
        text
    };
    // A configuration that is kept logs each call; here the lines would hide what the demo prints.
    let text = QUIET.to_owned() + &configuration(listen, "127.0.0.1:0");
    let config = config::parse(&text, "demo", std::iter::empty())?;
    let log = log::start(config.log.format, &config.log.level)?;
    let settings = (config.signature, config.tokens);
    let app = App::prepare(config, log, None, Sockets::default()).await;
    let app = app.map_err(|error| match error {
        StartError::Listen { .. } => {
            format!("{error}: demo --listen 127.0.0.1:0 takes a free port")
        }
        _ => error.to_string(),
    })?;
    let Some(app) = app else {
        return Ok(());
    };
    let first = app.addresses.first().copied().unwrap_or(listen);
    let base = format!("http://{first}");
    let services = app.services();
    let (store, feed) = (Arc::clone(&services.store), Arc::clone(&services.feed));
    let manage = Management::new(store, services.clock.clone(), settings, Some(feed));
    let accounts = Accounts::create(&manage, application_address).await?;

    let course = platform.as_ref().map(|platform| platform.url.clone());
    match platform {
        Some(platform) => platform.serve(base.clone(), api, &manage).await?,
        None => serve(api, DemoPages(echo)),
    }
    let admin = app.admin_address();
    if args.keep.is_some() {
        let text = configuration(first, &admin);
        write_private(&directory.join(CONFIG), &format!("{KEPT}{text}"))?;
    }
    let authority = first.to_string();
    let traffic = Traffic::prepare(&manage, accounts.consumer.clone(), authority.clone()).await?;
    let introduction = Introduction {
        base: &base,
        application: application_address,
        course,
        accounts: &accounts,
        admin: &admin,
        invitation: app.control().console.invite()?,
        kept: args.keep.as_ref().map(|_| directory),
    };
    introduction.print();
    invite_on_enter(Arc::clone(app.control()), admin.clone());
    spawn_local(traffic.run());
    let handler = DemoApplication {
        authority,
        accounts,
        pending: RefCell::default(),
    };
    let answer = async move |request| handler.answer(&request).await;
    serve(application, DemoPages(answer));
    Ok(app.run().await?)
}

/// Prints another address of the console for each line of standard input.
fn invite_on_enter(control: Arc<Control>, admin: String) {
    let stdin = io::stdin();
    // A background process of a shell is stopped when it reads the terminal.
    let is_foreground = || tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
    if stdin.is_terminal() && !is_foreground() {
        return;
    }
    thread::spawn(move || {
        for _ in stdin.lines().map_while(Result::ok) {
            let Ok(invitation) = control.console.invite() else {
                return;
            };
            let line = format!("  http://{admin}{}", *invitation.expose_text());
            let _ = writeln!(io::stdout(), "{line}");
        }
    });
}

/// The log and the connections of the demo itself: no line stands among what it prints.
const QUIET: &str = "log.level = \"warn,audit=warn\"\nlimits.connections = 1000\n";
/// The file of the admin token, in the demo's directory.
const ADMIN_TOKEN: &str = "admin.token";
/// The file of the configuration that is kept.
const CONFIG: &str = "config.toml";
/// The head of that file.
const KEPT: &str = "\
# Made by countersign demo --keep. The API of the demo ended with it: name yours in upstream.api_url, its operations and
# permissions below, and look through config.example.toml for the rest.
";

fn write_private(path: &Path, text: &str) -> Result<(), BoxedError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()).into())
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
    spawn_local(listener::accept(listener, rules, Rc::new(handler), forever));
}

fn configuration(listen: SocketAddr, admin: &str, api: SocketAddr, directory: &Path) -> String {
    let [store, token] = ["demo.db", ADMIN_TOKEN]
        .map(|name| toml::Value::String(directory.join(name).display().to_string()));
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
admin = {{ listen = "{admin}", token_file = {token} }}
operations.unlisted = "consumer"

[service]
realm = "countersign demo"
{public}
[[operation]]
path = "/members/{{id}}"
methods = ["GET", "PUT", "DELETE"]
permission = "members"

[[operation]]
path = "/shop/{{*rest}}"
methods = ["GET"]
access = ["application"]

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

/// The records that the demo registers.
pub(super) struct Accounts {
    consumer: Consumer,
    password: Secret,
    token: AccessToken,
    callback: String,
}

const USER: &str = "ada";

impl Accounts {
    async fn create(manage: &Management, application: SocketAddr) -> Result<Self, BoxedError> {
        let operator = manage.operator(actor());
        let callback = format!("http://{application}/callback");
        let members = view::members(&json!({
            "name": "Demo application", "callbacks": [callback, "oob"], "permissions": ["members"],
        }));
        let consumer = operator.register_consumer(members, None).await?;
        let password = Secret::from(random::identifier()?);
        let members = view::members(&json!({ "name": USER, "display_name": "Ada Lovelace" }));
        let mut user = manage::new_user(members, Clock::system().now())?;
        user.password_hash = Some(password::hash(&password)?);
        operator.add_user(&user).await?;
        let token = operator.issue_token(&consumer, &user, Vec::new());
        let token = token.await?;
        Ok(Self {
            consumer,
            password,
            token,
            callback,
        })
    }
}

/// What the demo prints once it listens.
struct Introduction<'a> {
    base: &'a str,
    application: SocketAddr,
    course: Option<String>,
    accounts: &'a Accounts,
    admin: &'a str,
    /// Path and query of the address that opens the console.
    invitation: Secret,
    kept: Option<&'a Path>,
}

impl Introduction<'_> {
    fn print(&self) {
        let program = std::env::current_exe().unwrap_or_else(|_| "countersign".into());
        let program = quoted(&program.display().to_string());
        let course = self.course.as_ref().map(|course| {
            format!(
                "A course of a learning platform, which launches a tool (LTI 1.1):\n  {course}/\n\n"
            )
        });
        let end = match self.kept {
            None => "Ctrl-C ends the demo; nothing is kept.".to_owned(),
            Some(directory) => {
                let config = directory.join(CONFIG);
                let quoted = quoted(&config.display().to_string());
                format!(
                    "Ctrl-C ends the demo. Its configuration and records stay: write the URL of your API into\n  {}\nas \
                     upstream.api_url, and start it with\n  {program} serve --config {quoted}",
                    config.display()
                )
            }
        };
        let url = format!("{}/members/1?fields=name%20age&sort=a+b", self.base);
        let accounts = self.accounts;
        let text = format!(
            "countersign listens on {base}, in front of an API that echoes each request.

{course}The whole flow in a browser (log in as {user} with the password {password}):
  http://{application}/

The console, with a minute of made-up traffic of three consumers that each make a mistake; this address opens it once, within {lifetime} minutes, and Enter prints another one:
  http://{admin}{invitation}

A signed call; each paste signs it again:
curl -sS -H \"$({program} sign GET '{url}' --consumer-key {key} --consumer-secret {secret} --token {token} --token-secret {token_secret})\" '{url}'

The same call without a signature is rejected:
  curl -i '{url}'

Metrics and health are at http://{admin}/metrics and /readyz. {end}
",
            base = self.base,
            application = self.application,
            admin = self.admin,
            invitation = *self.invitation.expose_text(),
            lifetime = INVITATION_LIFETIME.as_secs() / 60,
            course = course.unwrap_or_default(),
            user = USER,
            password = *accounts.password.expose_text(),
            key = accounts.consumer.key,
            secret = *accounts.consumer.secret.expose_text(),
            token = accounts.token.token,
            token_secret = *accounts.token.secret.expose_text(),
        );
        let _ = writeln!(io::stdout(), "{text}");
    }
}
