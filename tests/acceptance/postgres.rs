//! The program on PostgreSQL: `serve` and the commands share a database.

use std::{thread::sleep, time::Duration};

use crate::support::{Call, Postgres, Proxy, Upstream, proxy::Builder, within};

fn on(server: &Postgres, api: &Upstream) -> Builder {
    let url = server.database();
    Proxy::in_front_of(api).config(&format!(
        "store.backend = 'postgres'\nstore.url = '{url}'\nnonce.scope = 'local'\n\
         cache.ttl = '1s'\ncache.stale_if_error = '60s'"
    ))
}

#[test]
fn a_command_takes_effect_while_it_serves() {
    let server = Postgres::start();
    let api = Upstream::start();
    let proxy = on(&server, &api).start();
    let (consumer, _, token) = proxy.somebody();
    let call = || Call::get("/a").by(&consumer).with(&token);
    assert_eq!(proxy.send(call()).status, 200);
    proxy.command(&["token", "revoke", &token.token]).done();
    within(
        Duration::from_secs(1),
        "the revocation takes effect",
        || (proxy.send(call()).status == 401).then_some(()),
    );
}

#[test]
fn an_outage_is_logged_once_and_never_taken_for_a_wrong_token() {
    let server = Postgres::start();
    let api = Upstream::start();
    let proxy = on(&server, &api).start();
    let (consumer, user, token) = proxy.somebody();
    let other = proxy.token(&consumer, &user);
    let known = || Call::get("/a").by(&consumer).with(&token);
    let unknown = || Call::get("/a").by(&consumer).with(&other);
    assert_eq!(proxy.send(known()).status, 200);
    server.hang();
    for _ in 0..3 {
        // What is cached serves on; what is not is unavailable, and says so in time.
        assert_eq!(proxy.send(known()).status, 200);
        let response = proxy.send(unknown());
        assert_eq!(response.status, 503, "{response:?}");
        assert!(response.header("Retry-After").is_some());
        assert_eq!(proxy.ask_admin("/readyz").status, 503);
        sleep(Duration::from_millis(400));
    }
    server.go_on();
    within(Duration::from_secs(2), "it is ready again", || {
        (proxy.ask_admin("/readyz").status == 200).then_some(())
    });
    let lines = proxy.log().lines();
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("the store cannot be reached"), 1, "{lines:#?}");
    assert_eq!(count("the store can be reached again"), 1, "{lines:#?}");
    assert_eq!(count(" ERROR "), 1, "{lines:#?}");
}

#[test]
fn check_names_what_would_lose_data_and_creates_nothing() {
    let server = Postgres::start();
    let api = Upstream::start();
    let builder = on(&server, &api);
    let ended = builder.run(&["check"], "").done();
    assert!(ended.stdout.contains("has no store in it yet"), "{ended:?}");
    builder.run(&["consumer", "add", "--name", "n"], "").done();
    let ended = builder.run(&["check"], "").done();
    assert!(ended.stderr.contains("fsync is off"), "{ended:?}");
}

#[test]
fn a_command_rejects_a_newer_schema() {
    let server = Postgres::start();
    let api = Upstream::start();
    let builder = on(&server, &api);
    builder.run(&["consumer", "list"], "").done();
    server.sql("test0", "UPDATE countersign.meta SET version = 99");
    for command in ["list", "check", "serve"] {
        let ended = match command {
            "list" => builder.run(&["consumer", "list"], ""),
            "check" => builder.run(&["check"], ""),
            _ => builder.serve_fails(),
        };
        assert_eq!(ended.code(), Some(1), "{command}: {ended:?}");
        assert!(ended.stderr.contains("run the newer version"), "{ended:?}");
    }
}
