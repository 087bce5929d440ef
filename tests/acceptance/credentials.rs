//! Where the credentials of a call stand, and that they stay here.

use crate::support::{
    Call, Placement, Scene,
    signer::{body_hash, form_pairs},
};

#[test]
fn credentials_in_a_form_are_taken_out_and_its_length_follows() {
    let Scene { api, proxy, caller } = Scene::start();
    for form in ["a=1&b=%C3%A9+c&b=", "", "x", "&&a=1"] {
        let call = Call::post("/members")
            .form(form)
            .of(&caller)
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
        .of(&caller)
        .placed(Placement::Body);
    proxy.send(call).has_status(200);
    assert_eq!(api.last_request().text(), "a=1&b=2");
}

#[test]
fn forwarded_credentials_are_untouched_when_the_operator_wants_it() {
    let Scene { api, proxy, caller } = Scene::with("identity.forward_authorization = true");
    proxy.send(Call::get("/a").of(&caller)).has_status(200);
    assert!(
        api.last_request()
            .header("authorization")
            .unwrap()
            .starts_with("OAuth oauth_consumer_key=")
    );
    proxy
        .send(Call::get("/a?x=1").of(&caller).placed(Placement::Query))
        .has_status(200);
    assert!(api.last_request().target.contains("oauth_signature="));
    proxy
        .send(
            Call::post("/a")
                .form("x=1")
                .of(&caller)
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
    let Scene { api, proxy, caller } = Scene::with("limits.form_bytes = '1KiB'");
    let body = br#"{"a":1}"#;
    let call = |hash: &str| {
        Call::post("/a")
            .body("application/json", body)
            .of(&caller)
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
    let empty = Call::get("/a").of(&caller);
    proxy
        .send(empty.parameter("oauth_body_hash", &body_hash::<sha1::Sha1>(b"")))
        .has_status(200);
    let large = vec![b'x'; 2000];
    let held = Call::post("/a").body("text/plain", &large).of(&caller);
    proxy
        .send(held.parameter("oauth_body_hash", &body_hash::<sha1::Sha1>(&large)))
        .has_status(413);
    assert_eq!(api.count(), 4);
}
