//! What RFC 5849 forbids and some consumers do: accepted from a consumer whose record names it, and from no other.
//!
//! Promise (Permissions and identity): If a deviation leaves copies of a parameter unsigned, the API gets none of these copies.
//! Also in `src/request/verify/tests.rs`.

use crate::support::{
    Call, Placement, Proxy, Scene, Upstream, has,
    legs::{REQUEST_TOKEN, query_value, token_of},
    proxy::{CALLBACK, Consumer},
    signer::{base_string, encode, signature},
    until,
};

/// A consumer that is allowed the deviation.
fn allowed(proxy: &Proxy, deviation: &str, options: &str) -> Consumer {
    proxy.consumer_with(deviation, &format!("--accept {deviation} {options}"))
}

fn counted(proxy: &Proxy, deviation: &str) -> f64 {
    proxy.metric(&format!(
        "countersign_deviations_total{{deviation=\"{deviation}\"}}"
    ))
}

#[test]
fn the_only_registered_callback_stands_in_for_an_absent_one() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (strict, user) = proxy.shop();
    let one = allowed(&proxy, "callback_absent", &format!("--callback {CALLBACK}"));
    let two = allowed(
        &proxy,
        "callback_absent",
        "--callback http://127.0.0.1/a --callback oob",
    );
    let none = allowed(&proxy, "callback_absent", "");
    let call = |consumer: &Consumer| Call::post(REQUEST_TOKEN).by(consumer);
    let request_token = token_of(&proxy.send(call(&one)));
    assert!(counted(&proxy, "callback_absent") >= 1.0);
    // A verifier is needed all the same.
    let page = proxy.decision(&request_token, &user, "allow");
    let verifier = query_value(&page.redirect(), "oauth_verifier").unwrap();
    let exchange = Call::post("/oauth/access_token")
        .by(&one)
        .with(&request_token);
    proxy.send(exchange.clone()).is(400, "parameter_absent");
    token_of(&proxy.send(exchange.parameter("oauth_verifier", &verifier)));
    for consumer in [&strict, &two, &none] {
        let answer = proxy.send(call(consumer));
        answer.is(400, "parameter_absent");
        answer.tells("oauth_parameters_absent", "oauth_callback");
    }
    proxy.logs(&[
        &strict.key,
        "parameter_absent",
        "parameters=oauth_callback",
        "needs=\"callback_absent\"",
    ]);
    let before = counted(&proxy, "callback_absent");
    proxy
        .send(call(&one).key("wrong"))
        .is(401, "signature_invalid");
    // A forged call does not count as one of a consumer that needs it.
    assert_eq!(counted(&proxy, "callback_absent"), before);
}

#[test]
fn last_of_repeated_parameters_counts_and_is_forwarded_alone() {
    let Scene { api, proxy, caller } = Scene::start();
    let consumer = allowed(&proxy, "repeats_once", "");
    let token = proxy.token(&consumer, &caller.user);
    let sent = |consumer: &Consumer, token| {
        let call = Call::get("/orders?status=any&page=1&status=open&page=1");
        let call = call.by(consumer).with(token);
        call.signs_target("/orders?page=1&status=open")
    };
    proxy.passes(sent(&consumer, &token));
    assert_eq!(api.last_request().target, "/orders?status=open&page=1");
    assert!(counted(&proxy, "repeats_once") >= 1.0);
    // Across query and form, as a learning platform posts a launch.
    let launch = Call::post("/launch?course=1&a=x").form("course=2&b=y&b=z");
    let launch = launch.by(&consumer).with(&token).placed(Placement::Header);
    let launch = launch
        .signs_target("/launch?a=x")
        .signs_body("course=2&b=z");
    proxy.passes(launch);
    let seen = api.last_request();
    assert_eq!(
        (&*seen.target, &*seen.text()),
        ("/launch?a=x", "course=2&b=z")
    );
    // Signed as the RFC says, nothing is taken out.
    let right = Call::get("/orders?a=1&a=2").by(&consumer).with(&token);
    proxy.passes(right);
    assert_eq!(api.last_request().target, "/orders?a=1&a=2");
    // The first one does not count, nor does anything without a signature.
    let first = Call::get("/orders?a=1&a=2").by(&consumer).with(&token);
    proxy.rejects(first.signs_target("/orders?a=1"), 401, "signature_invalid");
    let added = Call::get("/orders?a=1&b=2").by(&consumer).with(&token);
    proxy.rejects(added.signs_target("/orders?a=1"), 401, "signature_invalid");
    // Another consumer may not, and the operator reads what would help.
    let call = sent(&caller.consumer, &caller.token);
    proxy.rejects(call, 401, "signature_invalid");
    proxy.logs(&["signature_invalid", "needs=\"repeats_once\""]);
}

