//! The parameters of the flow stand where libraries put them: some in the query or the form while the others are in the header.
//!
//! Promise (Signatures): Token calls take parameters in header, query or form; differing copies are rejected.

use crate::support::{
    Call, Proxy, Upstream,
    legs::{ACCESS_TOKEN, REQUEST_TOKEN, asks, exchanges, token_of},
    proxy::{CALLBACK, Consumer, Token},
    signer::encode,
};

/// The target with the pairs in its query.
fn with_query(target: &str, pairs: &[(&str, &str)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("&{name}={}", encode(value)));
    format!("{target}{}", pairs.collect::<String>())
}

/// A form of the pairs.
fn form_of(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[test]
fn callback_verifier_and_token_may_be_in_the_query_or_a_form() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    let callback = [("oauth_callback", CALLBACK)];
    let in_query = with_query(REQUEST_TOKEN, &callback);
    let asked = [
        Call::post(&in_query).by(&consumer),
        Call::get(&in_query).by(&consumer),
        Call::post(REQUEST_TOKEN)
            .form(&form_of(&callback))
            .by(&consumer),
        Call::post("/oauth/request_token")
            .form(&form_of(&callback))
            .by(&consumer),
        // Equal copies, each of them signed.
        Call::post(&in_query)
            .by(&consumer)
            .parameter("oauth_callback", CALLBACK),
        Call::post(&in_query)
            .form(&form_of(&callback))
            .by(&consumer)
            .parameter("oauth_callback", CALLBACK),
    ];
    for call in asked {
        let request_token = token_of(&proxy.send(call));
        let verifier = proxy.verifier(&request_token, &user);
        let token = ("oauth_token", request_token.token.as_str());
        let verifier = ("oauth_verifier", verifier.as_str());
        // The token's secret signs, wherever its name is.
        let signed = |call: Call| call.by(&consumer).with(&request_token);
        let wrong = [("oauth_verifier", "wrong")];
        let spoiled = signed(Call::post(&with_query(ACCESS_TOKEN, &wrong)));
        proxy.send(spoiled).is(401, "verifier_invalid");
        let query = with_query(ACCESS_TOKEN, &[token, verifier]);
        token_of(&proxy.send(signed(Call::post(&query)).without("oauth_token")));
    }
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let form = form_of(&[("oauth_verifier", &verifier)]);
    let call = Call::post(ACCESS_TOKEN).form(&form);
    token_of(&proxy.send(call.by(&consumer).with(&request_token)));
}

#[test]
fn equal_copies_count_once_also_where_a_library_signs_them_once() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    let callback = form_of(&[("oauth_callback", CALLBACK)]);
    // As oauth-1.0a for npm: what is signed is a map, and all of its oauth_ parameters go into the header and the form.
    let call = Call::post(REQUEST_TOKEN)
        .form(&callback)
        .by(&consumer)
        .signs_body("")
        .parameter("oauth_callback", CALLBACK);
    let request_token = token_of(&proxy.send(call));
    let verifier = proxy.verifier(&request_token, &user);
    let exchange = |form: &str| {
        let call = Call::post(ACCESS_TOKEN).form(form).by(&consumer);
        let call = call.with(&request_token).signs_body("");
        call.parameter("oauth_verifier", &verifier)
    };
    let form = form_of(&[("oauth_verifier", &verifier)]);
    // Nothing else may be left unsigned, repeated or not.
    for more in ["&a=1", "&a=1&a=1", "&a=1&a=2"] {
        let call = exchange(&format!("{form}{more}"));
        proxy.send(call).is(401, "signature_invalid");
    }
    token_of(&proxy.send(exchange(&form)));
}

