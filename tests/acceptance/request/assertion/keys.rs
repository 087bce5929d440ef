//! The keys that sign assertions.

use super::*;

#[test]
fn assertion_keys_change_without_a_gap() {
    let mut scene = scene(&["a.pem"], "");
    let url = format!("{}/", scene.proxy.origin());
    let guide = Guide::of(&scene.proxy);
    let call = |scene: &Scene| Call::get("/").of(&scene.caller);
    let first = scene.asserted(call(&scene));
    let kids = |scene: &Scene| -> Vec<String> {
        let public = scene.proxy.send(Call::get("/.well-known/jwks.json"));
        public.has_status(200);
        assert_eq!(public.header("cache-control"), Some("max-age=300"));
        let admin = scene.proxy.ask_admin("/jwks.json");
        assert_eq!(admin.header("cache-control"), Some("max-age=300"));
        assert_eq!(public.body, admin.body);
        assert!(!public.text().contains("\"d\""));
        let set = public.json();
        let keys = set["keys"].as_array().unwrap().iter();
        keys.map(|key| key["kid"].as_str().unwrap().to_owned())
            .collect()
    };
    let [old] = &kids(&scene)[..] else { panic!() };
    let old = old.clone();
    scene.proxy.reload(&config(&["a.pem", "b.pem"], ""));
    let both = kids(&scene);
    assert_eq!((both.len(), &both[0]), (2, &old));
    let second = scene.asserted(call(&scene));
    assert_eq!(part(&second, 0)["kid"], old);
    scene.proxy.reload(&config(&["b.pem", "a.pem"], ""));
    let third = scene.asserted(call(&scene));
    assert_eq!(part(&third, 0)["kid"], both[1]);
    for assertion in [&first, &second, &third] {
        guide.accept(assertion, "GET", &url);
    }
    scene.proxy.reload(&config(&["b.pem"], ""));
    assert_eq!(kids(&scene), [both[1].clone()]);
    guide.reject(&first, "GET", &url);
    guide.accept(&third, "GET", &url);
    // A bad key changes nothing.
    std::fs::write(scene.proxy.directory().join("bad.pem"), "nothing").unwrap();
    scene.proxy.reconfigure(&config(&["bad.pem", "b.pem"], ""));
    scene.proxy.signal(Signal::HUP);
    scene
        .proxy
        .logs(&["reload failed", "identity.assertion.key_files", "bad.pem"]);
    assert_eq!(part(&scene.asserted(call(&scene)), 0)["kid"], both[1]);
}

#[test]
fn an_assertion_configuration_that_cannot_sign_is_invalid() {
    let api = Upstream::start();
    let directory_of = |config: &str, api_url: Option<&str>| {
        let mut builder = Proxy::in_front_of(&api).config(config);
        for (name, openssl) in [
            ("a.pem", ED25519),
            ("rsa.pem", "genpkey -algorithm RSA"),
            (
                "p384.pem",
                "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384",
            ),
        ] {
            make_key(builder.directory(), name, openssl);
        }
        std::fs::copy(
            builder.directory().join("a.pem"),
            builder.directory().join("same.pem"),
        )
        .unwrap();
        if let Some(url) = api_url {
            builder.set("upstream.api_url", url.into());
        }
        builder
    };
    let signed = |rest: &str| format!("[identity.assertion]\nheader = 'X-Auth-Assertion'\n{rest}");
    for (config, api_url, parts) in [
        (
            signed(""),
            None,
            ["identity.assertion.key_files", "openssl genpkey"],
        ),
        (
            signed("key_files = ['no.pem']"),
            None,
            ["identity.assertion.key_files", "no.pem"],
        ),
        (
            signed("key_files = ['rsa.pem']"),
            None,
            ["rsa.pem", "neither an Ed25519 nor a P-256 key"],
        ),
        (
            signed("key_files = ['p384.pem']"),
            None,
            ["p384.pem", "neither an Ed25519 nor a P-256 key"],
        ),
        (
            signed("key_files = ['a.pem', 'same.pem']"),
            None,
            ["same.pem", "name it once"],
        ),
        (
            signed("key_files = ['a.pem']"),
            Some("unix:/run/api.sock"),
            ["identity.assertion.audience", "has no origin"],
        ),
        (
            signed("key_files = ['a.pem']\naudience = ''"),
            None,
            ["identity.assertion.audience", "empty"],
        ),
        (
            "exchange.audience = 'x'".to_owned(),
            None,
            ["exchange.audience", "identity.assertion.key_files"],
        ),
        (
            "identity.assertion = { header = 'x_auth_user', key_files = ['a.pem'] }".to_owned(),
            None,
            ["identity.assertion.header", "identity.user_header"],
        ),
        (
            "identity.assertion = { header = 'Authorization', key_files = ['a.pem'] }".to_owned(),
            None,
            ["identity.assertion.header", "HTTP uses"],
        ),
    ] {
        let builder = directory_of(&config, api_url);
        for ended in [builder.serve_fails(), builder.run(&["check"], "")] {
            assert_eq!(ended.code(), Some(2), "{config}: {}", ended.stderr);
            assert!(
                parts.iter().all(|part| ended.stderr.contains(part)),
                "{config}: {}",
                ended.stderr
            );
            assert!(!ended.stderr.contains("BEGIN"), "{}", ended.stderr);
        }
    }
    let fine = directory_of(&signed("key_files = ['a.pem']"), None);
    let ended = fine.run(&["check"], "").done();
    assert!(ended.stdout.contains(" signs"), "{}", ended.stdout);
    let others = ["unix:/run/api.sock"]
        .map(|url| directory_of(&signed("key_files = ['a.pem']\naudience = 'x'"), Some(url)));
    for builder in others {
        assert_ne!(builder.run(&["check"], "").code(), Some(2));
    }
    // Without an API there is no default audience.
    for (audience, is_valid) in [("", false), ("audience = 'x'", true)] {
        let section = signed(&format!("key_files = ['a.pem']\n{audience}"));
        let builder = Builder::for_forward_auth().config(&section);
        make_key(builder.directory(), "a.pem", ED25519);
        let ended = builder.run(&["check"], "");
        assert_eq!(ended.code() != Some(2), is_valid, "{}", ended.stderr);
        let is_named = ended.stderr.contains("identity.assertion.audience");
        assert_eq!(is_named, !is_valid, "{}", ended.stderr);
    }
}
