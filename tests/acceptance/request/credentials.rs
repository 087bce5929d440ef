//! The places of a call's credentials; they are never forwarded.
//!
//! Promise (Permissions and identity): The API gets credentials only if the operator wants it, and then unchanged; a body hash
//! is always verified.
//! Promise (Permissions and identity): No spelling, charset or size takes unverified credentials past the decision. Also in
//! `tests/acceptance/request/bodies.rs`.

use crate::support::{
    Call, Placement, Scene,
    signer::{body_hash, form_pairs},
};

#[test]
fn credentials_are_forwarded_unchanged_where_configured() {
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
fn body_hash_has_an_allowed_kind() {
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

const OPEN: &str =
    "operation = [{ path = '/{*rest}', access = ['anonymous', 'consumer', 'application'] }]";

/// Names in which frameworks find `oauth_consumer_key`, or another protocol parameter.
const LOOK_ALIKES: &[&str] = &[
    "oauth.consumer_key",
    "oauth[consumer_key",
    "oauth+consumer_key",
    "+oauth_consumer_key",
    "%09oauth.consumer.key",
    "oauth_consumer_key[]",
    "%00oauth_token",
    "OAUTH_CONSUMER_KEY",
    "Oauth_Token",
    "OAuth.Signature",
    "[oauth_token]",
    "oauth_to%E2%84%AAen",
    "OAUTH_TOKEN%00x",
];

#[test]
fn no_look_alike_of_a_credential_passes_unsigned_or_signed() {
    let (api, mut proxy, caller) = Scene::with(OPEN).into_parts();
    for name in LOOK_ALIKES {
        let query = format!("/x?a=1&{name}=victim");
        let form = format!("{name}=victim&a=1");
        for call in [
            Call::get(&query),
            Call::post("/x").form(&form),
            Call::get(&query).of(&caller),
            Call::post("/x").form(&form).of(&caller),
        ] {
            let answer = proxy.rejects(call, 400, "parameter_rejected");
            assert!(answer.form("oauth_parameters_rejected").is_some(), "{name}");
        }
    }
    api.saw_nothing();
    for name in [
        "oauth",
        "oauth.provider",
        "order",
        "OAUTH2",
        "xoauth_token",
        "token",
        "OAUTH_THEME",
    ] {
        proxy.passes(Call::get(&format!("/x?{name}=1")));
        proxy.passes(Call::post("/x").form(&format!("{name}=1")));
    }
    // In observe mode it is only noted.
    proxy.reload(&format!("signature.enforcement = 'observe'\n{OPEN}"));
    crate::support::until("the change counts", || {
        proxy.status(Call::get("/x?oauth.token=v")) == 200
    });
    proxy.passes(Call::post("/x").form("OAUTH_TOKEN=v"));
    proxy.logs(&["reason=\"parameter_rejected\"", "OAUTH_TOKEN"]);
}

#[test]
fn a_form_in_a_charset_that_hides_names_is_rejected() {
    let Scene { api, proxy, caller } = Scene::with(OPEN);
    let form = |parameters: &str| {
        let content_type = format!("application/x-www-form-urlencoded{parameters}");
        Call::post("/x").body(&content_type, b"a=1")
    };
    for parameters in [
        "; charset=utf-16be",
        ";charset=IBM037",
        "; charset=\"utf-7\"",
        "; Charset = 'cp500'",
        "; a=b; CHARSET=x-ebcdic",
        "; charset=utf-8; charset=utf-16",
        ", charset=utf-32",
        "; charset=windows-1252",
    ] {
        proxy.rejects(form(parameters), 400, "parameter_rejected");
        proxy.rejects(form(parameters).of(&caller), 400, "parameter_rejected");
    }
    api.saw_nothing();
    for parameters in [
        "",
        "; charset=UTF-8",
        ";charset=\"us-ascii\"",
        "; charset=ISO-8859-1",
        "; charset=",
        "; x=charset",
    ] {
        proxy.passes(form(parameters));
        proxy.passes(form(parameters).of(&caller));
    }
    // A body that is not read as a form has the charset that it has.
    proxy.passes(
        Call::post("/x")
            .body("application/json; charset=utf-16", b"[]")
            .of(&caller),
    );
}
