//! Hosts, origins and prefixes in front of the proxy; addresses of the API behind it.
//!
//! Promise (Signatures): The signed origin is a configured one; Host and forwarded fields only choose among them. Also in
//! `src/request/parse/origin/tests.rs`.

use crate::support::{
    Call, Connection, Proxy, Reply, Scene, Upstream, has, legs::APPLICATIONS, legs::LOGIN,
    tls::Certificate, until, upstream::refusing_address, words,
};

#[test]
fn location_on_the_api_becomes_the_public_address() {
    let api = Upstream::replying(|seen| {
        Reply::status("302 Found").header("Location", seen.header("x-location").unwrap_or_default())
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let authority = api.authority();
    let public = proxy.origin();
    let elsewhere = refusing_address();
    for (told, expected) in [
        (
            format!("http://{authority}/x?y=1#z"),
            format!("{public}/x?y=1#z"),
        ),
        (format!("HTTP://{authority}/x"), format!("{public}/x")),
        (format!("http://{authority}"), public.clone()),
        ("/x".to_owned(), "/x".to_owned()),
        ("x?y".to_owned(), "x?y".to_owned()),
        (
            format!("https://{authority}/x"),
            format!("https://{authority}/x"),
        ),
        (
            format!("http://{authority}.evil.example/x"),
            format!("http://{authority}.evil.example/x"),
        ),
        (
            format!("http://{elsewhere}/x"),
            format!("http://{elsewhere}/x"),
        ),
    ] {
        let answer = proxy.send(Call::get("/").of(&caller).header("X-Location", &told));
        let location = answer.header("location").unwrap();
        assert_eq!(
            location.trim_end_matches('/'),
            expected.trim_end_matches('/'),
            "{told}"
        );
    }
}

#[test]
fn location_at_the_public_host_gets_the_public_scheme_and_port() {
    let api = Upstream::replying(|seen| {
        Reply::status("302 Found").header("Location", seen.header("x-location").unwrap_or_default())
    });
    let proxy = Proxy::with(
        &api,
        "service.base_url = 'https://auth.test:8443'\nservice.public_api_urls = \
             ['https://api.test/v1', 'https://auth.test']\noperations.unlisted = 'anonymous'",
    );
    for (told, expected) in [
        ("http://api.test/x?y=1#z", "https://api.test/v1/x?y=1#z"),
        ("http://api.test:8000/x", "https://api.test/v1/x"),
        ("https://api.test:8000/x", "https://api.test/v1/x"),
        ("HTTP://API.TEST", "https://api.test/v1/"),
        // As an API writes it that knows the public host, or none, or the prefix too.
        ("https://api.test/x", "https://api.test/v1/x"),
        ("/x?y", "/v1/x?y"),
        ("/v1/x", "/v1/x"),
        ("https://api.test/v1/x", "https://api.test/v1/x"),
        ("http://api.test/v1/x", "https://api.test/v1/x"),
        // Another public URL, the pages, or somewhere else.
        ("x", "x"),
        ("//evil.test/x", "//evil.test/x"),
        ("/\t/evil.test/x", "/\t/evil.test/x"),
        ("https://auth.test/x", "https://auth.test/x"),
        ("https://auth.test:8443/x", "https://auth.test:8443/x"),
        ("http://auth.test/x", "http://auth.test/x"),
        ("http://api.test.evil.test/x", "http://api.test.evil.test/x"),
        ("http://api.test@evil.test/x", "http://api.test@evil.test/x"),
        ("http://evil.test/api.test", "http://evil.test/api.test"),
    ] {
        let call = Call::get("/v1/").host("api.test");
        let answer = proxy.send(call.header("X-Location", told));
        assert_eq!(answer.header("location"), Some(expected), "{told}");
    }
    assert_eq!(api.last_request().fields.all("x-forwarded-prefix"), ["/v1"]);
}

#[test]
fn a_redirect_to_our_own_page_has_no_prefix_of_the_api() {
    let api = Upstream::replying(|seen| {
        Reply::status("302 Found").header("Location", seen.header("x-location").unwrap_or_default())
    });
    let proxy = Proxy::with(
        &api,
        "service.base_url = 'https://www.test'\nservice.public_api_urls = ['https://www.test/api']\n\
             operations.unlisted = 'anonymous'",
    );
    for (told, expected) in [
        ("/service.oauth?mode=login", "/service.oauth?mode=login"),
        (
            "https://www.test/oauth/authorize?oauth_token=x",
            "https://www.test/oauth/authorize?oauth_token=x",
        ),
        (
            "http://www.test/oauth/authorize",
            "https://www.test/oauth/authorize",
        ),
        ("/oauth/other", "/api/oauth/other"),
    ] {
        let call = Call::get("/api/x").host("www.test");
        let answer = proxy.send(call.header("X-Location", told));
        assert_eq!(answer.header("location"), Some(expected), "{told}");
    }
}

#[test]
fn a_prefix_that_the_api_does_not_see_is_named_to_it() {
    let api = Upstream::start();
    for (setting, target, path, expected) in [
        ("", "/v1/x", "", &["/v1"][..]),
        ("service.prefix = 'restore'", "/x", "", &["/v1"]),
        ("service.prefix = 'keep'", "/v1/x", "", &[]),
        ("upstream.forwarded = false", "/v1/x", "", &[]),
        ("", "/v1/x", "/legacy", &[]),
    ] {
        let proxy = Proxy::in_front_of_url(&format!("{}{path}", api.url()))
            .config(&format!(
                "{setting}\nservice.base_url = 'https://api.test'\nservice.public_api_urls = ['https://api.test/v1']\n\
                 operations.unlisted = 'anonymous'"
            ))
            .start();
        for forged in ["X-Forwarded-Prefix", "X_Forwarded_Prefix"] {
            let call = Call::get(target).host("api.test").header(forged, "/admin");
            proxy.send(call).has_status(200);
            let seen = api.last_request();
            assert_eq!(
                seen.fields.all("x-forwarded-prefix"),
                expected,
                "{setting} {path}"
            );
            assert!(!seen.fields.has("x_forwarded_prefix"), "{seen:?}");
        }
    }
}

#[test]
fn host_of_the_pages_leads_to_applications_and_is_404_elsewhere() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "service.base_url = 'https://auth.test'\nservice.public_api_urls = \
             ['https://api.test', 'https://auth.test/v1']\noperations.unlisted = 'anonymous'",
    );
    let call = |method: &str, target: &str| Call::new(method, target).host("auth.test");
    let ask = |method: &str, target: &str| proxy.send(call(method, target));
    for target in ["/", "/?next=https://evil.test", "/?mode=login"] {
        let answer = ask("GET", target);
        let led = (answer.status, answer.header("location"));
        assert_eq!(led, (303, Some(APPLICATIONS)));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let post = ask("POST", "/");
    assert_eq!(
        (post.status, post.header("allow")),
        (405, Some("GET, HEAD"))
    );
    for target in words("/else /service.oauth/ /v10 // //evil.test /favicon.ico") {
        for method in ["GET", "POST"] {
            for (accept, expected) in [
                ("*/*", "text/plain; charset=utf-8"),
                ("application/json, */*", "application/problem+json"),
                ("text/html, */*", "text/html; charset=utf-8"),
            ] {
                let answer = proxy.send(call(method, target).header("Accept", accept));
                answer.has_status(404);
                assert_eq!(answer.header("content-type"), Some(expected));
                assert!(!answer.text().contains("evil"), "{answer:?}");
            }
        }
    }
    api.saw_nothing();
    // The API's own URLs have their own `/`, and another host is still not ours.
    for (host, target, status) in [
        ("api.test", "/", 200),
        ("auth.test", "/v1", 200),
        ("else.test", "/", 421),
    ] {
        proxy.send(Call::get(target).host(host)).has_status(status);
    }
    assert_eq!(api.count(), 2);
}

#[test]
fn the_api_gets_the_configured_host() {
    let api = Upstream::start();
    for (mode, expected) in [
        ("public", None),
        ("upstream", Some(api.authority().to_owned())),
        ("api.internal", Some("api.internal".to_owned())),
    ] {
        let proxy = Proxy::with(&api, &format!("upstream.host = '{mode}'"));
        let caller = proxy.somebody();
        proxy.send(Call::get("/").of(&caller)).has_status(200);
        let seen = api.last_request();
        assert_eq!(
            seen.fields.all("host"),
            [expected.unwrap_or_else(|| proxy.host())],
            "{mode}"
        );
    }
}

#[test]
fn forwarded_fields_can_be_switched_off() {
    let Scene { api, proxy, caller } = Scene::with("upstream.forwarded = false");
    let call = Call::get("/")
        .of(&caller)
        .header("Forwarded", "for=6.6.6.6");
    let call = call.header("X-Forwarded-For", "6.6.6.6");
    proxy.send(call).has_status(200);
    let seen = api.only_request();
    for name in ["forwarded", "x-forwarded-for", "x-forwarded-proto"] {
        assert!(!seen.fields.has(name), "{seen:?}");
    }
}

#[test]
fn the_origin_that_is_signed_is_the_public_one() {
    let Scene { api, proxy, caller } = Scene::with(
        "service.base_url = 'https://login.test'\nservice.public_api_urls = ['https://api.test', 'http://plain.test:8080']",
    );
    let call = |host: &str, origin: &str| {
        Call::get("/x?y=1")
            .of(&caller)
            .host(host)
            .for_origin(origin)
    };
    proxy
        .send(call("api.test", "https://api.test"))
        .has_status(200);
    proxy
        .send(call("API.test:443", "https://api.test"))
        .has_status(200);
    proxy
        .send(call("plain.test:8080", "http://plain.test:8080"))
        .has_status(200);
    proxy
        .send(call("api.test", "http://api.test"))
        .is(401, "signature_invalid");
    proxy
        .send(call("api.test", "https://plain.test:8080"))
        .is(401, "signature_invalid");
    for host in words("evil.test api.test:8443 plain.test api.test.evil.test 127.0.0.1") {
        proxy
            .send(call(host, &format!("https://{host}")))
            .has_status(421);
    }
    // The token endpoints are under base_url only; elsewhere that path is forwarded like any other.
    let elsewhere = Call::get("/service.oauth?mode=req_req_token").of(&caller);
    proxy
        .send(elsewhere.host("api.test").for_origin("https://api.test"))
        .has_status(200);
    assert_eq!(
        api.last_request().target,
        "/service.oauth?mode=req_req_token"
    );
}

#[test]
fn a_prefix_is_stripped_kept_or_restored() {
    let api = Upstream::start();
    for (mode, sent, forwarded) in [
        ("strip", "/shop/v1/orders?a=%7e", "/orders?a=%7e"),
        ("keep", "/shop/v1/orders?a=%7e", "/shop/v1/orders?a=%7e"),
        ("restore", "/orders?a=%7e", "/orders?a=%7e"),
    ] {
        let proxy = Proxy::with(
            &api,
            &format!(
                "service.base_url = 'https://api.test'\nservice.public_api_urls = ['https://api.test/shop/v1']\nservice.prefix = '{mode}'"
            ),
        );
        let caller = proxy.somebody();
        let call = Call::get(sent)
            .of(&caller)
            .signs_target("/shop/v1/orders?a=%7e");
        let answer = proxy.send(call);
        assert_eq!(answer.status, 200, "{mode}: {answer:?}");
        assert_eq!(api.last_request().target, forwarded, "{mode}");
        if mode != "restore" {
            let outside = proxy.send(Call::get("/orders").of(&caller));
            assert!(
                outside.status >= 400,
                "{mode}: no operation is outside the prefix: {outside:?}"
            );
        }
    }
}

#[test]
fn a_path_of_the_api_url_goes_in_front() {
    let api = Upstream::start();
    for base in ["/base/v2", "/base/v2/"] {
        let proxy =
            crate::support::proxy::Builder::in_front_of_url(&format!("{}{base}", api.url()))
                .start();
        let caller = proxy.somebody();
        proxy.passes(Call::get("/orders?x").of(&caller));
        assert_eq!(api.last_request().target, "/base/v2/orders?x");
    }
}

#[test]
fn an_api_on_a_unix_socket() {
    let api = Upstream::on_unix_socket();
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    proxy.passes(Call::post("/x").json("{}").of(&caller));
    let seen = api.only_request();
    assert_eq!(
        (seen.header("x-auth-user"), seen.text().as_str()),
        (Some(caller.user.id.as_str()), "{}")
    );
}

#[test]
fn the_public_listener_serves_tls() {
    let api = Upstream::start();
    let certificate = Certificate::for_names(&["localhost"]);
    let proxy = Proxy::in_front_of(&api)
        .at_https_localhost(&certificate)
        .start();
    let caller = proxy.somebody();
    let mut connection =
        Connection::over_tls(proxy.address(), "localhost", &certificate.certificate);
    for _ in 0..2 {
        connection.send(&proxy.wire(&Call::get("/x?y").of(&caller)));
        connection.answer("GET").has_status(200);
    }
    assert_eq!(
        api.last_request().header("x-forwarded-proto"),
        Some("https")
    );
    // Plain bytes on a TLS port end there.
    let mut plain = proxy.connect();
    plain.send(&proxy.wire(&Call::get("/plain").of(&caller)));
    assert!(!crate::support::http::latin1(&plain.wire().rest()).contains("200"));
    assert_eq!(api.count(), 2);
}

#[test]
fn forwarded_fields_of_the_other_family_are_warned_of_once() {
    let api = Upstream::start();
    for (family, other) in [
        ("x-forwarded", ("Forwarded", "for=203.0.113.9")),
        ("forwarded", ("X-Forwarded-For", "203.0.113.9")),
    ] {
        let proxy = Proxy::with(
            &api,
            &format!(
                "listen.trusted_proxies = ['127.0.0.1/32']\nlisten.forwarded = '{family}'\n\
                 operations.unlisted = 'anonymous'"
            ),
        );
        let field = format!("field={}", other.0.to_ascii_lowercase());
        let warned = || {
            let lines = proxy.log().lines();
            let of_field = |line: &&String| line.contains("WARN") && line.contains(&field);
            lines.iter().filter(of_field).count()
        };
        proxy.send(Call::get("/")).has_status(200);
        assert_eq!(warned(), 0);
        for _ in 0..2 {
            let call = Call::get("/").header(other.0, other.1);
            proxy.send(call).has_status(200);
        }
        until("the warning", || warned() > 0);
        assert_eq!(warned(), 1);
    }
    let distrustful = Proxy::in_front_of(&api).start();
    let call = Call::get("/").header("Forwarded", "for=203.0.113.9");
    distrustful.send(call).has_status(401);
    assert!(!distrustful.log().to_string().contains("field=forwarded"));
}

#[test]
fn a_host_that_is_not_ours_is_421() {
    let Scene { api, proxy, caller } = Scene::start();
    for host in ["evil.test", "127.0.0.1:1", "", "localhost"] {
        let answer = proxy.send(Call::get("/x").of(&caller).host(host));
        assert!(
            answer.status == 421 || (host.is_empty() && answer.status == 400),
            "{host:?}: {answer:?}"
        );
    }
    let login = Call::get(LOGIN).host("evil.test");
    proxy.send(login.clone()).has_status(421);
    // Every form of the response names the address to use, and the log line the host that was received.
    for accept in ["*/*", "text/html", "application/json"] {
        let answer = proxy.send(login.clone().header("Accept", accept));
        answer.has_status(421);
        has(&answer.text(), &[&format!("use http://{}", proxy.host())]);
    }
    proxy.log().wait_for("the line", |line| {
        let fields = ["access: ", " status=421 ", " host=evil.test "];
        fields
            .iter()
            .all(|field| line.contains(field))
            .then_some(())
    });
    api.saw_nothing();
}

#[test]
fn a_public_host_that_ends_with_a_dot_is_another_one() {
    let api = Upstream::start();
    let base = "service.base_url = 'https://auth.test'\n";
    let both = "service.public_api_urls = ['https://api.test', 'https://API.test.']";
    let proxy = Proxy::with(&api, &format!("{base}{both}"));
    let caller = proxy.somebody();
    let call = |host: &str, origin: &str| {
        let call = Call::get("/x").of(&caller).host(host);
        call.for_origin(&format!("https://{origin}"))
    };
    for host in ["api.test", "api.test.", "Api.Test."] {
        proxy.passes(call(host, &host.to_lowercase()));
    }
    let cut = call("api.test.", "api.test");
    proxy.rejects(cut, 401, "signature_invalid");
    let without = "service.public_api_urls = ['https://api.test']";
    let proxy = Proxy::with(&api, &format!("{base}{without}"));
    assert_eq!(proxy.status(Call::get("/x").host("api.test.")), 421);
}
