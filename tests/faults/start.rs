//! A start before its database and its Redis, as after a reboot of the machine on which all of them run.
//!
//! Promise (Storage and operation): A start waits for a database or Redis, and the service manager learns of readiness, reloads
//! and hangs. Also in `tests/faults/handover.rs`.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    Answer, Call, Connection, Postgres, Proxy, RedisServer, Upstream, has, until, within,
};

/// What is started, in its order.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Postgres,
    Redis,
    Countersign,
}

use Part::{Countersign, Postgres as Database, Redis};

fn config(postgres: &Postgres, redis: &RedisServer) -> String {
    let (database, redis) = (postgres.database(), redis.url());
    // After a restart of Redis and of all processes, no process knows which nonces Redis had: by default that is 503 for a
    // window.
    format!(
        "store.backend = 'postgres'\nstore.url = '{database}'\nnonce.url = '{redis}'\nnonce.on_lost = 'accept'"
    )
}

/// A Redis that keeps everything, and needs about two seconds to load it.
fn slow_to_load() -> RedisServer {
    let redis = RedisServer::with(&[
        &["--appendonly", "yes"],
        &["--appendfsync", "always"],
        &["--key-load-delay", "1000"],
        &["--loading-process-events-interval-bytes", "1024"],
    ]);
    let fill = "for i = 1, 2000 do redis.call('set', 'other' .. i, 'x') end";
    redis.ask(&["eval", fill, "0"]);
    redis
}

/// Checks that the process runs, answers 503 and names the condition.
fn is_not_ready(proxy: &Proxy, condition: &str) {
    let ready = within(Duration::from_secs(30), "the condition is named", || {
        let ready = proxy.ask_admin("/readyz");
        let line = format!("not ready: {condition} since 20");
        ready.text().contains(&line).then_some(ready)
    });
    ready.has_status(503);
    proxy.ask_admin("/healthz").has_status(200);
    assert_eq!(proxy.metric("countersign_ready"), 0.0);
    let gauge = format!("countersign_not_ready{{cause=\"{condition}\"}}");
    assert_eq!(proxy.metric(&gauge), 1.0);
    for call in [Call::get("/a"), Call::post("/oauth/request_token")] {
        let answer: Answer = proxy.send(call);
        answer.has_status(503);
        assert!(answer.header("Retry-After").is_some(), "{answer:?}");
    }
}

#[test]
fn any_order_of_postgres_redis_and_countersign_ends_ready() {
    let api = Upstream::start();
    let postgres = Postgres::start();
    let mut redis = slow_to_load();
    let mut proxy = Proxy::with(&api, &config(&postgres, &redis));
    let caller = proxy.somebody();
    for order in [
        [Countersign, Database, Redis],
        [Countersign, Redis, Database],
        [Database, Countersign, Redis],
        [Redis, Countersign, Database],
        [Database, Redis, Countersign],
        [Redis, Database, Countersign],
    ] {
        // Without power.
        proxy.kill();
        postgres.stop();
        redis.kill();
        for part in order {
            let is_up = |other| {
                order.iter().position(|it| *it == other) < order.iter().position(|it| *it == part)
            };
            match part {
                Database => postgres.start_soon(),
                Redis => redis.start_loading(),
                Countersign => proxy.start_unready(),
            }
            if part == Countersign && !(is_up(Database) && is_up(Redis)) {
                let missing = if is_up(Database) { "nonces" } else { "store" };
                is_not_ready(&proxy, missing);
            }
        }
        until("the proxy is ready", || proxy.is_ready());
        proxy.passes(Call::get("/a").by(&caller.consumer).with(&caller.token));
    }
}

#[test]
fn the_log_has_the_beginning_and_the_end_of_the_wait() {
    let api = Upstream::start();
    let (postgres, mut redis) = (Postgres::start(), slow_to_load());
    let builder = Proxy::in_front_of(&api).config(&config(&postgres, &redis));
    postgres.stop();
    let mut proxy = builder.start_unready();
    is_not_ready(&proxy, "store");
    // A reload waits as well.
    proxy.signal(Signal::HUP);
    redis.kill();
    redis.start_loading();
    postgres.start_again();
    is_not_ready(&proxy, "nonces");
    until("the cause is named", || {
        let cause = proxy.ask_admin("/readyz").text();
        cause.contains("nonce.url") && cause.contains("BusyLoading")
    });
    until("the proxy is ready", || proxy.is_ready());
    for condition in ["store", "nonces"] {
        let field = format!("condition=\"{condition}\"");
        for event in ["condition began", "condition ended"] {
            assert_eq!(proxy.logged(&[&field, event]), 1, "{condition}: {event}");
        }
    }
    assert_eq!(proxy.logged(&["listening", "public"]), 1);
    proxy.logs(&["configuration_reloaded"]);
    assert!(proxy.stop().success());
}

#[test]
fn sigterm_ends_the_wait_at_once() {
    let api = Upstream::start();
    let (postgres, redis) = (Postgres::start(), RedisServer::start());
    let config = config(&postgres, &redis);
    postgres.stop();
    let mut proxy = Proxy::in_front_of(&api).config(&config).start_unready();
    is_not_ready(&proxy, "store");
    assert!(proxy.stop().success());
    proxy.start_unready();
    postgres.start_again();
    until("the proxy is ready", || proxy.is_ready());
    assert!(proxy.stop().success());
}

#[test]
fn a_rejected_login_is_tried_again_and_a_wrong_role_is_not() {
    let api = Upstream::start();
    let (postgres, redis) = (Postgres::start(), RedisServer::start());
    let config = config(&postgres, &redis).replace("//postgres@", "//later@");
    let mut proxy = Proxy::in_front_of(&api).config(&config).start_unready();
    is_not_ready(&proxy, "store");
    has(
        &proxy.ask_admin("/readyz").text(),
        &["store.url", "\"later\""],
    );
    // Now it can log in, but not make the tables: the operator has to act, and the process ends.
    postgres.sql("postgres", "CREATE ROLE later LOGIN");
    assert_eq!(proxy.wait().code(), Some(1));
    postgres.sql("postgres", "ALTER ROLE later SUPERUSER");
    proxy.start();
    assert!(proxy.stop().success());
}

#[test]
fn only_known_hosts_see_the_cause_on_loopback() {
    let api = Upstream::start();
    let (postgres, redis) = (Postgres::start(), RedisServer::start());
    let config = config(&postgres, &redis);
    postgres.stop();
    let proxy = Proxy::in_front_of(&api).config(&config).start_unready();
    is_not_ready(&proxy, "store");
    let wire = b"GET /readyz HTTP/1.1\r\nHost: attacker.example\r\n\r\n";
    let mut connection = Connection::to(proxy.admin());
    connection.send(wire);
    let answer = connection.answer("GET");
    answer.has_status(421);
    assert!(!answer.text().contains("store.url"), "{answer:?}");
}
