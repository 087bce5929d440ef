//! No request twice.

use crate::support::{Call, Connection, Proxy, Scene, Upstream};

#[test]
fn of_a_hundred_identical_requests_at_once_exactly_one_reaches_the_api() {
    let Scene { api, proxy, caller } = Scene::start();
    let wire = proxy.wire(&Call::get("/pay?amount=1").of(&caller));
    let mut connections: Vec<Connection> = (0..100).map(|_| proxy.connect()).collect();
    for connection in &mut connections {
        connection.send(&wire[..wire.len() - 1]);
    }
    for connection in &mut connections {
        connection.send(&wire[wire.len() - 1..]);
    }
    let answers: Vec<_> = connections
        .iter_mut()
        .map(|connection| connection.answer("GET"))
        .collect();
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 200).count(),
        1
    );
    let refused = answers
        .iter()
        .filter(|answer| answer.status == 401 && answer.problem().as_deref() == Some("nonce_used"));
    assert_eq!(refused.count(), 99);
    assert_eq!(api.count(), 1);
}

#[test]
fn a_nonce_is_unique_for_consumer_token_and_timestamp() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (shop, other, user) = (
        proxy.consumer("Shop"),
        proxy.consumer("Other"),
        proxy.user("alice"),
    );
    let (token, second, third) = (
        proxy.token(&shop, &user),
        proxy.token(&shop, &user),
        proxy.token(&other, &user),
    );
    let now = crate::support::now();
    let call = |consumer, token, time: u64| {
        let call = Call::get("/").by(consumer).with(token);
        call.parameter("oauth_nonce", "the-same")
            .parameter("oauth_timestamp", &time.to_string())
    };
    proxy.send(call(&shop, &token, now)).has_status(200);
    proxy.send(call(&shop, &token, now)).is(401, "nonce_used");
    proxy.send(call(&shop, &second, now)).has_status(200);
    proxy.send(call(&other, &third, now)).has_status(200);
    proxy.send(call(&shop, &token, now - 1)).has_status(200);
    proxy.send(call(&shop, &token, now + 1)).has_status(200);
    proxy
        .send(call(&shop, &token, now + 1))
        .is(401, "nonce_used");
    // Another request by the same nonce is no better than the same request.
    let another = Call::get("/else")
        .by(&shop)
        .with(&token)
        .parameter("oauth_nonce", "the-same");
    proxy
        .send(another.parameter("oauth_timestamp", &now.to_string()))
        .is(401, "nonce_used");
    assert_eq!(api.count(), 5);
}

#[test]
fn a_nonce_is_recorded_only_under_a_right_signature() {
    let Scene { api, proxy, caller } = Scene::start();
    let call = || Call::get("/").of(&caller).parameter("oauth_nonce", "mine");
    let now = crate::support::now().to_string();
    proxy
        .send(
            call()
                .parameter("oauth_timestamp", &now)
                .key("forged&forged"),
        )
        .is(401, "signature_invalid");
    proxy
        .send(call().parameter("oauth_timestamp", &now))
        .has_status(200);
    proxy
        .send(
            call()
                .parameter("oauth_timestamp", &now)
                .key("forged&forged"),
        )
        .is(401, "signature_invalid");
    assert_eq!(api.count(), 1);
}
