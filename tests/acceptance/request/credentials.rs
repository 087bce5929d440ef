//! The places of a call's credentials; they are never forwarded.
//!
//! Promise (Permissions and identity): The API gets the credentials of a call only if the operator wants it, and then unchanged. A body
//! hash is verified wherever it is sent.

use crate::support::{
    Call, Placement, Scene,
    signer::{body_hash, form_pairs},
};

#[test]
fn credentials_are_forwarded_unchanged_where_the_operator_wants_it() {
    let Scene { api, proxy, caller } = Scene::with("identity.forward_authorization = true");
    proxy.send(Call::get("/a").of(&caller)).has_status(200);
    assert!(
        api.last_request()
            .header("authorization")
            .unwrap()
            .starts_with("OAuth oauth_consumer_key=")
    );
    proxy.passes(Call::get("/a?x=1").of(&caller).placed(Placement::Query));
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
    proxy.passes(call(&body_hash::<sha1::Sha1>(body)));
    proxy.passes(call(&body_hash::<sha2::Sha256>(body)).method("HMAC-SHA256"));
    proxy.passes(call(&body_hash::<sha1::Sha1>(body)).method("HMAC-SHA256"));
    assert_eq!(api.last_request().body, body);
    proxy
        .send(call(&body_hash::<sha1::Sha1>(b"other")))
        .is(401, "signature_invalid");
    proxy.passes(call(&body_hash::<sha2::Sha256>(body)));
    proxy
        .send(call(&body_hash::<sha2::Sha256>(b"other")))
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
    assert_eq!(api.count(), 5);
}

/// `signature.methods` that leaves the methods with SHA-1 out leaves that hash out too.
#[test]
fn a_body_hash_is_of_an_allowed_kind() {
    let Scene { api, proxy, caller } = Scene::with("signature.methods = ['HMAC-SHA256']");
    let body = br#"{"a":1}"#;
    let call = |hash: &str| {
        Call::post("/a")
            .body("application/json", body)
            .of(&caller)
            .method("HMAC-SHA256")
            .parameter("oauth_body_hash", hash)
    };
    proxy.passes(call(&body_hash::<sha2::Sha256>(body)));
    // Its length tells the hash, whatever the method: some libraries have SHA-1 alone.
    proxy.passes(call(&body_hash::<sha1::Sha1>(body)));
    proxy.passes(call(&body_hash::<sha2::Sha512>(body)));
    for other in [
        body_hash::<sha1::Sha1>(b"another"),
        body_hash::<sha2::Sha384>(body),
        body_hash::<md5::Md5>(body),
    ] {
        proxy.send(call(&other)).is(401, "signature_invalid");
    }
    assert_eq!(api.count(), 3);
}
