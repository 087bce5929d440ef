//! Runs the real program on a configuration in a directory of its own, and its commands beside it.

use std::{
    net::{SocketAddr, TcpListener},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    PATIENCE,
    call::Call,
    http::{self, Answer, Connection},
    program::{Ended, Log, ended, listening_address, program, run},
    tls::Certificate,
    until,
    upstream::{HeldPort, Upstream},
    within,
};

/// A consumer as registered.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub key: String,
    pub secret: String,
}

impl Consumer {
    pub fn new(key: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            secret: secret.into(),
        }
    }
}

/// A user as registered.
#[derive(Debug, Clone)]
pub struct User {
    pub id: String,
    pub name: String,
    pub password: String,
}

impl User {
    /// A user who is to log in with these.
    pub fn new(name: &str, password: &str) -> Self {
        Self {
            id: String::new(),
            name: name.to_owned(),
            password: password.to_owned(),
        }
    }
}

/// A request token or an access token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token {
    pub token: String,
    pub secret: String,
}

impl Token {
    pub fn new(token: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            token: token.into(),
            secret: secret.into(),
        }
    }
}

/// A consumer with an access token of a user.
#[derive(Debug, Clone)]
pub struct Caller {
    pub consumer: Consumer,
    pub user: User,
    pub token: Token,
}

