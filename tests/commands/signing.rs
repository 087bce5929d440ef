//! `sign` and `explain` with the secrets of the store.

use crate::place::Place;

const URL: &str = "https://api.test/members/1?a=b";

fn sign<'a>(token: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["sign", "GET", URL, "--consumer-key", "c", "--token", token];
    arguments.extend(rest);
    arguments
}

#[test]
fn what_is_signed_with_the_stores_secrets_holds_with_the_stores_secrets() {
    let place = Place::new();
    place.consumer("c");
    place.user("alice");
    let token = place.token("c", "alice");
    let header = place.run(&sign(&token, &[])).done().stdout;
    let explain = ["explain", "GET", URL, "--header", header.trim_end()];
    assert_eq!(place.json(&explain)["matches"], true);
    place.run(&["consumer", "rotate-secret", "c"]).done();
    assert_eq!(place.json(&explain)["matches"], false);
    let header = place.run(&sign(&token, &[])).done().stdout;
    let explain = ["explain", "GET", URL, "--header", header.trim_end()];
    assert_eq!(place.json(&explain)["matches"], true);
}

#[test]
fn secrets_that_are_not_found_are_told_with_the_way_to_give_them() {
    let place = Place::new();
    let line = place.run(&sign("t", &[])).failed(1);
    assert!(
        line.contains("countersign.db") && line.contains("--consumer-secret"),
        "{line}"
    );
    place.consumer("other");
    let line = place.run(&sign("t", &[])).failed(1);
    assert!(line.contains("no such consumer"), "{line}");
    place.consumer("c");
    let line = place.run(&sign("t", &[])).failed(1);
    assert!(line.contains("no such token"), "{line}");
    place.configure("listen.adress = 'x'");
    let line = place.run(&sign("t", &[])).failed(2);
    assert!(line.contains("listen.adress"), "{line}");
    // With secrets of its own it asks neither configuration nor store.
    place
        .run(&sign(
            "t",
            &["--consumer-secret", "s", "--token-secret", "s"],
        ))
        .done();
}