/// Somebody who changes a request of such a consumer on its way gets no value of theirs to the API.
#[test]
fn copy_added_to_a_signed_request_never_reaches_the_api() {
    let Scene { api, proxy, caller } = Scene::start();
    let consumer = allowed(&proxy, "repeats_once", "");
    let token = proxy.token(&consumer, &caller.user);
    for added in [
        "/pay?to=mallory&to=bob",
        "/pay?%74o=mallory&to=bob",
        "/pay?to&to=bob",
        "/pay?to=mallory&&to=bob&",
    ] {
        let call = Call::get(added).by(&consumer).with(&token);
        proxy.passes(call.signs_target("/pay?to=bob"));
        let target = api.last_request().target;
        assert!(!target.contains("mallory"), "{target}");
        assert_eq!(target.matches("to").count(), 1, "{target}");
    }
    let count = api.count();
    for added in [
        "/pay?to=bob&to=mallory",
        "/pay?to=bob&%74o=mallory",
        "/pay?to=bob&to%20=mallory",
        "/pay?To=mallory&to=bob",
        "/pay?to[]=mallory&to=bob",
        "/pay?to=bob;to=mallory",
    ] {
        let call = Call::get(added).by(&consumer).with(&token);
        proxy.rejects(call.signs_target("/pay?to=bob"), 401, "signature_invalid");
    }
    assert_eq!(api.count(), count);
}

#[test]
fn a_key_without_ampersand_is_for_calls_without_a_token() {
    let Scene { api, proxy, caller } = Scene::with(
        "operation = [{ path = '/wc-api/{*rest}', access = ['application', 'consumer'] }]",
    );
    let consumer = allowed(&proxy, "key_without_ampersand", "");
    let bare = |consumer: &Consumer| {
        Call::get("/wc-api/v2/orders")
            .by(consumer)
            .key(&consumer.secret)
    };
    proxy.passes(bare(&consumer));
    proxy.passes(Call::get("/wc-api/v2/orders").by(&consumer));
    assert!(counted(&proxy, "key_without_ampersand") >= 1.0);
    let token = proxy.token(&consumer, &caller.user);
    proxy.rejects(bare(&consumer).with(&token), 401, "signature_invalid");
    let count = api.count();
    proxy.rejects(bare(&caller.consumer), 401, "signature_invalid");
    assert_eq!(api.count(), count);
    proxy.logs(&["signature_invalid", "needs=\"key_without_ampersand\""]);
}

const PLAINTEXT: &str = "signature.methods = ['HMAC-SHA1', 'PLAINTEXT']
    service.base_url = 'https://api.test'
    listen.trusted_proxies = '127.0.0.1'
    operation = [{ path = '/{*rest}', access = ['application', 'consumer'] }]";

