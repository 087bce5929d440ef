//! `user`.

use std::process::Command;

use serde_json::{Value, json};

use crate::commands::workspace::{Workspace, finish};
use crate::support::text::has;

#[test]
fn user_add_sets_each_option() {
    let workspace = Workspace::new();
    let add = ["user", "add", "bob", "--json", "--password-stdin"];
    let ended = workspace.run_with(&add, "correct horse battery\n").done();
    let added: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(added["id"].as_str().unwrap().len() >= 20, "{added}");
    assert_eq!(
        (&added["name"], &added["display_name"], &added["enabled"]),
        (&"bob".into(), &Value::Null, &true.into())
    );
    assert_eq!(workspace.json_lines("user list"), [added]);
}

#[test]
fn a_password_has_1_to_1024_bytes() {
    let workspace = Workspace::new();
    let add = |password: &str| workspace.run_with("user add bob --password-stdin", password);
    for password in ["", "\n", &"x".repeat(1025), &"x".repeat(5000)] {
        let line = add(password).failed(1);
        assert!(line.contains("1 to 1024 bytes"), "{line}");
    }
    add(&format!("{}\n", "x".repeat(1024))).done();
}

#[test]
fn a_taken_user_name_is_reported_before_a_password_is_asked_for() {
    let workspace = Workspace::new();
    workspace.user("alice");
    // There is no terminal, so asking for the password would be another failure.
    let line = in_no_terminal(&workspace, "user add alice").failed(1);
    assert!(line.contains("there is a user \"alice\""), "{line}");
    let line = in_no_terminal(&workspace, "user add bob").failed(1);
    assert!(line.contains("--password-stdin"), "{line}");
    let line = in_no_terminal(&workspace, "user passwd absent").failed(1);
    assert!(line.contains("there is no user \"absent\""), "{line}");
}

fn in_no_terminal(workspace: &Workspace, arguments: &str) -> crate::commands::workspace::Ended {
    let mut command = Command::new("setsid");
    let program = env!("CARGO_BIN_EXE_countersign");
    command
        .args(["--wait", program])
        .args(arguments.split(' '))
        .current_dir(workspace.path(""));
    finish(command, b"")
}

/// Runs the program on a terminal of its own, which is sent these lines.
fn on_a_terminal(
    workspace: &Workspace,
    arguments: &str,
    typed: &str,
) -> crate::commands::workspace::Ended {
    let mut command = Command::new("script");
    let program = env!("CARGO_BIN_EXE_countersign");
    command
        .args(["--quiet", "--return", "--echo", "never", "--command"])
        .arg(format!("{program} {arguments}"))
        .arg("/dev/null")
        .env("NO_COLOR", "1")
        .current_dir(workspace.path(""));
    finish(command, typed.as_bytes())
}

