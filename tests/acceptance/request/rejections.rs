//! Every status and code, its fields and body, and the order of the checks.
//!
//! Promise (Signatures): The order of checks is fixed; a response names the state of a token only after a right signature. Also
//! in `src/request/verify/tests.rs`.

use crate::support::{
    Call, Placement, Proxy, Scene, Token, Upstream, Visitor,
    call::FORM,
    has,
    legs::{ACCESS_TOKEN, REQUEST_TOKEN, asks, authorization, exchanges},
    now,
    proxy::Consumer,
    rows, until,
    visitor::ACCEPT_OF_CHROMIUM,
    words,
};

/// A token that no store knows.
fn unknown_token() -> Token {
    Token::new("nothing", "nothing")
}

/// A consumer that no store knows.
fn unknown_consumer() -> Consumer {
    Consumer::new("nobody", "nothing")
}

#[test]
fn malformed_requests_are_400_and_name_the_parameter() {
    let Scene { api, proxy, caller } = Scene::start();
    let call = || Call::get("/x?y=1").of(&caller);
    for name in words(
        "oauth_consumer_key oauth_signature_method oauth_timestamp oauth_nonce oauth_signature",
    ) {
        for placement in [Placement::Header, Placement::Query] {
            let absent = call().placed(placement).without(name);
            let answer = proxy.rejects(absent, 400, "parameter_absent");
            answer.tells("oauth_parameters_absent", name);
            assert!(!answer.fields.has("www-authenticate"), "{answer:?}");
            let empty = call().placed(placement).spoiled(name, "");
            proxy.send(empty).has_status(400);
        }
    }
    let two = call().without("oauth_nonce").without("oauth_timestamp");
    let absent = proxy.send(two).form("oauth_parameters_absent").unwrap();
    assert!(["oauth_timestamp&oauth_nonce", "oauth_nonce&oauth_timestamp"].contains(&&*absent));
    for [name, value] in rows(
        r"
        oauth_timestamp | abc
        oauth_timestamp | 0
        oauth_timestamp | 00
        oauth_timestamp | 1\x20
        oauth_timestamp | 0x5f
        oauth_timestamp | 18446744073709551616
        oauth_timestamp | -1
        oauth_timestamp | +1
        oauth_timestamp | \x201
        oauth_timestamp | 1.5
        oauth_timestamp | 0123456789
        oauth_timestamp | 99999999999999999999999
        oauth_nonce     | a b
        oauth_nonce     | a\nb
        oauth_nonce     | a\0b
        oauth_nonce     | a\u{7f}
        oauth_nonce     | \u{e9}
    ",
    ) {
        let answer = proxy.rejects(call().parameter(name, value), 400, "parameter_rejected");
        answer.tells("oauth_parameters_rejected", name);
    }
    let nonce = |length| call().parameter("oauth_nonce", &"n".repeat(length));
    proxy.rejects(nonce(256), 400, "parameter_rejected");
    proxy.passes(nonce(255));
    let version = |version| call().parameter("oauth_version", version);
    for wrong in ["2.0", "1", "1.0 ", "1.0b", "01.0"] {
        let answer = proxy.rejects(version(wrong), 400, "version_rejected");
        answer.tells("oauth_acceptable_versions", "1.0-1.0");
    }
    proxy.passes(version("1.0a"));
    proxy.passes(call().without("oauth_version"));
    for method in ["HMAC-SHA3-256", "PLAINTEXT"] {
        let call = call().parameter("oauth_signature_method", method);
        proxy.rejects(call, 400, "signature_method_rejected");
    }
    assert_eq!(api.count(), 3);
}