#[test]
fn different_copies_and_others_outside_the_header_are_rejected() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();
    let elsewhere = "http://127.0.0.1/elsewhere";
    let two = Call::post(&with_query(REQUEST_TOKEN, &[("oauth_callback", elsewhere)]))
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK);
    let answer = proxy.send(two);
    answer.is(400, "parameter_rejected");
    assert_eq!(
        answer.form("oauth_parameters_rejected").as_deref(),
        Some("oauth_callback")
    );
    for name in [
        "oauth_nonce",
        "oauth_timestamp",
        "oauth_version",
        "oauth_unknown",
    ] {
        let target = with_query(REQUEST_TOKEN, &[(name, "1")]);
        let call = Call::post(&target)
            .by(&consumer)
            .without(name)
            .parameter("oauth_callback", CALLBACK);
        let answer = proxy.send(call);
        answer.is(400, "parameter_rejected");
        let named = answer.form("oauth_parameters_rejected");
        assert_eq!(named.as_deref(), Some(name));
    }
    // What signs the other token calls and the calls of the API stays in one place.
    let token = proxy.token(&consumer, &user);
    for target in ["/service.oauth?mode=revoke_token", "/things?a=b"] {
        let target = with_query(target, &[("oauth_token", &token.token)]);
        let call = Call::post(&target).by(&consumer).with(&token);
        proxy
            .send(call.without("oauth_token"))
            .is(400, "parameter_rejected");
    }
    api.saw_nothing();
}

/// An attacker without the secrets cannot add one of these, wherever it is put and whichever base string was signed.
#[test]
fn unauthenticated_caller_adds_no_parameter_to_a_token_call() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let callbacks = format!("--callback {CALLBACK} --callback oob");
    let (consumer, user) = (proxy.consumer_with("Shop", &callbacks), proxy.user("alice"));
    let described = |call: Call| call.signed_as_described();
    let plain = |call: Call| call;
    for signed in [plain as fn(Call) -> Call, described] {
        // A callback that the consumer did not sign: beside another one, and without any.
        for call in [
            asks(&consumer, CALLBACK),
            Call::post(REQUEST_TOKEN).by(&consumer),
        ] {
            let added = added_to(&proxy, signed(call), &[("oauth_callback", "oob")]);
            for answer in added {
                assert_ne!(answer.0, 200, "{answer:?}");
            }
        }
        let request_token = proxy.request_token(&consumer, CALLBACK);
        let verifier = proxy.verifier(&request_token, &user);
        // The consumer signs a wrong or no verifier, and somebody who knows the right one adds it.
        for call in [
            exchanges(&consumer, &request_token, "wrong"),
            Call::post(ACCESS_TOKEN).by(&consumer).with(&request_token),
        ] {
            let pairs = [("oauth_verifier", verifier.as_str())];
            for answer in added_to(&proxy, signed(call), &pairs) {
                assert_ne!(answer.0, 200, "{answer:?}");
            }
        }
        token_of(&proxy.send(signed(exchanges(&consumer, &request_token, &verifier))));
    }
    another_token_is_not_added(&proxy, &consumer);
}

fn another_token_is_not_added(proxy: &Proxy, consumer: &Consumer) {
    let user = proxy.user("bob");
    let [one, other] = [(); 2].map(|()| proxy.request_token(consumer, CALLBACK));
    let verifier = proxy.verifier(&other, &user);
    let signed: &Token = &one;
    let call = exchanges(consumer, signed, &verifier);
    for answer in added_to(proxy, call, &[("oauth_token", &other.token)]) {
        assert_ne!(answer.0, 200, "{answer:?}");
    }
}

/// The status of the call with the pairs added after it was signed: in the query, and in a form.
fn added_to(proxy: &Proxy, call: Call, pairs: &[(&str, &str)]) -> Vec<(u16, String)> {
    let wire = String::from_utf8(proxy.wire(&call)).unwrap();
    let (line, rest) = wire.split_once("\r\n").unwrap();
    let [method, target, version] = [0, 1, 2].map(|at| line.split(' ').nth(at).unwrap());
    let in_query = format!("{method} {} {version}\r\n{rest}", with_query(target, pairs));
    let form = form_of(pairs);
    let fields = format!(
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let head = rest.trim_end_matches("\r\n");
    let in_form = format!("{line}\r\n{head}\r\n{fields}");
    [in_query, in_form]
        .into_iter()
        .map(|wire| {
            let mut connection = proxy.connect();
            connection.send(wire.as_bytes());
            let answer = connection.answer(method);
            (answer.status, answer.text())
        })
        .collect()
}