#[test]
fn an_empty_secret_proves_the_token_alone_by_plaintext_and_tls() {
    let Scene { api, proxy, caller } = Scene::with(PLAINTEXT);
    let arguments = [
        "consumer", "add", "--json", "--name", "MAAS", "--secret", "-",
    ];
    let refused = proxy.command_with(&arguments, "\n");
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("empty_secret"), "{refused:?}");
    let accept = [&arguments[..], &["--accept", "empty_secret"]].concat();
    let added = proxy.command_with(&accept, "\n").done().json();
    let consumer = Consumer::new(added["key"].as_str().unwrap(), "");
    let token = proxy.token(&consumer, &caller.user);
    let plain = |call: Call| {
        let call = call.method("PLAINTEXT").without("oauth_nonce");
        call.without("oauth_timestamp")
            .header("X-Forwarded-Proto", "https")
    };
    proxy.passes(plain(Call::get("/api").by(&consumer).with(&token)));
    assert!(counted(&proxy, "empty_secret") >= 1.0);
    let count = api.count();
    // Without the token, with a hash, with a wrong token secret, and without TLS.
    proxy.rejects(
        plain(Call::get("/api").by(&consumer)),
        401,
        "signature_invalid",
    );
    let tls = |call: Call| call.header("X-Forwarded-Proto", "https");
    for call in [
        Call::get("/api").by(&consumer),
        Call::get("/api").by(&consumer).with(&token),
    ] {
        proxy.rejects(tls(call), 401, "signature_invalid");
    }
    let guess = plain(Call::get("/api").by(&consumer).with(&token).key("&guess"));
    proxy.rejects(guess, 401, "signature_invalid");
    let clear = Call::get("/api")
        .by(&consumer)
        .with(&token)
        .method("PLAINTEXT");
    proxy
        .send(clear.header("X-Forwarded-Proto", "http"))
        .has_status(400);
    let asked = Call::post(REQUEST_TOKEN)
        .by(&consumer)
        .parameter("oauth_callback", "oob");
    proxy.rejects(plain(asked), 401, "signature_invalid");
    assert_eq!(api.count(), count);
    // It stays as long as the secret is empty.
    let key = &consumer.key;
    let kept = proxy.command(&["consumer", "update", key, "--no-accept"]);
    assert_eq!(kept.code(), Some(2), "{kept:?}");
    // A secret that replaces it counts alone, also during a grace for everything but that deviation.
    let rotated = proxy.command(&["consumer", "rotate-secret", key, "--grace", "1h", "--json"]);
    let secret = rotated.done().json()["secret"].as_str().unwrap().to_owned();
    let renewed = Consumer::new(key.as_str(), secret);
    until("the new secret verifies", || {
        proxy.status(tls(Call::get("/api").by(&renewed).with(&token))) == 200
    });
    proxy.rejects(
        tls(Call::get("/api").by(&consumer).with(&token)),
        401,
        "signature_invalid",
    );
    proxy.rejects(
        tls(Call::get("/api").by(&consumer)),
        401,
        "signature_invalid",
    );
    // An export has the empty secret of the grace too.
    let graced = Call::get("/api").by(&consumer).with(&token);
    proxy.passes(plain(graced.clone()));
    let exported = proxy.run("export -").done().stdout;
    let other = Proxy::with(&api, PLAINTEXT);
    other.command_with(&["import", "-"], &exported).done();
    other.passes(plain(graced.clone()));
    // Without the deviation it no longer proves anything, and an export can still be imported.
    other
        .command(&["consumer", "update", key, "--no-accept"])
        .done();
    until("it is no longer allowed", || {
        other.status(plain(graced.clone())) == 401
    });
    let exported = other.run("export -").done().stdout;
    let last = Proxy::with(&api, PLAINTEXT);
    last.command_with(&["import", "-"], &exported).done();
}

