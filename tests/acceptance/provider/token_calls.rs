//! The calls for tokens: the accepted shapes, the rules of each dialect, and the bindings of the tokens.
//!
//! Promise (Signatures): The access token response has only the user's facts that the operator allows.

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::support::{
    Call, Placement, Proxy, Reply, Scene, Upstream,
    legs::LOGIN,
    legs::REVOKE_TOKEN,
    legs::{ACCESS_TOKEN, REQUEST_TOKEN, asks, exchanges, query_value, token_of},
    now,
    proxy::CALLBACK,
    proxy::Token,
    signer::encode,
    until, words,
};

/// A body as some library sends it with an empty POST, as fields and bytes after `oauth_` parameters in the header.
fn empty_posts() -> Vec<(&'static str, Call)> {
    let form = "application/x-www-form-urlencoded";
    let post = || Call::post(REQUEST_TOKEN);
    vec![
        ("no body at all", post()),
        ("Content-Length: 0", post().bytes(b"")),
        (
            "a form's type and Content-Length: 0",
            post().body(form, b""),
        ),
        (
            "a form's type and no length",
            post().header("Content-Type", form),
        ),
        (
            "a form's type with a charset",
            post().body("application/x-www-form-urlencoded; charset=utf-8", b""),
        ),
        ("an empty chunked body", post().chunked(&[])),
        (
            "an empty chunked form",
            post().header("Content-Type", form).chunked(&[]),
        ),
        ("an empty JSON body", post().body("application/json", b"")),
        (
            "an empty body of no type, and Accept",
            post().bytes(b"").header("Accept", "*/*"),
        ),
    ]
}

#[test]
fn consumers_learn_when_their_tokens_end() {
    const EXPIRES: &str = "x-auth-token-expires";

    let api = Upstream::replying(|seen| match &*seen.target {
        "/own" => Reply::ok("fine").header("X-Auth-Token-Expires", "never"),
        _ => Reply::ok("fine"),
    });
    let mut proxy = Proxy::with(&api, "tokens.request_ttl = '5m'");
    let (consumer, user) = proxy.shop();
    let asked = proxy.send(asks(&consumer, CALLBACK));
    asked.tells("oauth_expires_in", "300");
    let request_token = token_of(&asked);
    let verifier = proxy.verifier(&request_token, &user);
    let endless = proxy.send(exchanges(&consumer, &request_token, &verifier));
    assert_eq!(endless.form("oauth_expires_in"), None);
    let endless = token_of(&endless);

    proxy.reload("tokens = { access_ttl = '8d', announce = '7d' }");
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let later = proxy.send(exchanges(&consumer, &request_token, &verifier));
    later.tells("oauth_expires_in", "691200");
    let later = token_of(&later);
    proxy.reload("tokens = { access_ttl = '6d', announce = '7d' }");
    let soon = proxy.token(&consumer, &user);
    let call = |target: &str, token| Call::get(target).by(&consumer).with(token);
    let announced = |call: Call| proxy.passes(call).header(EXPIRES).map(str::to_owned);

    // A token without an end, or with one that is far, is not announced, and the API's own field stays.
    assert_eq!(announced(call("/", &endless)), None);
    assert_eq!(announced(call("/", &later)), None);
    assert_eq!(announced(call("/own", &later)).as_deref(), Some("never"));
    let end = |text: &str| OffsetDateTime::parse(text, &Rfc3339).unwrap();
    for target in ["/", "/own"] {
        let text = announced(call(target, &soon)).expect("the end of the token");
        let left = end(&text).unix_timestamp() - i64::try_from(now()).unwrap();
        assert!((518_000..=518_400).contains(&left), "{text}");
    }
    // A forged call does not learn it.
    let forged = proxy.served(call("/", &soon).key("wrong"));
    forged.has_status(401);
    assert_eq!(forged.header(EXPIRES), None);
    let counted = proxy.metric("countersign_ending_tokens_total");
    assert_eq!(counted, 2.0);
}

#[test]
fn token_calls_accept_get_and_post_every_placement_and_aliases() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();
    let endpoints = [
        (REQUEST_TOKEN, ACCESS_TOKEN),
        ("/oauth/request_token", "/oauth/access_token"),
    ];
    for (request, access) in endpoints {
        for (method, placement) in [
            ("GET", Placement::Header),
            ("GET", Placement::Query),
            ("POST", Placement::Header),
            ("POST", Placement::Query),
            ("POST", Placement::Body),
        ] {
            let place = |call: Call| call.placed(placement);
            let call = place(
                Call::new(method, request)
                    .by(&consumer)
                    .parameter("oauth_callback", CALLBACK),
            );
            let request_token = token_of(&proxy.send(call));
            let verifier = proxy.verifier(&request_token, &user);
            let call = Call::new(method, access).by(&consumer).with(&request_token);
            token_of(&proxy.send(place(call.parameter("oauth_verifier", &verifier))));
        }
    }
    api.saw_nothing();
}

