//! PostgreSQL: a server of its own in a directory of its own, started, stopped and hung by a test.

use std::{
    fs,
    net::TcpListener,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running server, stopped and removed when this is dropped.
pub struct Postgres {
    directory: TempDir,
    port: u16,
    child: Mutex<Option<Child>>,
    databases: AtomicU32,
}

/// The files of a server that encrypts: its certificate and its key.
pub struct Identity<'a> {
    pub certificate: &'a str,
    pub key: &'a str,
}

/// A free port that no connection uses meanwhile: below those that the system gives to connections.
pub fn free_port() -> u16 {
    let mut random = [0; 2];
    loop {
        aws_lc_rs::rand::fill(&mut random).unwrap();
        let port = 10_000 + u16::from_le_bytes(random) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Postgres {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with(&[], None)
    }

    /// Starts a server with these settings, such as `fsync=off`.
    pub fn start_with(settings: &[&str], identity: Option<&Identity<'_>>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        give_away(directory.path());
        let data = directory.path().join("data");
        let words =
            "--no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 -D";
        let mut initdb = program("initdb");
        let made = initdb.args(words.split(' ')).arg(&data).output().unwrap();
        assert!(made.status.success(), "initdb: {made:?}");
        let port = free_port();
        let mut lines = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\n\
             max_connections = 400\nshared_buffers = 32MB\nmax_wal_size = 256MB\n\
             # A test ends before the machine does.\nfsync = off\n",
            directory.path().display()
        );
        if let Some(identity) = identity {
            for (name, text) in [
                ("server.crt", identity.certificate),
                ("server.key", identity.key),
            ] {
                let path = data.join(name);
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                give_away(&path);
            }
            lines += "ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n";
            let hba = "hostssl all all all trust\nlocal all all trust\n";
            fs::write(data.join("pg_hba.conf"), hba).unwrap();
        }
        for setting in settings {
            lines += &format!("{setting}\n");
        }
        fs::write(data.join("postgresql.auto.conf"), lines).unwrap();
        let server = Self {
            directory,
            port,
            child: Mutex::default(),
            databases: AtomicU32::new(0),
        };
        server.start_again();
        server
    }

    /// The server shared by tests that do not disturb it; it ends with the last of them.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Makes an empty database and returns its URL, by the server's Unix socket.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name} STRATEGY = file_copy");
        self.sql("postgres", &create);
        self.url(&name)
    }

    /// The URL of a database, by the server's Unix socket.
    pub fn url(&self, database: &str) -> String {
        let (directory, port) = (self.directory.path().display(), self.port);
        format!("postgres://postgres@/{database}?host={directory}&port={port}")
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a statement and returns what it prints, a line for each row.
    #[track_caller]
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let (directory, port) = (self.directory.path().display(), self.port);
        let words = format!("-X -q -A -t -v ON_ERROR_STOP=1 -U postgres -h {directory} -p {port}");
        let mut psql = program("psql");
        psql.args(words.split(' '))
            .args(["-d", database, "-c", statement]);
        let done = psql.output().unwrap();
        assert!(done.status.success(), "{statement}: {done:?}");
        String::from_utf8(done.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Starts it again after [`Self::stop`] and waits until it takes connections.
    #[track_caller]
    pub fn start_again(&self) {
        self.start_soon();
        let begun = Instant::now();
        while !self.is_ready() {
            let log = || fs::read_to_string(self.directory.path().join("log"));
            let ended = self.child.lock().unwrap().as_mut().unwrap().try_wait();
            assert!(ended.unwrap().is_none(), "{:?}", log());
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts it again after [`Self::stop`]; it may take no connections yet when this returns.
    pub fn start_soon(&self) {
        let path = self.directory.path().join("log");
        let log = fs::File::options().create(true).append(true).open(path);
        let mut server = program("postgres");
        server.arg("-D").arg(self.directory.path().join("data"));
        server.stdout(Stdio::null()).stderr(log.unwrap());
        let child = server.spawn().unwrap();
        *self.child.lock().unwrap() = Some(child);
    }

    fn is_ready(&self) -> bool {
        let mut asks = program("pg_isready");
        asks.args(["-q", "-t", "1", "-p", &self.port.to_string(), "-h"]);
        asks.arg(self.directory.path()).status().unwrap().success()
    }

    /// Ends it as a crash would, and waits until it is gone.
    pub fn stop(&self) {
        let child = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut child) = child else { return };
        let postmaster = Pid::from_child(&child);
        signal(postmaster, Signal::CONT);
        // QUIT: children end without a checkpoint, and the next start recovers.
        let _ = kill_process(postmaster, Signal::QUIT);
        child.wait().unwrap();
    }

    /// Ends it and starts it as a standby that is promoted, as after the loss of a primary.
    #[track_caller]
    pub fn fail_over(&self) {
        self.stop();
        let standby = self.directory.path().join("data/standby.signal");
        fs::write(&standby, "").unwrap();
        give_away(&standby);
        self.start_again();
        assert_eq!(self.sql("postgres", "SELECT pg_promote()"), "t");
    }

    /// Hangs all of its processes; connections stay open and are not answered.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes it after [`Self::hang`].
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, wanted: Signal) {
        let child = self.child.lock().unwrap();
        signal(Pid::from_child(child.as_ref().unwrap()), wanted);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The server is a process with children, each the leader of a group of its own.
fn signal(postmaster: Pid, wanted: Signal) {
    let _ = kill_process(postmaster, wanted);
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name, in parentheses, may have spaces in it; the state and the parent follow it.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let parent = fields
            .split_whitespace()
            .nth(1)
            .and_then(|parent| parent.parse().ok());
        if parent != Some(postmaster.as_raw_nonzero().get()) {
            continue;
        }
        let child = entry.file_name().to_str().and_then(|id| id.parse().ok());
        if let Some(child) = child.and_then(Pid::from_raw) {
            let _ = kill_process(child, wanted);
        }
    }
}

/// A program of PostgreSQL, whichever version is installed; as its own account, for the server does not run as root.
fn program(name: &str) -> Command {
    let versions = Path::new("/usr/lib/postgresql");
    let newest = fs::read_dir(versions).ok().and_then(|found| {
        let mut found: Vec<PathBuf> = found.flatten().map(|entry| entry.path()).collect();
        found.sort();
        found.pop()
    });
    let newest = newest.unwrap_or_else(|| panic!("Debian's package postgresql is not installed"));
    let mut command = Command::new(newest.join("bin").join(name));
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
        .current_dir("/")
        .env_remove("PGHOST")
        .env_remove("PGOPTIONS");
    command
}

fn give_away(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

/// The account `postgres`, if this is root.
fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let line = accounts.lines().find(|line| line.starts_with("postgres:"));
    let line =
        line.unwrap_or_else(|| panic!("Debian's package postgresql makes the account postgres"));
    let mut ids = line.split(':').skip(2).map(|id| id.parse().unwrap());
    Some((ids.next().unwrap(), ids.next().unwrap()))
}
