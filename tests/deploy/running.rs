//! `tests/run`: what it says before it installs anything, and what runs without an installation. `tests/Dockerfile`.
//!
//! Promise (Sources and tests): `tests/run` names what it installs and why, and asks on a terminal; `tests/run quick` installs
//! nothing.

use super::{file, printed, tool};

#[test]
fn tests_are_installed_on_consent_and_quick_installs_nothing() {
    let mut python = tool("python");
    printed(python.arg(file("tests/deploy/running.py")).arg(file("")));
}
