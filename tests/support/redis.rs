//! Redis servers and Sentinels: real processes on free ports, each in a directory of its own. `COUNTERSIGN_TEST_REDIS`
//! is the path of a server to use instead, such as `valkey-server`.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by path: not every crate of tests uses all of it"
)]

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The longest time that a server may need. A Sentinel that notices that it was suspended does nothing for 30 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; it is killed when this is dropped.
pub struct RedisServer {
    child: Child,
    pub port: u16,
    pub directory: TempDir,
    arguments: Vec<String>,
    client: Vec<String>,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with these arguments, each a name and its values.
    pub fn with(arguments: &[&[&str]]) -> Self {
        Self::new("redis-server", "", arguments, &[])
    }

    /// Starts a server whose clock [`Self::set_clock`] moves; the clock for waits is left alone.
    pub fn with_clock() -> Self {
        Self::new("redis-server", "", &[&["--hz", "100"]], &[FAKED_CLOCK])
    }

    /// Moves the clock this many seconds ahead of the real one.
    pub fn set_clock(&self, ahead: u64) {
        set_clock(self.directory.path(), ahead);
    }

    /// Starts a server that speaks TLS only, with this certificate and key, which clients have to show too if
    /// `asks_clients`.
    pub fn with_tls(certificate: &str, key: &str, asks_clients: bool) -> Self {
        Self::new_with_tls("redis-server", "", certificate, key, asks_clients)
    }

    /// Starts a Sentinel that speaks TLS only and watches `primary`, which does so too.
    pub fn sentinel_with_tls(primary: &Self, service: &str, certificate: &str, key: &str) -> Self {
        let config = format!(
            "tls-replication yes\nsentinel monitor {service} 127.0.0.1 {} 1\n",
            primary.port
        );
        Self::new_with_tls("redis-sentinel", &config, certificate, key, false)
    }

    fn new_with_tls(
        program: &str,
        config: &str,
        certificate: &str,
        key: &str,
        asks_clients: bool,
    ) -> Self {
        let files = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = files.path().join(name);
            fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (certificate, key) = (file("certificate.pem", certificate), file("key.pem", key));
        let arguments: [&[&str]; 4] = [
            &["--tls-cert-file", &certificate],
            &["--tls-key-file", &key],
            &["--tls-ca-cert-file", &certificate],
            &[
                "--tls-auth-clients",
                if asks_clients { "yes" } else { "no" },
            ],
        ];
        let mut client = vec!["--tls", "--insecure"];
        if asks_clients {
            client.extend(["--cert", &certificate, "--key", &key]);
        }
        // A server reads the files at the start only; a client, which shows them, until it is up.
        Self::new(program, config, &arguments, &client)
    }

    /// Starts a server that follows `primary`.
    pub fn replica_of(primary: &Self) -> Self {
        let port = primary.port.to_string();
        let replica = Self::with(&[&["--replicaof", "127.0.0.1", &port]]);
        wait("the replica follows", || replica.follows());
        replica
    }

    fn follows(&self) -> bool {
        let state = self.ask(&["info", "replication"]);
        state.contains("master_link_status:up")
    }

    /// Starts a node that follows `primary` in its Cluster, and replaces it when it is gone for two seconds.
    pub fn replica_in_cluster(primary: &Self, nodes: &[Self]) -> Self {
        let replica = Self::with(&[
            &["--cluster-enabled", "yes"],
            &["--cluster-node-timeout", "2000"],
        ]);
        for node in nodes {
            node.ask(&["config", "set", "cluster-node-timeout", "2000"]);
        }
        let port = primary.port.to_string();
        assert_eq!(replica.ask(&["cluster", "meet", "127.0.0.1", &port]), "OK");
        let id = primary.ask(&["cluster", "myid"]);
        wait("the new node follows", || {
            replica.ask(&["cluster", "replicate", &id]) == "OK"
        });
        let own = replica.ask(&["cluster", "myid"]);
        wait("all nodes know the replica", || {
            let known = |node: &Self| {
                let known = node.ask(&["cluster", "nodes"]);
                let mut lines = known.lines();
                lines.any(|line| line.starts_with(&own) && line.contains("slave"))
            };
            nodes.iter().all(known) && replica.follows()
        });
        replica
    }

    /// Starts a Sentinel that watches `primary` as `service` and decides alone.
    pub fn sentinel(primary: &Self, service: &str) -> Self {
        let config = format!(
            "sentinel monitor {service} 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds {service} 3000\n\
             sentinel failover-timeout {service} 3000\n",
            primary.port
        );
        Self::new("redis-sentinel", &config, &[], &[])
    }

    fn new(program: &str, config: &str, arguments: &[&[&str]], client: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let is_sentinel = !config.is_empty();
        let mut all: Vec<String> = Vec::new();
        if is_sentinel {
            let path = directory.path().join("sentinel.conf");
            fs::write(&path, config).unwrap();
            all.push(path.to_str().unwrap().to_owned());
        } else {
            let quiet = ["--save", "", "--appendonly", "no", "--databases", "16"];
            all.extend(quiet.map(str::to_owned));
        }
        all.extend(["--bind", "127.0.0.1", "--dir"].map(str::to_owned));
        all.push(directory.path().to_str().unwrap().to_owned());
        all.extend(arguments.concat().iter().map(|&it| it.to_owned()));
        // Another process may take the port between its choice and its use.
        for _ in 0..10 {
            let port = free_port();
            let number = port.to_string();
            let ports: &[&str] = if client.contains(&"--tls") {
                &["--port", "0", "--tls-port", &number]
            } else {
                &["--port", &number]
            };
            let mut arguments = all.clone();
            arguments.extend(ports.iter().map(|&it| it.to_owned()));
            let is_faked = client.contains(&FAKED_CLOCK);
            let options = client.iter().filter(|&&option| option != FAKED_CLOCK);
            let mut server = Self {
                child: spawn(program, &arguments, directory.path(), is_faked),
                port,
                directory: tempfile::tempdir().unwrap(),
                arguments,
                client: options.map(|&it| it.to_owned()).collect(),
            };
            if server.is_up_in_time() {
                server.directory = directory;
                return server;
            }
        }
        panic!("{program} does not start");
    }

