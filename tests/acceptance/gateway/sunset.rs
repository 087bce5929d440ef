//! The announced end of OAuth 1.0a, and brown-outs before it.
//!
//! Promise (Permissions and identity): Only right signatures learn of the end of OAuth 1.0a; a brown-out affects only the named
//! consumers.
//! Promise (Flow and pages): `sunset.new_grants`, `new_consumers` and `signatures` stop tokens, registrations and signed calls;
//! Bearer tokens go on.

use rustix::process::Signal;
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::support::gate::{WAYS, Way};
use crate::support::{
    Answer, Call, Consumer, Operator, Proxy, Reply, Scene, Token, Upstream, Visitor, free_port,
    fresh, has,
    issuer::Issuer,
    legs::{REVOKE_TOKEN, asks, authorization, exchanges},
    now,
    operator::READ,
    proxy::CALLBACK,
    rows, until,
};

const SUNSET: &str = "[sunset]\n\
    deprecation = 2026-01-01T00:00:00Z\n\
    date = '2031-03-31T02:00:00+02:00'\n\
    link = 'https://example.com/oauth2?a=b'\n";

const FIELDS: [&str; 3] = ["deprecation", "sunset", "link"];

/// The response announces the end.
#[track_caller]
fn announces(answer: &Answer, status: u16) {
    answer.has_status(status);
    let found = FIELDS.map(|name| answer.header(name));
    let expected = [
        "@1767225600",
        "Mon, 31 Mar 2031 00:00:00 GMT",
        "<https://example.com/oauth2?a=b>; rel=\"sunset\"",
    ];
    assert_eq!(found, expected.map(Some), "{answer:?}");
}

#[track_caller]
fn is_silent(answer: &Answer) {
    for name in FIELDS {
        assert_eq!(answer.header(name), None, "{answer:?}");
    }
}

/// A moment that is this many seconds from now.
fn moment(seconds: i64) -> String {
    let at = OffsetDateTime::now_utc() + Duration::seconds(seconds);
    at.replace_nanosecond(0).unwrap().format(&Rfc3339).unwrap()
}

#[test]
fn response_to_a_right_signature_announces_the_end_of_oauth_1() {
    let api = Upstream::replying(|seen| match &*seen.target {
        "/missing" => {
            Reply::status("404 Not Found").header("Sunset", "Thu, 01 Jan 1970 00:00:00 GMT")
        }
        "/broken" => Reply::hang_up(),
        _ => Reply::ok("fine"),
    });
    let more = "[[permission]]\nname = 'read'\n\
        [[operation]]\npath = '/needs'\npermission = 'read'\n\
        [[operation]]\npath = '/open'\naccess = ['anonymous', 'consumer']\n\
        [[operation]]\npath = '/read'\nmethods = ['GET']\n\
        [[operation]]\npath = '/watched'\nenforcement = 'observe'\npermission = 'read'\n\
        [[operation]]\npath = '/{*rest}'\n";
    let scene = Scene::before(api, &format!("{SUNSET}{more}"));
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let consumer = proxy.consumer_with("Shop", "--callback https://shop.example/ready");
    let send = |call: Call| proxy.send(call);
    let get = |path: &str| Call::get(path).of(caller);

    announces(&send(get("/a")), 200);
    announces(&send(get("/missing")), 404);
    announces(&send(get("/broken")), 502);
    announces(&send(get("/needs")), 404);
    announces(&send(get("/watched")), 200);
    announces(&send(Call::post("/read").of(caller)), 405);
    announces(&send(Call::get("/a").by(&consumer)), 401);
    let again = get("/a").parameter("oauth_nonce", &fresh("n"));
    let again = again.parameter("oauth_timestamp", &now().to_string());
    announces(&send(again.clone()), 200);
    announces(&send(again), 401);

    let asks = |callback: &str| {
        Call::post("/service.oauth?mode=req_req_token")
            .by(&consumer)
            .parameter("oauth_callback", callback)
    };
    announces(&send(asks("https://shop.example/ready")), 200);
    announces(&send(asks("https://other.example/")), 400);
    let request_token = proxy.request_token(&consumer, "https://shop.example/ready");
    let early = Call::post("/oauth/access_token")
        .by(&consumer)
        .with(&request_token);
    announces(&send(early.parameter("oauth_verifier", "early")), 401);
    let token = proxy.token(&consumer, &caller.user);
    let revoke = || {
        Call::post("/service.oauth?mode=revoke_token")
            .by(&consumer)
            .with(&token)
    };
    announces(&send(revoke()), 200);
    announces(&send(revoke()), 401);
    announces(&send(Call::get("/a").by(&consumer).with(&token)), 401);
    proxy.run(&format!("consumer disable {}", consumer.key));
    until("the consumer is disabled", || {
        send(asks("oob")).problem().as_deref() == Some("consumer_key_refused")
    });
    announces(&send(asks("https://shop.example/ready")), 401);

    // A caller that is not proved to be a consumer gets no announcement.
    for call in [
        Call::get("/open"),
        Call::get("/a"),
        get("/a").key("wrong"),
        get("/a").parameter("oauth_timestamp", "1").key("wrong"),
        get("/a").without("oauth_nonce"),
        Call::post("/service.oauth?mode=exchange").of(caller),
        Call::get("/service.oauth?mode=login"),
        Call::post("/service.oauth?mode=revoke_token"),
        asks("https://shop.example/ready").key("wrong"),
        get("/a").host("other.example"),
    ] {
        is_silent(&send(call));
    }
    let mut visitor = Visitor::logged_in(proxy, &caller.user);
    is_silent(&visitor.send(Call::get("/open")));
}