#[test]
fn invalid_credentials_are_401_and_named() {
    let (_api, proxy, caller) = Scene::start().into_parts();
    let call = || Call::get("/x").of(&caller);
    let basic = Call::get("/x").header("Authorization", "Basic YTpi");
    let bearer = Call::get("/x").header("Authorization", "Bearer x");
    for absent in [Call::get("/x"), basic, bearer] {
        proxy.rejects(absent, 401, "parameter_absent");
    }
    let by_unknown = Call::get("/x").by(&unknown_consumer()).with(&caller.token);
    proxy.rejects(by_unknown, 401, "consumer_key_unknown");
    let unknown = Call::get("/x").by(&caller.consumer).with(&unknown_token());
    proxy.rejects(unknown, 401, "token_rejected");
    proxy.rejects(Call::get("/x").by(&caller.consumer), 401, "token_rejected");
    let a_second_ago = (now() - 1).to_string();
    for forged in [
        call().key("wrong&wrong"),
        call().key(&format!("{}&", caller.consumer.secret)),
        call().key(&caller.consumer.secret),
        call().signs_target("/y"),
        call().signs_method("POST"),
        call().signs_target("/x?added=1"),
        call().for_origin("https://else.test"),
        call().spoiled("oauth_nonce", "other"),
        call().spoiled("oauth_timestamp", &a_second_ago),
        call().spoiled("oauth_signature_method", "HMAC-SHA256"),
        call().spoiled("oauth_signature_method", "RSA-SHA1"),
        call().spoiled("oauth_version", "1.0a"),
        call().spoiled("oauth_signature", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        call().spoiled("oauth_signature", "AAAA"),
    ] {
        proxy.rejects(forged, 401, "signature_invalid");
    }
    let at = |time: u64| call().parameter("oauth_timestamp", &time.to_string());
    for time in [now() - 400, now() + 400] {
        let answer = proxy.rejects(at(time), 401, "timestamp_refused");
        let range = answer.form("oauth_acceptable_timestamps").unwrap();
        let (low, high) = range.split_once('-').expect("low-high");
        let (low, high): (u64, u64) = (low.parse().unwrap(), high.parse().unwrap());
        assert!(low < now() && now() < high, "{range}");
        assert!(!(low..=high).contains(&time), "{range}");
    }
    proxy.passes(at(now() - 280));
    proxy.passes(at(now() + 280));

    let key = &caller.consumer.key;
    proxy.run(&format!("token revoke {}", caller.token.token));
    until("the revocation", || proxy.status(call()) == 401);
    proxy.rejects(call(), 401, "token_revoked");
    proxy.rejects(call().key("wrong&wrong"), 401, "signature_invalid");
    let second = proxy.token(&caller.consumer, &caller.user);
    let call = || Call::get("/x").by(&caller.consumer).with(&second);
    proxy.run(&format!("consumer disable {key}"));
    until("the disabling", || proxy.status(call()) == 401);
    proxy.rejects(call(), 401, "consumer_key_refused");
    proxy.rejects(call().key("wrong&wrong"), 401, "signature_invalid");
    proxy.run(&format!("consumer enable {key}"));
    until("the enabling", || proxy.status(call()) == 200);
}

#[test]
fn a_challenge_goes_with_every_401() {
    let Scene { proxy, caller, .. } = Scene::with("service.realm = 'The \"Shop\" \\'");
    for (call, problem) in [
        (Call::get("/"), "parameter_absent"),
        (Call::get("/").of(&caller).key("x"), "signature_invalid"),
        (asks(&caller.consumer, "oob").key("x"), "signature_invalid"),
    ] {
        let answer = proxy.send(call);
        let challenge = answer.header("www-authenticate").expect("a challenge");
        assert!(
            challenge.starts_with("OAuth realm=\"The \\\"Shop\\\" \\\\\", "),
            "{challenge}"
        );
        has(challenge, &[&format!("oauth_problem=\"{problem}\"")]);
    }
}

#[test]
fn problems_are_json_or_a_page_as_the_caller_prefers() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (form, json, html) = (FORM, "application/problem+json", "text/html");
    let sent = |call: Call, kind: &str| {
        let answer = proxy.rejects(call, 401, "parameter_absent");
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with(kind), "{answer:?}");
    };
    sent(Call::get("/"), form);
    for (accept, kind) in [
        ("*/*", form),
        (form, form),
        ("application/json", json),
        ("application/problem+json", json),
        ("application/json, */*;q=0.5", json),
        ("application/json, text/plain, */*", json),
        ("APPLICATION/JSON", json),
        (&format!("{form}, application/json;q=0.5"), form),
        (&format!("application/json;q=0.1, {form}"), form),
        ("application/json;q=0", form),
        ("text/html", html),
        (ACCEPT_OF_CHROMIUM, html),
        ("TEXT/HTML;q=0.3", html),
        ("text/html, */*", html),
        ("text/html, application/json", json),
        ("text/html;q=0.9, application/json", json),
        ("text/html, application/json;q=0.9", html),
        (&format!("text/html;q=0.9, {form}"), form),
        ("text/html;q=0.5, */*", form),
        ("text/html;q=0", form),
        ("text/htmlx", form),
        // A consumer on Java's HttpURLConnection.
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", form),
        (";;;,,q=,", form),
    ] {
        sent(Call::get("/").header("Accept", accept), kind);
    }
}

