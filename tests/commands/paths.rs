//! Relative paths, and the store that a command creates.
//!
//! Promise (Storage and operation): A relative path belongs to the configuration file's directory; only a command that creates
//! records creates a store. Also in `tests/commands/failures.rs`, `tests/store_contract/postgres.rs`.

use std::fs;

use crate::commands::workspace::{Workspace, finish};

#[test]
fn relative_paths_belong_to_the_directory_of_the_configuration() {
    let workspace = Workspace::with("store.encryption_key_file = 'store.key'");
    fs::write(workspace.path("store.key"), [7; 32]).unwrap();
    fs::write(workspace.path("store_name"), "named.db\n").unwrap();
    let elsewhere = Workspace::new();
    let config = workspace.path("config.toml");
    let run = |arguments: &[&str]| {
        let mut command = elsewhere.command(arguments);
        command
            .args(["--config", config.to_str().unwrap()])
            .env("COUNTERSIGN__STORE__URL_FILE", "store_name");
        finish(command, b"")
    };
    let added = run(&["consumer", "add", "--name", "Shop", "--key", "shop"]);
    let store = workspace.path("named.db");
    assert_eq!(
        (added.code, added.stderr),
        (
            Some(0),
            format!("countersign: created the store {}\n", store.display())
        )
    );
    assert!(store.exists());
    assert_eq!(elsewhere.files(), ["config.toml"]);
    let shown = run(&["consumer", "show", "shop"]);
    assert_eq!(
        (shown.code, shown.stderr.as_str()),
        (Some(0), ""),
        "{shown:?}"
    );
    // The same store, named by a relative path of the configuration from its own directory.
    workspace.configure("store.encryption_key_file = 'store.key'\nstore.url = 'named.db'");
    workspace.run("consumer show shop").done();
}

#[test]
fn a_missing_store_is_named_with_its_absolute_path() {
    let workspace = Workspace::with("store.url = 'data/missing.db'");
    let line = workspace.run("token list").failed(1);
    let path = workspace.path("data/missing.db");
    assert!(line.contains(path.to_str().unwrap()), "{line}");
}
