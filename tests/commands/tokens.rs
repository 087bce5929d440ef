//! `token`.
//!
//! Promise (Storage and operation): All tokens of a user or consumer are revoked in one step; a text that names two does
//! nothing. Also in `tests/commands/users.rs`, `tests/store_contract/tokens.rs`.

use serde_json::{Value, json};

use crate::commands::workspace::Workspace;
use crate::support::text::has;

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("alice");
    workspace
}

#[test]
fn a_token_has_the_permissions_asked_for_or_all_of_its_consumer() {
    let workspace = workspace();
    let issue = |options: &str| format!("token issue --consumer c --user alice{options}");
    let granted = |options: &str| workspace.json(&issue(options))["permissions"].clone();
    assert_eq!(granted(""), json!(["read", "write"]));
    assert_eq!(granted(" --permission write"), json!(["write"]));
    let line = workspace.run(&issue(" --permission admin")).failed(1);
    has(
        &line,
        &["the permission admin", "give it to the consumer first"],
    );
}

#[test]
fn the_help_says_that_a_developer_needs_no_browser_flow() {
    let help = workspace().run("token issue --help").done().stdout;
    has(&help, &["a developer's for their own consumer"]);
}

#[test]
fn a_token_lives_as_long_as_the_configuration_says() {
    let workspace = workspace();
    let issue = "token issue --consumer c --user alice";
    let issued = workspace.json(issue);
    for name in ["expires_at", "last_used_at", "revoked_at"] {
        assert_eq!(issued[name], Value::Null, "{name}");
    }
    assert_eq!(issued["consumer"], "c");
    assert_eq!(issued["user"], "id-alice");
    workspace.configure("tokens.access_ttl = '1h'");
    let issued = workspace.json(issue);
    let seconds = |name: &str| {
        let format = &time::format_description::well_known::Rfc3339;
        let time = time::OffsetDateTime::parse(issued[name].as_str().unwrap(), format);
        time.unwrap().unix_timestamp()
    };
    assert_eq!(seconds("expires_at") - seconds("issued_at"), 3600);
}

#[test]
fn a_token_of_a_disabled_consumer_is_warned_of() {
    let workspace = workspace();
    workspace.run("consumer disable c").done();
    let ended = workspace.run("token issue --consumer c --user alice");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    has(&ended.stderr, &["warning", "consumer enable"]);
}

#[test]
fn token_list_filters_by_user_and_consumer() {
    let workspace = workspace();
    workspace.consumer("d");
    workspace.user("bob");
    for (consumer, user) in [("c", "alice"), ("c", "bob"), ("d", "bob")] {
        workspace.token(consumer, user);
    }
    for (list, count) in [
        ("token list", 3),
        ("token list --user bob", 2),
        ("token list --consumer c", 2),
        ("token list --consumer d --user alice", 0),
    ] {
        assert_eq!(workspace.json_lines(list).len(), count, "{list}");
    }
}

#[test]
fn token_list_finds_those_that_end_within_a_time() {
    let workspace = workspace();
    workspace.token("c", "alice");
    workspace.configure("tokens.access_ttl = '10d'");
    let ends = workspace.json("token issue --consumer c --user alice");
    let revoked = workspace.json("token issue --consumer c --user alice");
    let revoke = format!("token revoke {}", revoked["token"].as_str().unwrap());
    workspace.run(&revoke).done();
    let found = |list: &str| {
        let tokens = workspace.json_lines(list).into_iter();
        Vec::from_iter(tokens.map(|mut token| token["token"].take()))
    };
    assert_eq!(
        found("token list --ends-within 14d"),
        [ends["token"].clone()]
    );
    assert!(found("token list --ends-within 9d").is_empty());
    assert!(found("token list --ends-within 14d --unused-for 1d").is_empty());
    workspace.run("token list --ends-within soon").failed(2);
}

#[test]
fn all_tokens_of_a_user_a_consumer_or_both_are_revoked_together() {
    let workspace = workspace();
    workspace.consumer("d");
    workspace.user("bob");
    for (consumer, user) in [("c", "alice"), ("c", "bob"), ("d", "alice"), ("d", "bob")] {
        workspace.token(consumer, user);
    }
    let left = || {
        let tokens = workspace.json_lines("token list").into_iter();
        tokens.filter(|token| token["revoked_at"].is_null()).count()
    };
    for (options, still) in [
        ("--user id-bob --consumer d", 3),
        ("--user bob", 2),
        ("--consumer c", 1),
    ] {
        let revoked = workspace.json(&format!("token revoke {options}"));
        assert_eq!((revoked, left()), (json!({ "revoked": 1 }), still));
    }
    let again = workspace.run("token revoke --consumer c").done();
    let text = "No access token matches that was not revoked before.\n";
    assert_eq!(again.stdout, text);
    for (arguments, code) in [
        ("token revoke", 2),
        ("token revoke t --user alice", 2),
        ("token revoke --user absent", 1),
        ("token revoke --consumer absent", 1),
    ] {
        workspace.run(arguments).failed(code);
    }
    assert_eq!(left(), 1);
}

#[test]
fn unused_tokens_are_listed_and_revoked() {
    let workspace = workspace();
    workspace.token("c", "alice");
    let old = r#"{"kind":"export","version":1}
        {"kind":"token","token":"old","token_secret":"s","consumer":"c","user":"id-alice","issued_at":"2020-01-01T00:00:00Z"}"#;
    workspace.run_with("import -", old).done();
    let unused = || {
        let tokens = workspace
            .json_lines("token list --unused-for 90d")
            .into_iter();
        tokens.map(|token| (token["token"].clone(), token["revoked_at"].is_null()))
    };
    assert_eq!(Vec::from_iter(unused()), [(json!("old"), true)]);
    let line = workspace.run("token revoke --unused-for 0s").failed(2);
    has(&line, &["less than 1s finds all tokens"]);
    let revoke = "token revoke --unused-for 90d";
    for (options, revoked) in [(" --user alice --consumer c", 1), ("", 0)] {
        let told = workspace.json(&format!("{revoke}{options}"));
        assert_eq!(told, json!({ "revoked": revoked }), "{options}");
    }
    assert_eq!(Vec::from_iter(unused()), [(json!("old"), false)]);
}

#[test]
fn a_token_is_named_by_the_characters_that_the_log_shows() {
    let workspace = workspace();
    let token = workspace.token("c", "alice");
    let shown = workspace.json(&format!("token show {token}"));
    assert_eq!(
        (&shown["token"], &shown["token_secret"]),
        (&json!(token), &Value::Null)
    );
    let short = &token[..8];
    assert_eq!(workspace.json(&format!("token show {short}")), shown);
    let line = workspace.run(&["token", "show", &token[..7]]).failed(1);
    assert!(line.contains("no such access token"), "{line}");
    for text in [
        "Revoked {}… (Shop, alice).",
        "{}… (Shop, alice) was revoked before.",
    ] {
        let revoke = ["token", "revoke", &format!("{short}…")];
        let told = workspace.run(&revoke).done().stdout;
        assert_eq!(told, text.replace("{}", short) + "\n");
    }
    assert!(workspace.json(&format!("token show {token}"))["revoked_at"].is_string());
    let twins = r#"{"kind":"export","version":1}
        {"kind":"token","token":"same-beginning-1","token_secret":"s","consumer":"c","user":"id-alice"}
        {"kind":"token","token":"same-beginning-2","token_secret":"s","consumer":"c","user":"id-alice"}"#;
    workspace.run_with("import -", twins).done();
    let line = workspace.run("token revoke same-beg").failed(1);
    assert!(line.contains("several access tokens"), "{line}");
}