#[test]
fn the_apis_own_link_stays_and_its_own_sunset_does_not() {
    let api = Upstream::replying(|_| {
        Reply::ok("")
            .header("Link", "</next>; rel=\"next\"")
            .header("Sunset", "tomorrow")
            .header("Deprecation", "@1")
    });
    let scene = Scene::before(api, SUNSET);
    let answer = scene.proxy.send(Call::get("/").of(&scene.caller));
    assert_eq!(
        answer.fields.all("link"),
        [
            "</next>; rel=\"next\"",
            "<https://example.com/oauth2?a=b>; rel=\"sunset\""
        ]
    );
    assert_eq!(
        answer.fields.all("sunset"),
        ["Mon, 31 Mar 2031 00:00:00 GMT"]
    );
    assert_eq!(answer.fields.all("deprecation"), ["@1767225600"]);
}

#[test]
fn reload_begins_and_ends_the_announcement_for_named_consumers() {
    let mut scene = Scene::start();
    let other = scene.proxy.somebody_else();
    let calls = |scene: &Scene| {
        let mine = scene.proxy.send(Call::get("/").of(&scene.caller));
        (mine, scene.proxy.send(Call::get("/").of(&other)))
    };
    let (mine, theirs) = calls(&scene);
    is_silent(&mine);
    is_silent(&theirs);
    scene
        .proxy
        .reload(&format!("{SUNSET}consumers = ['{}']", other.consumer.key));
    let (mine, theirs) = calls(&scene);
    is_silent(&mine);
    announces(&theirs, 200);
    // With the date alone: deprecated since the configuration was read, and past the end since the date.
    scene.proxy.reload(&format!(
        "sunset = {{ deprecation = 'now', date = '{}', consumers = [ '{}' ] }}",
        moment(9),
        scene.caller.consumer.key
    ));
    let (mine, theirs) = calls(&scene);
    is_silent(&theirs);
    let since: u64 = mine
        .header("deprecation")
        .unwrap()
        .strip_prefix('@')
        .unwrap()
        .parse()
        .unwrap();
    assert!(now().abs_diff(since) < 30);
    scene
        .proxy
        .reload("sunset = { date = 2020-02-29T12:00:00+01:00 }");
    let (mine, _) = calls(&scene);
    assert_eq!(mine.header("sunset"), Some("Sat, 29 Feb 2020 11:00:00 GMT"));
    assert_eq!(mine.header("deprecation"), Some("@1582974000"));
}

