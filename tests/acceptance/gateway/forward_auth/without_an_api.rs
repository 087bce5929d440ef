//! A process that decides for other proxies alone.

use super::*;

#[test]
fn a_process_without_an_api_serves_token_calls_and_pages_only() {
    let mut builder = Builder::for_forward_auth();
    let found = builder.run(&["check"], "").done();
    has(&found.stdout, &["API            none"]);
    builder.set("service.base_url", "https://auth.example.com".into());
    builder.set(
        "service.public_api_urls",
        vec!["https://api.example.com", "https://auth.example.com"].into(),
    );
    builder.set("listen.trusted_proxies", vec!["127.0.0.1"].into());
    let proxy = builder.start();
    let (consumer, user) = proxy.shop();
    let https = |call: Call| call.header("X-Forwarded-Proto", "https");
    let token = token_of(&proxy.send(https(asks(&consumer, crate::support::proxy::CALLBACK))));
    assert!(!token.token.is_empty());
    proxy
        .send(https(Call::get("/service.oauth?mode=login")))
        .has_status(200);
    let caller = proxy.token(&consumer, &user);
    let signed = |target: &str| Call::get(target).by(&consumer).with(&caller);
    for host in ["auth.example.com", "api.example.com"] {
        let origin = format!("https://{host}");
        let call = signed("/a").for_origin(&origin).host(host);
        proxy.send(https(call.clone())).has_status(404);
        let wire = call.wire(&origin, host);
        assert_eq!(
            identity(&proxy.asks_by(Way::Verify, &origin, &wire))[3],
            "consumer"
        );
    }
    // The proxy in front has to send these to the public listener.
    for target in [
        "/service.oauth?mode=login",
        "/oauth/request_token",
        "/service.oauth?mode=req_req_token",
    ] {
        for way in WAYS {
            let answer = proxy.asks(way, &Call::get(target));
            assert_eq!(status(way, &answer), 404, "{answer:?}");
            if way == Way::Verify {
                has(&answer.text(), &["public listener"]);
            }
        }
    }
}

#[test]
fn token_call_without_an_api_may_have_its_mode_in_form_or_none() {
    let proxy = Builder::for_forward_auth().start();
    let consumer = proxy.consumer_with("Shop", "--callback oob");
    for body in ["mode=req_req_token", ""] {
        let call = Call::post("/service.oauth").form(body).by(&consumer);
        token_of(&proxy.send(call.parameter("oauth_callback", "oob")));
    }
    proxy
        .send(Call::post("/service.oauth").form("a=b"))
        .has_status(400);
    let visit = Call::get("/service.oauth").header("Sec-Fetch-Mode", "navigate");
    proxy
        .send(visit.header("Accept", "text/html"))
        .has_status(303);
}

#[test]
fn an_api_is_required_without_forward_auth() {
    let mut builder = Builder::in_front_of_url("");
    builder.set("upstream", toml::Table::new().into());
    let ended = builder.run(&["check"], "");
    assert_eq!(ended.code(), Some(2));
    has(&ended.stderr, &["upstream.api_url: missing"]);
}
