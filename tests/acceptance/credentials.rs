//! Where the credentials of a call stand, and that they stay here.

use crate::support::{
    Call, Placement, Proxy, Upstream,
    signer::{body_hash, form_pairs},
};

#[test]
fn credentials_in_the_header_do_not_reach_the_api() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let target = "/a%2Fb/~c?b=2&a=%7e&=empty&bare&a=1+2&b=%E9";
    proxy
        .send(Call::get(target).by(&consumer).with(&token).realm("any"))
        .has_status(200);
    let seen = api.only_request();
    assert_eq!(seen.target, target, "path and query go on byte for byte");
    assert!(!seen.fields.has("authorization"), "{seen:?}");
}

#[test]
fn credentials_in_the_query_are_taken_out_and_nothing_else_is_touched() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    for target in [
        "/a",
        "/a?x=1",
        "/a?x=%31&y=+&z",
        "/a?x=1&",
        "/a?&&x=1",
        "/a?noauth_x=1&x_oauth_=2",
    ] {
        proxy
            .send(
                Call::get(target)
                    .by(&consumer)
                    .with(&token)
                    .placed(Placement::Query),
            )
            .has_status(200);
        let seen = api.last_request().target;
        // The separator before the first of ours goes with it; an empty query may keep its question mark or lose it.
        assert_eq!(
            seen.trim_end_matches(['?', '&']),
            target.trim_end_matches(['?', '&']),
            "{seen}"
        );
        assert!(
            !seen.contains("oauth_signature") && !seen.contains("oauth_token"),
            "{seen}"
        );
    }
}

#[test]
fn credentials_in_the_query_are_taken_out_from_between_other_pairs() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let call = Call::get("/a?x=1")
        .by(&consumer)
        .with(&token)
        .placed(Placement::Query);
    let wire = String::from_utf8(proxy.wire(&call)).unwrap();
    let (line, rest) = wire.split_once(" HTTP/1.1").unwrap();
    let credentials = line.strip_prefix("GET /a?x=1&").unwrap();
    // Parameters are sorted before they are signed, so their order on the wire is free; escapes too.
    let escaped = credentials.replace("oauth_token", "oauth%5Ftoken");
    let halves = escaped.split_once('&').unwrap();
    let spread = format!("GET /a?{}&x=1&{} HTTP/1.1{rest}", halves.0, halves.1);
    let mut connection = proxy.connect();
    connection.send(spread.as_bytes());
    connection.answer("GET").has_status(200);
    assert_eq!(api.only_request().target, "/a?x=1");
}

#[test]
fn credentials_in_a_form_are_taken_out_and_its_length_follows() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    for form in ["a=1&b=%C3%A9+c&b=", "", "x", "&&a=1"] {
        let call = Call::post("/members")
            .form(form)
            .by(&consumer)
            .with(&token)
            .placed(Placement::Body);
        proxy.send(call).has_status(200);
        let seen = api.last_request();
        assert_eq!(seen.text().trim_end_matches('&'), form, "{seen:?}");
        assert_eq!(
            seen.header("content-length").map(str::to_owned),
            Some(seen.body.len().to_string())
        );
        assert_eq!(
            seen.header("content-type"),
            Some("application/x-www-form-urlencoded")
        );
    }
    // The same, sent in chunks.
    let call = Call::post("/members").header("Content-Type", "application/x-www-form-urlencoded");
    let call = call
        .chunked(&[b"a=1&", b"b=2"])
        .by(&consumer)
        .with(&token)
        .placed(Placement::Body);
    proxy.send(call).has_status(200);
    assert_eq!(api.last_request().text(), "a=1&b=2");
}

#[test]
fn a_form_signed_in_the_header_goes_on_byte_for_byte() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let form = "b=2&a=%7e+x&&a=&=&c%5B%5D=%e9";
    proxy
        .send(
            Call::post("/members?q=1")
                .form(form)
                .by(&consumer)
                .with(&token),
        )
        .has_status(200);
    let seen = api.only_request();
    assert_eq!(
        (seen.target.as_str(), seen.text().as_str()),
        ("/members?q=1", form)
    );
    // And a form whose parameters are not those that were signed is refused.
    let tampered = Call::post("/members")
        .form("amount=1000")
        .by(&consumer)
        .with(&token)
        .signs_body("amount=1");
    proxy.send(tampered).is(401, "signature_invalid");
    assert_eq!(api.count(), 1);
}

