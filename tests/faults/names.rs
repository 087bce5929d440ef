//! An API whose name has several addresses, changes them, or cannot be resolved.
//!
//! Promise (HTTP): A dead address of the API delays a connection by 250 ms; a new one takes effect within `upstream.max_age`.
//! Also in `src/wire/outbound/dial.rs`, `src/wire/outbound/resolve.rs`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use crate::{
    faults::process::Process,
    support::{Call, Proxy, Reply, Upstream, names::Names, silent::Silent, until},
};

const OPEN: &str = "log.access = false\nlisten.workers = 2\n[operations]\nunlisted = 'anonymous'";

/// An address of this machine, instead of another one.
fn address(last: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(127, 0, 0, last), port).into()
}

fn port(api: &Upstream) -> u16 {
    api.url().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// An API that takes one request on each connection.
fn each_on_its_own() -> Upstream {
    Upstream::replying(|_| Reply::ok("alive").header("Connection", "close").closing())
}

/// A proxy of the API `api.test`, whose addresses are those in `lines`.
fn proxy(port: u16, lines: &str, config: &str) -> (Proxy, Names) {
    let builder = Proxy::in_front_of_url(&format!("http://api.test:{port}")).config(OPEN);
    let (builder, names) = Names::of(builder.config(config), lines);
    (builder.start(), names)
}

#[test]
fn a_dead_first_address_of_the_api_delays_no_call_for_a_second() {
    let api = each_on_its_own();
    let port = port(&api);
    let _silent = Silent::at(address(2, port));
    let (proxy, names) = proxy(port, "api.test 127.0.0.2 127.0.0.1", "");
    for _ in 0..3 {
        let began = Instant::now();
        proxy.send(Call::get("/x")).has_status(200);
        assert!(began.elapsed() < Duration::from_secs(1));
    }
    names.set("api.test 127.0.0.2");
    proxy.send(Call::get("/x")).has_status(504);
    // One that refuses costs nothing, wherever it stands.
    let (proxy, _names) = self::proxy(port, "api.test 127.0.0.3 127.0.0.1 127.0.0.4", "");
    proxy.send(Call::get("/x")).has_status(200);
}

#[test]
fn last_addresses_of_the_api_serve_while_its_lookup_fails() {
    let api = each_on_its_own();
    let config = "[upstream]\nstale_addresses = '4s'\nconnect_timeout = '1s'";
    let (proxy, names) = proxy(port(&api), "api.test 127.0.0.1", config);
    proxy.send(Call::get("/x")).has_status(200);
    let process = Process::of(&proxy);
    for trouble in ["fails", "hangs"] {
        names.set(&format!("api.test {trouble}"));
        let before = process.threads().len();
        // Under load, and each call needs a new connection.
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        proxy.send(Call::get("/x")).has_status(200);
                    }
                });
            }
        });
        until("the last addresses no longer serve", || {
            let status = proxy.status(Call::get("/x"));
            assert!([200, 502, 504].contains(&status), "{status}");
            status != 200
        });
        // Callers that wait need no threads.
        thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| {
                    let status = proxy.status(Call::get("/x"));
                    assert!([502, 504].contains(&status), "{status}");
                });
            }
        });
        assert!(
            process.threads().len() <= before + 4,
            "{:?}",
            process.threads()
        );
        names.set("api.test 127.0.0.1");
        until("the name is resolved again", || {
            proxy.status(Call::get("/x")) == 200
        });
        // Another thread writes the log.
        until("the log tells the beginning and the end", || {
            let begun = proxy.logged(&["the name cannot be resolved"]);
            let ended = proxy.logged(&["the name is resolved again", "api.test"]);
            begun > 0 && begun == ended
        });
    }
}

#[test]
fn new_address_of_the_api_applies_though_connections_are_idle() {
    let old = Upstream::at(address(2, 0), |_| Reply::ok("old"));
    let new = Upstream::at(address(3, port(&old)), |_| Reply::ok("new"));
    let (proxy, names) = proxy(port(&old), "api.test 127.0.0.2", "upstream.max_age = '1s'");
    let mut caller = proxy.connect();
    let mut calls = || {
        let answer = proxy.send_on(&mut caller, Call::get("/x"));
        answer.has_status(200).text()
    };
    assert_eq!(calls(), "old");
    names.set("api.test 127.0.0.3");
    until("the API moves", || calls() == "new");
    let (before, seen) = (new.count(), old.count());
    for _ in 0..20 {
        assert_eq!(calls(), "new");
    }
    assert_eq!((new.count(), old.count()), (before + 20, seen));
}
