//! `token`.

use serde_json::{Value, json};

use crate::place::Place;
use crate::text::has;

fn place() -> Place {
    let place = Place::new();
    place.consumer("c");
    place.user("alice");
    place
}

#[test]
fn a_token_grants_what_is_asked_for_and_else_all_that_the_consumer_has() {
    let place = place();
    let issue = ["token", "issue", "--consumer", "c", "--user", "alice"];
    let granted = |options: &[&str]| place.json(&[&issue, options].concat())["permissions"].clone();
    assert_eq!(granted(&[]), json!(["read", "write"]));
    assert_eq!(granted(&["--permission", "write"]), json!(["write"]));
    let line = place
        .run(&[&issue[..], &["--permission", "admin"]].concat())
        .failed(1);
    has(&line, &["--permission admin", "consumer update"]);
}

#[test]
fn a_token_lives_as_long_as_the_configuration_says() {
    let place = place();
    let issued = place.json(&["token", "issue", "--consumer", "c", "--user", "alice"]);
    assert_eq!(
        (
            &issued["expires_at"],
            &issued["last_used_at"],
            &issued["revoked_at"]
        ),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(
        (issued["consumer"].as_str(), issued["user"].as_str()),
        (Some("c"), Some("id-alice"))
    );
    place.configure("tokens.access_ttl = '1h'");
    let issued = place.json(&["token", "issue", "--consumer", "c", "--user", "alice"]);
    let seconds = |name: &str| {
        let text = issued[name].as_str().unwrap();
        let format = &time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(text, format)
            .unwrap()
            .unix_timestamp()
    };
    assert_eq!(seconds("expires_at") - seconds("issued_at"), 3600);
}

#[test]
fn a_token_of_a_disabled_consumer_is_warned_of() {
    let place = place();
    place.run(&["consumer", "disable", "c"]).done();
    let ended = place.run(&["token", "issue", "--consumer", "c", "--user", "alice"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    has(&ended.stderr, &["warning", "consumer enable"]);
}

#[test]
fn lists_are_narrowed_by_user_and_consumer() {
    let place = place();
    place.consumer("d");
    place.user("bob");
    for (consumer, user) in [("c", "alice"), ("c", "bob"), ("d", "bob")] {
        place.token(consumer, user);
    }
    let count = |options: &[&str]| {
        place
            .json_lines(&[&["token", "list"], options].concat())
            .len()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["--user", "bob"]), 2);
    assert_eq!(count(&["--consumer", "c"]), 2);
    assert_eq!(count(&["--consumer", "d", "--user", "alice"]), 0);
}

#[test]
fn all_tokens_of_a_user_a_consumer_or_both_are_revoked_together() {
    let place = place();
    place.consumer("d");
    place.user("bob");
    for (consumer, user) in [("c", "alice"), ("c", "bob"), ("d", "alice"), ("d", "bob")] {
        place.token(consumer, user);
    }
    let left = || {
        let tokens = place.json_lines(&["token", "list"]);
        tokens
            .iter()
            .filter(|token| token["revoked_at"].is_null())
            .count()
    };
    let revoke = |options: &[&str]| place.json(&[&["token", "revoke"], options].concat());
    assert_eq!(
        revoke(&["--user", "id-bob", "--consumer", "d"]),
        json!({ "revoked": 1 })
    );
    assert_eq!(
        (revoke(&["--user", "bob"]), left()),
        (json!({ "revoked": 1 }), 2)
    );
    assert_eq!(
        (revoke(&["--consumer", "c"]), left()),
        (json!({ "revoked": 1 }), 1)
    );
    let again = place.run(&["token", "revoke", "--consumer", "c"]).done();
    assert_eq!(again.stdout, "revoked  0\n");
    for arguments in [
        &["token", "revoke"][..],
        &["token", "revoke", "t", "--user", "alice"],
    ] {
        place.run(arguments).failed(2);
    }
    for arguments in [["--user", "nobody"], ["--consumer", "nobody"]] {
        place
            .run(&[&["token", "revoke"][..], &arguments].concat())
            .failed(1);
    }
    assert_eq!(left(), 1);
}

#[test]
fn a_token_is_named_by_the_characters_that_the_log_shows() {
    let place = place();
    let token = place.token("c", "alice");
    let shown = place.json(&["token", "show", &token]);
    assert_eq!(
        (&shown["token"], &shown["token_secret"]),
        (&json!(token), &Value::Null)
    );
    let short = &token[..8];
    assert_eq!(place.json(&["token", "show", short]), shown);
    let line = place.run(&["token", "show", &token[..7]]).failed(1);
    assert!(line.contains("no such access token"), "{line}");
    place.run(&["token", "revoke", &format!("{short}…")]).done();
    assert!(place.json(&["token", "show", &token])["revoked_at"].is_string());
    let twins = r#"{"kind":"export","version":1}
        {"kind":"token","token":"same-beginning-1","token_secret":"s","consumer":"c","user":"id-alice"}
        {"kind":"token","token":"same-beginning-2","token_secret":"s","consumer":"c","user":"id-alice"}"#;
    place.run_with(&["import", "-"], twins).done();
    let line = place.run(&["token", "revoke", "same-beg"]).failed(1);
    assert!(line.contains("several access tokens"), "{line}");
}