#[test]
fn request_token_call_accepts_the_empty_post_of_every_library() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, _) = proxy.shop();
    for (shape, call) in empty_posts() {
        let answer = proxy.send(call.by(&consumer).parameter("oauth_callback", CALLBACK));
        assert_eq!(answer.status, 200, "{shape}: {answer:?}");
    }
}

#[test]
fn aliases_of_the_flow_can_be_switched_off() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "service.aliases = false");
    let (consumer, _) = proxy.shop();
    let call = Call::post("/oauth/request_token")
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK);
    proxy.send(call).is(401, "token_rejected");
    proxy.request_token(&consumer, CALLBACK);
}

#[test]
fn the_path_of_the_flow_can_be_configured() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "service.path = '/sign/in'");
    let (consumer, _) = proxy.shop();
    let call = Call::post("/sign/in?mode=req_req_token")
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK);
    token_of(&proxy.send(call));
}

#[test]
fn a_mode_that_is_unknown_or_repeated_is_rejected() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    for target in [
        "/service.oauth?mode=",
        "/service.oauth?mode=else",
        "/service.oauth?mode=req_req_token&mode=req_req_token",
    ] {
        let answer = proxy.send(
            Call::post(target)
                .by(&consumer)
                .parameter("oauth_callback", "oob"),
        );
        assert_eq!(answer.status, 400, "{target}: {answer:?}");
    }
    let answer = proxy.send(Call::get("/service.oauth?mode=else"));
    assert!(answer.text().contains("logout%2C%20password"), "{answer:?}");
}

#[test]
fn a_token_call_may_have_its_mode_in_a_form() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();
    let call = |mode: &str| Call::post("/service.oauth").form(mode).by(&consumer);
    for placement in [Placement::Body, Placement::Header] {
        let place = |call: Call| call.placed(placement);
        let request_token = token_of(&proxy.send(place(
            call("mode=req_req_token").parameter("oauth_callback", CALLBACK),
        )));
        let verifier = proxy.verifier(&request_token, &user);
        let exchange = call("x=1&mode=req%5Facc_token").with(&request_token);
        let token = token_of(&proxy.send(place(exchange.parameter("oauth_verifier", &verifier))));
        let revoke = || place(call("mode=revoke_token").with(&token));
        proxy.send(revoke()).has_status(200);
        proxy.send(revoke()).is(401, "token_revoked");
    }
    // The description's signature covers the form, and so its mode.
    let described = call("mode=req_req_token").parameter("oauth_callback", CALLBACK);
    proxy.send(described.signed_as_described()).has_status(200);
    // An unsigned mode selects nothing.
    let moved = call("mode=req_req_token").parameter("oauth_callback", CALLBACK);
    proxy
        .send(moved.signs_body("mode=revoke_token"))
        .is(401, "signature_invalid");
    api.saw_nothing();
}

#[test]
fn mode_repeated_in_a_form_or_also_in_the_query_is_rejected() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    let asked = |call: Call| call.by(&consumer).parameter("oauth_callback", "oob");
    let mode = "mode=req_req_token";
    for (target, form) in [
        ("/service.oauth", "mode="),
        ("/service.oauth", "mode=else"),
        ("/service.oauth", "mode=req_req_token&mode=req_req_token"),
        ("/service.oauth", "mode=req_req_token&m%6fde=req_acc_token"),
        ("/service.oauth?mode=req_req_token", mode),
        ("/service.oauth?mode=req_req_token", "mode=req_acc_token"),
        ("/service.oauth?mode=", mode),
    ] {
        for placement in [Placement::Header, Placement::Body] {
            let answer = proxy.send(asked(Call::post(target).form(form)).placed(placement));
            answer.is(400, "parameter_rejected");
            answer.tells("oauth_parameters_rejected", "mode");
        }
    }
    // The aliases name the call by their path; a parameter `mode` is one like any other there.
    proxy.passes(asked(Call::post("/oauth/request_token").form("mode=x")));
    // The methods are those of the mode.
    let answer = proxy.send(Call::get("/service.oauth").form("mode=revoke_token"));
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[test]
fn a_page_has_its_mode_only_in_the_query() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let page = |target: &str| {
        let form = "mode=login&username=a&password=b";
        proxy.send(Call::post(target).form(form))
    };
    page("/service.oauth").is(400, "parameter_rejected");
    page(LOGIN).is(400, "parameter_rejected");
}

