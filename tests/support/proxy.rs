//! Runs the real program on a configuration in a directory of its own, and its commands beside it.

use std::{
    net::SocketAddr,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    PATIENCE,
    call::Call,
    http::{self, Answer, Connection},
    program::{Ended, Log, listening_address, program, run},
    upstream::Upstream,
    within,
};

/// A consumer as registered.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub key: String,
    pub secret: String,
}

/// A user as registered.
#[derive(Debug, Clone)]
pub struct User {
    pub id: String,
    pub name: String,
    pub password: String,
}

/// A request token or an access token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token {
    pub token: String,
    pub secret: String,
}

/// A consumer with an access token of a user.
#[derive(Debug, Clone)]
pub struct Caller {
    pub consumer: Consumer,
    pub user: User,
    pub token: Token,
}

/// An API, a proxy in front of it, and a caller that the proxy knows.
pub struct Scene {
    pub api: Upstream,
    pub proxy: Proxy,
    pub caller: Caller,
}

impl Scene {
    #[track_caller]
    pub fn start() -> Self {
        Self::with("")
    }

    /// Starts the proxy with this configuration in addition to the defaults.
    #[track_caller]
    pub fn with(config: &str) -> Self {
        let api = Upstream::start();
        let proxy = Proxy::with(&api, config);
        let caller = proxy.somebody();
        Self { api, proxy, caller }
    }

    pub fn into_parts(self) -> (Upstream, Proxy, Caller) {
        (self.api, self.proxy, self.caller)
    }
}

/// A directory with a configuration, before and between runs of the program.
pub struct Builder {
    directory: TempDir,
    table: toml::Table,
    environment: Vec<(String, String)>,
    descriptors: Option<u32>,
}

impl Builder {
    /// A configuration in front of this `upstream.api_url`.
    pub fn in_front_of_url(url: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let store = directory.path().join("countersign.db");
        let table = toml::toml! {
            listen.address = "127.0.0.1:0"
            admin.listen = "127.0.0.1:0"
        };
        let mut builder = Self {
            directory,
            table,
            environment: Vec::new(),
            descriptors: None,
        };
        builder.set("upstream.api_url", url.into());
        builder.set("store.url", store.display().to_string().into());
        builder
    }

    /// Adds to the configuration, or replaces what is there, key by key.
    pub fn config(mut self, text: &str) -> Self {
        let added: toml::Table = text
            .parse()
            .unwrap_or_else(|error| panic!("{error} in {text}"));
        merge(&mut self.table, added);
        self
    }

    /// Sets one key, given as `section.key`.
    pub fn set(&mut self, path: &str, value: toml::Value) {
        let mut table = &mut self.table;
        let (sections, key) = path.rsplit_once('.').unwrap_or(("", path));
        for section in sections.split('.').filter(|section| !section.is_empty()) {
            let inner = table
                .entry(section)
                .or_insert_with(|| toml::Table::new().into());
            table = inner.as_table_mut().expect("a section");
        }
        table.insert(key.to_owned(), value);
    }

