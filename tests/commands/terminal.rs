//! Output at a terminal; `script` provides one.

use std::process::{Command, Stdio};

use crate::commands::workspace::Workspace;

/// Runs a line of shell on a terminal with this many columns.
fn on_terminal(workspace: &Workspace, columns: u16, line: &str) -> String {
    let program = env!("CARGO_BIN_EXE_countersign");
    let line = format!(
        "stty cols {columns}; {}",
        line.replace("countersign", program)
    );
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(workspace.path(""))
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn a_table_fits_the_terminal_and_json_is_complete() {
    let workspace = Workspace::new();
    let name = "a name that is long ".repeat(10);
    workspace
        .run(&["consumer", "add", "--key", "shop", "--name", name.trim()][..])
        .done();
    let table = on_terminal(&workspace, 100, "countersign consumer list");
    for line in table.lines() {
        assert!(line.trim_end().chars().count() <= 100, "{line}");
    }
    assert!(table.contains("shop") && table.contains("…"), "{table}");
    let json = on_terminal(&workspace, 100, "countersign consumer list --json");
    assert!(json.contains(name.trim()), "{json}");
    // Not on a pipe.
    assert!(
        workspace
            .run("consumer list")
            .done()
            .stdout
            .contains(name.trim())
    );
}

#[test]
fn no_color_leaves_the_help_without_escapes() {
    let workspace = Workspace::new();
    assert!(on_terminal(&workspace, 80, "countersign --help").contains('\u{1b}'));
    let plain = on_terminal(&workspace, 80, "NO_COLOR=1 countersign --help");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    // Nothing listens where the API should be.
    let checked = on_terminal(&workspace, 80, "countersign check || true");
    for mark in ["\u{1b}[32m✓\u{1b}[0m store", "\u{1b}[31m✗\u{1b}[0m API"] {
        assert!(checked.contains(mark), "{checked}");
    }
    let plain = on_terminal(&workspace, 80, "NO_COLOR=1 countersign check || true");
    assert!(
        plain.contains("✗ API") && !plain.contains('\u{1b}'),
        "{plain}"
    );
}

#[test]
fn each_command_that_changes_something_names_the_store() {
    let workspace = Workspace::new();
    let store = workspace.path("countersign.db").display().to_string();
    let line = format!("countersign: store {store}");
    let told = |command: &str| on_terminal(&workspace, 200, command).contains(&line);
    assert!(told("countersign consumer add --key shop --name Shop"));
    assert!(!told("countersign consumer list"));
    assert!(!told("countersign consumer show shop"));
    // A script has named the store itself.
    let ended = workspace.run("consumer enable shop").done();
    assert_eq!(ended.stderr, "");
    std::fs::write(workspace.path("store.key"), [1; 32]).unwrap();
    let keyed = std::fs::read_to_string(workspace.path("config.toml")).unwrap()
        + "store.encryption_key_file = 'store.key'\n";
    std::fs::write(workspace.path("keyed.toml"), keyed).unwrap();
    for command in [
        "consumer disable shop",
        "consumer rotate-secret shop",
        "consumer update shop --name Store",
        "user add ada --password-stdin",
        "user disable ada",
        "user enable ada",
        "consumer enable shop",
        "token issue --consumer shop --user ada",
        "token revoke --consumer shop --user ada",
        "user remove ada --yes",
        "rekey --config keyed.toml",
    ] {
        let line = format!("echo enchantress | countersign {command}");
        assert!(told(&line), "{command}");
    }
}

#[test]
fn long_work_shows_its_progress_only_on_a_terminal() {
    let workspace = Workspace::new();
    let mut file = "{\"kind\":\"export\",\"version\":1}\n".to_owned();
    for number in 0..60_000 {
        let line = format!(
            "{{\"kind\":\"consumer\",\"key\":\"k{number}\",\"secret\":\"s\",\"name\":\"n\",\"callbacks\":[]}}\n"
        );
        file.push_str(&line);
    }
    std::fs::write(workspace.path("many.jsonl"), file).unwrap();
    let shown = on_terminal(&workspace, 80, "countersign import many.jsonl");
    assert!(
        shown.contains("records checked, ") && shown.contains(" left ["),
        "{shown}"
    );
    assert!(shown.contains("countersign: store "), "{shown}");
    let green = "\u{1b}[32m✓\u{1b}[0m Imported many.jsonl in ";
    assert!(
        shown.contains(green) && shown.contains(": 60000 added"),
        "{shown}"
    );
    let plain = on_terminal(&workspace, 80, "NO_COLOR=1 countersign import many.jsonl");
    assert!(
        plain.contains("60000 unchanged") && !plain.contains("[32m"),
        "{plain}"
    );
    assert!(
        !workspace
            .run("export many.out")
            .done()
            .stderr
            .contains("written")
    );
}