#[test]
fn a_token_call_without_a_mode_is_recognised_by_its_parameters() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();
    let calls: [fn(&str) -> Call; 3] = [
        |target| Call::get(target),
        |target| Call::post(target).form("x=1"),
        |target| Call::post(target).body("text/plain", b"mode=revoke_token"),
    ];
    for call in calls {
        let call = || call("/service.oauth").by(&consumer);
        let asked = call().parameter("oauth_callback", CALLBACK);
        let request_token = token_of(&proxy.send(asked));
        let verifier = proxy.verifier(&request_token, &user);
        let exchange = call().with(&request_token);
        token_of(&proxy.send(exchange.parameter("oauth_verifier", &verifier)));
    }
    // A verifier decides, and its call has no callback.
    let both = Call::post("/service.oauth")
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK)
        .parameter("oauth_verifier", "x");
    let answer = proxy.send(both);
    answer.is(400, "parameter_absent");
    let absent = answer.form("oauth_parameters_absent");
    assert_eq!(absent.as_deref(), Some("oauth_token"));
    // Without either parameter it is a call of the API, and must never be taken for a revocation.
    let token = proxy.token(&consumer, &user);
    let revoking = || Call::post("/service.oauth").by(&consumer).with(&token);
    proxy.passes(revoking());
    proxy.passes(revoking());
    assert_eq!(api.count(), 2);
    let (unsigned, unknown) = (Call::post("/service.oauth"), "oauth_callbacks=x");
    proxy.rejects(unsigned.clone(), 401, "parameter_absent");
    proxy.rejects(unsigned.form(unknown), 401, "parameter_absent");
    let delete = Call::new("DELETE", "/service.oauth").by(&consumer);
    let answer = proxy.send(delete.parameter("oauth_callback", CALLBACK));
    let allow = (answer.status, answer.header("allow"));
    assert_eq!(allow, (405, Some("GET, POST")));
    assert_eq!(api.count(), 2);
}

#[test]
fn legacy_dialect_gets_a_new_token_on_redirect_and_uses_either() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer_with("Old", &format!("--dialect legacy --callback {CALLBACK}"));
    let user = proxy.user("alice");
    for use_new in [true, false] {
        let request_token = proxy.request_token(&consumer, CALLBACK);
        let redirect = proxy.decision(&request_token, &user, "allow").redirect();
        let new = query_value(&redirect, "oauth_token").unwrap();
        assert_ne!(new, request_token.token);
        let verifier = query_value(&redirect, "oauth_verifier").unwrap();
        let token = if use_new {
            Token {
                token: new,
                ..request_token.clone()
            }
        } else {
            request_token.clone()
        };
        token_of(&proxy.send(exchanges(&consumer, &token, &verifier)));
        proxy
            .send(exchanges(&consumer, &request_token, &verifier))
            .is(401, "token_used");
    }
}

#[test]
fn token_calls_accept_the_legacy_base_string_and_key() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    // The description's key is the secret alone, on the request token call only.
    let get = || {
        Call::get(REQUEST_TOKEN)
            .by(&consumer)
            .parameter("oauth_callback", CALLBACK)
            .placed(Placement::Query)
    };
    proxy.passes(get().key(&encode(&consumer.secret)));
    proxy.send(get().signed_as_described()).has_status(200);
    let request_token =
        token_of(&proxy.send(get().signed_as_described().key(&encode(&consumer.secret))));
    let verifier = proxy.verifier(&request_token, &user);
    let exchange = || exchanges(&consumer, &request_token, &verifier).signed_as_described();
    proxy
        .send(exchange().key(&encode(&consumer.secret)))
        .is(401, "signature_invalid");
    token_of(&proxy.send(exchange()));
}

#[test]
fn the_legacy_spelling_can_be_switched_off() {
    let proxy = Proxy::with(&Upstream::start(), "signature.accept_description = false");
    let consumer = proxy.consumer("Shop");
    proxy
        .send(asks(&consumer, "oob").signed_as_described())
        .is(401, "signature_invalid");
    proxy
        .send(asks(&consumer, "oob").key(&encode(&consumer.secret)))
        .is(401, "signature_invalid");
    proxy.send(asks(&consumer, "oob")).has_status(200);
}

