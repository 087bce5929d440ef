//! Hosts, origins and prefixes before the proxy; addresses of the API behind it.

use std::time::Duration;

use crate::support::{
    Call, Connection, Proxy, Reply, Upstream, tls::Certificate, upstream::nobody, within,
};

#[test]
fn location_on_the_api_becomes_the_public_address() {
    let api = Upstream::replying(|seen| {
        Reply::status("302 Found").header("Location", seen.header("x-location").unwrap_or_default())
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let authority = api.authority();
    let public = proxy.origin();
    let elsewhere = nobody();
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
        let answer = proxy.send(
            Call::get("/")
                .by(&consumer)
                .with(&token)
                .header("X-Location", &told),
        );
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
    let proxy = Proxy::in_front_of(&api)
        .config(
            "service.base_url = 'https://auth.test:8443'\nservice.public_api_urls = \
             ['https://api.test/v1', 'https://auth.test']\noperations.unlisted = 'anonymous'",
        )
        .start();
    for (told, expected) in [
        ("http://api.test/x?y=1#z", "https://api.test/v1/x?y=1#z"),
        ("http://api.test:8000/x", "https://api.test/v1/x"),
        ("https://api.test:8000/x", "https://api.test/v1/x"),
        ("HTTP://API.TEST", "https://api.test/v1/"),
        // As it is public already, another public URL, the pages, or somewhere else.
        ("https://api.test/x", "https://api.test/x"),
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
}

#[test]
fn the_host_of_the_pages_leads_to_the_applications_and_is_404_elsewhere() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config(
            "service.base_url = 'https://auth.test'\nservice.public_api_urls = \
             ['https://api.test', 'https://auth.test/v1']\noperations.unlisted = 'anonymous'",
        )
        .start();
    let call = |method: &str, target: &str| Call::new(method, target).host("auth.test");
    let ask = |method: &str, target: &str| proxy.send(call(method, target));
    for target in ["/", "/?next=https://evil.test", "/?mode=login"] {
        let answer = ask("GET", target);
        let led = (answer.status, answer.header("location"));
        assert_eq!(led, (303, Some("/service.oauth?mode=applications")));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let post = ask("POST", "/");
    assert_eq!(
        (post.status, post.header("allow")),
        (405, Some("GET, HEAD"))
    );
    for target in [
        "/else",
        "/service.oauth/",
        "/v10",
        "//",
        "//evil.test",
        "/favicon.ico",
    ] {
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
    // The API's own URLs have their own `/`, and another host is still none of ours.
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
fn the_host_that_the_api_sees() {
    let api = Upstream::start();
    for (mode, expected) in [
        ("public", None),
        ("upstream", Some(api.authority().to_owned())),
        ("api.internal", Some("api.internal".to_owned())),
    ] {
        let proxy = Proxy::in_front_of(&api)
            .config(&format!("upstream.host = '{mode}'"))
            .start();
        let (consumer, _, token) = proxy.somebody();
        proxy
            .send(Call::get("/").by(&consumer).with(&token))
            .has_status(200);
        let seen = api.last_request();
        assert_eq!(
            seen.fields.all("host"),
            [expected.unwrap_or_else(|| proxy.host())],
            "{mode}"
        );
    }
}

#[test]
fn forwarded_fields_are_ours_and_never_the_callers() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let forged = |call: Call| {
        call.header("X-Forwarded-For", "6.6.6.6")
            .header("X-Forwarded-Proto", "gopher")
            .header("X-Forwarded-Host", "evil.example")
            .header("X-Forwarded-Prefix", "/evil")
            .header("Forwarded", "for=6.6.6.6")
            .header("X_Forwarded_For", "6.6.6.6")
            .header("X_Forwarded-Prefix", "/evil")
    };
    proxy
        .send(forged(Call::get("/").by(&consumer).with(&token)))
        .has_status(200);
    let seen = api.last_request();
    assert_eq!(seen.fields.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.fields.all("x-forwarded-proto"), ["http"]);
    assert_eq!(seen.fields.all("x-forwarded-host"), [proxy.host()]);
    assert!(!seen.fields.has("forwarded") && !seen.fields.has("x-forwarded-prefix"));
    let forged_value = |(_, value): &(String, String)| value == "6.6.6.6" || value == "/evil";
    assert!(!seen.fields.0.iter().any(forged_value), "{seen:?}");

    let quiet = Proxy::in_front_of(&api)
        .config("upstream.forwarded = false")
        .start();
    let (consumer, _, token) = quiet.somebody();
    quiet
        .send(forged(Call::get("/").by(&consumer).with(&token)))
        .has_status(200);
    let seen = api.last_request();
    assert!(
        !seen
            .fields
            .0
            .iter()
            .any(|(_, value)| value.contains("6.6.6.6")),
        "{seen:?}"
    );
}

#[test]
fn a_trusted_proxys_word_is_believed_and_only_its() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("listen.trusted_proxies = ['127.0.0.1/32']\nservice.base_url = 'https://api.test'")
        .start();
    let (consumer, _, token) = proxy.somebody();
    let call = Call::get("/x")
        .by(&consumer)
        .with(&token)
        .host("inner")
        .header("X-Forwarded-Host", "api.test");
    proxy
        .send(
            call.header("X-Forwarded-Proto", "https")
                .header("X-Forwarded-For", "6.6.6.6, 203.0.113.9"),
        )
        .has_status(200);
    assert_eq!(
        api.last_request().header("x-forwarded-proto"),
        Some("https")
    );
    assert!(
        api.last_request()
            .header("x-forwarded-for")
            .unwrap()
            .contains("203.0.113.9")
    );

    let distrustful = Proxy::in_front_of(&api)
        .config("service.base_url = 'https://api.test'")
        .start();
    let (consumer, _, token) = distrustful.somebody();
    let call = Call::get("/x")
        .by(&consumer)
        .with(&token)
        .host("inner")
        .header("X-Forwarded-Host", "api.test");
    distrustful.send(call).has_status(421);
    distrustful
        .send(Call::get("/x").by(&consumer).with(&token))
        .has_status(200);
}

#[test]
fn the_origin_that_is_signed_is_the_public_one() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("service.base_url = 'https://login.test'\nservice.public_api_urls = ['https://api.test', 'http://plain.test:8080']")
        .start();
    let (consumer, _, token) = proxy.somebody();
    let call = |host: &str, origin: &str| {
        Call::get("/x?y=1")
            .by(&consumer)
            .with(&token)
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
    for host in [
        "evil.test",
        "api.test:8443",
        "plain.test",
        "api.test.evil.test",
        "127.0.0.1",
    ] {
        proxy
            .send(call(host, &format!("https://{host}")))
            .has_status(421);
    }
    // The token endpoints are under base_url only; elsewhere that path is forwarded like any other.
    let elsewhere = Call::get("/service.oauth?mode=req_req_token")
        .by(&consumer)
        .with(&token);
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
        let proxy = Proxy::in_front_of(&api)
            .config(&format!(
                "service.base_url = 'https://api.test'\nservice.public_api_urls = ['https://api.test/shop/v1']\nservice.prefix = '{mode}'"
            ))
            .start();
        let (consumer, _, token) = proxy.somebody();
        let call = Call::get(sent)
            .by(&consumer)
            .with(&token)
            .signs_target("/shop/v1/orders?a=%7e");
        let answer = proxy.send(call);
        assert_eq!(answer.status, 200, "{mode}: {answer:?}");
        assert_eq!(api.last_request().target, forwarded, "{mode}");
        if mode != "restore" {
            let outside = proxy.send(Call::get("/orders").by(&consumer).with(&token));
            assert!(
                outside.status >= 400,
                "{mode}: what is not under the prefix is nobody's: {outside:?}"
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
        let (consumer, _, token) = proxy.somebody();
        proxy
            .send(Call::get("/orders?x").by(&consumer).with(&token))
            .has_status(200);
        assert_eq!(api.last_request().target, "/base/v2/orders?x");
    }
}

#[test]
fn no_path_leads_out_of_what_is_public() {
    let api = Upstream::start();
    let based =
        crate::support::proxy::Builder::in_front_of_url(&format!("{}/base", api.url())).start();
    let kept = Proxy::in_front_of(&api)
        .config(
            "service.base_url = 'https://api.test'\nservice.public_api_urls = ['https://api.test/v1']\nservice.prefix = 'keep'",
        )
        .start();
    for (proxy, prefix) in [(&based, ""), (&kept, "/v1")] {
        let (consumer, _, token) = proxy.somebody();
        let send = |path: &str| {
            let call = Call::get(&format!("{prefix}{path}"));
            proxy.send(call.by(&consumer).with(&token))
        };
        let before = api.count();
        for path in [
            "/../x",
            "/a/../../x",
            "/%2e%2e/x",
            "/..%2fx",
            "/..;/x",
            "//../x",
        ] {
            send(path).is(400, "parameter_rejected");
        }
        assert_eq!(api.count(), before);
        // What stays inside goes on byte for byte.
        send("/a/../b").has_status(200);
        assert!(api.last_request().target.ends_with("/a/../b"));
    }
}

#[test]
fn an_api_on_a_unix_socket() {
    let api = Upstream::on_unix_socket();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user, token) = proxy.somebody();
    proxy
        .send(Call::post("/x").json("{}").by(&consumer).with(&token))
        .has_status(200);
    let seen = api.only_request();
    assert_eq!(
        (seen.header("x-auth-user"), seen.text().as_str()),
        (Some(user.id.as_str()), "{}")
    );
}

#[test]
fn an_api_behind_tls() {
    let certificate = Certificate::for_names(&["localhost"]);
    let api = Upstream::over_tls(&certificate);
    let builder = Proxy::in_front_of(&api);
    let (ca, _) = certificate.write(builder.directory());
    let proxy = builder
        .config(&format!("upstream.tls.ca = '{}'", ca.display()))
        .start();
    let (consumer, _, token) = proxy.somebody();
    let mut kept = proxy.connect();
    for _ in 0..3 {
        proxy
            .send_on(&mut kept, Call::get("/x").by(&consumer).with(&token))
            .has_status(200);
    }
    assert_eq!(api.count(), 3);

    // A certificate that nobody vouches for is no API.
    let stranger = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = stranger.somebody();
    stranger
        .send(Call::get("/x").by(&consumer).with(&token))
        .has_status(502);
    assert_eq!(api.count(), 3);
}

#[test]
fn the_public_listener_by_tls() {
    let api = Upstream::start();
    let certificate = Certificate::for_names(&["localhost"]);
    let builder = Proxy::in_front_of(&api);
    let (chain, key) = certificate.write(builder.directory());
    let proxy = builder
        .config(&format!(
            "listen.tls.certificate = '{}'\nlisten.tls.key = '{}'\nservice.base_url = 'https://localhost'",
            chain.display(),
            key.display()
        ))
        .start();
    let (consumer, _, token) = proxy.somebody();
    let mut connection =
        Connection::over_tls(proxy.address(), "localhost", &certificate.certificate);
    for _ in 0..2 {
        connection.send(&proxy.wire(&Call::get("/x?y").by(&consumer).with(&token)));
        connection.answer("GET").has_status(200);
    }
    assert_eq!(
        api.last_request().header("x-forwarded-proto"),
        Some("https")
    );
    // Plain bytes on a TLS port end there.
    let mut plain = proxy.connect();
    plain.send(&proxy.wire(&Call::get("/plain").by(&consumer).with(&token)));
    assert!(!crate::support::http::latin1(&plain.wire().rest()).contains("200"));
    assert_eq!(api.count(), 2);
}

#[test]
fn a_trusted_proxy_that_sends_the_other_family_of_forwarded_fields_is_warned_of_once() {
    let api = Upstream::start();
    for (family, other) in [
        ("x-forwarded", ("Forwarded", "for=203.0.113.9")),
        ("forwarded", ("X-Forwarded-For", "203.0.113.9")),
    ] {
        let proxy = Proxy::in_front_of(&api)
            .config(&format!(
                "listen.trusted_proxies = ['127.0.0.1/32']\nlisten.forwarded = '{family}'\n\
                 operations.unlisted = 'anonymous'"
            ))
            .start();
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
        within(Duration::from_secs(5), "the warning", || {
            (warned() > 0).then_some(())
        });
        assert_eq!(warned(), 1);
    }
    let distrustful = Proxy::in_front_of(&api).start();
    let call = Call::get("/").header("Forwarded", "for=203.0.113.9");
    distrustful.send(call).has_status(401);
    assert!(!distrustful.log().to_string().contains("field=forwarded"));
}
