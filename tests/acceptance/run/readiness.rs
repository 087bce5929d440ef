//! The probes, and conditions that an operator has to notice before consumers call: in `/readyz`, the metrics and the log.
//!
//! Promise (Storage and operation): A full nonce window, a full disk and a missing key are in `/readyz`, a metric and the log
//! within two seconds. Also in `tests/faults/disk.rs`.

use rustix::process::Signal;

use crate::support::{Answer, Call, Connection, Proxy, Scene, Upstream, has, http, until};

/// Waits until this many lines of the log have all of these parts.
#[track_caller]
fn told(proxy: &Proxy, parts: &[&str], times: usize) {
    until(&format!("{parts:?} {times} times"), || {
        let lines = proxy.log().lines();
        let has = |line: &&String| parts.iter().all(|part| line.contains(part));
        lines.iter().filter(has).count() == times
    });
}

#[test]
fn probes_are_on_the_admin_listener_and_draining_is_not_ready() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, "listen.drain_delay = '5s'");
    proxy.ask_admin("/healthz").has_status(200);
    proxy.ask_admin("/readyz").has_status(200);
    // Only the admin listener serves them.
    for target in ["/healthz", "/readyz", "/metrics"] {
        proxy.send(Call::get(target)).is(401, "parameter_absent");
    }
    proxy.signal(Signal::TERM);
    let admin = proxy.admin();
    until("not ready while draining", || {
        http::get(admin, "/readyz").status == 503
    });
    assert!(proxy.wait().success());
}

#[test]
fn a_full_nonce_window_is_logged_once_with_its_duration() {
    let (_api, proxy, caller) =
        Scene::with("nonce.max_entries = 10\nsignature.timestamp_window = '3s'").into_parts();
    let send = || proxy.send(Call::get("/x").of(&caller));
    let metric = |name: &str| proxy.metric(&format!("countersign_{name}\"}}"));
    until("the window is full", || send().status == 503);
    for _ in 0..20 {
        let answer = send();
        if answer.status == 503 {
            let after: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
            // The oldest nonce leaves within a window from its timestamp, and is dropped within a second.
            assert!((1..=8).contains(&after), "{after}");
        }
    }
    let ready = proxy.ask_admin("/readyz");
    ready.has_status(503);
    let text = ready.text();
    has(&text, &["not ready: nonce_window_full since 20"]);
    assert!(text.contains("nonce.max_entries"), "{text}");
    assert_eq!(metric("not_ready{cause=\"nonce_window_full"), 1.0);
    assert_eq!(metric("degraded{cause=\"disk_full"), 0.0);
    until("ready again", || {
        let ready = proxy.ask_admin("/readyz");
        ready.status == 200 && !ready.text().contains("degraded")
    });
    assert_eq!(metric("not_ready{cause=\"nonce_window_full"), 0.0);
    let name = "condition=\"nonce_window_full\"";
    told(&proxy, &["ERROR", name], 1);
    told(&proxy, &["INFO", name, "condition ended", "seconds="], 1);
    told(&proxy, &["WARN", "nonce_window_filling"], 1);
    told(&proxy, &["request failed"], 0);
}

#[test]
fn key_missing_after_rekey_makes_the_process_not_ready() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api);
    for (name, byte) in [("old.key", 1), ("new.key", 2)] {
        std::fs::write(builder.directory().join(name), [byte; 32]).unwrap();
    }
    let mut proxy = builder
        .config("store.encryption_key_file = 'old.key'")
        .start();
    let (caller, other) = (proxy.somebody(), proxy.consumer("Other"));
    let token = proxy.token(&other, &caller.user);
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
    proxy.reconfigure("store.encryption_key_file = ['new.key', 'old.key']");
    proxy.run("rekey");
    // The first call that needs the key shows it, whenever the next search for such secrets is due.
    let call = Call::get("/x").by(&other).with(&token);
    proxy.send(call).has_status(503);
    let ready = proxy.ask_admin("/readyz");
    ready.has_status(503);
    let ready = ready.text();
    assert!(ready.contains("not ready: key_missing since 20"), "{ready}");
    assert!(ready.contains("store.encryption_key_file"), "{ready}");
    told(&proxy, &["ERROR", "condition=\"key_missing\""], 1);
    // The program that has the key is ready.
    proxy.stop();
    proxy.start();
    told(&proxy, &["condition=\"key_missing\""], 0);
}

#[test]
fn a_loopback_admin_listener_rejects_other_hosts() {
    let api = Upstream::start();
    let ask = |proxy: &Proxy, target: &str, host: &str| -> Answer {
        let mut connection = Connection::to(proxy.admin());
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.send(head.as_bytes());
        connection.answer("GET")
    };
    for (config, name, other) in [
        ("", 421, 421),
        ("admin.hosts = ['Countersign']", 200, 421),
        ("admin.listen = '0.0.0.0:0'", 200, 200),
    ] {
        let proxy = Proxy::with(&api, config);
        for target in ["/healthz", "/readyz", "/metrics"] {
            ask(&proxy, target, "countersign:8081").has_status(name);
            ask(&proxy, target, "rebound.test").has_status(other);
            ask(&proxy, target, "localhost:8081").has_status(200);
            ask(&proxy, target, "127.0.0.1").has_status(200);
        }
    }
}
