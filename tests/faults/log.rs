//! A reader of standard error that stalls: it must not stop requests.
//!
//! Promise (HTTP): A stalled reader of the log stops no request; access lines are dropped first, audit records last, and
//! counted. Also in `src/telemetry/log/queue.rs`.

use std::time::Duration;

use crate::{
    faults::load::is_closed,
    support::{Call, Connection, Proxy, Scene, until},
};

/// Sends this many unsigned requests on one connection, and reads the responses.
#[track_caller]
fn send(proxy: &Proxy, connection: &mut Connection, count: usize) {
    let wire = proxy.wire(&Call::get("/unsigned"));
    for _ in 0..count {
        connection.send(&wire);
        connection.answer("GET").has_status(401);
    }
}

/// The number after `name=` in a line.
fn number(line: &str, name: &str) -> usize {
    let (_, rest) = line.split_once(&format!("{name}=")).unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// The access lines of [`send`], and the sum of those that the log says are missing.
fn written(proxy: &Proxy) -> (usize, usize) {
    let lines = proxy.log().lines();
    let of_requests = lines.iter().filter(|line| line.contains("/unsigned"));
    let missing = lines.iter().filter(|line| line.contains("lines dropped"));
    let missing = missing.map(|line| number(line, "lines")).sum();
    (of_requests.count(), missing)
}

#[test]
fn unread_log_stops_no_request_and_later_counts_lost_lines() {
    const REQUESTS: usize = 10_000;
    let (_api, proxy, caller) = Scene::start().into_parts();
    let log = proxy.log();
    let unread = log.unread();
    let mut connection = proxy.connect();
    send(&proxy, &mut connection, REQUESTS);
    let dropped = || proxy.metric("countersign_log_lines_dropped_total");
    assert!(dropped() > 0.0, "the log has a bound");
    // Lines of other kinds have room of their own.
    proxy.run(&format!("token revoke {}", caller.token.token));
    until("the condition is noticed", || {
        proxy.metric("countersign_degraded{cause=\"log_stalled\"}") == 1.0
    });
    let ready = proxy.ask_admin("/readyz");
    let report = ready.has_status(200).text();
    assert!(report.contains("degraded: log_stalled since "), "{report}");

    drop(unread);
    until("all lines are there or counted", || {
        let (there, missing) = written(&proxy);
        there + missing == REQUESTS
    });
    assert_eq!(written(&proxy).1 as f64, dropped());
    log.wait_for("the audit record", |line| {
        (line.contains("audit") && line.contains("revoked")).then_some(())
    });
    for text in ["condition began", "condition ended"] {
        log.wait_for(text, |line| {
            (line.contains(text) && line.contains("log_stalled")).then_some(())
        });
    }
    send(&proxy, &mut connection, 1);
    until("the log continues", || {
        let (there, missing) = written(&proxy);
        there + missing == REQUESTS + 1
    });
}

#[test]
fn the_log_is_complete_after_a_clean_stop() {
    const REQUESTS: usize = 2_000;
    let (_api, mut proxy, _) = Scene::start().into_parts();
    let log = proxy.log();
    let unread = log.unread();
    let mut connection = proxy.connect();
    send(&proxy, &mut connection, REQUESTS);
    drop(connection);
    let public = std::net::TcpStream::connect(proxy.address()).unwrap();
    proxy.signal(rustix::process::Signal::TERM);
    until("the process ends its work", || is_closed(&public));
    // The process waits for the reader.
    std::thread::sleep(Duration::from_millis(500));
    drop(unread);
    assert!(proxy.wait().success());
    log.wait_for("the last line", |line| {
        line.ends_with("ended").then_some(())
    });
    let lines = log.lines();
    let there = lines.iter().filter(|line| line.contains("/unsigned"));
    assert_eq!(there.count(), REQUESTS);
}
