//! `service.role = "guard"`: the API stays the provider and keeps its own check.
//!
//! Promise (Signatures): Before an API that keeps its own check, such as Keystone, each signed call passes once, unchanged.
//! Also in `tests/attacks/unreadable.rs`, `tests/providers/guard.rs`.

use crate::support::{
    Application, Call, Consumer, Placement, Proxy, Reply, Token, Upstream,
    application::{consumer_record, token_record},
    until,
};

const REQUEST_TOKEN: &str = "/oauth/request_token";
const ACCESS_TOKEN: &str = "/oauth/access_token";

const CALLBACK: &str = "https://shop.example/ready";

fn exchanges(consumer: &Consumer, request_token: &Token, verifier: &str) -> Call {
    let call = Call::post(ACCESS_TOKEN).by(consumer).with(request_token);
    call.parameter("oauth_verifier", verifier)
}

fn guarded() -> (Upstream, Proxy) {
    let api = Upstream::replying(|seen| Reply::ok(&seen.target));
    let proxy = Proxy::with(&api, "service.role = 'guard'");
    (api, proxy)
}

#[test]
fn every_credential_goes_on_as_it_came() {
    let (api, proxy) = guarded();
    let caller = proxy.somebody();
    let line = |wire: &[u8]| {
        let text = String::from_utf8_lossy(wire).into_owned();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Authorization: "));
        line.map(str::to_owned)
    };
    for placement in [Placement::Header, Placement::Query, Placement::Body] {
        let call = Call::post("/x?b=%7E&a=+")
            .form("z=%2a&c=")
            .of(&caller)
            .placed(placement);
        let wire = proxy.wire(&call);
        let mut connection = proxy.connect();
        connection.send(&wire);
        connection.answer("POST").has_status(200);
        let seen = api.last_request();
        let sent = String::from_utf8(wire.clone()).unwrap();
        assert_eq!(sent.split(' ').nth(1), Some(&*seen.target));
        assert_eq!(sent.split("\r\n\r\n").nth(1), Some(&*seen.text()));
        assert_eq!(seen.header("authorization"), line(&wire).as_deref());
        assert_eq!(seen.header("host"), Some(&*proxy.host()));
        assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
        assert_eq!(seen.header("x-auth-user"), Some(&*caller.user.id));
        // The copy of a recorded request.
        let mut connection = proxy.connect();
        connection.send(&wire);
        connection.answer("POST").is(401, "nonce_used");
    }
    // What is not signed is the API's own; an identity cannot be forged.
    for credentials in ["Basic YTpi", "Bearer x"] {
        let call = Call::get("/page").header("Authorization", credentials);
        proxy.passes(
            call.header("X-Auth-User", "root")
                .header("X-Auth-Kind", "user"),
        );
        let seen = api.last_request();
        assert_eq!(seen.header("authorization"), Some(credentials));
        assert_eq!(seen.header("x-auth-user"), None);
        assert_eq!(seen.header("x-auth-kind"), Some("anonymous"));
    }
    proxy.passes(Call::get("/2legged").by(&caller.consumer));
    proxy.rejects(
        Call::get("/x").of(&caller).spoiled("oauth_nonce", "other"),
        401,
        "signature_invalid",
    );
}

#[test]
fn token_calls_of_the_api_are_verified() {
    let (api, proxy) = guarded();
    let caller = proxy.somebody();
    let consumer = &caller.consumer;
    let asks = || Call::post(REQUEST_TOKEN).by(consumer);
    let header = || asks().parameter("oauth_callback", CALLBACK);
    for call in [
        header(),
        // Clients that add what they were given to the form or the query.
        asks().form("oauth_callback=https%3A%2F%2Fshop.example%2Fready"),
        Call::get(&format!("{REQUEST_TOKEN}?oauth_callback=oob")).by(consumer),
    ] {
        let wire = proxy.wire(&call);
        let answers = [(); 2].map(|()| {
            let mut connection = proxy.connect();
            connection.send(&wire);
            connection.answer(&call.method)
        });
        answers[0].has_status(200);
        assert_eq!(
            api.last_request().header("x-auth-kind"),
            Some("application")
        );
        answers[1].is(401, "nonce_used");
    }
    let unknown = Consumer::new("unknown", "secret");
    let count = api.count();
    proxy.rejects(
        Call::post(REQUEST_TOKEN).by(&unknown),
        401,
        "consumer_key_unknown",
    );
    proxy.rejects(
        header().spoiled("oauth_callback", "https://evil.example"),
        401,
        "signature_invalid",
    );
    proxy.rejects(
        header().parameter("oauth_timestamp", "1"),
        401,
        "timestamp_refused",
    );
    // The API's request token: it alone knows the secret. A consumer that is not known gets no further.
    let request_token = Token::new("of-the-api", "its secret");
    let late = exchanges(consumer, &request_token, "v").parameter("oauth_timestamp", "1");
    proxy.rejects(late, 401, "timestamp_refused");
    proxy.rejects(
        exchanges(&unknown, &request_token, "v"),
        401,
        "consumer_key_unknown",
    );
    let in_form = |by: &Consumer| {
        let call = Call::post(ACCESS_TOKEN).by(by).with(&request_token);
        call.form("oauth_verifier=v")
    };
    proxy.rejects(in_form(&unknown), 401, "consumer_key_unknown");
    assert_eq!(api.count(), count);
    for call in [exchanges(consumer, &request_token, "v"), in_form(consumer)] {
        proxy.passes(call);
        assert_eq!(api.last_request().header("x-auth-kind"), None);
    }
    // One that is known here is verified, and passes once.
    let wire = proxy.wire(&exchanges(consumer, &caller.token, "v"));
    for status in [200, 401] {
        let mut connection = proxy.connect();
        connection.send(&wire);
        connection.answer("POST").has_status(status);
    }
    // At any other path the API's request token is unknown.
    proxy.rejects(
        Call::get("/x").by(consumer).with(&request_token),
        401,
        "token_rejected",
    );
    // The authorization page, and all else of the flow.
    proxy.passes(Call::get("/oauth/authorize?oauth_token=of-the-api"));
    proxy.passes(Call::post("/oauth/authorize").form("oauth_token=of-the-api&allow=yes"));
    proxy.passes(Call::post("/service.oauth?mode=req_req_token").by(consumer));
    proxy.passes(Call::get("/service.oauth?mode=login"));
    let page = proxy.send(Call::get("/service.oauth?mode=developer"));
    assert_ne!(page.text(), "/service.oauth?mode=developer");
}

