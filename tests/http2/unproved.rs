//! Requests that have proved nothing, and what they leave to others.
//!
//! Promise (HTTP): Requests that wait for their body before the decision take at most a quarter of `limits.concurrent_requests`, and the
//! oldest of the address that has most of them makes place for others; a rejection whose response is not read takes none.

use crate::{
    client::{DATA, END_HEADERS, END_STREAM, HEADERS, Raw, SETTINGS, frame, head},
    support::{Call, Connection, Proxy, Reply, Upstream, until},
};

const FORM: &str = "application/x-www-form-urlencoded";

fn start() -> (Upstream, Proxy) {
    let api = Upstream::replying(|_| Reply::ok("seen"));
    let proxy = Proxy::with(&api, "listen.workers = 2\nlimits.concurrent_requests = 40");
    (api, proxy)
}

/// Others get their calls served, also with a form.
#[track_caller]
fn others_are_served(proxy: &Proxy) {
    let caller = proxy.somebody();
    for _ in 0..8 {
        proxy.passes(Call::get("/x").of(&caller));
        proxy.passes(Call::post("/x").of(&caller).form("a=1"));
    }
}

/// Opens streams on connections of their own, each with these frames.
fn streams(proxy: &Proxy, settings: &[u8], stream: impl Fn(u32) -> Vec<u8>) -> Vec<Raw> {
    let connection = |_| {
        let mut raw = Raw::to(proxy.address());
        raw.frame(SETTINGS, 0, 0, settings).unwrap();
        for number in 0..50 {
            raw.bytes(&stream(2 * number + 1)).unwrap();
        }
        raw
    };
    (0..4).map(connection).collect()
}

#[test]
fn half_sent_forms_leave_places_to_others() {
    let (_api, proxy) = start();
    let fields = [("content-type", FORM), ("content-length", "100")];
    let begun = head(&proxy, "POST", "/x", &fields);
    let half = |id| {
        [
            frame(HEADERS, END_HEADERS, id, &begun),
            frame(DATA, 0, id, b"a="),
        ]
        .concat()
    };
    let held = streams(&proxy, &[], half);
    let wire = format!(
        "POST /x HTTP/1.1\r\nHost: {}\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\na=",
        proxy.host()
    );
    let slow: Vec<Connection> = (0..60)
        .map(|_| {
            let mut connection = proxy.connect();
            connection.send(wire.as_bytes());
            connection
        })
        .collect();
    until("some are dropped", || {
        proxy.metric("countersign_requests_total{verdict=\"unavailable\"}") >= 200.0
    });
    others_are_served(&proxy);
    drop((held, slow));
}

#[test]
fn rejections_that_nobody_reads_leave_places_to_others() {
    // SETTINGS_INITIAL_WINDOW_SIZE is 0 (RFC 9113 §6.5.2): no response can have a body.
    const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];
    let (_api, proxy) = start();
    let whole = head(&proxy, "GET", "/x", &[]);
    let rejected = |id| frame(HEADERS, END_HEADERS | END_STREAM, id, &whole);
    let held = streams(&proxy, NO_WINDOW, rejected);
    let fields = [("content-type", "text/plain"), ("content-length", "100")];
    let upload = head(&proxy, "POST", "/x", &fields);
    let uploads = streams(&proxy, &[], |id| frame(HEADERS, END_HEADERS, id, &upload));
    others_are_served(&proxy);
    drop((held, uploads));
}