#[test]
fn a_brown_out_comes_after_the_signature_and_the_nonce_and_ends() {
    let (begun, over) = (moment(-60), moment(600));
    let brown_out = format!("[[sunset.brownout]]\nfrom = {begun}\nuntil = '{over}'\n");
    let scene = Scene::with(&format!(
        "{SUNSET}{brown_out}\n[operations]\nunlisted = 'consumer'\n\
        [[operation]]\npath = '/open'\naccess = ['anonymous', 'consumer']\n\
        [[operation]]\npath = '/watched'\nenforcement = 'observe'\naccess = ['consumer']\n"
    ));
    let (mut proxy, api, caller) = (scene.proxy, scene.api, scene.caller);
    let refused = |proxy: &Proxy, call: Call| {
        let answer = proxy.send(call);
        announces(&answer, 503);
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=600).contains(&seconds), "{seconds}");
        assert_eq!(answer.problem(), None, "{answer:?}");
    };
    let once = Call::get("/open")
        .of(&caller)
        .parameter("oauth_nonce", &fresh("n"));
    let once = once.parameter("oauth_timestamp", &now().to_string());
    explains(&proxy, &once, Some("brown_out"));
    refused(&proxy, once.clone());
    proxy.rejects(once, 401, "nonce_used");
    proxy.rejects(
        Call::get("/open").of(&caller).key("wrong"),
        401,
        "signature_invalid",
    );
    refused(&proxy, Call::get("/watched").of(&caller));
    refused(
        &proxy,
        Call::post("/service.oauth?mode=revoke_token").of(&caller),
    );
    let asks = Call::post("/oauth/request_token")
        .by(&caller.consumer)
        .parameter("oauth_callback", "oob");
    refused(&proxy, asks);
    api.saw_nothing();
    assert!(proxy.metric("countersign_requests_total{verdict=\"brown_out\"}") >= 4.0);
    // Others are served.
    proxy.passes(Call::get("/open"));
    proxy
        .send(Call::get("/service.oauth?mode=login"))
        .has_status(200);

    // Brown-outs of others, in the past, or later: not now. The token was not revoked.
    let other = proxy.somebody_else();
    let brown_outs = format!(
        "[[sunset.brownout]]\nfrom = '{begun}'\nuntil = '{over}'\nconsumers = ['{}']\n\
         [[sunset.brownout]]\nfrom = '2020-01-01T00:00:00Z'\nuntil = '{begun}'\n\
         [[sunset.brownout]]\nfrom = '{over}'\nuntil = '2100-01-01T00:00:00Z'\n",
        other.consumer.key
    );
    proxy.reload(&brown_outs);
    announces(&proxy.send(Call::get("/open").of(&caller)), 200);
    refused(&proxy, Call::get("/open").of(&other));
    // It ends by itself.
    proxy.reload(&format!(
        "[[sunset.brownout]]\nfrom = '{begun}'\nuntil = '{}'\n",
        moment(3)
    ));
    until("the brown-out ends", || {
        proxy.status(Call::get("/open").of(&caller)) == 200
    });
}

#[test]
fn response_to_another_proxy_announces_the_end_and_brown_outs() {
    let mut scene = Scene::with(&format!("forward_auth.listen = '127.0.0.1:0'\n{SUNSET}"));
    let asks = |scene: &Scene, way| scene.proxy.asks(way, &Call::get("/").of(&scene.caller));
    for way in WAYS {
        announces(&asks(&scene, way), 200);
        is_silent(&scene.proxy.asks(way, &Call::get("/")));
    }
    let (begun, over) = (moment(-60), moment(600));
    scene.proxy.reload(&format!(
        "[[sunset.brownout]]\nfrom = '{begun}'\nuntil = '{over}'"
    ));
    for way in WAYS {
        let answer = asks(&scene, way);
        let status = if way == Way::Nginx { 403 } else { 503 };
        announces(&answer, status);
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        if way == Way::Nginx {
            assert_eq!(answer.header("x-countersign-status"), Some("503"));
        }
    }
}

