//! The identity fields of a forwarded call; a caller can forge none of them.
//!
//! Promise (Permissions and identity): A caller whose check failed is not checked as another kind of caller.

use crate::support::{Call, Proxy, Scene, Upstream, User, legs::exchanges};

#[test]
fn the_identity_is_injected_under_the_configured_names() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        r#"
            [identity]
            user_header = "Remote-User"
            consumer_header = "Remote-Consumer"
            permissions_header = "Remote-Permissions"
            kind_header = "Remote-Kind"
            [[permission]]
            name = "read"
            title = "Read"
            [[permission]]
            name = "write"
            title = "Write"
            "#,
    );
    let caller = proxy.somebody_with("--permission write --permission read");
    let (consumer, user, token) = caller.into_parts();
    let call = Call::get("/").by(&consumer).with(&token);
    proxy
        .send(
            call.header("Remote-User", "root")
                .header("X-Auth-User", "passes"),
        )
        .has_status(200);
    let seen = api.only_request();
    assert_eq!(seen.fields.all("remote-user"), [user.id.as_str()]);
    assert_eq!(seen.fields.all("remote-consumer"), [consumer.key.as_str()]);
    assert_eq!(seen.fields.all("remote-kind"), ["consumer"]);
    let mut permissions: Vec<&str> = seen
        .header("remote-permissions")
        .unwrap()
        .split(' ')
        .collect();
    permissions.sort_unstable();
    assert_eq!(permissions, ["read", "write"]);
    assert_eq!(
        seen.fields.all("x-auth-user"),
        ["passes"],
        "the default name is an ordinary field when another is configured"
    );
}

#[test]
fn keys_and_ids_of_other_systems_reach_the_api_as_they_are() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let key = r#"dpf43f3/{1}='<&>%2F#"#;
    let consumer = proxy.consumer_with(
        "Shop",
        &format!("--key {key} --callback https://shop.test/back"),
    );
    let id = "cn=alice/{7}&<b>";
    let arguments = [
        "user",
        "add",
        "alice",
        "--id",
        id,
        "--password-stdin",
        "--permanent",
    ];
    proxy.command_with(&arguments, "correct horse\n").done();
    let user = User {
        id: id.to_owned(),
        name: "alice".to_owned(),
        password: "correct horse".to_owned(),
    };
    let token = proxy.token(&consumer, &user);
    proxy.passes(Call::get("/").by(&consumer).with(&token));
    let seen = api.only_request();
    assert_eq!(seen.fields.all("x-auth-user"), [id]);
    assert_eq!(seen.fields.all("x-auth-consumer"), [key]);
    // The same through the flow: pages and forms show them intact.
    let request_token = proxy.request_token(&consumer, "https://shop.test/back");
    let verifier = proxy.verifier(&request_token, &user);
    let response = proxy.send(exchanges(&consumer, &request_token, &verifier));
    assert_eq!(response.form("user_id").as_deref(), Some(id));
    proxy.run(&format!("consumer show {key}"));
    proxy.run(&format!("consumer remove {key}"));
}

#[test]
fn configured_fields_are_dropped_even_if_the_proxy_knows_them() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        r#"
            [identity]
            user_header = "Origin"
            [upstream]
            drop_headers = ["Accept", "Cookie", "Date", "Sec-Fetch-Site", "Content-Encoding"]
            [operations]
            unlisted = "anonymous"
            "#,
    );
    let names = [
        "Origin",
        "Accept",
        "Cookie",
        "Date",
        "Sec-Fetch-Site",
        "Content-Encoding",
    ];
    let call = names.iter().fold(Call::get("/"), |call, name| {
        call.header(name, "forged=1")
            .header(&name.to_uppercase().replace('-', "_"), "forged=1")
    });
    proxy.send(call).has_status(200);
    let seen = api.only_request();
    for name in names {
        assert!(!seen.fields.has(name), "{name}: {seen:?}");
        let other = name.replace('-', "_");
        assert!(!seen.fields.has(&other), "{other}: {seen:?}");
    }
}

#[test]
fn another_scheme_passes_on_anonymous_calls_only() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "operation = [{ path = '/open', access = ['anonymous', 'consumer'] }, { path = '/closed' }]",
    );
    proxy.passes(Call::get("/open").header("Authorization", "Basic YTpi"));
    assert_eq!(
        api.only_request().header("authorization"),
        Some("Basic YTpi")
    );
    proxy
        .send(Call::get("/closed").header("Authorization", "Basic YTpi"))
        .is(401, "parameter_absent");
    assert_eq!(api.count(), 1);
}

#[test]
fn a_failed_check_is_never_tried_again_as_another_kind() {
    let Scene { api, proxy, caller } =
        Scene::with("operation = [{ path = '/open', access = ['anonymous', 'consumer'] }]");
    let call = || Call::get("/open").of(&caller);
    proxy.rejects(call().key("wrong&wrong"), 401, "signature_invalid");
    proxy
        .send(Call::get("/open").by(&caller.consumer))
        .is(401, "token_rejected");
    proxy
        .send(Call::get("/open").header("Authorization", "OAuth"))
        .has_status(400);
    proxy.send(Call::get("/open?oauth_token=x")).has_status(400);
    proxy
        .send(Call::post("/open").form("oauth_consumer_key=x"))
        .has_status(400);
    api.saw_nothing();
    proxy.send(call()).has_status(200);
    assert_eq!(
        api.only_request().header("x-auth-user"),
        Some(caller.user.id.as_str())
    );
}