#[test]
fn a_password_is_asked_for_twice_on_the_terminal() {
    let workspace = Workspace::new();
    let ended = on_a_terminal(&workspace, "user add alice", "s3cret pass\ns3cret pass\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("s3cret"), "no echo: {ended:?}");
    assert_eq!(
        ended.stdout.to_lowercase().matches("password: ").count(),
        2,
        "two questions: {ended:?}"
    );
    let hash = |workspace: &Workspace| {
        let exported = workspace.run("export -").done().stdout;
        let user: Value = serde_json::from_str(exported.lines().nth(1).unwrap()).unwrap();
        user["password_hash"].as_str().unwrap().to_owned()
    };
    let before = hash(&workspace);
    assert!(is_of(&before, "s3cret pass"));
    let ended = on_a_terminal(&workspace, "user passwd alice", "one\nother\n");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    has(&ended.stdout, &["the two passwords differ"]);
    assert_eq!(hash(&workspace), before, "nothing is changed");
    let ended = on_a_terminal(&workspace, "user passwd alice", "other\nother\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(is_of(&hash(&workspace), "other"));
}

#[test]
fn a_weak_password_is_accepted_and_warned_of() {
    let workspace = Workspace::new();
    for (name, password, weakness) in [
        ("alice", "other", Some("is shorter than 8 characters")),
        (
            "bob",
            "Password1",
            Some("is one of the most common passwords"),
        ),
        ("charlotte", "CHARLOTTE", Some("is the name of the user")),
        ("dave", "s3cret pass", None),
    ] {
        let typed = format!("{password}\n{password}\n");
        let ended = on_a_terminal(&workspace, &format!("user add {name}"), &typed);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warning = ended.stdout.lines().find(|line| line.contains("warning"));
        let expected = weakness.map(|weakness| {
            format!("countersign: warning: the password {weakness}; set another one with countersign user passwd")
        });
        assert_eq!(warning, expected.as_deref());
        let passwd = ["user", "passwd", name, "--password-stdin"];
        let ended = workspace.run_with(&passwd, password);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.warnings().next(), expected.as_deref());
    }
    assert_eq!(workspace.json_lines("user list").len(), 4);
}

#[test]
fn a_user_is_named_by_name_or_id() {
    let workspace = Workspace::new();
    workspace.user("alice");
    let shown = workspace.json("user show alice");
    assert_eq!(
        (&shown["id"], &shown["name"]),
        (&"id-alice".into(), &"alice".into())
    );
    assert_eq!(workspace.json("user show id-alice"), shown);
    assert_eq!(workspace.json("user disable id-alice")["enabled"], false);
    workspace
        .run_with("user passwd id-alice --password-stdin", "another horse")
        .done();
    // The name of one user, and the id of another one.
    workspace.user("id-alice");
    let line = workspace.run("user remove id-alice").failed(1);
    has(&line, &["name of one user and the id of another"]);
    assert_eq!(workspace.json("user show alice")["id"], "id-alice");
    assert_eq!(workspace.json_lines("user list").len(), 2);
}

#[test]
fn user_commands_change_names_and_list_and_end_sessions() {
    let workspace = Workspace::new();
    workspace.user("ada");
    let id = &workspace.json("user show ada")["id"];
    for (options, name, display_name) in [
        ("--display-name Countess", "ada", json!("Countess")),
        ("--name lovelace --no-display-name", "lovelace", json!(null)),
    ] {
        let user = format!("user update {} {options}", id.as_str().unwrap());
        let updated = workspace.json(&user);
        let expected = (&json!(name), &display_name, id);
        assert_eq!(
            (&updated["name"], &updated["display_name"], &updated["id"]),
            expected
        );
    }
    workspace.run("user update lovelace").failed(2);
    assert_eq!(workspace.json_lines("user sessions lovelace").len(), 0);
    workspace.run("user end-sessions lovelace").done();
    workspace.run("user disable lovelace").done();
    let listed = |filter: &str| workspace.json_lines(&format!("user list {filter}")).len();
    for (filter, count) in [
        ("--enabled true", 0),
        ("--enabled false", 1),
        ("--search LOVE", 1),
        ("--search none", 0),
    ] {
        assert_eq!(listed(filter), count, "{filter}");
    }
}

#[test]
fn removing_a_user_is_confirmed_on_a_terminal() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("alice");
    for (arguments, typed, code) in [
        ("user remove alice", "n\n", 1),
        ("consumer remove c", "\n", 1),
        ("consumer remove c", "y\n", 0),
        ("user remove alice --yes", "", 0),
    ] {
        let ended = on_a_terminal(&workspace, arguments, typed);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(
            ended.stdout.contains("nothing is removed"),
            code == 1,
            "{ended:?}"
        );
    }
    assert_eq!(workspace.json_lines("user list").len(), 0);
    assert_eq!(workspace.json_lines("consumer list").len(), 0);
}

fn is_of(hash: &str, password: &str) -> bool {
    countersign::provider::login::password::verify_evenly(Some(&hash.into()), &[], &password.into())
}
