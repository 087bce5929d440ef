//! `completions` and `man`.
//!
//! Promise (Storage and operation): Each command has a manual page and completions; a table fits the terminal, and JSON is
//! complete. Also in `tests/commands/terminal.rs`.

use std::fs;

use crate::commands::workspace::Workspace;

#[test]
fn completions_name_every_command_for_every_shell() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = workspace.run(&format!("completions {shell}")).done().stdout;
        for word in ["countersign", "rotate-secret", "end-grace", "explain"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(workspace.run("completions csh").code, Some(2));
}

#[test]
fn manual_pages_exist_for_each_command() {
    let workspace = Workspace::new();
    let line = workspace.run("man config.toml").failed(1);
    assert!(line.contains("config.toml: cannot be written"), "{line}");
    workspace.run("man pages/man1").done();
    for (page, text) in [
        ("countersign.1", "countersign\\-serve(1)"),
        ("countersign-import.1", "JSON Lines"),
        ("countersign-consumer-rotate-secret.1", "grace"),
    ] {
        let page = workspace.path("pages/man1").join(page);
        let written = fs::read_to_string(&page).unwrap();
        assert!(written.contains(text), "{}", page.display());
    }
}
