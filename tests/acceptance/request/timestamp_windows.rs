//! The window of an operation's timestamps, and reloads that change it.
//!
//! Promise (Replay): An operation can have its own window; no reload that changes windows admits a request twice. Also in
//! `tests/faults/window.rs`, `src/records/nonce/tests`.

use crate::support::{
    Call, Scene, now,
    proxy::{Consumer, Proxy},
};

const WIDE: &str = "operation = [
    { path = '/launch', access = ['application'], timestamp_window = '90m' },
    { path = '/orders', access = ['application'] },
    { path = '/exact', access = ['application'], timestamp_window = '10s' },
]";

fn at(path: &str, consumer: &Consumer, ago: u64) -> Call {
    let time = (now() - ago).to_string();
    Call::post(path)
        .by(consumer)
        .parameter("oauth_timestamp", &time)
}

#[test]
fn an_operation_can_have_its_own_timestamp_window() {
    let (_api, proxy, caller) = Scene::with(WIDE).into_parts();
    let consumer = &caller.consumer;
    let send = |path, ago| proxy.send(at(path, consumer, ago));
    send("/launch", 5_300).has_status(200);
    send("/launch", 5_500).is(401, "timestamp_refused");
    send("/orders", 200).has_status(200);
    send("/orders", 400).is(401, "timestamp_refused");
    send("/unlisted", 400).is(401, "timestamp_refused");
    send("/exact", 60).is(401, "timestamp_refused");
    send("/exact", 0).has_status(200);
    // Also where the head alone decides, before the form has arrived.
    let form = |ago| at("/launch", consumer, ago).form("a=b");
    proxy.passes(form(5_300));
    let old = form(5_300).parameter("oauth_nonce", "once");
    let wire = proxy.wire(&old);
    for status in [200, 401] {
        let mut connection = proxy.connect();
        connection.send(&wire);
        connection.answer("POST").has_status(status);
    }
    // The range in the answer is that of the operation, and token calls have the usual one.
    let answer = send("/exact", 60);
    let range = answer.form("oauth_acceptable_timestamps").unwrap();
    let (earliest, latest) = range.split_once('-').unwrap();
    let length = latest.parse::<u64>().unwrap() - earliest.parse::<u64>().unwrap();
    assert_eq!(length, 20);
    let token_call = at("/oauth/request_token", consumer, 400).parameter("oauth_callback", "oob");
    proxy.rejects(token_call, 401, "timestamp_refused");
    // `check` and `explain` know it.
    let checked = proxy.command(&["check"]);
    for part in ["10800s", "timestamp_window", "MiB"] {
        assert!(checked.stdout.contains(part), "{checked:?}");
    }
    let wire = String::from_utf8(proxy.wire(&at("/launch", consumer, 5_300))).unwrap();
    let header = wire.lines().find(|line| line.starts_with("Authorization"));
    for (path, is_refused) in [("/launch", false), ("/orders", true)] {
        let url = format!("{}{path}", proxy.origin());
        let explained = proxy.command(&["explain", "POST", &url, "--header", header.unwrap()]);
        let refused = explained.stdout.contains("timestamp_refused");
        assert_eq!(refused, is_refused, "{explained:?}");
    }
}

#[test]
fn window_that_a_reload_widens_and_narrows_admits_nothing_twice() {
    let mut scene = Scene::with(WIDE);
    let consumer = scene.caller.consumer.clone();
    let proxy = &mut scene.proxy;
    let send = |proxy: &Proxy, wire: &[u8]| {
        let mut connection = proxy.connect();
        connection.send(wire);
        connection.answer("POST")
    };
    let narrow = "operation = [
        { path = '/launch', access = ['application'] },
        { path = '/orders', access = ['application'] },
    ]";
    let launched = proxy.wire(&at("/launch", &consumer, 1_000));
    send(proxy, &launched).has_status(200);
    send(proxy, &launched).is(401, "nonce_used");
    proxy.reload(narrow);
    send(proxy, &launched).is(401, "timestamp_refused");
    proxy.reload(WIDE);
    // Whatever has left the narrow window stays out, used or not; new calls get the wide one when its mark is written.
    let ahead =
        || at("/launch", &consumer, 0).parameter("oauth_timestamp", &(now() + 1_000).to_string());
    crate::support::until("the wide window counts", || proxy.status(ahead()) == 200);
    send(proxy, &launched).is(401, "timestamp_refused");
    proxy.rejects(at("/launch", &consumer, 1_000), 401, "timestamp_refused");
    // Where another operation keeps the nonces, the window of one can change, and its nonces stay known.
    let other = |window: &str| {
        format!(
            "operation = [
            {{ path = '/launch', access = ['application'], timestamp_window = '{window}' }},
            {{ path = '/orders', access = ['application'], timestamp_window = '90m' }},
        ]"
        )
    };
    proxy.reload(&other("90m"));
    let launched = proxy.wire(&ahead());
    send(proxy, &launched).has_status(200);
    proxy.reload(&other("10s"));
    send(proxy, &launched).is(401, "timestamp_refused");
    proxy.reload(&other("90m"));
    send(proxy, &launched).is(401, "nonce_used");
}