#[test]
fn token_calls_are_verified_by_records_that_are_looked_up() {
    let application = Application::with([
        consumer_record("shop", "shop secret"),
        token_record("known", "its secret", "shop", "7"),
    ]);
    let api = Upstream::replying(|seen| Reply::ok(&seen.target));
    let builder = Proxy::in_front_of(&api).config(
        "service.role = 'guard'
        cache = { ttl = '0s', negative_ttl = '0s', stale_if_error = '0s' }",
    );
    let proxy = application.looked_up_by(builder).start();
    let shop = Consumer::new("shop", "shop secret");
    let asks = |by: &Consumer| {
        let call = Call::post(REQUEST_TOKEN).by(by);
        call.parameter("oauth_callback", CALLBACK)
    };
    let request_token = Token::new("of-the-api", "its secret");
    let known = Token::new("known", "its secret");
    for call in [asks(&shop), exchanges(&shop, &known, "v")] {
        let wire = proxy.wire(&call);
        for status in [200, 401] {
            let mut connection = proxy.connect();
            connection.send(&wire);
            connection.answer("POST").has_status(status);
        }
    }
    // The application does not know this token: the API does.
    proxy.passes(exchanges(&shop, &request_token, "v"));
    assert_eq!(api.last_request().header("x-auth-kind"), None);
    let count = api.count();
    let forged = Consumer::new("shop", "another secret");
    proxy.rejects(asks(&forged), 401, "signature_invalid");
    let unknown = Consumer::new("unknown", "secret");
    proxy.rejects(asks(&unknown), 401, "consumer_key_unknown");
    let unknown = exchanges(&unknown, &request_token, "v");
    proxy.rejects(unknown, 401, "consumer_key_unknown");
    assert_eq!(api.count(), count);
    // While it fails, no token call goes on unverified.
    application.replies(Reply::status("500 Internal Server Error"));
    until("what was read before is not used", || {
        proxy.send(asks(&shop)).status == 503
    });
    let count = api.count();
    for call in [asks(&shop), exchanges(&shop, &request_token, "v")] {
        assert_eq!(proxy.send(call).status, 503);
    }
    assert_eq!(api.count(), count);
}

#[test]
fn observing_counts_what_a_guard_would_reject_and_forwards_it() {
    let api = Upstream::replying(|seen| Reply::ok(&seen.target));
    let proxy = Proxy::with(
        &api,
        "service.role = 'guard'\nsignature.enforcement = 'observe'",
    );
    let caller = proxy.somebody();
    let wire = proxy.wire(&Call::post(REQUEST_TOKEN).by(&caller.consumer));
    for _ in 0..2 {
        let mut connection = proxy.connect();
        connection.send(&wire);
        connection.answer("POST").has_status(200);
        assert_eq!(api.last_request().header("x-auth-kind"), None);
    }
    proxy.logs(&["/oauth/request_token", "reason=\"nonce_used\""]);
    let odd = Call::get("/x").header("Authorization", "OAuth;oauth_token=\"x\"");
    proxy.passes(odd);
    let seen = api.last_request();
    assert_eq!(
        seen.header("authorization"),
        Some("OAuth;oauth_token=\"x\"")
    );
}

/// By a prefix: its operations need a signature, and the rest is the API's own.
#[test]
fn listed_operations_have_their_rules() {
    let api = Upstream::replying(|seen| Reply::ok(&seen.target));
    let proxy = Proxy::with(
        &api,
        "service.role = 'guard'\noperation = [{ path = '/rest/{*rest}' }]",
    );
    let caller = proxy.somebody();
    proxy.passes(Call::get("/rest/x").of(&caller));
    assert!(api.last_request().header("authorization").is_some());
    proxy.send(Call::get("/rest/x")).has_status(401);
    proxy.passes(Call::get("/shop"));
    proxy.passes(Call::post(REQUEST_TOKEN).by(&caller.consumer));
}
