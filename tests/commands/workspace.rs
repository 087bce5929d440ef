//! A directory with a configuration in it, and the program run there.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with a configuration, and the program that runs there.
pub(crate) struct Workspace {
    directory: TempDir,
}

/// The arguments of a command: one by one, or a text whose words they are.
pub(crate) trait Arguments {
    fn list(&self) -> Vec<&str>;
}

impl Arguments for str {
    fn list(&self) -> Vec<&str> {
        self.split(' ').collect()
    }
}

impl Arguments for String {
    fn list(&self) -> Vec<&str> {
        self.as_str().list()
    }
}

impl Arguments for [&str] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Arguments for [&str; N] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Arguments for Vec<&str> {
    fn list(&self) -> Vec<&str> {
        self.clone()
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// A directory with this configuration in addition to the required one.
    pub(crate) fn with(configuration: &str) -> Self {
        let workspace = Self {
            directory: TempDir::new().unwrap(),
        };
        workspace.configure(configuration);
        workspace
    }

    /// Writes the configuration again.
    pub(crate) fn configure(&self, configuration: &str) {
        let text = format!("upstream.api_url = 'http://127.0.0.1:1'\n{configuration}");
        fs::write(self.path("config.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file and returns the argument that names it as the source of a secret.
    pub(crate) fn at_file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), contents).unwrap();
        format!("@{name}")
    }

    /// The names of all files.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The program, to be run here.
    pub(crate) fn command(&self, arguments: &(impl Arguments + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        for (name, _) in std::env::vars_os() {
            // The machine's own settings must not reach the program.
            if name.to_string_lossy().starts_with("COUNTERSIGN") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments.list())
            .current_dir(self.directory.path());
        command
    }

    pub(crate) fn run(&self, arguments: &(impl Arguments + ?Sized)) -> Ended {
        self.run_with(arguments, "")
    }

    /// Runs the program with something on its standard input.
    pub(crate) fn run_with(
        &self,
        arguments: &(impl Arguments + ?Sized),
        input: impl AsRef<[u8]>,
    ) -> Ended {
        finish(self.command(arguments), input.as_ref())
    }

    /// Runs a command that succeeds, and reads the one object that it prints.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &(impl Arguments + ?Sized)) -> Value {
        let ended = self
            .run(&[&arguments.list()[..], &["--json"]].concat())
            .done();
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Runs a command that succeeds, and reads the objects that it prints, one a line.
    #[track_caller]
    pub(crate) fn json_lines(&self, arguments: &(impl Arguments + ?Sized)) -> Vec<Value> {
        let ended = self
            .run(&[&arguments.list()[..], &["--json"]].concat())
            .done();
        let lines = ended.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Registers a consumer with this key and the permissions `read` and `write`.
    #[track_caller]
    pub(crate) fn consumer(&self, key: &str) -> Value {
        let permissions = "--permission read --permission write";
        self.json(&format!(
            "consumer add --name Shop --key {key} {permissions}"
        ))
    }

    /// Registers a user with this name, whose id is `id-` followed by the name.
    #[track_caller]
    pub(crate) fn user(&self, name: &str) {
        let add = format!("user add {name} --id id-{name} --password-stdin");
        self.run_with(&add, "correct horse battery").done();
    }

    /// Issues a token and returns it.
    #[track_caller]
    pub(crate) fn token(&self, consumer: &str, user: &str) -> String {
        let token = self.json(&["token", "issue", "--consumer", consumer, "--user", user]);
        token["token"].as_str().unwrap().to_owned()
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may be gone already.
    drop(child.stdin.take().unwrap().write_all(input));
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// The lines of standard error that warn.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.stderr.lines().filter(|line| line.contains("warning"))
    }

    /// Checks that the command succeeded, and wrote nothing to standard error but, perhaps, that it created the store.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        let created = "countersign: created the store ";
        let is_quiet = self.stderr.lines().all(|line| line.starts_with(created));
        assert!(self.code == Some(0) && is_quiet, "{self:?}");
        self
    }

    /// Checks that the command failed as it should: with this code, one line on standard error, and nothing else.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "nothing on standard output: {self:?}");
        let line = self.stderr.strip_suffix('\n').unwrap_or_default();
        assert!(
            !line.is_empty() && !line.contains('\n'),
            "one line: {self:?}"
        );
        line.to_owned()
    }
}
