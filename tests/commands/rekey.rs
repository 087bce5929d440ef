//! `rekey`.

use serde_json::json;

use crate::commands::workspace::Workspace;
use crate::support::text::has;

const LIST: &[&str] = &["consumer", "list"];

fn workspace(keys: &str) -> Workspace {
    let workspace = Workspace::new();
    for (name, byte) in [("old.key", 1), ("new.key", 2)] {
        std::fs::write(workspace.path(name), [byte; 32]).unwrap();
    }
    use_keys(&workspace, keys);
    workspace
}

fn use_keys(workspace: &Workspace, keys: &str) {
    let chmod = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(workspace.path(name), mode).unwrap();
    };
    ["old.key", "new.key"].iter().for_each(|name| chmod(name));
    workspace.configure(&format!("store.encryption_key_file = {keys}\nlisten.address = '127.0.0.1:0'\nadmin.listen = '127.0.0.1:0'"));
}

#[test]
fn rekey_encrypts_a_plain_store() {
    let workspace = Workspace::new();
    workspace.consumer("shop");
    let line = workspace.run("rekey").failed(2);
    has(&line, &["store.encryption_key_file: names no key"]);
    std::fs::write(workspace.path("new.key"), [2; 32]).unwrap();
    workspace.configure("store.encryption_key_file = 'new.key'");
    let line = workspace.run(LIST).failed(1);
    assert!(line.contains("are not encrypted"), "{line}");
    assert_eq!(
        workspace.json("rekey"),
        json!({ "rekeyed": 1, "unchanged": 0 })
    );
    has(
        &workspace.run("rekey").done().stdout,
        &[
            "Encrypted 0 secrets with the first key in 0.",
            "; 1 had it already.",
        ],
    );
    assert_eq!(workspace.json_lines(LIST).len(), 1);
    workspace.configure("");
    let line = workspace.run(LIST).failed(1);
    assert!(line.contains("is encrypted; name its key"), "{line}");
}

#[test]
fn rekey_without_a_store_is_an_error() {
    let workspace = workspace("['new.key', 'old.key']");
    let line = workspace.run("rekey").failed(1);
    assert!(line.contains("no such file"), "{line}");
}
