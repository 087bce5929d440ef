//! SIGTERM: every request on an accepted connection is answered.
//!
//! Promise (Storage and operation): At SIGTERM, at SIGHUP and with passed sockets no connection is refused, and no accepted
//! request or nonce is lost. Also in `src/wire/server/listener.rs`, `tests/faults/reload.rs`, `tests/faults/handover.rs`,
//! `tests/http2/life.rs`, `src/records/nonce/tests/window.rs`.

use rustix::process::Signal;

use crate::{
    faults::{
        load::{Load, Target},
        scaled,
    },
    support::{Call, Proxy, Reply, Scene, Upstream, until},
};

/// A public address that outlives a restart on another port.
const FIXED: &str = "service.base_url = 'https://api.test'\nlog.access = false";

#[test]
fn drain_under_load_serves_every_accepted_connection() {
    let (api, mut proxy, caller) = Scene::with(FIXED).into_parts();
    let mut answered = 0;
    for round in 0..scaled(2, 10) {
        // Every second time there is a while between the announcement and the end.
        let delay = if round % 2 == 0 { "0s" } else { "2s" };
        proxy.reconfigure(&format!("listen.drain_delay = '{delay}'"));
        if round > 0 {
            proxy.start();
        }
        let load = Load::begin(&Target::of(&proxy, &caller.consumer, &caller.token), 64);
        load.goes_on_for(640);
        proxy.signal(Signal::TERM);
        if round % 2 == 1 {
            until("the end is announced", || {
                proxy.ask_admin("/readyz").status == 503
            });
        }
        let tally = load.wait();
        assert!(proxy.wait().success());
        // The kernel resets a connection that it completes between the last accept and the close of the listener.
        let is_unaccepted = |failure: &&String| {
            failure.contains("on a new connection") && failure.contains("ConnectionReset")
        };
        let lost: Vec<_> = tally
            .failures
            .iter()
            .filter(|failure| !is_unaccepted(failure))
            .collect();
        assert_eq!(lost, [""; 0], "round {round}");
        assert!(tally.told_to_close > 0, "round {round}: {tally:?}");
        answered += tally.answered;
        assert_eq!(api.count(), answered, "the API saw what was answered");
    }
}

#[test]
fn a_drain_marks_the_response_to_one_more_request_as_the_last() {
    let (go, proceed) = std::sync::mpsc::channel::<()>();
    let proceed = std::sync::Mutex::new(proceed);
    let api = Upstream::replying(move |seen| {
        if seen.target == "/held" {
            proceed.lock().unwrap().recv().unwrap();
        }
        Reply::ok("done")
    });
    let mut proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let call = |target: &str| Call::get(target).of(&caller);
    let mut kept = proxy.connect();
    let answer = proxy.send_on(&mut kept, call("/first"));
    assert_eq!(answer.header("connection"), None, "{answer:?}");
    let mut running = proxy.connect();
    running.send(&proxy.wire(&call("/held")));
    api.wait_for(2);

    let last = proxy.wire(&call("/last"));
    proxy.signal(Signal::TERM);
    until("draining is told", || {
        let answer = proxy.ask_admin("/readyz");
        answer.status == 503 && answer.text().contains("draining")
    });
    kept.send(&last);
    let answer = kept.answer("GET");
    answer.has_status(200);
    assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
    assert!(kept.is_closed());

    go.send(()).unwrap();
    let answer = running.answer("GET");
    answer.has_status(200);
    assert!(running.is_closed());
    assert!(proxy.wait().success());
    assert_eq!(api.count(), 3);
}

#[test]
fn idle_connections_do_not_delay_the_end_of_a_drain() {
    for delay in ["0s", "1s"] {
        let (_api, mut proxy, caller) = Scene::with(&format!(
            "listen.drain = '1h'\nlisten.drain_delay = '{delay}'"
        ))
        .into_parts();
        let mut connections = Vec::new();
        for written in [
            &b""[..],
            b"GET / HT",
            b"\r",
            b"GET / HTTP/1.1\r\nHost: x\r\n",
        ] {
            let mut connection = proxy.connect();
            connection.send(written);
            connections.push(connection);
        }
        let mut kept = proxy.connect();
        proxy
            .send_on(&mut kept, Call::get("/").of(&caller))
            .has_status(200);
        connections.push(kept);
        // An hour is allowed, and a minute would be too long for the harness.
        assert!(proxy.stop().success());
        for connection in &mut connections {
            assert!(connection.is_closed());
        }
    }
}