#[test]
fn an_impossible_sunset_is_an_invalid_configuration() {
    let api = Upstream::start();
    for [config, key, reason] in rows(
        r"
        deprecation = 2031-01-01T00:00:00Z\ndate = 2030-01-01T00:00:00Z | sunset.deprecation | later than sunset.date
        date = 2030-01-01T00:00:00                                      | sunset.date        | with an offset
        date = 2030-01-01                                               | sunset.date        | with an offset
        date = '2030-01-01 00:00'                                       | sunset.date        | with an offset
        date = 'soon'                                                   | sunset.date        | with an offset
        date = 1893456000                                               | sunset.date        | with an offset
        deprecation = 'later'                                           | sunset.deprecation | with an offset
        date = '1999-12-31T23:59:59Z'                                   | sunset.date        | from 2000 to 9999
        link = 'javascript:alert(1)'                                    | sunset.link        |
        consumers = []                                                  | sunset.consumers   | the list is empty
        consumers = ['a b']                                             | sunset.consumers   | the key of a consumer
        end = 'x'                                                       | sunset.end         | unknown key
        brownout = [{ from = 2030-01-01T01:00:00Z, until = 2030-01-01T00:00:00Z }] | sunset.brownout[1].until | over before it begins
        brownout = [{ from = 2030-01-01T00:00:00Z, until = 2030-01-01T00:00:00Z }] | sunset.brownout[1].until | over before it begins
        brownout = [{ from = 2030-01-01T00:00:00Z }]                    | sunset.brownout[1].until | missing
        ",
    ) {
        let builder = Proxy::in_front_of(&api).config(&format!("[sunset]\n{config}"));
        let ended = builder.run(&["check"], "");
        assert_eq!(ended.code(), Some(2), "{config}: {}", ended.stderr);
        let line = ended.stderr.lines().find(|line| line.contains(key));
        assert!(
            line.is_some_and(|line| line.contains(reason)),
            "{config}: {}",
            ended.stderr
        );
    }
    // A failed reload keeps the announcement.
    let mut scene = Scene::with(SUNSET);
    scene.proxy.reload("sunset.consumers = ['absent']");
    let checked = scene.proxy.run("check");
    assert!(
        checked.stderr.contains("no consumer has the key absent"),
        "{}",
        checked.stderr
    );
    scene.proxy.reload(&format!(
        "sunset.consumers = ['{}']",
        scene.caller.consumer.key
    ));
    assert!(
        !scene
            .proxy
            .run("check")
            .stderr
            .contains("no consumer has the key")
    );
    scene
        .proxy
        .reconfigure("sunset.deprecation = 2032-01-01T00:00:00Z");
    scene.proxy.signal(Signal::HUP);
    scene.proxy.logs(&["reload failed", "sunset.deprecation"]);
    announces(&scene.proxy.send(Call::get("/").of(&scene.caller)), 200);
}

#[test]
fn last_use_of_a_consumer_is_shown_with_method_and_dialect() {
    let mut scene = Scene::with("[operations]\nunlisted = 'application'");
    let key = scene.caller.consumer.key.clone();
    let unused = scene.proxy.consumer("Unused");
    let shown = |scene: &Scene, key: &str| {
        scene
            .proxy
            .run(&format!("consumer show {key} --json"))
            .json()
    };
    let told = |scene: &Scene, key: &str| {
        ["last_used_at", "last_method", "last_dialect"].map(|name| shown(scene, key)[name].clone())
    };
    let call = || Call::get("/?a=b").by(&scene.caller.consumer);
    // A wrong signature is not a use.
    scene
        .proxy
        .rejects(call().key("wrong"), 401, "signature_invalid");
    scene.proxy.passes(call().method("HMAC_SHA256"));
    let is_written = |scene: &Scene, method: &str, dialect: &str| {
        let [at, last_method, last_dialect] = told(scene, &key);
        at.is_string() && last_method == method && last_dialect == dialect
    };
    until("the use is written", || {
        is_written(&scene, "HMAC-SHA256", "rfc5849")
    });
    // The token call of a consumer that signs as the service describes it.
    let asks = Call::post("/service.oauth?mode=req_req_token&a=b").by(&scene.caller.consumer);
    let asks = asks
        .parameter("oauth_callback", "oob")
        .method("HMAC-SHA1")
        .signed_as_described();
    scene.proxy.passes(asks);
    scene.proxy.stop();
    // Uses that were not yet written are written at shutdown.
    assert!(is_written(&scene, "HMAC-SHA1", "legacy"));
    let listed = scene.proxy.run("consumer list --json").json_lines();
    assert!(listed.contains(&shown(&scene, &key)), "{listed:?}");
    assert_eq!(told(&scene, &unused.key), [(); 3].map(|()| Value::Null));
    let listed = scene
        .proxy
        .run("consumer list --json --unused-for 0s")
        .json_lines();
    let keys: Vec<_> = listed
        .iter()
        .map(|consumer| consumer["key"].as_str().unwrap())
        .collect();
    assert!(keys.contains(&unused.key.as_str()), "{keys:?}");
    assert!(
        scene
            .proxy
            .run("consumer list --unused-for 1h")
            .stdout
            .is_empty()
    );
}