#[test]
fn a_signed_form_stays_one_whatever_connection_names() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let call = Call::post("/members")
        .form("dry-run=1")
        .header("Connection", "content-type, x-hop")
        .header("X-Hop", "1")
        .by(&consumer)
        .with(&token);
    proxy.send(call).has_status(200);
    let seen = api.only_request();
    assert_eq!(
        (seen.header("content-type"), seen.header("x-hop")),
        (Some("application/x-www-form-urlencoded"), None)
    );
}

/// Each of these is a form to some framework: to those that cut the type at a space or a comma, that compare its
/// beginning, or that look for one word in it.
#[test]
fn a_form_under_any_spelling_of_its_type_has_to_be_signed() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    for content_type in [
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-URLEncoded;charset=utf-8",
        "application/x-www-form-urlencoded charset=utf-8",
        "application/x-www-form-urlencoded\tx",
        "application/x-www-form-urlencoded,text/plain",
        "text/plain, application/x-www-form-urlencoded",
        "application/x-www-form-urlencodedx",
        "text/x-www-form-urlencoded",
        "text/plain; a=urlencoded",
    ] {
        let call = Call::post("/members")
            .body(content_type, b"amount=1000")
            .by(&consumer)
            .with(&token);
        let before = api.count();
        let unsigned = call.clone().signs_body("");
        proxy.send(unsigned).is(401, "signature_invalid");
        assert_eq!(api.count(), before, "{content_type}");
        let signed = call.signs_body("amount=1000");
        proxy.send(signed).has_status(200);
    }
    let json = Call::post("/members").json("{}").by(&consumer).with(&token);
    proxy.send(json).has_status(200);
}

#[test]
fn forwarded_credentials_are_untouched_when_the_operator_wants_it() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("identity.forward_authorization = true")
        .start();
    let (consumer, _, token) = proxy.somebody();
    proxy
        .send(Call::get("/a").by(&consumer).with(&token))
        .has_status(200);
    assert!(
        api.last_request()
            .header("authorization")
            .unwrap()
            .starts_with("OAuth oauth_consumer_key=")
    );
    proxy
        .send(
            Call::get("/a?x=1")
                .by(&consumer)
                .with(&token)
                .placed(Placement::Query),
        )
        .has_status(200);
    assert!(api.last_request().target.contains("oauth_signature="));
    proxy
        .send(
            Call::post("/a")
                .form("x=1")
                .by(&consumer)
                .with(&token)
                .placed(Placement::Body),
        )
        .has_status(200);
    assert!(
        form_pairs(&api.last_request().body)
            .iter()
            .any(|(name, _)| name == b"oauth_signature")
    );
}

#[test]
fn a_body_hash_is_verified_wherever_it_is_sent() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("limits.form_bytes = '1KiB'")
        .start();
    let (consumer, _, token) = proxy.somebody();
    let body = br#"{"a":1}"#;
    let call = |hash: &str| {
        Call::post("/a")
            .body("application/json", body)
            .by(&consumer)
            .with(&token)
            .parameter("oauth_body_hash", hash)
    };
    proxy
        .send(call(&body_hash::<sha1::Sha1>(body)))
        .has_status(200);
    proxy
        .send(call(&body_hash::<sha2::Sha256>(body)).method("HMAC-SHA256"))
        .has_status(200);
    proxy
        .send(call(&body_hash::<sha1::Sha1>(body)).method("HMAC-SHA256"))
        .has_status(200);
    assert_eq!(api.last_request().body, body);
    proxy
        .send(call(&body_hash::<sha1::Sha1>(b"other")))
        .is(401, "signature_invalid");
    proxy
        .send(call(&body_hash::<sha2::Sha256>(body)))
        .is(401, "signature_invalid");
    let empty = Call::get("/a").by(&consumer).with(&token);
    proxy
        .send(empty.parameter("oauth_body_hash", &body_hash::<sha1::Sha1>(b"")))
        .has_status(200);
    let large = vec![b'x'; 2000];
    let held = Call::post("/a")
        .body("text/plain", &large)
        .by(&consumer)
        .with(&token);
    proxy
        .send(held.parameter("oauth_body_hash", &body_hash::<sha1::Sha1>(&large)))
        .has_status(413);
    assert_eq!(api.count(), 4);
}
