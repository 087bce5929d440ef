//! The content of `deploy/` and `docs/` for operators, tried with the real tools and servers.

#![cfg(test)]

#[path = "../support/mod.rs"]
mod support;

mod documents;
mod film;
mod forward_auth;
mod gateways;
mod guided;
mod logins;
mod lti;
mod manifests;
mod metrics;
mod package;
mod pictures;
mod promises;
mod release;
mod running;
mod schema;
mod stand_ins;
mod traces;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A file of the project.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files below a directory with this extension, except those that are hidden or installed.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap()
}

/// The output of a command, which has to succeed.
#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{error}: {command:?}; tests/run installs it"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (told, complaint) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{told}{complaint}");
    told
}

/// A program that `tests/run` installs into `tests/.tools`.
fn tool(name: &str) -> Command {
    Command::new(file("tests/.tools/venv/bin").join(name))
}