#[test]
fn no_new_grants_are_given_and_tokens_that_exist_go_on() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();
    let other = proxy.consumer_with("Other", "--callback https://other.example/ready");
    let token = proxy.token(&consumer, &user);
    // Request tokens at each step when it ends.
    let asked = proxy.request_token(&consumer, CALLBACK);
    let allowed = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&allowed, &user);
    proxy.reload(&format!("{SUNSET}new_grants = false"));
    let is_refused = |answer: &Answer| {
        announces(answer, 403);
        assert_eq!(answer.problem().as_deref(), Some("permission_denied"));
        let advice = answer.told("oauth_problem_advice").unwrap();
        has(
            &advice,
            &[
                "no longer gives out tokens",
                "https://example.com/oauth2?a=b",
            ],
        );
    };
    explains(&proxy, &asks(&consumer, CALLBACK), Some("grants_ended"));
    is_refused(&proxy.send(asks(&consumer, CALLBACK)));
    is_refused(&proxy.send(exchanges(&consumer, &allowed, &verifier)));
    // Only the owner of the secret gets this far.
    proxy.rejects(
        asks(&consumer, CALLBACK).key("wrong"),
        401,
        "signature_invalid",
    );
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = visitor.open(&authorization(&asked));
    page.answer.has_status(403);
    has(&page.answer.text(), &["Access cannot be given any longer"]);
    proxy.passes(Call::get("/a").by(&consumer).with(&token));
    proxy.passes(Call::post(REVOKE_TOKEN).by(&consumer).with(&token));
    let refused = "countersign_requests_total{verdict=\"grants_ended\"}";
    assert!(proxy.metric(refused) >= 3.0);
    proxy.logs(&["grants_ended", &consumer.key]);
    // For some consumers alone, and back.
    let cookies = visitor.cookies.clone();
    proxy.reload(&format!(
        "{SUNSET}new_grants = false\nconsumers = ['{}']",
        other.key
    ));
    let mut visitor = Visitor::to(&proxy);
    visitor.cookies = cookies;
    let page = visitor.open(&authorization(&asked));
    page.answer.has_status(200);
    proxy.passes(exchanges(&consumer, &allowed, &verifier));
    is_refused(&proxy.send(asks(&other, "https://other.example/ready")));
    proxy.reload("sunset.new_grants = true");
    proxy.passes(asks(&other, "https://other.example/ready"));
    is_silent(&proxy.send(Call::get("/a")));
}

/// In front of an API that gives out the tokens.
#[test]
fn a_guard_lets_no_new_grant_through() {
    for enforcement in ["enforce", "observe"] {
        let api = Upstream::start();
        let config = format!(
            "service.role = 'guard'\nsignature.enforcement = '{enforcement}'\nsunset.new_grants = false"
        );
        let proxy = Proxy::with(&api, &config);
        let caller = proxy.somebody();
        let by = |path: &str| Call::post(path).by(&caller.consumer);
        let of_api = Token::new("of-the-api", "its-secret");
        let asks = |path: &str| by(path).parameter("oauth_callback", CALLBACK);
        let access = by("/oauth/access_token").with(&of_api);
        let refused = [
            asks("/oauth/request_token"),
            access.parameter("oauth_verifier", "v"),
            // The API may read these as the same path.
            asks("/oauth/request_token/"),
            asks("/OAuth/request_token.json"),
            asks("//oauth/request%5Ftoken"),
        ];
        for call in refused {
            let answer = proxy.send(call);
            assert_eq!(answer.status, 403, "{enforcement}: {answer:?}");
            assert_eq!(answer.problem().as_deref(), Some("permission_denied"));
        }
        let other_spelling = asks("/oauth/request_token.json");
        explains(&proxy, &other_spelling, Some("grants_ended"));
        // The API may accept what is rejected here.
        let forger = Consumer::new(&caller.consumer.key, "another secret");
        for path in ["/oauth/request_token", "/oauth/access_token"] {
            for call in [Call::post(path), Call::post(path).by(&forger)] {
                let answer = proxy.send(call);
                assert!(
                    (400..404).contains(&answer.status),
                    "{enforcement}: {answer:?}"
                );
            }
        }
        assert_eq!(api.count(), 0, "{enforcement}");
        proxy.passes(Call::get("/a").of(&caller));
    }
}

