//! `user`.

use std::process::Command;

use serde_json::{Value, json};

use crate::place::{Place, finish};
use crate::text::has;

#[test]
fn user_add_sets_each_option() {
    let place = Place::new();
    let add = ["user", "add", "bob", "--json", "--password-stdin"];
    let ended = place.run_with(&add, "password\n").done();
    let added: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(added["id"].as_str().unwrap().len() >= 20, "{added}");
    assert_eq!(
        (&added["name"], &added["display_name"], &added["enabled"]),
        (&"bob".into(), &Value::Null, &true.into())
    );
    assert_eq!(place.json_lines("user list"), [added]);
}

#[test]
fn a_password_has_1_to_1024_bytes() {
    let place = Place::new();
    let add = |password: &str| place.run_with("user add bob --password-stdin", password);
    for password in ["", "\n", &"x".repeat(1025), &"x".repeat(5000)] {
        let line = add(password).failed(1);
        assert!(line.contains("1 to 1024 bytes"), "{line}");
    }
    add(&format!("{}\n", "x".repeat(1024))).done();
}

#[test]
fn a_taken_user_name_is_reported_before_a_password_is_asked_for() {
    let place = Place::new();
    place.user("alice");
    // There is no terminal, so asking for the password would be another failure.
    let line = in_no_terminal(&place, "user add alice").failed(1);
    assert!(line.contains("there is a user \"alice\""), "{line}");
    let line = in_no_terminal(&place, "user add bob").failed(1);
    assert!(line.contains("--password-stdin"), "{line}");
    let line = in_no_terminal(&place, "user passwd nobody").failed(1);
    assert!(line.contains("there is no user \"nobody\""), "{line}");
}

fn in_no_terminal(place: &Place, arguments: &str) -> crate::place::Ended {
    let mut command = Command::new("setsid");
    let program = env!("CARGO_BIN_EXE_countersign");
    command
        .args(["--wait", program])
        .args(arguments.split(' '))
        .current_dir(place.path(""));
    finish(command, b"")
}

/// Runs the program on a terminal of its own, which is sent these lines.
fn on_a_terminal(place: &Place, arguments: &str, typed: &str) -> crate::place::Ended {
    let mut command = Command::new("script");
    let program = env!("CARGO_BIN_EXE_countersign");
    command
        .args(["--quiet", "--return", "--echo", "never", "--command"])
        .arg(format!("{program} {arguments}"))
        .arg("/dev/null")
        .current_dir(place.path(""));
    finish(command, typed.as_bytes())
}

#[test]
fn a_password_is_asked_for_twice_on_the_terminal() {
    let place = Place::new();
    let ended = on_a_terminal(&place, "user add alice", "s3cret pass\ns3cret pass\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("s3cret"), "no echo: {ended:?}");
    assert_eq!(
        ended.stdout.to_lowercase().matches("password: ").count(),
        2,
        "two questions: {ended:?}"
    );
    let hash = |place: &Place| {
        let exported = place.run("export -").done().stdout;
        let user: Value = serde_json::from_str(exported.lines().nth(1).unwrap()).unwrap();
        user["password_hash"].as_str().unwrap().to_owned()
    };
    let before = hash(&place);
    assert!(is_of(&before, "s3cret pass"));
    let ended = on_a_terminal(&place, "user passwd alice", "one\nother\n");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    has(&ended.stdout, &["the two passwords differ"]);
    assert_eq!(hash(&place), before, "nothing is changed");
    let ended = on_a_terminal(&place, "user passwd alice", "other\nother\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(is_of(&hash(&place), "other"));
}

#[test]
fn a_weak_password_is_accepted_and_warned_of_on_a_terminal() {
    let place = Place::new();
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
        let ended = on_a_terminal(&place, &format!("user add {name}"), &typed);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warning = ended.stdout.lines().find(|line| line.contains("warning"));
        let expected = weakness.map(|weakness| {
            format!("countersign: warning: the password {weakness}; set another one with countersign user passwd")
        });
        assert_eq!(warning, expected.as_deref());
        // A program would not read it: `done` sees that standard error is empty.
        let passwd = ["user", "passwd", name, "--password-stdin"];
        place.run_with(&passwd, password).done();
    }
    assert_eq!(place.json_lines("user list").len(), 4);
}

#[test]
fn a_user_is_named_by_name_or_id() {
    let place = Place::new();
    place.user("alice");
    let shown = place.json("user show alice");
    assert_eq!(
        (&shown["id"], &shown["name"]),
        (&"id-alice".into(), &"alice".into())
    );
    assert_eq!(place.json("user show id-alice"), shown);
    assert_eq!(place.json("user disable id-alice")["enabled"], false);
    place
        .run_with("user passwd id-alice --password-stdin", "other")
        .done();
    // The name of one user, and the id of another one.
    place.user("id-alice");
    let line = place.run("user remove id-alice").failed(1);
    has(&line, &["name of one user and the id of another"]);
    assert_eq!(place.json("user show alice")["id"], "id-alice");
    assert_eq!(place.json_lines("user list").len(), 2);
}

#[test]
fn user_commands_change_names_and_list_and_end_sessions() {
    let place = Place::new();
    place.user("ada");
    let id = &place.json("user show ada")["id"];
    for (options, name, display_name) in [
        ("--display-name Countess", "ada", json!("Countess")),
        ("--name lovelace --no-display-name", "lovelace", json!(null)),
    ] {
        let user = format!("user update {} {options}", id.as_str().unwrap());
        let updated = place.json(&user);
        let expected = (&json!(name), &display_name, id);
        assert_eq!(
            (&updated["name"], &updated["display_name"], &updated["id"]),
            expected
        );
    }
    place.run("user update lovelace").failed(2);
    assert_eq!(place.json_lines("user sessions lovelace").len(), 0);
    place.run("user end-sessions lovelace").done();
    place.run("user disable lovelace").done();
    let listed = |filter: &str| place.json_lines(&format!("user list {filter}")).len();
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
    let place = Place::new();
    place.consumer("c");
    place.user("alice");
    for (arguments, typed, code) in [
        ("user remove alice", "n\n", 1),
        ("consumer remove c", "\n", 1),
        ("consumer remove c", "y\n", 0),
        ("user remove alice --yes", "", 0),
    ] {
        let ended = on_a_terminal(&place, arguments, typed);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(
            ended.stdout.contains("nothing is removed"),
            code == 1,
            "{ended:?}"
        );
    }
    assert_eq!(place.json_lines("user list").len(), 0);
    assert_eq!(place.json_lines("consumer list").len(), 0);
}

fn is_of(hash: &str, password: &str) -> bool {
    countersign::provider::login::password::verify_evenly(Some(&hash.into()), &[], &password.into())
}