#[test]
fn only_dialect_legacy_signs_protected_calls_the_legacy_way() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let user = proxy.user("alice");
    let legacy = proxy.consumer_with("Old", "--dialect legacy");
    let token = proxy.token(&legacy, &user);
    proxy
        .send(
            Call::get("/a?x=1")
                .by(&legacy)
                .with(&token)
                .signed_as_described(),
        )
        .has_status(200);
    proxy.passes(Call::get("/a?x=1").by(&legacy).with(&token));
    assert_eq!(api.count(), 2);

    let strict = proxy.consumer("New");
    let token = proxy.token(&strict, &user);
    proxy
        .send(
            Call::get("/a?x=1")
                .by(&strict)
                .with(&token)
                .signed_as_described(),
        )
        .is(401, "signature_invalid");
    let added = Call::get("/a?x=1")
        .by(&strict)
        .with(&token)
        .signs_target("/a");
    proxy.send(added).is(401, "signature_invalid");
    assert_eq!(api.count(), 2);
    // `revoke_token` takes the RFC's base string from everyone.
    let revoke = |consumer, token| Call::post(REVOKE_TOKEN).by(consumer).with(token);
    proxy
        .send(revoke(&strict, &token).signed_as_described())
        .is(401, "signature_invalid");
    proxy.send(revoke(&strict, &token)).has_status(200);
}

#[test]
fn a_consumer_revokes_its_own_token() {
    let Scene { api, proxy, caller } = Scene::start();
    proxy.send(Call::get("/").of(&caller)).has_status(200);
    proxy.passes(Call::post(REVOKE_TOKEN).of(&caller));
    proxy.rejects(Call::get("/").of(&caller), 401, "token_revoked");
    assert_eq!(api.count(), 1);
}

#[test]
fn empty_oauth_token_on_the_request_token_call_is_as_if_absent() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    proxy.passes(asks(&consumer, "oob").parameter("oauth_token", ""));
    for placement in [Placement::Query, Placement::Body] {
        proxy
            .send(
                asks(&consumer, "oob")
                    .parameter("oauth_token", "")
                    .placed(placement),
            )
            .has_status(200);
    }
}

#[test]
fn a_consumer_signs_by_rsa_and_by_its_secret() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (private, public) = crate::support::signer::rsa_key_pair(proxy.directory());
    let consumer = proxy.consumer_with(
        "Shop",
        &format!("--rsa-public-key {}", public.to_str().unwrap()),
    );
    let without_key = proxy.consumer("Other");
    let user = proxy.user("alice");
    let (token, other) = (
        proxy.token(&consumer, &user),
        proxy.token(&without_key, &user),
    );
    for method in [
        "RSA-SHA1",
        "RSA-SHA256",
        "RSA-SHA512",
        "RSA-PSS",
        "rsa_sha1",
    ] {
        let call = Call::get("/a?b=%20c")
            .by(&consumer)
            .with(&token)
            .rsa(method, &private);
        let answer = proxy.send(call);
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
        proxy
            .send(
                Call::get("/")
                    .by(&without_key)
                    .with(&other)
                    .rsa(method, &private),
            )
            .is(401, "signature_invalid");
    }
    for method in words("HMAC-SHA1 HMAC-MD5 HMAC-SHA256 HMAC-SHA512 hmac_sha1 HMACSHA1 HmacSha256")
    {
        let answer = proxy.send(
            Call::get("/a?b=%20c")
                .by(&consumer)
                .with(&token)
                .method(method),
        );
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
    }
    assert_eq!(api.count(), 12);
    // The whole flow by RSA.
    let call = asks(&consumer, "oob").rsa("RSA-SHA256", &private);
    let request_token = token_of(&proxy.send(call));
    let verifier = proxy
        .decision(&request_token, &user, "allow")
        .element("verifier")
        .unwrap();
    token_of(
        &proxy.send(exchanges(&consumer, &request_token, &verifier).rsa("RSA-SHA1", &private)),
    );
}