/// The query of a path can be written in other ways too.
#[test]
fn a_guard_knows_the_query_of_a_grant_in_every_way() {
    let api = Upstream::start();
    let config = "service.role = 'guard'\nservice.aliases = false\nsunset.new_grants = false\n\
                  service.request_token_paths = ['/w/index.php?title=Special:OAuth/initiate']";
    let proxy = Proxy::with(&api, config);
    let caller = proxy.somebody();
    let asks = |path: &str| {
        let call = Call::post(path).by(&caller.consumer);
        call.parameter("oauth_callback", CALLBACK)
    };
    for query in [
        "title=Special:OAuth/initiate",
        "title=Main&title=Special:OAuth/initiate",
        "title=special:oauth/initiate",
    ] {
        let answer = proxy.send(asks(&format!("/w/index.php?{query}")));
        assert_eq!(answer.status, 403, "{query}: {answer:?}");
    }
    let in_form = asks("/w/index.php").form("title=Special:OAuth/initiate");
    assert_eq!(proxy.send(in_form).status, 403);
    assert_eq!(api.count(), 0);
    proxy.passes(asks("/w/index.php?title=Main"));
}

/// Nor where calls are only observed: those of which more than one API could make something else, too.
#[test]
fn an_observing_guard_lets_no_new_grant_through() {
    let config =
        "service.role = 'guard'\nsignature.enforcement = 'observe'\nsunset.new_grants = false";
    let of_api = Token::new("of-the-api", "its-secret");
    for operation in ["", "\n[[operation]]\npath = '/listed'"] {
        let api = Upstream::start();
        let proxy = Proxy::with(&api, &format!("{config}{operation}"));
        let caller = proxy.somebody();
        for path in [
            "/oauth/access_token/",
            "//oauth/access%5Ftoken",
            // Also the authorization page, to an API that resolves dots.
            "/oauth/access_token%3F/../authorize",
        ] {
            let call = Call::post(path).by(&caller.consumer).with(&of_api);
            let answer = proxy.send(call.parameter("oauth_verifier", "v"));
            assert_eq!(answer.status, 403, "{path}{operation}: {answer:?}");
        }
        assert_eq!(api.count(), 0, "{operation}");
        proxy.passes(Call::get("/a").of(&caller));
    }
}

/// `explain` names the reason for which the service rejects a call, if it does.
#[track_caller]
fn explains(proxy: &Proxy, call: &Call, reason: Option<&str>) {
    let explained = proxy.explain(call);
    assert_eq!(
        explained.status.success(),
        reason.is_none(),
        "{explained:?}"
    );
    has(&explained.stdout, reason.as_slice());
}