#[test]
fn checks_come_in_the_order_of_the_contract() {
    let Scene { api, proxy, caller } = Scene::with(
        "operation = [{ path = '/open', permission = 'p' }]\npermission = [{ name = 'p', title = 'P' }]",
    );
    let (consumer, unknown) = (&caller.consumer, unknown_consumer());
    let stamped = |call: Call, time: u64, nonce: &str| {
        let call = call.parameter("oauth_timestamp", &time.to_string());
        call.parameter("oauth_nonce", nonce)
    };
    let get = || Call::get("/open");
    let (time, call) = (now(), || get().of(&caller));
    let old = || stamped(get().by(&unknown), time - 4_000, "n0");
    let misdirected = get().by(consumer).without("oauth_nonce");
    proxy.send(misdirected.host("else.test")).has_status(421);
    for (before, call, status, problem) in [
        (
            "timestamp",
            old().parameter("oauth_version", "9"),
            400,
            "version_rejected",
        ),
        ("consumer", old(), 401, "timestamp_refused"),
        (
            "token",
            get().by(&unknown).with(&unknown_token()),
            401,
            "consumer_key_unknown",
        ),
        (
            "signature",
            get().by(consumer).with(&unknown_token()).key("x"),
            401,
            "token_rejected",
        ),
        (
            "permission",
            stamped(call(), time, "n1"),
            404,
            "permission_denied",
        ),
        (
            "nonce",
            stamped(call().key("x"), time, "n1"),
            401,
            "signature_invalid",
        ),
        ("permission", stamped(call(), time, "n1"), 401, "nonce_used"),
    ] {
        let answer = proxy.send(call);
        let told = (answer.status, answer.problem());
        assert_eq!(told, (status, Some(problem.to_owned())), "before {before}");
    }
    // A rejected state has consumed its nonce, and is checked before the permission.
    proxy.run(&format!("token revoke {}", caller.token.token));
    let revoked = || proxy.send(call()).problem().as_deref() == Some("token_revoked");
    until("the revocation", revoked);
    proxy.rejects(stamped(call(), time, "n2"), 401, "token_revoked");
    proxy.rejects(stamped(call(), time, "n2"), 401, "nonce_used");
    // Undecided, then verifier; used, then verifier.
    let request_token = proxy.request_token(consumer, "oob");
    let wrong = || exchanges(consumer, &request_token, "wrong");
    proxy.rejects(wrong(), 401, "permission_unknown");
    let verifier = proxy.verifier(&request_token, &caller.user);
    proxy.rejects(wrong(), 401, "verifier_invalid");
    proxy.passes(exchanges(consumer, &request_token, &verifier));
    proxy.rejects(wrong(), 401, "token_used");
    api.saw_nothing();
}

#[test]
fn tokens_expire() {
    let Scene { proxy, caller, .. } =
        Scene::with("tokens = { access_ttl = '1s', request_ttl = '1s' }");
    let is_expired = |call: Call| proxy.send(call).problem().as_deref() == Some("token_expired");
    let call = || Call::get("/x").of(&caller);
    until("the access token expires", || is_expired(call()));
    proxy.rejects(call().key("x"), 401, "signature_invalid");
    let request_token = proxy.request_token(&caller.consumer, "oob");
    let exchange = || exchanges(&caller.consumer, &request_token, "wrong");
    until("the request token expires", || is_expired(exchange()));
    let page = Visitor::to(&proxy)
        .open(&authorization(&request_token))
        .answer;
    page.has_status(401);
    has(page.header("www-authenticate").unwrap(), &["token_expired"]);
    let from = "The application is <bdi>Shop</bdi>.";
    has(&page.text(), &[from]);
}

/// The service reads its clock somewhere between the two times that are read here.
#[test]
fn a_rejected_timestamp_gets_its_difference_from_our_clock() {
    let Scene { proxy, caller, .. } = Scene::start();
    let advice = |sent: u64| {
        let call = Call::get("/x").of(&caller);
        let answer = proxy.send(call.parameter("oauth_timestamp", &sent.to_string()));
        answer.is(401, "timestamp_refused");
        answer.form("oauth_problem_advice").unwrap()
    };
    let time = now();
    for (sent, told) in [(time - 412, "behind"), (time + 500, "ahead")] {
        let advice = advice(sent);
        let is_told =
            |now: u64| advice.contains(&format!("your clock is {} s {told}", now.abs_diff(sent)));
        assert!((time..=now()).any(is_told), "{advice}");
    }
    for (sent, told) in [
        (now() - 3600, "exactly one hour, as with a time zone"),
        (now() + 7200, "exactly 2 hours, as with a time zone"),
        (now() * 1000, "oauth_timestamp is in milliseconds"),
        (now() - 1_000_000_000, "counts the seconds since 1970"),
    ] {
        let advice = advice(sent);
        assert!(advice.contains(told), "{advice}");
    }
}

