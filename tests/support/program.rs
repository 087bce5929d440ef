//! The binary: its start, the result of a command, its output while it runs.

use std::{
    fmt,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use super::PATIENCE;

/// The program under test.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    // The machine's own settings must not reach the program.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("COUNTERSIGN"))
    {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

/// The result of a command.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Checks that the command succeeded.
    #[track_caller]
    pub fn done(self) -> Self {
        assert!(self.status.success(), "the command succeeds: {self:?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// One object a line.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// Runs a command to its end with this standard input.
pub fn run(command: &mut Command, input: &str) -> Ended {
    ended(spawn(command, input))
}

/// Starts a command with this standard input.
pub fn spawn(command: &mut Command, input: &str) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // A command that reads nothing may be gone already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child
}

/// Waits for the end of a command.
pub fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    Ended {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A server that ends with the test.
pub struct Server(pub Child);

impl Server {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdout(Stdio::null()))
    }

    /// One that says on its standard output where it listens.
    #[track_caller]
    pub fn telling(command: &mut Command) -> Self {
        Self::spawn(command.stdout(Stdio::piped()))
    }

    #[track_caller]
    fn spawn(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{error}: {command:?}; tests/run installs it")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may be failing right now.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The standard error of the program until now.
#[derive(Clone, Default)]
pub struct Log(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Log {
    pub fn read_from(source: impl std::io::Read + Send + 'static) -> Self {
        let log = Self::default();
        let writer = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                writer.0.0.lock().unwrap().push(line);
                writer.0.1.notify_all();
            }
        });
        log
    }

    pub fn lines(&self) -> Vec<String> {
        // Also after a test has failed while it waited: the lines so far are shown.
        let lines = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }

    /// Reads nothing more until this is dropped; meanwhile the other functions wait.
    pub fn unread(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.0.lock().unwrap()
    }

    /// Waits for a line for which `wanted` returns a value.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
        let mut lines = self.0.0.lock().unwrap();
        let mut looked = 0;
        loop {
            if let Some(found) = lines[looked..].iter().find_map(|line| wanted(line)) {
                return found;
            }
            looked = lines.len();
            let (guard, timeout) = self.0.1.wait_timeout(lines, PATIENCE).unwrap();
            lines = guard;
            assert!(
                !timeout.timed_out() || lines.len() > looked,
                "the log has {what}: {lines:#?}"
            );
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines()
            .iter()
            .try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// The address in a log line about this listener.
pub fn listening_address(line: &str, listener: &str) -> Option<SocketAddr> {
    // As text or as JSON.
    let line = line.replace("\":", "=").replace('"', " ");
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        rest.split([' ', ',', '}']).find(|word| !word.is_empty())
    };
    if !line.contains("listening") || field("listener")? != listener {
        return None;
    }
    field("address")?.parse().ok()
}