#[test]
fn signatures_end_alone() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api);
    let mut openssl = std::process::Command::new("openssl");
    openssl.args("genpkey -algorithm ed25519 -out a.pem".split(' '));
    openssl.current_dir(builder.directory());
    assert!(openssl.output().unwrap().status.success());
    let mut proxy = builder
        .config(
            "identity.assertion.key_files = ['a.pem']\nexchange.audience = 'https://api.example.com'\nbearer.own = true\n\
             operations.unlisted = ['consumer', 'application']",
        )
        .start();
    let [caller, other] = [proxy.somebody(), proxy.somebody_else()];
    let exchange = || Call::post("/service.oauth?mode=exchange");
    proxy.reload(&format!(
        "{SUNSET}signatures = false\nconsumers = ['{}']",
        caller.consumer.key
    ));
    let before = api.count();
    let is_refused = |answer: &Answer| {
        announces(answer, 403);
        assert_eq!(answer.problem().as_deref(), Some("permission_denied"));
        let advice = answer.told("oauth_problem_advice").unwrap();
        has(
            &advice,
            &["no longer accepts calls", "https://example.com/oauth2?a=b"],
        );
    };
    is_refused(&proxy.send(Call::get("/a").of(&caller)));
    is_refused(&proxy.send(Call::get("/a").by(&caller.consumer)));
    explains(
        &proxy,
        &Call::get("/a").of(&caller),
        Some("signatures_ended"),
    );
    for call in [asks(&caller.consumer, "oob"), Call::get("/a").of(&other)] {
        explains(&proxy, &call, None);
    }
    // Only the owner of the secrets gets this far, and others go on.
    proxy.rejects(
        Call::get("/a").of(&caller).key("wrong"),
        401,
        "signature_invalid",
    );
    assert_eq!(api.count(), before);
    proxy.passes(Call::get("/a").of(&other));
    assert!(proxy.metric("countersign_requests_total{verdict=\"signatures_ended\"}") >= 2.0);
    // Token calls go on, and Bearer tokens.
    proxy.passes(asks(&caller.consumer, "oob"));
    for call in [exchange().of(&caller), exchange().by(&caller.consumer)] {
        let answer = proxy.passes(call).json();
        let token = answer["access_token"].as_str().unwrap();
        let bearer = format!("Bearer {token}");
        proxy.passes(Call::get("/a").header("Authorization", &bearer));
    }
    proxy.passes(Call::post(REVOKE_TOKEN).of(&caller));
    proxy.reload("sunset.signatures = true");
    proxy.passes(Call::get("/a").by(&caller.consumer));
}

/// The API may accept what is rejected here.
#[test]
fn signatures_end_where_they_are_only_observed() {
    let api = Upstream::start();
    let observed = "signature.enforcement = 'observe'\nsunset.signatures = false";
    let proxy = Proxy::with(&api, observed);
    let caller = proxy.somebody();
    let unknown = Consumer::new("unknown", "secret");
    for call in [
        Call::get("/a").of(&caller),
        Call::get("/a").of(&caller).key("wrong"),
        Call::get("/a").by(&unknown),
    ] {
        proxy.send(call).has_status(403);
    }
    assert_eq!(api.count(), 0);
    proxy.passes(Call::get("/a"));
    proxy.passes(Call::get("/a").header("Authorization", "Bearer of-the-api"));
}

#[test]
fn no_new_consumers_are_registered_by_developers() {
    let api = Upstream::start();
    let config = "registration.mode = 'open'";
    let mut proxy = Proxy::with(&api, config);
    let user = proxy.user("ada");
    let register = "/service.oauth?mode=register";
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let before = visitor.open(register);
    let form = before.form_with("description");
    let form = form.set("name", "Printer").set("description", "Prints");
    let form = form
        .set("contact", "dev@shop.example")
        .press("act", "register");
    let cookies = visitor.cookies.clone();
    proxy.reload(&format!("{config}\n{SUNSET}new_consumers = false"));
    let mut visitor = Visitor::to(&proxy);
    visitor.cookies = cookies;
    // The form that was open before registers nothing either.
    let after = visitor.submit(&before, &form);
    for page in [after, visitor.open(register)] {
        page.answer.has_status(200);
        let text = page.answer.text();
        has(
            &text,
            &[
                "Keys are no longer given out here.",
                "href=\"https://example.com/oauth2?a=b\"",
            ],
        );
        assert!(
            !text.contains("name=\"description\"") && !text.contains("Printer"),
            "{text}"
        );
    }
    // Token calls of an unknown consumer say it; other calls do not.
    let unknown = Consumer::new("new-one", "secret");
    for call in [
        asks(&unknown, CALLBACK),
        asks(&unknown, CALLBACK).form("a=1"),
    ] {
        let answer = proxy.send(call);
        answer.is(401, "consumer_key_unknown");
        let advice = answer.told("oauth_problem_advice").unwrap();
        has(
            &advice,
            &[
                "no longer registers consumers",
                "https://example.com/oauth2?a=b",
            ],
        );
        is_silent(&answer);
    }
    let answer = proxy.send(Call::get("/a").by(&unknown));
    answer.is(401, "consumer_key_unknown");
    assert!(!answer.text().contains("no longer registers"));
    // Consumers that exist go on, and an operator can register another one, for OAuth 2.
    let added =
        proxy.run("consumer add --name Late --callback https://shop.example/ready?from=us&x=%20");
    has(&added.stderr, &["sunset.new_consumers"]);
    let late = proxy.consumer_with("Later", &format!("--callback {CALLBACK}"));
    proxy.passes(asks(&late, CALLBACK));
}

