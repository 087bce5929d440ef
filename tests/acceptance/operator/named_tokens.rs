//! Admin tokens with the names of persons.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Call, Operator, Proxy, Upstream, has, until};

const ALICE: &str = "the-token-of-alice-0123456789-01";
const BOB: &str = "the-token-of-bob-0123456789-0123";

#[test]
fn audit_records_and_sessions_have_the_name_of_the_token() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config("admin.token_file = 'admin.token'");
    let file = builder.directory().join("admin.token");
    std::fs::write(&file, format!("alice:{ALICE}\nbob@example.com:{BOB}\n")).unwrap();
    let proxy = builder.start();
    let shop = proxy.consumer("shop");
    let call = |token: &str, call: Call| Operator::at(&proxy).send(call.bearer(token));
    let path = format!("/v1/consumers/{}", shop.key);
    let change =
        |enabled: bool| Call::new("PATCH", &path).json(&json!({ "enabled": enabled }).to_string());
    call(ALICE, change(false)).has_status(200);
    proxy.logs(&[
        "consumer_disabled",
        "by=\"api\"",
        "admin_token=\"write\"",
        "admin_name=\"alice\"",
    ]);
    call(BOB, change(true)).has_status(200);
    proxy.logs(&["consumer_enabled", "admin_name=\"bob@example.com\""]);
    // The name is no part of the token, and neither is it a token.
    call(&format!("alice:{ALICE}"), change(false)).has_status(401);
    call("alice", change(false)).has_status(401);
    let acts = call(ALICE, Call::get("/v1/audit")).has_status(200).json();
    let names = acts["items"].as_array().unwrap().iter().take(2);
    let names = Vec::from_iter(names.map(|act| act["admin_name"].clone()));
    assert_eq!(names, [json!("bob@example.com"), json!("alice")]);
    // The console: login, page, audit, and a token that is replaced alone.
    let (alice, bob) = (Operator::with(&proxy, ALICE), Operator::with(&proxy, BOB));
    proxy.logs(&[
        "console_login",
        "admin_token=\"write\"",
        "admin_name=\"alice\"",
    ]);
    has(&bob.text("/"), &["<bdi>bob@example.com</bdi>, write token"]);
    has(
        &alice.text("/audit"),
        &["bob@example.com, by the admin API, write token"],
    );
    std::fs::write(
        &file,
        format!("alice:{ALICE}\nbob@example.com:{}\n", "x".repeat(32)),
    )
    .unwrap();
    proxy.signal(Signal::HUP);
    until("bob's session is ended", || {
        bob.open("/").answer.status == 303
    });
    alice.text("/");
    // A mistake in the file leaves the old tokens in effect, and shows none of them.
    std::fs::write(&file, format!("alice:{ALICE}\nalice:{BOB}\n")).unwrap();
    proxy.signal(Signal::HUP);
    let line = proxy.logs(&["admin.token_file", "line 2: line 1 has the same name"]);
    assert!(!line.contains("the-token-of"), "{line}");
    call(ALICE, Call::get("/v1/consumers")).has_status(200);
}