#[test]
fn consumer_restricted_to_its_rsa_key_cannot_use_its_secret() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("signature.methods = ['HMAC-SHA1', 'RSA-SHA256', 'PLAINTEXT']")
        .config("service.base_url = 'https://api.test'")
        .config("listen.trusted_proxies = ['127.0.0.1']")
        .start();
    let (private, public) = crate::support::signer::rsa_key_pair(proxy.directory());
    let key = format!("--rsa-public-key {} --rsa-only", public.display());
    let restricted = proxy.consumer_with("Shop", &key);
    let token = proxy.token(&restricted, &proxy.user("alice"));
    let send = |call: Call| proxy.send(call.header("X-Forwarded-Proto", "https"));
    let call = || Call::get("/a").by(&restricted).with(&token);
    for (call, knows_the_secret) in [
        (call(), true),
        (call().method("PLAINTEXT"), true),
        (asks(&restricted, "oob"), true),
        (call().key("wrong"), false),
    ] {
        let response = send(call);
        response.is(401, "signature_invalid");
        let advice = response.told("oauth_problem_advice").unwrap();
        let named = advice.contains("restricted to its RSA key");
        assert_eq!(named, knows_the_secret, "{response:?}");
    }
    api.saw_nothing();
    send(call().rsa("RSA-SHA256", &private)).has_status(200);

    let export = proxy.run("export -").stdout;
    assert!(export.contains(r#""rsa_only":true"#), "{export}");
    let moved = Proxy::in_front_of(&api).start();
    moved.command_with(&["import", "-"], &export).done();
    moved.send(call()).is(401, "signature_invalid");
    proxy.run(&format!("consumer update {} --no-rsa-only", restricted.key));
    until("the change is seen", || send(call()).status == 200);
}

#[test]
fn operator_names_the_user_facts_of_the_access_token_response() {
    let proxy = Proxy::with(
        &Upstream::start(),
        "tokens = { user_id_parameter = 'encoded_user_id', screen_name_parameter = 'user_nsid' }",
    );
    let (consumer, user) = proxy.shop();
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let answer = proxy.send(exchanges(&consumer, &request_token, &verifier));
    answer.has_status(200);
    assert_eq!(answer.form("encoded_user_id"), Some(user.id));
    assert_eq!(answer.form("user_nsid"), Some(user.name));
    for old in ["user_id", "screen_name"] {
        assert_eq!(answer.form(old), None, "{answer:?}");
    }
}

#[test]
fn access_token_response_has_the_profile_the_operator_allows() {
    let proxy = Proxy::with(
        &Upstream::start(),
        "tokens.profile = ['display_name', 'fullname=display_name', 'login=name']",
    );
    let consumer = proxy.consumer("Shop");
    let (alice, bob) = (proxy.user("alice"), proxy.user("bob"));
    proxy.run("user remove bob");
    let named = [
        "user",
        "add",
        "bob",
        "--id",
        "b2",
        "--display-name",
        "Bob & Söhne",
        "--password-stdin",
        "--permanent",
    ];
    proxy.command_with(&named, &bob.password).done();
    for (user, display_name) in [(&alice, None), (&bob, Some("Bob & Söhne"))] {
        let request_token = proxy.request_token(&consumer, "oob");
        let verifier = proxy
            .decision(&request_token, user, "allow")
            .element("verifier");
        let response = proxy.send(exchanges(&consumer, &request_token, &verifier.unwrap()));
        response.has_status(200);
        let display_name = display_name.map(str::to_owned);
        assert_eq!(response.form("display_name"), display_name);
        assert_eq!(response.form("fullname"), display_name);
        assert_eq!(response.form("login").as_deref(), Some(&*user.name));
        assert_eq!(response.form("screen_name").as_deref(), Some(&*user.name));
        assert_eq!(response.form("name"), None, "not configured");
    }
}

#[test]
fn a_name_in_the_access_token_response_hides_no_other() {
    let api = Upstream::start();
    for tokens in [
        "user_id_parameter = 'oauth_token'",
        "user_id_parameter = 'oauth_x'",
        "user_id_parameter = ''",
        "user_id_parameter = 'a&b'",
        "user_id_parameter = 'a b'",
        "user_id_parameter = 'screen_name'",
        "screen_name_parameter = 'user_id'",
        "profile = ['oauth_token=display_name']",
        "profile = ['user_id=display_name']",
        "profile = ['a=id', 'a=name']",
        "profile = ['password_hash']",
        "screen_name_parameter = 'name'\nprofile = ['name']",
    ] {
        let ended = Proxy::in_front_of(&api)
            .config(&format!("[tokens]\n{tokens}"))
            .run(&["check"], "");
        assert_eq!(ended.status.code(), Some(2), "{tokens}: {ended:?}");
        assert!(ended.stderr.contains("tokens."), "{tokens}: {ended:?}");
    }
}