/// The address to which the consumer of [`Proxy::shop`] redirects its users.
pub const CALLBACK: &str = "https://shop.example/ready?from=us&x=%20";

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
        Self::before(Upstream::start(), config)
    }

    /// The same in front of this API.
    #[track_caller]
    pub fn before(api: Upstream, config: &str) -> Self {
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
    sockets: Option<[OwnedFd; 2]>,
    roots: Option<String>,
    /// The port of an API that may end before the proxy.
    _api_port: Option<Arc<HeldPort>>,
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
            sockets: None,
            roots: None,
            _api_port: None,
        };
        builder.set("upstream.api_url", url.into());
        builder.set("store.url", store.display().to_string().into());
        builder
    }

    /// A configuration of a process that decides for another proxy and forwards nothing.
    pub fn for_forward_auth() -> Self {
        let mut builder = Self::in_front_of_url("");
        builder.table.remove("upstream");
        builder.set("forward_auth.listen", "127.0.0.1:0".into());
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

    /// Serves callers by TLS with this certificate, as `https://localhost`.
    pub fn at_https_localhost(self, certificate: &Certificate) -> Self {
        certificate.write(self.directory());
        self.config(
            "service.base_url = 'https://localhost'\nlisten.tls = { certificate = 'certificate.pem', key = 'key.pem' }",
        )
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

    /// Limits the descriptors of `serve`.
    pub fn descriptors(mut self, limit: u32) -> Self {
        self.descriptors = Some(limit);
        self
    }

    /// Passes this socket and this one of the admin listener to each `serve`, as systemd does.
    pub fn sockets(mut self, public: impl Into<OwnedFd>, admin: impl Into<OwnedFd>) -> Self {
        self.sockets = Some([public.into(), admin.into()]);
        self
    }

    /// Opens the sockets of both listeners and passes them to each `serve`.
    pub fn activated(self) -> Self {
        let open = || TcpListener::bind("127.0.0.1:0").unwrap();
        self.environment("LISTEN_FDNAMES", "public:admin")
            .sockets(open(), open())
    }

    /// Serves TLS with a certificate and its key; connections of the test trust `roots` (PEM).
    pub fn over_tls(mut self, (certificate, key): (PathBuf, PathBuf), roots: &str) -> Self {
        let path = |path: PathBuf| path.display().to_string().into();
        self.set("listen.tls.certificate", path(certificate));
        self.set("listen.tls.key", path(key));
        self.roots = Some(roots.to_owned());
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
        let mut proxy = self.stopped();
        proxy.start();
        proxy
    }

    /// Writes the configuration and starts the program where it is not expected to become ready soon.
    #[track_caller]
    pub fn start_unready(self) -> Proxy {
        let mut proxy = self.stopped();
        proxy.start_unready();
        proxy
    }

    fn stopped(self) -> Proxy {
        Proxy {
            home: self,
            running: None,
        }
    }

    /// Writes the configuration and runs `serve`, which is expected to end by itself.
    pub fn serve_fails(&self) -> Ended {
        self.write();
        let mut child = self.serve().spawn().unwrap();
        within(PATIENCE, "serve ends", || child.try_wait().unwrap());
        ended(child)
    }

    /// Runs `check` and makes sure that its first line does not contradict its errors.
    #[track_caller]
    pub fn check(&self) -> Ended {
        let ended = self.run(&["check"], "");
        let mut lines = ended.stderr.lines();
        let failed = lines.any(|line| line.starts_with("✗ ") || line.starts_with("countersign: "));
        assert_eq!(ended.code() != Some(0), failed, "{ended:?}");
        // The last line, of standard error if there are problems.
        let all = [&*ended.stdout, &ended.stderr].concat();
        let last = all.lines().last().unwrap_or_default();
        assert_eq!(last.contains(": valid"), !failed, "{ended:?}");
        ended
    }

    /// Writes the configuration and runs another command on it.
    pub fn run(&self, arguments: &[&str], input: &str) -> Ended {
        self.write();
        self.ends(arguments, input)
    }

    /// Runs a command; if the store is on a server, until it is not away: on a busy machine a server may take longer than a
    /// command waits.
    fn ends(&self, arguments: &[&str], input: &str) -> Ended {
        let is_remote = self.keeps_on_a_server();
        within(PATIENCE, "the store answers", || {
            let ended = run(&mut self.command(arguments), input);
            let is_away = is_remote && ended.stderr.contains("did not answer in time");
            (!is_away).then_some(ended)
        })
    }

    /// Whether the store or the nonces are on a server.
    fn keeps_on_a_server(&self) -> bool {
        let has = |section: &str, key: &str| {
            self.table
                .get(section)
                .is_some_and(|it| it.get(key).is_some())
        };
        has("store", "backend") || has("nonce", "url")
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
        let script = "ulimit -n \"$0\" && exec \"$@\"";
        started_by(&["sh", "-c", script, &descriptors.to_string()], &command)
    }

    /// `serve` with the sockets that are passed to it.
    fn serve(&self) -> Command {
        let mut command = self.limited(&["serve"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let Some([public, admin]) = &self.sockets else {
            return command;
        };
        let passed = |socket: &OwnedFd| Stdio::from(socket.try_clone().unwrap());
        let script =
            "export LISTEN_PID=$$ LISTEN_FDS=2; exec \"$0\" \"$@\" 3<&0 4<&1 </dev/null >/dev/null";
        let mut shell = started_by(&["sh", "-c", script], &command);
        shell.stdin(passed(public)).stdout(passed(admin));
        shell.stderr(Stdio::piped());
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

/// A command that another program starts, which gets it after its own arguments.
pub(crate) fn started_by(starter: &[&str], command: &Command) -> Command {
    let mut started = Command::new(starter[0]);
    started
        .args(&starter[1..])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().expect("a directory"));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    started
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

/// The answers to requests that end at the same moment, each on a connection of its own.
pub fn race(requests: Vec<(&Proxy, Vec<u8>)>) -> Vec<Answer> {
    let open = |(proxy, wire): (&Proxy, Vec<u8>)| (proxy.connect(), wire);
    let mut connections: Vec<_> = requests.into_iter().map(open).collect();
    for (connection, wire) in &mut connections {
        connection.send(&wire[..wire.len() - 1]);
    }
    for (connection, wire) in &mut connections {
        connection.send(&wire[wire.len() - 1..]);
    }
    let answer = |(connection, wire): &mut (Connection, Vec<u8>)| {
        let method = wire.split(|&byte| byte == b' ').next().unwrap();
        connection.answer(&http::latin1(method))
    };
    connections.iter_mut().map(answer).collect()
}

struct Running {
    process: Child,
    log: Log,
    public: SocketAddr,
    admin: SocketAddr,
}

/// A process that is ending, whose sockets another one serves.
pub struct Predecessor(Running);

impl Predecessor {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.process.try_wait().unwrap().is_some()
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> ExitStatus {
        let process = &mut self.0.process;
        within(Duration::from_secs(60), "the process ends", || {
            process.try_wait().unwrap()
        })
    }
}

impl Drop for Predecessor {
    fn drop(&mut self) {
        drop(self.0.process.kill());
        drop(self.0.process.wait());
        if std::thread::panicking() {
            eprintln!("log of the process before:\n{}", self.0.log);
        }
    }
}

/// The program, serving. Dropping it kills it, and shows its log if the test failed.
pub struct Proxy {
    home: Builder,
    running: Option<Running>,
}

impl Caller {
    pub fn into_parts(self) -> (Consumer, User, Token) {
        (self.consumer, self.user, self.token)
    }
}

impl Proxy {
    /// A proxy in front of this API, to be configured further and started.
    pub fn in_front_of(api: &Upstream) -> Builder {
        Builder {
            _api_port: api.port(),
            ..Builder::in_front_of_url(api.url())
        }
    }

    /// A proxy in front of this `upstream.api_url`, to be configured further and started.
    pub fn in_front_of_url(url: &str) -> Builder {
        Builder::in_front_of_url(url)
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
        until("the proxy is ready", || self.is_ready());
    }

    /// Starts the program where it is not expected to become ready soon.
    #[track_caller]
    pub fn start_unready(&mut self) {
        self.home.write();
        let process = self.home.serve().spawn().expect("the program starts");
        self.running = Some(Self::listening(process));
    }

    /// Starts the program once more on the same sockets, which ends the running one. Returns that one as soon as the
    /// new one is ready.
    #[track_caller]
    pub fn succeed(&mut self) -> Predecessor {
        let old = self.running.take().expect("the proxy runs");
        kill_process(Pid::from_child(&old.process), Signal::TERM).unwrap();
        self.start();
        Predecessor(old)
    }

    #[track_caller]
    fn listening(mut process: Child) -> Running {
        let log = Log::read_from(process.stderr.take().unwrap());
        let mut listening = |listener: &str| {
            within(PATIENCE, &format!("a {listener} listener"), || {
                let ended = process.try_wait().unwrap();
                assert!(ended.is_none(), "serve ended with {ended:?}:\n{log}");
                let lines = log.lines();
                let mut lines = lines.iter();
                lines.find_map(|line| listening_address(line, listener))
            })
        };
        let (public, admin) = (listening("public"), listening("admin"));
        Running {
            process,
            log,
            public,
            admin,
        }
    }

    /// Writes a changed configuration; the running program keeps the old one until it reloads or is started again.
    pub fn reconfigure(&mut self, text: &str) {
        let added: toml::Table = text.parse().unwrap();
        merge(&mut self.home.table, added);
        self.home.write();
    }

    /// Changes the configuration, and waits until the program has applied it.
    #[track_caller]
    pub fn reload(&mut self, text: &str) {
        let before = self.logged(&["configuration_reloaded"]);
        self.reconfigure(text);
        self.signal(Signal::HUP);
        until("the new configuration is applied", || {
            self.logged(&["configuration_reloaded"]) > before
        });
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
        let service = self.home.table.get("service");
        let configured = service.and_then(|service| service.get("base_url"));
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
        match &self.home.roots {
            Some(roots) => Connection::over_tls(self.address(), &self.host(), roots),
            None => Connection::to(self.address()),
        }
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

    /// Sends a call on a connection of its own; if the store or the nonces are on a server, until it is not 503: on a busy
    /// machine a server may take longer than a request waits.
    #[track_caller]
    pub fn served(&self, call: Call) -> Answer {
        let is_remote = self.home.keeps_on_a_server();
        within(PATIENCE, "the store answers", || {
            let answer = self.send(call.clone());
            (answer.status != 503 || !is_remote).then_some(answer)
        })
    }

    /// Sends a call on a connection that is kept.
    #[track_caller]
    pub fn send_on(&self, connection: &mut Connection, call: Call) -> Answer {
        connection.send(&self.wire(&call));
        connection.answer(&call.method)
    }

    /// Sends a call that has to pass.
    #[track_caller]
    pub fn passes(&self, call: Call) -> Answer {
        let answer = self.served(call);
        answer.has_status(200);
        answer
    }

    /// Sends a call that has to be rejected with this status and `oauth_problem`.
    #[track_caller]
    pub fn rejects(&self, call: Call, status: u16, problem: &str) -> Answer {
        let answer = self.served(call);
        answer.is(status, problem);
        answer
    }

    /// The status of the answer to a call.
    #[track_caller]
    pub fn status(&self, call: Call) -> u16 {
        self.send(call).status
    }

    pub fn is_ready(&self) -> bool {
        self.ask_admin("/readyz").status == 200
    }

    /// Waits for a line of the log that has all of these parts.
    #[track_caller]
    pub fn logs(&self, parts: &[&str]) -> String {
        let has = |line: &str| parts.iter().all(|part| line.contains(part));
        let what = parts.join(" and ");
        self.log()
            .wait_for(&what, |line| has(line).then(|| line.to_owned()))
    }

    /// The number of lines of the log that have all of these parts.
    pub fn logged(&self, parts: &[&str]) -> usize {
        let has = |line: &&String| parts.iter().all(|part| line.contains(part));
        self.log().lines().iter().filter(has).count()
    }

    /// Asks the admin listener.
    #[track_caller]
    pub fn ask_admin(&self, target: &str) -> Answer {
        http::get(self.admin(), target)
    }

    /// The value of a metric, named with its labels as in the exposition; 0 if it does not exist.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.ask_admin("/metrics").has_status(200).text();
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let number = value.and_then(|value| value.split(' ').next());
        number.map_or(0.0, |number| number.parse().unwrap())
    }

    /// Runs a command on the same configuration.
    pub fn command(&self, arguments: &[&str]) -> Ended {
        self.command_with(arguments, "")
    }

    /// Runs a command, given as its words, that has to succeed.
    #[track_caller]
    pub fn run(&self, words: &str) -> Ended {
        let words: Vec<&str> = words.split(' ').collect();
        self.command(&words).done()
    }

    /// Runs a command on the same configuration with this standard input.
    pub fn command_with(&self, arguments: &[&str], input: &str) -> Ended {
        self.home.ends(arguments, input)
    }

    /// What `explain` says about a call, as it is on the wire.
    pub fn explain(&self, call: &Call) -> Ended {
        let wire = String::from_utf8(self.wire(call)).unwrap();
        self.command_with(&["explain", "--request", "-"], &wire)
    }

    /// Registers a consumer.
    #[track_caller]
    pub fn consumer(&self, name: &str) -> Consumer {
        self.consumer_with(name, "")
    }

    /// Registers a consumer with more options, given as their words.
    #[track_caller]
    pub fn consumer_with(&self, name: &str, options: &str) -> Consumer {
        let mut words = vec!["consumer", "add", "--json", "--name", name];
        words.extend(options.split_ascii_whitespace());
        let told = self.command(&words).done().json();
        Consumer::new(text(&told, "key"), text(&told, "secret"))
    }

    /// Registers a consumer with [`CALLBACK`], and a user.
    #[track_caller]
    pub fn shop(&self) -> (Consumer, User) {
        let consumer = self.consumer_with("Shop", &format!("--callback {CALLBACK}"));
        (consumer, self.user("alice"))
    }

    /// Registers a user with a password.
    #[track_caller]
    pub fn user(&self, name: &str) -> User {
        let password = format!("{name}'s pass & wörd");
        let arguments = [
            "user",
            "add",
            name,
            "--json",
            "--password-stdin",
            "--permanent",
        ];
        let added = self.command_with(&arguments, &format!("{password}\n"));
        User {
            id: text(&added.done().json(), "id"),
            ..User::new(name, &password)
        }
    }

    /// Issues an access token without the browser flow.
    #[track_caller]
    pub fn token(&self, consumer: &Consumer, user: &User) -> Token {
        self.token_with(consumer, user, "")
    }

    /// Issues an access token with more options, given as their words.
    #[track_caller]
    pub fn token_with(&self, consumer: &Consumer, user: &User, options: &str) -> Token {
        let (key, name) = (&consumer.key, &user.name);
        let mut words = vec![
            "token",
            "issue",
            "--json",
            "--consumer",
            key,
            "--user",
            name,
        ];
        words.extend(options.split_ascii_whitespace());
        let told = self.command(&words).done().json();
        Token::new(text(&told, "token"), text(&told, "token_secret"))
    }

    /// Registers a consumer and a user, and issues an access token.
    #[track_caller]
    pub fn somebody(&self) -> Caller {
        self.somebody_with("")
    }

    /// The same with more options for the consumer, given as their words.
    #[track_caller]
    pub fn somebody_with(&self, options: &str) -> Caller {
        self.caller("Shop", options, "alice")
    }

    /// The same for another consumer and user.
    #[track_caller]
    pub fn somebody_else(&self) -> Caller {
        self.caller("Other shop", "", "bob")
    }

    /// Registers a consumer of this name with these options, and this user, and issues an access token.
    #[track_caller]
    pub fn caller(&self, consumer: &str, options: &str, user: &str) -> Caller {
        let (consumer, user) = (self.consumer_with(consumer, options), self.user(user));
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