    /// An environment variable of the program.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// How many descriptors `serve` may have.
    #[allow(dead_code, reason = "not every crate of tests limits the program")]
    pub fn descriptors(mut self, limit: u32) -> Self {
        self.descriptors = Some(limit);
        self
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn config_path(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }

    /// Writes the configuration and starts the program, ready for work.
    #[track_caller]
    pub fn start(self) -> Proxy {
        let mut proxy = Proxy {
            home: self,
            running: None,
        };
        proxy.start();
        proxy
    }

    /// Writes the configuration and starts the program where it is not expected to become ready soon.
    #[track_caller]
    #[allow(dead_code, reason = "not every crate of tests waits")]
    pub fn start_unready(self) -> Proxy {
        let mut proxy = Proxy {
            home: self,
            running: None,
        };
        proxy.start_unready();
        proxy
    }

    /// Writes the configuration and runs `serve`, which is expected to end by itself.
    pub fn serve_fails(&self) -> Ended {
        self.write();
        let mut command = self.command(&["serve"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        within(PATIENCE, "serve ends", || child.try_wait().unwrap());
        let output = child.wait_with_output().unwrap();
        Ended {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Writes the configuration and runs another command on it.
    pub fn run(&self, arguments: &[&str], input: &str) -> Ended {
        self.write();
        run(&mut self.command(arguments), input)
    }

    fn write(&self) {
        std::fs::write(self.config_path(), self.table.to_string()).unwrap();
    }

    /// A command under the limits of this builder.
    fn limited(&self, arguments: &[&str]) -> Command {
        let command = self.command(arguments);
        let Some(descriptors) = self.descriptors else {
            return command;
        };
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "ulimit -n \"$0\" && exec \"$@\""])
            .arg(descriptors.to_string())
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(self.directory.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command
            .args(arguments)
            .arg("--config")
            .arg(self.config_path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.directory.path());
        command
    }
}

fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(added)) => merge(inner, added),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

struct Running {
    process: Child,
    log: Log,
    public: SocketAddr,
    admin: SocketAddr,
}

/// The program, serving. Dropping it kills it, and shows its log if the test failed.
pub struct Proxy {
    home: Builder,
    running: Option<Running>,
}

impl Proxy {
    /// A proxy in front of this API, to be configured further and started.
    pub fn in_front_of(api: &Upstream) -> Builder {
        Builder::in_front_of_url(api.url())
    }

    /// Starts a proxy in front of this API with this configuration in addition to the defaults.
    #[track_caller]
    pub fn with(api: &Upstream, config: &str) -> Self {
        Self::in_front_of(api).config(config).start()
    }

    /// Starts the program again after it was stopped or killed.
    #[track_caller]
    pub fn start(&mut self) {
        self.start_unready();
        within(PATIENCE, "the proxy is ready", || {
            (self.ask_admin("/readyz").status == 200).then_some(())
        });
    }

    /// Starts the program where it is not expected to become ready soon.
    #[track_caller]
    pub fn start_unready(&mut self) {
        self.home.write();
        let mut process = self
            .home
            .limited(&["serve"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = Log::read_from(process.stderr.take().unwrap());
        let listening = |listener: &'static str| {
            within(
                PATIENCE,
                &format!("the {listener} listener is named in the log"),
                || {
                    if let Some(status) = process.try_wait().unwrap() {
                        panic!("serve ended with {status}:\n{log}");
                    }
                    log.lines()
                        .iter()
                        .find_map(|line| listening_address(line, listener))
                },
            )
        };
        let mut listening = listening;
        let (public, admin) = (listening("public"), listening("admin"));
        self.running = Some(Running {
            process,
            log,
            public,
            admin,
        });
    }

    /// Writes a changed configuration; what runs keeps the old one until it reloads or is started again.
    pub fn reconfigure(&mut self, text: &str) {
        let added: toml::Table = text.parse().unwrap();
        merge(&mut self.home.table, added);
        self.home.write();
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("the proxy runs")
    }

    /// Address of the public listener.
    pub fn address(&self) -> SocketAddr {
        self.running().public
    }

    /// Address of the admin listener.
    pub fn admin(&self) -> SocketAddr {
        self.running().admin
    }

    /// The public origin: `service.base_url` if configured, else the listener.
    pub fn origin(&self) -> String {
        let configured = self
            .home
            .table
            .get("service")
            .and_then(|service| service.get("base_url"));
        match configured.and_then(|url| url.as_str()) {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.address()),
        }
    }

    /// The Host that goes with the origin.
    pub fn host(&self) -> String {
        self.origin().split_once("://").unwrap().1.to_owned()
    }

    /// The number of the process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.running().process)
    }

    pub fn log(&self) -> Log {
        self.running().log.clone()
    }

    pub fn directory(&self) -> &Path {
        self.home.directory()
    }

    pub fn connect(&self) -> Connection {
        Connection::to(self.address())
    }

    /// The bytes that `call` is on the wire to this proxy.
    pub fn wire(&self, call: &Call) -> Vec<u8> {
        call.wire(&self.origin(), &self.host())
    }

    /// Sends a call on a connection of its own.
    #[track_caller]
    pub fn send(&self, call: Call) -> Answer {
        let mut connection = self.connect();
        self.send_on(&mut connection, call)
    }

    /// Sends a call on a connection that is kept.
    #[track_caller]
    pub fn send_on(&self, connection: &mut Connection, call: Call) -> Answer {
        connection.send(&self.wire(&call));
        connection.answer(&call.method)
    }

    /// Asks the admin listener.
    #[track_caller]
    pub fn ask_admin(&self, target: &str) -> Answer {
        http::get(self.admin(), target)
    }

    /// The value of a metric, named with its labels as it stands in the exposition; 0 if it is not there.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.ask_admin("/metrics").has_status(200).text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| {
            value.split(' ').next().unwrap().parse().unwrap()
        })
    }

    /// Runs a command on the same configuration.
    pub fn command(&self, arguments: &[&str]) -> Ended {
        self.command_with(arguments, "")
    }

    /// Runs a command on the same configuration with this standard input.
    pub fn command_with(&self, arguments: &[&str], input: &str) -> Ended {
        run(&mut self.home.command(arguments), input)
    }

    /// Registers a consumer.
    #[track_caller]
    pub fn consumer(&self, name: &str) -> Consumer {
        self.consumer_with(name, &[])
    }

    /// Registers a consumer with more options.
    #[track_caller]
    pub fn consumer_with(&self, name: &str, options: &[&str]) -> Consumer {
        let told = self
            .command(&[&["consumer", "add", "--json", "--name", name], options].concat())
            .done()
            .json();
        Consumer {
            key: text(&told, "key"),
            secret: text(&told, "secret"),
        }
    }

    /// Registers a user with a password.
    #[track_caller]
    pub fn user(&self, name: &str) -> User {
        let password = format!("{name}'s pass & wörd");
        let arguments = ["user", "add", name, "--json", "--password-stdin"];
        let told = self
            .command_with(&arguments, &format!("{password}\n"))
            .done()
            .json();
        User {
            id: text(&told, "id"),
            name: name.to_owned(),
            password,
        }
    }

    /// Issues an access token without the browser flow.
    #[track_caller]
    pub fn token(&self, consumer: &Consumer, user: &User) -> Token {
        self.token_with(consumer, user, &[])
    }

    /// Issues an access token with more options.
    #[track_caller]
    pub fn token_with(&self, consumer: &Consumer, user: &User, options: &[&str]) -> Token {
        let fixed = [
            "token",
            "issue",
            "--json",
            "--consumer",
            &consumer.key,
            "--user",
            &user.name,
        ];
        let told = self.command(&[&fixed, options].concat()).done().json();
        Token {
            token: text(&told, "token"),
            secret: text(&told, "token_secret"),
        }
    }

    /// Registers a consumer and a user, and issues an access token.
    #[track_caller]
    pub fn somebody(&self) -> Caller {
        let (consumer, user) = (self.consumer("Shop"), self.user("alice"));
        let token = self.token(&consumer, &user);
        Caller {
            consumer,
            user,
            token,
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Ends the program by SIGTERM and waits for it.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits until the program ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let mut running = self.running.take().expect("the proxy runs");
        let status = within(Duration::from_secs(60), "the proxy ends", || {
            running.process.try_wait().unwrap()
        });
        if std::thread::panicking() {
            eprintln!("{}", running.log);
        }
        status
    }

    /// Ends the program by SIGKILL.
    pub fn kill(&mut self) {
        let mut running = self.running.take().expect("the proxy runs");
        running.process.kill().unwrap();
        assert_eq!(
            running.process.wait().unwrap().signal(),
            Some(Signal::KILL.as_raw())
        );
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            drop(running.process.kill());
            drop(running.process.wait());
            if std::thread::panicking() {
                eprintln!(
                    "configuration:\n{}\nlog of the proxy:\n{}",
                    self.home.table, running.log
                );
            }
        }
    }
}

#[track_caller]
fn text(object: &serde_json::Value, member: &str) -> String {
    object[member]
        .as_str()
        .unwrap_or_else(|| panic!("`{member}` is text in {object}"))
        .to_owned()
}