    fn is_up_in_time(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            // With a password the answer is NOAUTH.
            let answer = self.ask(&["ping"]);
            if answer.contains("PONG") || answer.contains("NOAUTH") {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// The address of the server, for `store.url`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Waits until its replica has everything written until now. WAIT would not do: it covers only the writes of its
    /// own connection.
    pub fn wait_for_replica(&self) {
        wait("the replica has everything", || {
            let info = self.ask(&["info", "replication"]);
            let after = |start: &str| {
                let (_, rest) = info.split_once(start)?;
                let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
                numbers.next()?.parse::<u64>().ok()
            };
            let written = after("master_repl_offset:");
            written.is_some() && after(",offset=") >= written
        });
    }

    /// Asks the server by redis-cli and returns all that it prints.
    pub fn ask(&self, command: &[&str]) -> String {
        ask(self.port, &self.client, command)
    }

    /// Every key with its content.
    pub fn content(&self) -> Vec<(String, String)> {
        let keys = self.ask(&["keys", "*"]);
        let mut keys: Vec<String> = keys.lines().map(str::to_owned).collect();
        keys.sort();
        let dump = |key: String| (key.clone(), self.ask(&["dump", &key]));
        keys.into_iter().map(dump).collect()
    }

    /// Kills the server like a power loss.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts a killed server again, with its data on disk, which it may still load when this returns.
    pub fn start_loading(&mut self) {
        let directory = self.directory.path();
        self.child = spawn("redis-server", &self.arguments, directory, false);
    }

    /// Starts a killed server again, with its data on disk.
    pub fn start_again(&mut self) {
        self.start_loading();
        assert!(self.is_up_in_time(), "the server starts again");
    }

    /// Stops the process where it is; its connections stay open.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes a hung process.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks the server on this port by redis-cli, with these options for the connection.
pub fn ask(port: u16, options: &[String], command: &[&str]) -> String {
    let mut cli = Command::new("redis-cli");
    cli.args(["-p", &port.to_string()])
        .args(options)
        .args(command);
    let output = cli.output().expect("tests/run installs redis-cli");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
        + String::from_utf8_lossy(&output.stderr).trim()
}

/// A primary with a replica, and a Sentinel that watches them as `main`.
pub fn with_sentinel() -> (RedisServer, RedisServer, RedisServer) {
    let primary = RedisServer::start();
    let replica = RedisServer::replica_of(&primary);
    let sentinel = RedisServer::sentinel(&primary, "main");
    wait("the Sentinel knows the replica", || {
        let known = sentinel.ask(&["sentinel", "replicas", "main"]);
        known.contains(&replica.port.to_string())
    });
    (primary, replica, sentinel)
}

/// Three nodes of one Cluster that share the slots, without replicas.
pub fn cluster() -> Vec<RedisServer> {
    let nodes: Vec<RedisServer> = (0..3)
        .map(|_| RedisServer::with(&[&["--cluster-enabled", "yes"]]))
        .collect();
    let mut create = vec!["--cluster".to_owned(), "create".to_owned()];
    create.extend(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    create.push("--cluster-yes".to_owned());
    let created = Command::new("redis-cli").args(&create).output().unwrap();
    assert!(created.status.success(), "{created:?}");
    for node in &nodes {
        wait("the Cluster is complete", || {
            node.ask(&["cluster", "info"]).contains("cluster_state:ok")
        });
    }
    nodes
}

/// Waits until `done`.
#[track_caller]
pub fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}: not in time");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Used instead of an option for the client: the server has a wall clock of its own.
const FAKED_CLOCK: &str = "faked clock";

fn set_clock(directory: &Path, ahead: u64) {
    let file = directory.join("offset");
    let new = directory.join("offset.new");
    fs::write(&new, ahead.to_string()).unwrap();
    fs::rename(new, file).unwrap();
}

/// The environment in which a program reads the clock of `directory`. libfaketime does not work with Redis' allocator.
fn faked_clock(directory: &Path) -> [(&'static str, PathBuf); 2] {
    set_clock(directory, 0);
    let library = directory.join("clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/clock.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([library.as_path(), Path::new(source)])
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "cc");
    [
        ("LD_PRELOAD", library),
        ("CLOCK_OFFSET", directory.join("offset")),
    ]
}

fn spawn(program: &str, arguments: &[String], directory: &Path, is_faked: bool) -> Child {
    let log = directory.join("log");
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    // Another server that the tests are to run on, such as valkey-server.
    let other = std::env::var("COUNTERSIGN_TEST_REDIS").ok();
    let as_sentinel = (program == "redis-sentinel").then_some("--sentinel");
    let clock = is_faked.then(|| faked_clock(directory));
    let mut command = Command::new(other.as_deref().unwrap_or(program));
    command.args(arguments).args(as_sentinel);
    command
        .envs(clock.into_iter().flatten())
        .stdin(Stdio::null());
    command.stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().expect("tests/run installs the server")
}

/// A free port, with the one 10,000 above it free as well, which a Cluster's nodes use among themselves. Both are below
/// those that the system gives to connections, so that a server finds its port free when it starts again.
fn free_port() -> u16 {
    loop {
        let random = RandomState::new().hash_one(()) % 12_000;
        let port = 10_000 + u16::try_from(random).unwrap();
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}
