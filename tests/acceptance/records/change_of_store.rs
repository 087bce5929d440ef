//! Moving between stores: tokens stay valid, and requests that the old store accepted are not accepted again.
//!
//! Promise (Storage and operation): After a move to another store no request passes that the old store accepted.

use crate::support::{Call, Postgres, Proxy, Upstream, http::Answer, now, proxy::Builder, until};

/// The public address of both stores, so that a signature is valid at both.
const PUBLIC: &str = "service.base_url = 'https://api.test'";

/// A store that has served nothing yet, by its name.
fn store(api: &Upstream, postgres: &Postgres, name: &str) -> Builder {
    let builder = Proxy::in_front_of(api).config(PUBLIC);
    let (backend, scope) = name.split_once(' ').unwrap();
    let builder = builder.config(&format!("nonce.scope = '{scope}'"));
    match backend {
        "sqlite" => builder,
        _ => builder.config(&format!(
            "store.backend = 'postgres'\nstore.url = '{}'",
            postgres.database()
        )),
    }
}

fn send(proxy: &Proxy, wire: &[u8]) -> Answer {
    let mut connection = proxy.connect();
    connection.send(wire);
    connection.answer("GET")
}

/// Waits until `/readyz` has this status.
#[track_caller]
fn is_ready(proxy: &Proxy, status: u16) {
    until("/readyz has another status", || {
        proxy.ask_admin("/readyz").status == status
    });
}

#[test]
fn a_moved_store_rejects_what_the_old_one_accepted() {
    let (api, postgres) = (Upstream::start(), Postgres::start());
    for (from, to) in [
        ("sqlite local", "sqlite local"),
        ("sqlite local", "postgres shared"),
        ("postgres shared", "sqlite local"),
        ("postgres local", "postgres shared"),
        ("postgres shared", "postgres local"),
    ] {
        let case = format!("{from} to {to}");
        let mut old = store(&api, &postgres, from).start();
        let caller = old.somebody();
        let revoked = old.token(&caller.consumer, &caller.user);
        old.run(&format!("token revoke {}", revoked.token));
        let call = || Call::get("/a").of(&caller);
        // A clock that is ahead has its nonces in the future.
        let ahead = (now() + 200).to_string();
        let wires = [
            old.wire(&call()),
            old.wire(&call().parameter("oauth_timestamp", &ahead)),
        ];
        for wire in &wires {
            assert_eq!(send(&old, wire).status, 200, "{case}");
            assert_eq!(send(&old, wire).status, 401, "{case}");
        }
        assert!(old.stop().success());
        let file = old.directory().join("export");
        let file = file.to_str().unwrap();
        old.run(&format!("export {file}"));
        let text = std::fs::read_to_string(file).unwrap();
        let records = text.lines().count() - 1;

        let builder = store(&api, &postgres, to);
        let imported = builder.run(&["import", file, "--json"], "").done();
        assert_eq!(imported.json()["added"], records, "{case}");
        assert!(imported.stderr.contains("get 503"), "{case}: {imported:?}");
        let again = builder.run(&["import", "-", "--json"], &text).done().json();
        assert_eq!(again["unchanged"], records, "{case}");
        let waiting = builder.start_unready();
        let ready = waiting.ask_admin("/readyz").has_status(503).text();
        assert!(ready.contains("imported"), "{case}: {ready}");
        for wire in wires.iter().chain([&waiting.wire(&call())]) {
            let response = send(&waiting, wire);
            assert_eq!(response.status, 503, "{case}");
            assert!(response.fields.has("retry-after"), "{case}");
        }
        let mut moved = waiting;
        moved.reconfigure("nonce.on_lost = 'accept'");
        moved.signal(rustix::process::Signal::HUP);
        until("the reload waives it", || moved.send(call()).status == 200);
        let old = Call::get("/a").by(&caller.consumer).with(&revoked);
        assert_eq!(moved.send(old).status, 401, "{case}");
    }
}

#[test]
fn a_running_proxy_rejects_what_the_store_of_an_import_accepted() {
    let api = Upstream::start();
    let start = || Proxy::with(&api, PUBLIC);
    let (old, new) = (start(), start());
    let caller = old.somebody();
    let wire = old.wire(&Call::get("/a").of(&caller));
    assert_eq!(send(&old, &wire).status, 200);
    let export = old.run("export -").stdout;
    // A store knows its own nonces.
    old.command_with(&["import", "-"], &export).done();
    let fresh = Call::get("/a").of(&caller);
    assert_eq!(old.send(fresh).status, 200);
    new.command_with(&["import", "-"], &export).done();
    is_ready(&new, 503);
    assert_eq!(send(&new, &wire).status, 503);
}

#[test]
fn import_waits_for_an_old_export_not_for_another_systems_keys() {
    let api = Upstream::start();
    let lines = r#"
        {"kind":"consumer","key":"shop","secret":"s","name":"Shop"}
        {"kind":"user","id":"u","name":"alice"}
        {"kind":"token","token":"t","token_secret":"ts","consumer":"shop","user":"u"}"#;
    for (head, status) in [
        // As exports were written before they named the last timestamp.
        (r#"{"kind":"export","version":1,"records":3}"#, 503),
        (r#"{"kind":"export","version":1}"#, 200),
    ] {
        let builder = Proxy::in_front_of(&api).config(PUBLIC);
        builder
            .run(&["import", "-"], &format!("{head}{lines}"))
            .done();
        let proxy = builder.start_unready();
        is_ready(&proxy, status);
    }
}
