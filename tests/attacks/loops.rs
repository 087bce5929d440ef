//! Requests that come back: `upstream.api_url` leads, through a server in between, back to the same process.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, OnceLock},
    thread,
};

use rustix::process::Signal;

use crate::support::{Call, Proxy, Upstream, proxy::Builder, until};

const OPEN: &str = "operations.unlisted = 'anonymous'";

/// Passes bytes on to an address that is named later, as a load balancer would.
struct Relay {
    url: String,
    to: Arc<OnceLock<SocketAddr>>,
}

impl Relay {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let to: Arc<OnceLock<SocketAddr>> = Arc::default();
        let target = Arc::clone(&to);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (near, far) = (stream.unwrap(), TcpStream::connect(target.wait()).unwrap());
                for (mut from, mut to) in [
                    (near.try_clone().unwrap(), far.try_clone().unwrap()),
                    (far, near),
                ] {
                    thread::spawn(move || {
                        drop(io::copy(&mut from, &mut to));
                        drop(to.shutdown(Shutdown::Write));
                    });
                }
            }
        });
        Self { url, to }
    }
}

/// Waits until the proxy has counted this many requests under a verdict: it counts once the answer was sent.
#[track_caller]
fn counts(proxy: &Proxy, verdict: &str, expected: f64) {
    let name = format!("countersign_requests_total{{verdict=\"{verdict}\"}}");
    until("the requests are counted", || {
        proxy.metric(&name) >= expected
    });
    assert_eq!(proxy.metric(&name), expected, "{verdict}");
}

#[test]
fn a_looping_request_is_508_at_its_first_return() {
    let relay = Relay::start();
    let proxy = Builder::in_front_of_url(&relay.url).config(OPEN).start();
    relay.to.set(proxy.address()).unwrap();
    for (round, call) in [
        Call::get("/x"),
        Call::post("/x").json("{}"),
        // A field that `Connection` names is not forwarded; a caller cannot name ours.
        Call::get("/x").header("Connection", "Countersign-Hop"),
        Call::get("/x").header("Countersign-Hop", "somebody else"),
        // The token endpoints are no exception, nor is another method.
        Call::new("OPTIONS", "/x"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = proxy.send(call);
        answer.has_status(508);
        assert_eq!(answer.header("Cache-Control"), Some("no-store"));
        let passed = f64::from(u32::try_from(round).unwrap()) + 1.0;
        counts(&proxy, "loop_detected", passed);
        counts(&proxy, "anonymous", passed);
    }
    let log = proxy.log();
    let line = log.wait_for("the access log names the loop", |line| {
        line.contains("verdict=\"loop_detected\"")
            .then(|| line.to_owned())
    });
    assert!(line.contains("status=508"), "{line}");
}

#[test]
fn a_request_that_loops_over_another_process_is_508() {
    let relay = Relay::start();
    let host = relay.url.strip_prefix("http://").unwrap().to_owned();
    let first = Builder::in_front_of_url(&relay.url)
        .config(OPEN)
        .config("upstream.host = 'upstream'")
        .start();
    let second = Builder::in_front_of_url(&format!("http://{}", first.address()))
        .config(OPEN)
        .config(&format!(
            "upstream.host = 'upstream'\nservice.base_url = 'http://{host}'"
        ))
        .start();
    relay.to.set(second.address()).unwrap();
    first.send(Call::get("/x")).has_status(508);
    counts(&first, "anonymous", 1.0);
    counts(&second, "anonymous", 1.0);
    counts(&first, "loop_detected", 1.0);
}

#[test]
fn several_proxies_in_a_row_are_not_a_loop() {
    let api = Upstream::start();
    let inner = Proxy::with(&api, OPEN);
    let outer = Builder::in_front_of_url(&format!("http://{}", inner.address()))
        .config(OPEN)
        .config("upstream.host = 'upstream'\nlisten.workers = 4")
        .start();
    let hops = |proxy: &Proxy| -> Vec<String> {
        proxy.send(Call::get("/x")).has_status(200);
        let seen = api.last_request();
        let hops = seen.fields.all("Countersign-Hop");
        hops.iter().map(|&hop| hop.to_owned()).collect()
    };
    let both = hops(&outer);
    assert_eq!(both.len(), 2, "{both:?}");
    assert_ne!(both[0], both[1]);
    assert!(both.iter().all(|hop| hop.len() >= 22), "{both:?}");
    assert_eq!(hops(&inner), both[1..]);
    // Every worker has the same, and a reload keeps it.
    for _ in 0..32 {
        assert_eq!(hops(&outer), both);
    }
    outer.signal(Signal::HUP);
    outer.logs(&["configuration_reloaded"]);
    assert_eq!(hops(&outer), both);
}

#[test]
fn caller_with_the_loop_marker_gets_508_and_affects_no_other() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, OPEN);
    proxy.send(Call::get("/x")).has_status(200);
    let seen = api.last_request();
    let marker = seen.header("Countersign-Hop").unwrap().to_owned();
    for value in [
        marker.clone(),
        format!("a, {marker}"),
        format!("{marker},b"),
        format!("a ,\t{marker}\t, b"),
    ] {
        let count = api.count();
        for name in ["Countersign-Hop", "countersign-hop", "COUNTERSIGN-HOP"] {
            proxy
                .send(Call::get("/x").header(name, &value))
                .has_status(508);
        }
        let split = Call::get("/x")
            .header("Countersign-Hop", "a")
            .header("Countersign-Hop", &value);
        proxy.send(split).has_status(508);
        assert_eq!(api.count(), count);
        proxy.send(Call::get("/x")).has_status(200);
    }
    // A value of a similar form is treated like any other value.
    for value in [
        String::new(),
        marker[1..].to_owned(),
        format!("{marker}x"),
        marker.to_uppercase(),
        "*".to_owned(),
    ] {
        proxy.passes(Call::get("/x").header("Countersign-Hop", &value));
    }
    // Another run has another marker.
    assert!(proxy.stop().success());
    proxy.start();
    proxy.passes(Call::get("/x").header("Countersign-Hop", &marker));
}

#[test]
fn a_reload_does_not_turn_the_api_into_ourselves() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, OPEN);
    let (public, admin) = (proxy.address(), proxy.admin());
    for (own, key) in [(public, "listen.address"), (admin, "admin.listen")] {
        proxy.reconfigure(&format!("upstream.api_url = 'http://{own}'"));
        proxy.signal(Signal::HUP);
        until("the reload is refused", || {
            let lines = proxy.log().lines();
            lines.iter().any(|line| {
                line.contains("ERROR")
                    && line.contains("keeping the current configuration")
                    && line.contains("upstream.api_url")
                    && line.contains(key)
            })
        });
        proxy.send(Call::get("/x")).has_status(200);
    }
}