#[test]
fn advice_on_a_wrong_signature_is_as_configured() {
    for (level, base_string) in [("off", false), ("hint", false), ("full", true)] {
        let Scene { proxy, caller, .. } = Scene::with(&format!("signature.advice = '{level}'"));
        let wrong = Call::get("/x?y=1").of(&caller).signs_target("/x");
        let answer = proxy.rejects(wrong, 401, "signature_invalid");
        let advice = answer.form("oauth_problem_advice").unwrap_or_default();
        let told = advice.contains("GET&http%3A%2F%2F");
        assert_eq!(told, base_string, "{level}: {advice}");
        assert_eq!(advice.is_empty(), level == "off", "{advice}");
        for secret in [&caller.consumer.secret, &caller.token.secret] {
            assert!(!answer.text().contains(secret), "{answer:?}");
        }
    }
}

#[test]
fn a_rejected_token_is_absent_or_a_request_token_or_void() {
    let (_api, proxy, caller) = Scene::start().into_parts();
    let consumer = &caller.consumer;
    let request_token = proxy.request_token(consumer, "oob");
    let call = || Call::get("/x").by(consumer);
    let form = || Call::post("/x").by(consumer).form("a=1");
    let void = "oauth_token is empty, another consumer's, or a request token";
    let forged = Token::new(&request_token.token, "another secret");
    for (call, told) in [
        (call(), "no oauth_token was sent"),
        (
            call().with(&request_token),
            "oauth_token is a request token",
        ),
        // Only the owner of its secret learns what it is.
        (call().with(&forged), void),
        (call().with(&unknown_token()), void),
        // A form is rejected by its head alone, before anything is proved.
        (form(), "no oauth_token was sent"),
        (form().with(&request_token), void),
        (form().with(&unknown_token()), void),
    ] {
        let answer = proxy.rejects(call, 401, "token_rejected");
        has(&answer.form("oauth_problem_advice").unwrap(), &[told]);
    }
}

#[test]
fn a_request_at_the_wrong_url_names_the_right_one() {
    let (_api, proxy, caller) = Scene::with(
        "service.base_url = 'http://login.test'\nservice.allow_http = true\nservice.public_api_urls = ['http://api.test:8443/v2']",
    )
    .into_parts();
    let call = |host: &str, target: &str| Call::get(target).of(&caller).host(host);
    for (host, target, status, told) in [
        (
            "api.test:8443",
            "/photos",
            421,
            "lacks the prefix of the public URL at this host: send it, or, if a gateway has stripped it, set service.prefix",
        ),
        (
            "other.test:8081",
            "/v2/photos",
            421,
            "Host names no public URL of this service; use http://api.test:8443/v2, http://login.test",
        ),
        (
            "login.test",
            "/v2/photos",
            404,
            "the API is at http://api.test:8443/v2",
        ),
    ] {
        let answer = proxy.send(call(host, target));
        answer.has_status(status);
        has(&answer.text(), &[told]);
    }
    proxy.logs(&["verdict=\"misdirected\"", "host=other.test:8081"]);
    // A token call on the URL of the API names that of the service.
    let asked = Call::post("/v2/oauth/request_token")
        .by(&caller.consumer)
        .parameter("oauth_callback", "oob")
        .host("api.test:8443")
        .for_origin("http://api.test:8443");
    let asked = proxy.send(asked);
    asked.is(401, "token_rejected");
    has(
        &asked.form("oauth_problem_advice").unwrap(),
        &["http://login.test/oauth/request_token"],
    );
}

/// A diagnosis tries every known mistake on all that was sent: a large request would keep a worker busy for seconds.
#[test]
fn only_small_requests_are_diagnosed() {
    let (_api, proxy, caller) = Scene::with("signature.advice = 'full'").into_parts();
    let many: Vec<String> = (0..100).map(|number| format!("p{number}")).collect();
    let few = many[..20].join("&");
    for (query, form, told) in [
        (few.clone(), few, true),
        (many.join("&"), String::new(), false),
        ("a".to_owned(), many.join("&"), false),
        (format!("a={}", "x".repeat(5_000)), String::new(), false),
        ("a".to_owned(), format!("a={}", "x".repeat(5_000)), false),
    ] {
        let call = Call::post(&format!("/x?{query}"))
            .form(&form)
            .of(&caller)
            .key(&format!("{}&", caller.consumer.secret));
        let answer = proxy.send(call);
        answer.is(401, "signature_invalid");
        let advice = answer.form("oauth_problem_advice").unwrap();
        assert_eq!(advice.contains("put the token secret"), told, "{advice}");
        let has_base = advice.contains("the base string here is POST&");
        assert_eq!(has_base, told, "{advice}");
    }
}