#[test]
fn consumers_that_still_sign_are_listed_with_doors_and_contacts() {
    let (api, issuer) = (Upstream::start(), Issuer::start());
    let open = "operations.unlisted = ['consumer', 'application']";
    let proxy = Proxy::in_front_of(&api)
        .with_console()
        .config(&format!(
            "admin.listen = '127.0.0.1:{}'\n{open}\n{}",
            free_port(),
            issuer.section("")
        ))
        .start();
    let with_contact =
        |name: &str| proxy.consumer_with(name, &format!("--contact dev@{name}.example"));
    let [signs, both, moved, idle] = ["signs", "both", "moved", "idle"].map(with_contact);
    let by_token = |consumer: &Consumer| {
        let token = issuer.token(&issuer.claims(&consumer.key, "user-7", ""));
        Call::get("/a").bearer(&token)
    };
    proxy.passes(Call::get("/a").by(&signs));
    proxy.passes(Call::get("/a").by(&both));
    let shown = |consumer: &Consumer| {
        proxy
            .run(&format!("consumer show {} --json", consumer.key))
            .json()
    };
    until("it has signed", || {
        shown(&both)["last_method"] == "HMAC-SHA1"
    });
    let signed_at = shown(&both)["last_signed_at"].clone();
    // Both in one second too: a token does not hide a signature, nor the other way round.
    for consumer in [&both, &both, &moved] {
        proxy.passes(by_token(consumer));
    }
    until("the tokens are written", || {
        [&both, &moved].map(|it| shown(it)["last_method"].clone()) == ["Bearer", "Bearer"]
    });
    assert_eq!(shown(&both)["last_signed_at"], signed_at);
    assert_eq!(shown(&moved)["last_signed_at"], Value::Null);
    assert_eq!(shown(&idle)["last_used_at"], Value::Null);
    let mut listed = proxy
        .run("consumer list --still-signing --json")
        .json_lines();
    listed.sort_by_key(|one| one["name"].to_string());
    let facts = |one: &Value| {
        let names = ["key", "contact", "signature_calls", "bearer_calls"];
        Value::from_iter(names.map(|name| one[name].clone()))
    };
    let listed = Vec::from_iter(listed.iter().map(facts));
    let expected = [
        json!([both.key, "dev@both.example", 1, 2]),
        json!([signs.key, "dev@signs.example", 1, 0]),
    ];
    assert_eq!(listed, expected);
    let table = proxy.run("consumer list --still-signing 1d").stdout;
    has(
        &table,
        &[
            "SIGNATURE CALLS",
            "BEARER CALLS",
            "CONTACT",
            "LAST SIGNED AT",
            "dev@both.example",
        ],
    );
    assert!(!table.contains(&moved.key), "{table}");
    let operator = Operator::with(&proxy, READ);
    let page = operator.open("/consumers?signed_within=1d").answer.text();
    has(
        &page,
        &["by Bearer token", "dev@both.example", "dev@signs.example"],
    );
    assert!(!page.contains("dev@moved.example"), "{page}");
    let page = operator
        .open(&format!("/consumer?key={}", both.key))
        .answer
        .text();
    has(
        &page,
        &[
            "with a Bearer token",
            "last signed call",
            "1 by signature, 2 by Bearer token",
        ],
    );
    // What signed too long ago no longer signs; the rest is what the store knows.
    let none = proxy
        .run("consumer list --still-signing 0s --json")
        .json_lines();
    assert_eq!(none, Vec::<Value>::new());
    let mut proxy = proxy;
    proxy.stop();
    let stopped = proxy.run("consumer list --still-signing --json");
    has(&stopped.stderr, &["the doors of their calls are not known"]);
    assert_eq!(stopped.json_lines().len(), 2);
}
