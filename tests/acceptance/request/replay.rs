//! No request passes twice.
//!
//! Promise (Replay): A nonce belongs to its consumer, token and timestamp, and one of a hundred equal requests at once passes.
//! Also in `src/request/verify/tests.rs`.

use std::sync::{Mutex, mpsc};

use crate::support::{Answer, Call, Reply, Scene, Upstream, now, proxy::race};

#[test]
fn one_of_a_hundred_identical_requests_at_once_reaches_the_api() {
    let Scene { api, proxy, caller } = Scene::start();
    let wire = proxy.wire(&Call::get("/pay?amount=1").of(&caller));
    let answers = race(vec![(&proxy, wire); 100]);
    let passed = answers.iter().filter(|answer| answer.status == 200);
    assert_eq!(passed.count(), 1);
    let used = |answer: &&Answer| answer.problem().as_deref() == Some("nonce_used");
    assert_eq!(answers.iter().filter(used).count(), 99);
    assert_eq!(api.count(), 1);
}

#[test]
fn a_nonce_is_unique_for_consumer_token_and_timestamp() {
    let Scene { api, proxy, caller } = Scene::start();
    let (shop, user, token) = caller.into_parts();
    let other = proxy.consumer("Other");
    let (second, third) = (proxy.token(&shop, &user), proxy.token(&other, &user));
    let now = now();
    let call = |target: &str, consumer, token, time: u64| {
        let call = Call::get(target).by(consumer).with(token);
        let call = call.parameter("oauth_nonce", "the-same");
        call.parameter("oauth_timestamp", &time.to_string())
    };
    proxy.passes(call("/", &shop, &token, now));
    proxy.rejects(call("/", &shop, &token, now), 401, "nonce_used");
    proxy.passes(call("/", &shop, &second, now));
    proxy.passes(call("/", &other, &third, now));
    proxy.passes(call("/", &shop, &token, now - 1));
    proxy.passes(call("/", &shop, &token, now + 1));
    proxy.rejects(call("/", &shop, &token, now + 1), 401, "nonce_used");
    // Another request with the same nonce is rejected like the same request.
    proxy.rejects(call("/else", &shop, &token, now), 401, "nonce_used");
    assert_eq!(api.count(), 5);
}

#[test]
fn a_nonce_is_recorded_only_under_a_right_signature() {
    let Scene { api, proxy, caller } = Scene::start();
    let now = now().to_string();
    let call = || {
        let call = Call::get("/").of(&caller).parameter("oauth_nonce", "mine");
        call.parameter("oauth_timestamp", &now)
    };
    proxy.rejects(call().key("forged&forged"), 401, "signature_invalid");
    proxy.passes(call());
    proxy.rejects(call().key("forged&forged"), 401, "signature_invalid");
    assert_eq!(api.count(), 1);
}

#[test]
fn a_nonce_is_recorded_before_the_api_has_the_request() {
    let (arrived, arrival) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let api = Upstream::replying(move |_| {
        arrived.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        Reply::ok("late")
    });
    let Scene { api, proxy, caller } = Scene::before(api, "");
    let wire = proxy.wire(&Call::get("/").of(&caller));
    let mut first = proxy.connect();
    first.send(&wire);
    arrival.recv().unwrap();
    // The API has not responded yet.
    let mut second = proxy.connect();
    second.send(&wire);
    second.answer("GET").is(401, "nonce_used");
    release.send(()).unwrap();
    first.answer("GET").has_status(200);
    assert_eq!(api.count(), 1);
}