#[test]
fn plaintext_is_on_only_by_name_and_only_over_tls() {
    let on =
        "signature.methods = ['HMAC-SHA1', 'PLAINTEXT']\nservice.base_url = 'https://api.test'";
    for (trusted, status) in [("", 400), ("\nlisten.trusted_proxies = '127.0.0.1'", 200)] {
        let Scene { api, proxy, caller } = Scene::with(&format!("{on}{trusted}"));
        let call = Call::get("/x").of(&caller).method("PLAINTEXT");
        let call = call.without("oauth_nonce").without("oauth_timestamp");
        let answer = proxy.send(call.header("X-Forwarded-Proto", "https"));
        assert_eq!(answer.status / 100, status / 100, "{answer:?}");
        assert_eq!(api.count(), usize::from(status == 200));
    }
}

#[test]
fn rejected_token_calls_get_the_status_of_the_table() {
    let (_api, proxy, caller) = Scene::start().into_parts();
    let consumer = &caller.consumer;
    let call = || Call::post(REQUEST_TOKEN).by(consumer);
    let answer = proxy.rejects(call(), 400, "parameter_absent");
    answer.tells("oauth_parameters_absent", "oauth_callback");
    proxy.send(asks(consumer, "")).has_status(400);
    proxy.rejects(Call::post(REQUEST_TOKEN), 401, "parameter_absent");
    let call = asks(&unknown_consumer(), "oob");
    proxy.rejects(call, 401, "consumer_key_unknown");
    proxy.rejects(asks(consumer, "oob").key("x"), 401, "signature_invalid");
    let unknown = exchanges(consumer, &unknown_token(), "x");
    proxy.rejects(unknown, 401, "token_rejected");
    let request_token = proxy.request_token(consumer, "oob");
    let absent = Call::post(ACCESS_TOKEN).by(consumer).with(&request_token);
    let answer = proxy.rejects(absent, 400, "parameter_absent");
    answer.tells("oauth_parameters_absent", "oauth_verifier");
    // Superfluous parameters are signed and otherwise ignored.
    let verifier = proxy.verifier(&request_token, &caller.user);
    let exchange = exchanges(consumer, &request_token, &verifier);
    let exchange = exchange.parameter("oauth_callback", "oob");
    proxy.passes(exchange.parameter("oauth_extra", "1"));
    let delete = Call::new("DELETE", REQUEST_TOKEN).by(consumer);
    let delete = delete.parameter("oauth_callback", "oob");
    proxy.send(delete).has_status(405);
}

#[test]
fn options_for_the_proxy_itself_is_not_forwarded() {
    let Scene { api, proxy, caller } = Scene::start();
    let asterisk = |host: &str| {
        let mut connection = proxy.connect();
        connection.send(format!("OPTIONS * HTTP/1.1\r\n{host}\r\n").as_bytes());
        connection.answer("OPTIONS")
    };
    let last = |hops: &str| Call::new("OPTIONS", "/x?y=1").header("Max-Forwards", hops);
    for answer in [
        asterisk(&format!("Host: {}\r\n", proxy.host())),
        proxy.send(last("0")),
        proxy.send(last("000").of(&caller)),
    ] {
        answer.has_status(204);
        let allowed = answer.header("allow").unwrap();
        assert_eq!(allowed, "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
        assert_eq!(answer.body, b"");
    }
    asterisk("").has_status(400);
    for hops in ["", "-1", "1, 2", "x"] {
        proxy.send(last(hops).of(&caller)).has_status(400);
    }
    let twice = last("1").header("Max-Forwards", "1");
    proxy.send(twice.of(&caller)).has_status(400);
    // A path of the service itself, and a Host of another one.
    let own = Call::new("OPTIONS", "/oauth/request_token").header("Max-Forwards", "0");
    proxy.send(own).has_status(405);
    proxy.send(last("0").host("other.test")).has_status(421);
    api.saw_nothing();

    let seen = |call: Call| {
        proxy.passes(call.of(&caller));
        let seen = api.last_request();
        seen.header("max-forwards").map(str::to_owned)
    };
    assert_eq!(seen(last("1")).as_deref(), Some("0"));
    assert_eq!(seen(last("10")).as_deref(), Some("9"));
    assert_eq!(seen(last("99999999999")).as_deref(), Some("4294967294"));
    assert_eq!(seen(Call::new("OPTIONS", "/x")), None);
    // For other methods it means nothing.
    let get = Call::get("/x").header("Max-Forwards", "0");
    assert_eq!(seen(get).as_deref(), Some("0"));
}