#[test]
fn values_that_are_encoded_once_are_accepted_by_name() {
    let Scene { api, proxy, caller } = Scene::start();
    // The form of Mastercard's keys, and the earlier name.
    let key = "--key aB3-x!4b6f0d";
    let consumer = proxy.consumer_with("Shop", &format!("--accept hash_unencoded {key}"));
    let shown = proxy.command(&["consumer", "show", &consumer.key, "--json"]);
    let accept = serde_json::json!(["values_unencoded"]);
    assert_eq!(shown.done().json()["accept"], accept);
    let token = proxy.token(&consumer, &caller.user);
    // A hash with all three characters that need an escape.
    let body = (0..)
        .map(|number| format!("{{\"n\":{number}}}"))
        .find(|body| {
            let hash = crate::support::signer::body_hash::<sha1::Sha1>(body.as_bytes());
            hash.contains('+') && hash.contains('/')
        });
    let body = body.unwrap();
    let hash = crate::support::signer::body_hash::<sha1::Sha1>(body.as_bytes());
    let call = |consumer: &Consumer, token: &crate::support::proxy::Token, nonce: &str| {
        let parameters = [
            ("oauth_body_hash", hash.as_str()),
            ("oauth_consumer_key", &consumer.key),
            ("oauth_nonce", &crate::support::fresh(nonce)),
            ("oauth_signature_method", "HMAC-SHA1"),
            ("oauth_timestamp", &crate::support::now().to_string()),
            ("oauth_token", &token.token),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        // The values go into the normalized parameters as they are.
        let normalized = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let normalized = normalized.collect::<Vec<_>>().join("&");
        let empty = base_string("POST", &format!("{}/charge", proxy.origin()), &[]);
        let base = format!("{empty}{}", encode(&normalized));
        let key = format!("{}&{}", encode(&consumer.secret), encode(&token.secret));
        let signature = signature("HMAC-SHA1", &key, &base);
        let pairs = parameters
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", encode(value)));
        let header = format!(
            "OAuth {}, oauth_signature=\"{}\"",
            pairs.collect::<Vec<_>>().join(", "),
            encode(&signature)
        );
        Call::post("/charge")
            .json(&body)
            .header("Authorization", &header)
    };
    proxy.passes(call(&consumer, &token, "n!"));
    assert_eq!(api.last_request().text(), body);
    assert!(counted(&proxy, "values_unencoded") >= 1.0);
    proxy.rejects(
        call(&caller.consumer, &caller.token, "n!"),
        401,
        "signature_invalid",
    );
    proxy.logs(&["signature_invalid", "needs=\"values_unencoded\""]);
    // The same base string could be that of a call with one more parameter.
    proxy.rejects(
        call(&consumer, &token, "n&oauth_p="),
        401,
        "signature_invalid",
    );
}

#[test]
fn a_deviation_is_a_member_of_the_record_everywhere() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = allowed(&proxy, "repeats_once", "--accept callback_absent");
    let shown = proxy
        .command(&["consumer", "show", &consumer.key, "--json"])
        .done()
        .json();
    assert_eq!(
        shown["accept"],
        serde_json::json!(["repeats_once", "callback_absent"])
    );
    let unknown = proxy.command(&["consumer", "update", &consumer.key, "--accept", "anything"]);
    assert_eq!(unknown.code(), Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("values_unencoded"), "{unknown:?}");
    let file = proxy.directory().join("export.jsonl");
    let exported = ["export", file.to_str().unwrap()];
    proxy.command(&exported).done();
    let exported = std::fs::read_to_string(&file).unwrap();
    assert!(
        exported.contains("\"accept\":[\"repeats_once\",\"callback_absent\"]"),
        "{exported}"
    );
    let removed = proxy.command(&["consumer", "update", &consumer.key, "--no-accept", "--json"]);
    assert_eq!(removed.done().json()["accept"], serde_json::json!([]));
}

#[test]
fn observe_mode_and_explain_name_the_deviation_that_would_help() {
    let (_api, proxy, caller) = Scene::with("signature.enforcement = 'observe'").into_parts();
    let call = Call::get("/orders?a=1&a=2").of(&caller);
    let call = call.signs_target("/orders?a=2");
    has(&proxy.explain(&call).stdout, &["--accept repeats_once"]);
    proxy.passes(call);
    proxy.logs(&["observed", "signature_invalid", "needs=\"repeats_once\""]);
    let call = Call::post(REQUEST_TOKEN).by(&caller.consumer);
    has(&proxy.explain(&call).stdout, &["--accept callback_absent"]);
}
