//! Calls with Bearer tokens: those of our exchange, and those of OAuth 2 servers.
//!
//! Promise (Permissions and identity): A Bearer token gets the rules of a signature, ends within a second with its access
//! token, and is never logged. Also in `tests/attacks/bearer.rs`.

mod alone;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Answer, Call, Connection, Consumer, Operator, Proxy, Scene, Upstream, Visitor, fresh,
    gate::WAYS,
    has,
    issuer::{AUDIENCE, Issuer, Key, bearer_error},
    now,
    operator::WRITE,
    until, within,
};

const OPERATIONS: &str = r#"
    permission = [{ name = "a" }, { name = "b" }]
    operation = [
        { path = "/a", permission = "a" },
        { path = "/b", permission = "b" },
        { path = "/app", access = ["application"] },
        { path = "/app/a", access = ["application"], permission = "a" },
        { path = "/app/b", access = ["application"], permission = "b" },
        { path = "/open", access = ["anonymous", "consumer"] },
        { path = "/ws", upgrade = ["websocket"] },
    ]
    operations.forbidden_status = 403
    log.access = true
"#;

fn bearer(target: &str, token: &str) -> Call {
    Call::get(target).bearer(token)
}

/// The values of the identity headers of the last call.
fn identity(api: &Upstream) -> [String; 4] {
    let seen = api.last_request();
    assert_eq!(seen.header("Authorization"), None, "{seen:?}");
    ["User", "Consumer", "Permissions", "Kind"].map(|name| {
        let values = seen.fields.all(&format!("X-Auth-{name}"));
        values.join(" and ")
    })
}

#[track_caller]
fn is_rejected(answer: &Answer, status: u16, error: &str) {
    answer.has_status(status);
    assert_eq!(bearer_error(answer), Some(error), "{answer:?}");
}

/// A proxy that accepts the tokens of its exchange.
fn exchanging(more: &str) -> Scene {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api);
    let key = "genpkey -algorithm ed25519 -out a.pem";
    let mut openssl = std::process::Command::new("openssl");
    let openssl = openssl
        .args(key.split(' '))
        .current_dir(builder.directory());
    assert!(openssl.output().unwrap().status.success());
    let proxy = builder
        .with_console()
        .config(&format!(
            "identity.assertion = {{ key_files = ['a.pem'], header = 'X-Auth-Assertion', audience = 'https://api.internal' }}\n\
             exchange.audience = 'https://api.example.com'\nbearer.own = true\n{more}"
        ))
        .start();
    let caller = proxy.somebody_with("--permission a --permission b");
    Scene { api, proxy, caller }
}

fn exchanged(scene: &Scene) -> String {
    let call = Call::post("/service.oauth?mode=exchange").of(&scene.caller);
    let answer = scene.proxy.passes(call).json();
    answer["access_token"].as_str().unwrap().to_owned()
}

#[test]
fn an_exchanged_token_takes_the_way_of_the_signature() {
    let scene = exchanging(&format!(
        "{OPERATIONS}\n[sunset]\ndeprecation = 2026-01-01T00:00:00Z\n[[sunset.brownout]]\nfrom = 2020-01-01T00:00:00Z\n\
         until = 2020-01-02T00:00:00Z"
    ));
    let (proxy, api, caller) = (&scene.proxy, &scene.api, &scene.caller);
    let token = exchanged(&scene);
    let by_token = proxy.passes(bearer("/a", &token));
    let seen = identity(api);
    assert_eq!(
        seen,
        [&*caller.user.id, &*caller.consumer.key, "a b", "consumer"]
    );
    let asserted = api.last_request();
    assert!(asserted.header("X-Auth-Assertion").is_some());
    let signed = proxy.passes(Call::get("/a").of(caller));
    assert_eq!(identity(api), seen);
    // What ends is the signature.
    assert!(signed.fields.has("Deprecation") && !by_token.fields.has("Deprecation"));
    // It has no kind of call that its access token does not have.
    is_rejected(&proxy.send(bearer("/open", "x.y.z")), 401, "invalid_token");
    proxy.send(bearer("/app", &token)).has_status(403);
    // The assertion is not an access token, and the access token no assertion.
    let assertion = asserted.header("X-Auth-Assertion").unwrap();
    is_rejected(&proxy.send(bearer("/a", assertion)), 401, "invalid_token");
    let line = proxy.logs(&["access:", "door=\"bearer\"", "verdict=\"forwarded\""]);
    has(&line, &[&format!("consumer={}", caller.consumer.key)]);
    has(&line, &[&format!("token={}…", &caller.token.token[..8])]);
    proxy.logs(&["access:", "door=\"signature\"", "verdict=\"forwarded\""]);
    for part in token.split('.') {
        assert_eq!(
            proxy.logged(&[part]),
            0,
            "a part of the token is in the log"
        );
    }
    let by = |door: &str| {
        let key = &caller.consumer.key;
        proxy.metric(&format!(
            "countersign_door_requests_total{{consumer=\"{key}\",door=\"{door}\"}}"
        ))
    };
    assert_eq!((by("bearer"), by("signature")), (1.0, 2.0));
    until("the use is written", || {
        let shown = proxy.run(&format!("consumer show {}", caller.consumer.key));
        shown.stdout.contains("last_method")
    });
}

#[test]
fn exchanged_token_ends_with_its_access_token_and_its_consumer() {
    for (what, command) in [
        ("token revoke {token}", "token_revoked"),
        ("consumer disable {consumer}", "consumer_key_refused"),
        ("consumer remove {consumer} --yes", "token_rejected"),
        ("user disable alice", "token_revoked"),
    ] {
        let scene = exchanging("cache.ttl = '1h'");
        let (proxy, caller) = (&scene.proxy, &scene.caller);
        let (token, other) = (exchanged(&scene), exchanged(&scene));
        proxy.passes(bearer("/a", &token));
        let what = what.replace("{token}", &caller.token.token);
        proxy.run(&what.replace("{consumer}", &caller.consumer.key));
        let ended = within(Duration::from_secs(1), &what, || {
            let answer = proxy.send(bearer("/a", &token));
            (answer.status != 200).then_some(answer)
        });
        is_rejected(&ended, 401, "invalid_token");
        let problem = ended.problem();
        assert!(
            problem.as_deref() == Some(command) || what.starts_with("user"),
            "{what}: {problem:?}"
        );
        // One that was not used before neither.
        is_rejected(&proxy.send(bearer("/a", &other)), 401, "invalid_token");
    }
}

#[test]
fn a_permission_that_is_taken_away_is_gone_from_tokens_too() {
    let scene = exchanging(OPERATIONS);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let token = exchanged(&scene);
    proxy.passes(bearer("/b", &token));
    proxy.run(&format!(
        "consumer update {} --permission a",
        caller.consumer.key
    ));
    until("the permission is gone", || {
        proxy.status(bearer("/b", &token)) == 403
    });
    let rejected = proxy.send(bearer("/b", &token));
    is_rejected(&rejected, 403, "insufficient_scope");
    proxy.passes(bearer("/a", &token));
    assert_eq!(identity(&scene.api)[2], "a");
    proxy.logs(&[
        "missing_permission=b",
        "door=\"bearer\"",
        "proof=\"verified\"",
    ]);
    // A permission that comes later is not the token's.
    let narrow = exchanged(&scene);
    proxy.run(&format!(
        "consumer update {} --permission a --permission b",
        caller.consumer.key
    ));
    until("it is back", || {
        proxy.status(Call::get("/b").of(caller)) == 200
    });
    assert_eq!(proxy.status(bearer("/b", &narrow)), 403);
}

/// A proxy in front of an API, which accepts the tokens of this issuer, with a consumer.
fn served(issuer: &Issuer, more: &str) -> (Upstream, Proxy, Consumer) {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        &format!("{OPERATIONS}\n{more}\n{}", issuer.section("")),
    );
    let consumer = proxy.consumer_with("App", "--permission a --permission b");
    (api, proxy, consumer)
}

#[test]
fn tokens_of_an_issuer_name_consumer_user_and_permissions() {
    for key in [Key::ed25519(), Key::p256(), Key::rsa()] {
        let issuer = Issuer::with(key);
        let (api, proxy, app) = served(&issuer, "");
        let claims = |user: &str, scope: &str| issuer.claims(&app.key, user, scope);
        // The permissions are those that both have.
        let token = issuer.token(&claims("user-7", "openid a zz"));
        proxy.passes(bearer("/a", &token));
        assert_eq!(identity(&api), ["user-7", &app.key, "a", "consumer"]);
        is_rejected(&proxy.send(bearer("/b", &token)), 403, "insufficient_scope");
        // Without a user it is the consumer's own.
        for own in [claims(&app.key, "b"), {
            let mut own = claims("", "b");
            own.as_object_mut().unwrap().remove("sub");
            own
        }] {
            proxy.passes(bearer("/app", &issuer.token(&own)));
            assert_eq!(identity(&api), ["", &app.key, "b", "application"]);
            assert_eq!(proxy.status(bearer("/b", &issuer.token(&own))), 403);
        }
        let lists = json!({"aud": ["https://other.example", "https://api.example.com"], "scope": ["a", "b"]});
        let mut listed = claims("user-7", "");
        merge(&mut listed, &lists);
        proxy.passes(bearer("/b", &issuer.token(&listed)));
        assert_eq!(identity(&api)[2], "a b");
        // No consumer has the key of this client.
        let unknown = issuer.token(&issuer.claims("unknown", "user-7", "a"));
        let answer = proxy.send(bearer("/a", &unknown));
        is_rejected(&answer, 401, "invalid_token");
        answer.is(401, "consumer_key_unknown");
        proxy.logs(&[
            "unverified_consumer=unknown",
            "door=\"bearer\"",
            "consumer_key_unknown",
        ]);
        // The networks of a consumer hold for both doors.
        let elsewhere = proxy.consumer_with("Elsewhere", "--permission a --from 203.0.113.0/24");
        let outside = issuer.token(&issuer.claims(&elsewhere.key, "user-7", "a"));
        let answer = proxy.send(bearer("/a", &outside));
        is_rejected(&answer, 401, "invalid_token");
        answer.is(401, "consumer_key_refused");
        proxy.run(&format!("consumer disable {}", app.key));
        let ended = within(Duration::from_secs(1), "it is disabled", || {
            let answer = proxy.send(bearer("/a", &token));
            (answer.status != 200).then_some(answer)
        });
        is_rejected(&ended, 401, "invalid_token");
    }
}

/// Claims as servers write them for a client without a user, and for a user.
#[test]
fn a_client_without_a_user_is_no_user_whatever_its_subject_is() {
    const USER: &str = "consumer";
    const CLIENT: &str = "application";
    const NONE: &str = "";
    let of_entra = "user_claim = 'oid'\nuser_mark = 'scp'\nclient_mark = 'idtyp=app'";
    let of_keycloak = "user_mark = 'sid'\nclient_mark = 'clientHost'";
    for (keys, claims, kind) in [
        // RFC 9068 §2.2: the subject is the client's identifier. Auth0 adds to it.
        ("", json!({"sub": "APP"}), CLIENT),
        (
            "",
            json!({"sub": "APP@clients", "gty": "client-credentials"}),
            CLIENT,
        ),
        ("", json!({"sub": "auth0|7"}), USER),
        ("", json!({"sub": "7@clients"}), USER),
        ("", json!({}), CLIENT),
        (
            of_entra,
            json!({"oid": "5e7a", "sub": "5e7a", "idtyp": "app"}),
            CLIENT,
        ),
        (
            of_entra,
            json!({"oid": "0b1c", "sub": "x", "scp": "a"}),
            USER,
        ),
        (
            of_entra,
            json!({"oid": "0b1c", "sub": "x", "scp": "a", "idtyp": "user"}),
            USER,
        ),
        // It is neither, so it is rejected.
        (
            of_entra,
            json!({"oid": "5e7a", "sub": "5e7a", "roles": ["a"]}),
            NONE,
        ),
        (of_entra, json!({"oid": "5e7a", "idtyp": ["app"]}), NONE),
        (of_entra, json!({"sub": "x", "scp": "a"}), NONE),
        (of_entra, json!({"oid": "5e7a", "scp": null}), NONE),
        (
            of_keycloak,
            json!({"sub": "11aa", "clientHost": "192.0.2.1"}),
            CLIENT,
        ),
        (of_keycloak, json!({"sub": "22bb", "sid": "s"}), USER),
        (
            of_keycloak,
            json!({"sub": "22bb", "preferred_username": "service-account-APP"}),
            NONE,
        ),
        // A user can choose the key of a client as a name.
        (
            "user_claim = 'preferred_username'\nuser_mark = 'sid'",
            json!({"preferred_username": "APP", "sid": "s"}),
            USER,
        ),
        (
            "client_mark = 'gty=client-credentials'",
            json!({"sub": "APP", "gty": "password"}),
            USER,
        ),
        // A service account with a session is one all the same.
        (
            of_keycloak,
            json!({"sub": "11aa", "sid": "s", "clientHost": "192.0.2.1"}),
            CLIENT,
        ),
        (
            "client_mark = 'gty=client-credentials'",
            json!({"sub": "x", "gty": "client-credentials"}),
            CLIENT,
        ),
        (
            "client_mark = 'gty=client-credentials'",
            json!({"sub": "x", "gty": "password"}),
            USER,
        ),
    ] {
        let (issuer, api) = (Issuer::start(), Upstream::start());
        let access = "operations.unlisted = ['consumer', 'application']";
        let proxy = Proxy::with(&api, &format!("{access}\n{}", issuer.section(keys)));
        let app = proxy.consumer("App");
        let mut token = issuer.claims(&app.key, "", "");
        token.as_object_mut().unwrap().remove("sub");
        let claims = claims.to_string().replace("APP", &app.key);
        merge(&mut token, &serde_json::from_str(&claims).unwrap());
        let answer = proxy.send(bearer("/a", &issuer.token(&token)));
        if kind == NONE {
            is_rejected(&answer, 401, "invalid_token");
            continue;
        }
        assert_eq!(answer.status, 200, "{claims}: {answer:?}");
        let seen = identity(&api);
        assert_eq!(seen[3], kind, "{claims}");
        assert_eq!(seen[0].is_empty(), kind == CLIENT, "{claims}");
    }
}

fn merge(into: &mut Value, from: &Value) {
    for (name, value) in from.as_object().unwrap() {
        into[name] = value.clone();
    }
}

#[test]
fn both_doors_are_named_to_callers_without_credentials() {
    let issuer = Issuer::start();
    let (_api, proxy, app) = served(&issuer, "");
    let answer = proxy.send(Call::get("/a"));
    answer.is(401, "parameter_absent");
    let challenges = answer.fields.all("WWW-Authenticate");
    assert_eq!(challenges.len(), 2, "{answer:?}");
    assert!(
        challenges[0].starts_with("OAuth realm=") && challenges[1].starts_with("Bearer realm=")
    );
    assert_eq!(
        bearer_error(&answer),
        Some(""),
        "RFC 6750 §3.1: no error without credentials"
    );
    // A wrong signature is answered as ever, and so is everything where no tokens are accepted.
    let wrong = proxy.send(Call::get("/a").by(&Consumer::new(&app.key, "wrong")));
    assert_eq!(wrong.fields.all("WWW-Authenticate").len(), 1);
    let scene = Scene::with(
        "operation = [{ path = '/open', access = ['anonymous'] }]\noperations.unlisted = 'consumer'\nlog.access = true",
    );
    let answer = scene.proxy.send(Call::get("/a"));
    assert_eq!(answer.fields.all("WWW-Authenticate").len(), 1);
    let answer = scene.proxy.send(bearer("/a", "x"));
    answer.is(401, "parameter_absent");
    assert_eq!(bearer_error(&answer), None);
    scene
        .proxy
        .passes(bearer("/open?access_token=1", "of-the-api"));
    let seen = scene.api.last_request();
    assert_eq!(seen.header("Authorization"), Some("Bearer of-the-api"));
    scene.proxy.passes(Call::get("/a").of(&scene.caller));
    assert_eq!(scene.proxy.logged(&["door="]), 0);
}

#[test]
fn keys_of_an_issuer_may_change() {
    let issuer = Issuer::start();
    let (_api, proxy, app) = served(&issuer, "");
    let claims = issuer.claims(&app.key, "user-7", "a");
    proxy.passes(bearer("/a", &issuer.token(&claims)));
    let asked = issuer.asked();
    // The known key needs no further request.
    for _ in 0..3 {
        let token = issuer.token(&issuer.claims(&app.key, &fresh("user-"), "a"));
        proxy.passes(bearer("/a", &token));
    }
    assert_eq!(issuer.asked(), asked);
    let next = Key::p256();
    issuer.serves(&[issuer.key.jwk("first"), next.jwk("second")]);
    let head = json!({"typ": "application/at+jwt", "alg": "ES256", "kid": "second"});
    let token = next.jwt(&head, &claims);
    until("the new key is read", || {
        proxy.status(bearer("/a", &token)) == 200
    });
}

#[test]
fn start_waits_for_no_keys_and_calls_get_503_without_them() {
    let issuer = Issuer::start();
    issuer.replies(crate::support::Reply::status("500 Internal Server Error"));
    let (_api, proxy, app) = served(&issuer, "");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    let answer = proxy.send(bearer("/a", &token));
    answer.has_status(503);
    assert!(answer.fields.has("Retry-After"));
    proxy.logs(&["condition=\"issuer\"", "500 Internal Server Error"]);
    proxy.logs(&["access:", "cause=", "bearer.issuer", "door=\"bearer\""]);
    assert_eq!(proxy.metric("countersign_degraded{cause=\"issuer\"}"), 1.0);
    // Others do not notice.
    let caller = proxy.somebody();
    assert_eq!(proxy.status(Call::get("/open").of(&caller)), 200);
    issuer.replies(None);
    until("the keys are read", || {
        proxy.status(bearer("/a", &token)) == 200
    });
    until("it is over", || {
        proxy.metric("countersign_degraded{cause=\"issuer\"}") == 0.0
    });
}

#[test]
fn keys_of_a_file_need_no_server() {
    let issuer = Issuer::start();
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api);
    let set = json!({ "keys": [issuer.key.jwk("first")] });
    std::fs::write(builder.directory().join("issuer.jwks"), set.to_string()).unwrap();
    let section = "[[bearer.issuer]]\nissuer = 'https://login.example.com'\naudience = 'https://api.example.com'\n\
                   jwks_file = 'issuer.jwks'\nconsumer_claim = 'azp'\nuser_claim = 'uid'\npermissions_claim = 'scp'\n\
                   token_types = ['JWT']";
    let proxy = builder.config(&format!("{OPERATIONS}\n{section}")).start();
    let app = proxy.consumer_with("App", "--permission a");
    let mut claims = issuer.claims("else", "else", "else");
    merge(
        &mut claims,
        &json!({"azp": app.key, "uid": "7", "scp": ["a"]}),
    );
    let head = json!({"typ": "JWT", "alg": "EdDSA"});
    proxy.passes(bearer("/a", &issuer.key.jwt(&head, &claims)));
    assert_eq!(identity(&api), ["7", &app.key, "a", "consumer"]);
    assert_eq!(issuer.asked(), 0);
}

#[test]
fn an_issuer_is_asked_for_opaque_tokens() {
    let (issuer, api) = (Issuer::start(), Upstream::start());
    let builder = Proxy::in_front_of(&api);
    let section = issuer.asked_section(&builder);
    let proxy = builder
        .config(&format!(
            "{OPERATIONS}\ncache.negative_ttl = '0s'\ncache.ttl = '1s'\n{section}"
        ))
        .start();
    let app = proxy.consumer_with("App", "--permission a --permission b");
    let mut claims = json!({"active": true, "client_id": app.key, "sub": "user-7", "scope": "a", "aud": AUDIENCE});
    issuer.knows("opaque-1", claims.clone());
    proxy.passes(bearer("/a", "opaque-1"));
    assert_eq!(identity(&api), ["user-7", &app.key, "a", "consumer"]);
    assert_eq!(proxy.status(bearer("/b", "opaque-1")), 403);
    is_rejected(&proxy.send(bearer("/a", "made-up")), 401, "invalid_token");
    for (name, value) in [
        ("active", json!(false)),
        ("active", json!("true")),
        ("aud", json!("https://other.example")),
        ("iss", json!("https://other.example")),
        ("exp", json!(now() - 1)),
        ("client_id", json!("")),
        // Servers know other kinds of tokens too.
        ("typ", json!("Refresh")),
        ("typ", json!("Offline")),
        ("typ", json!("ID")),
        ("token_use", json!("refresh_token")),
        ("token_use", json!("id_token")),
        ("token_type", json!("refresh_token")),
        ("token_type", json!("DPoP")),
        ("at_hash", json!("x")),
        ("cnf", json!({"jkt": "x"})),
        ("cnf", json!({"x5t#S256": "x"})),
        // RFC 7662 lets aud be absent: such a token may be for another API.
        ("aud", Value::Null),
        ("aud", json!("")),
        ("aud", json!([])),
        ("aud", json!({AUDIENCE: true})),
    ] {
        let token = fresh("opaque-");
        let mut claims = claims.clone();
        claims[name] = value;
        issuer.knows(&token, claims.clone());
        let answer = proxy.send(bearer("/a", &token));
        assert_eq!(answer.status, 401, "{claims}");
        is_rejected(&answer, 401, "invalid_token");
    }
    proxy.logs(&["a token is not used", "audience_required"]);
    for (name, value) in [
        ("typ", "Bearer"),
        ("token_type", "bearer"),
        ("token_use", "access_token"),
    ] {
        let token = fresh("opaque-");
        let mut claims = claims.clone();
        claims[name] = json!(value);
        issuer.knows(&token, claims);
        proxy.passes(bearer("/a", &token));
    }
    // It is asked again after `cache.ttl`.
    claims["active"] = json!(false);
    issuer.knows("opaque-1", claims);
    until("it is revoked", || {
        proxy.status(bearer("/a", "opaque-1")) == 401
    });
    assert_eq!(proxy.logged(&["opaque-1"]), 0);
    issuer.replies(crate::support::Reply::status("401 Unauthorized"));
    proxy.send(bearer("/a", "opaque-2")).has_status(503);
    proxy.logs(&["access:", "cause=", "responded 401"]);
}

#[test]
fn response_without_audience_counts_only_where_configured() {
    let (issuer, api) = (Issuer::start(), Upstream::start());
    let builder = Proxy::in_front_of(&api);
    let section = issuer.asked_section(&builder);
    let config = format!("{OPERATIONS}\n{section}audience_required = false");
    let proxy = builder.config(&config).start();
    let app = proxy.consumer_with("App", "--permission a");
    let claims = json!({"active": true, "client_id": app.key, "sub": "user-7", "scope": "a"});
    for (aud, status) in [
        (None, 200),
        (Some(Value::Null), 200),
        (Some(json!([])), 200),
        (Some(json!([AUDIENCE])), 200),
        (Some(json!("https://other.example")), 401),
        (Some(json!({AUDIENCE: true})), 401),
    ] {
        let (token, mut claims) = (fresh("opaque-"), claims.clone());
        if let Some(aud) = aud {
            claims["aud"] = aud;
        }
        issuer.knows(&token, claims.clone());
        assert_eq!(proxy.status(bearer("/a", &token)), status, "{claims}");
    }
}

#[test]
fn a_revoked_opaque_token_ends_while_the_issuer_fails() {
    let (issuer, api) = (Issuer::start(), Upstream::start());
    let builder = Proxy::in_front_of(&api);
    let section = issuer.asked_section(&builder);
    let config = format!("cache.ttl = '1s'\ncache.stale_if_error = '2s'\n{section}");
    let proxy = builder.config(&config).start();
    let app = proxy.consumer("App");
    let mut claims = json!({"active": true, "client_id": app.key, "sub": "7", "aud": AUDIENCE});
    issuer.knows("revoked", claims.clone());
    issuer.knows("kept", claims.clone());
    proxy.passes(bearer("/a", "kept"));
    proxy.passes(bearer("/a", "revoked"));
    claims["active"] = json!(false);
    issuer.knows("revoked", claims.clone());
    until("the issuer has said so", || {
        proxy.status(bearer("/a", "revoked")) == 401
    });
    // It is not known again by what was known before; and one that it revokes in silence ends too.
    issuer.replies(crate::support::Reply::status("500 Internal Server Error"));
    let ended = now() + 4;
    until("neither is used any longer", || {
        assert_ne!(proxy.status(bearer("/a", "revoked")), 200);
        let status = proxy.status(bearer("/a", "kept"));
        assert!(status == 200 || status == 503, "{status}");
        status == 503 && now() >= ended
    });
    issuer.knows("kept", claims);
    issuer.replies(None);
    until("the issuer is asked again", || {
        proxy.status(bearer("/a", "kept")) == 401
    });
}

#[test]
fn many_calls_with_one_opaque_token_ask_once() {
    let (issuer, api) = (Issuer::start(), Upstream::start());
    let builder = Proxy::in_front_of(&api);
    let section = issuer.asked_section(&builder);
    let proxy = builder.config(&section).start();
    let app = proxy.consumer("App");
    issuer.knows(
        "opaque",
        json!({"active": true, "client_id": app.key, "sub": "7", "aud": AUDIENCE}),
    );
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..4 {
                    proxy.passes(bearer("/a", "opaque"));
                    is_rejected(&proxy.send(bearer("/a", "made-up")), 401, "invalid_token");
                }
            });
        }
    });
    // Twice as often at most if a change of a record is announced meanwhile.
    assert!((2..=6).contains(&issuer.asked()), "{}", issuer.asked());
}

#[test]
fn observed_calls_go_on_with_their_token_and_the_log_tells() {
    let issuer = Issuer::start();
    let (api, proxy, app) = served(
        &issuer,
        "signature.enforcement = 'observe'\nservice.flow = 'here'",
    );
    let good = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    for (token, reason) in [(&*good, None), ("x.y.z", Some("token_rejected"))] {
        proxy.passes(bearer("/a", token));
        let seen = api.last_request();
        let sent = format!("Bearer {token}");
        assert_eq!(seen.header("Authorization"), Some(&*sent));
        assert_eq!(seen.header("X-Auth-User"), None);
        if let Some(reason) = reason {
            proxy.logs(&[
                "access:",
                &format!("reason=\"{reason}\""),
                "door=\"bearer\"",
            ]);
        }
    }
    proxy.run(&format!("consumer update {} --enforce", app.key));
    let denied = issuer.token(&issuer.claims(&app.key, "user-7", ""));
    until("the consumer is enforced", || {
        proxy.status(bearer("/a", &denied)) == 403
    });
}

#[test]
fn rates_count_both_doors() {
    let issuer = Issuer::start();
    let (_api, proxy, app) = served(&issuer, "limits.requests_per_consumer = '2 per 1h'");
    let token = issuer.token(&issuer.claims(&app.key, &app.key, "a"));
    let user = proxy.user("ada");
    let own = proxy.token(&app, &user);
    proxy.passes(Call::get("/a").by(&app).with(&own));
    let answer = proxy.passes(bearer("/app", &token));
    assert!(answer.fields.has("RateLimit"));
    proxy.send(bearer("/app", &token)).has_status(429);
    proxy
        .send(Call::get("/a").by(&app).with(&own))
        .has_status(429);
}

#[test]
fn forms_bodies_and_websockets_pass_with_a_token() {
    let issuer = Issuer::start();
    let (api, proxy, app) = served(&issuer, "limits.form_bytes = '1KiB'");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    let authorization = format!("Bearer {token}");
    let post = || Call::post("/a").header("Authorization", &authorization);
    let large = format!("text={}", "x".repeat(100_000));
    for body in ["a=1&b=2", &large] {
        proxy.passes(post().form(body));
        assert_eq!(api.last_request().text(), body);
        assert_eq!(identity(&api)[0], "user-7");
    }
    proxy.passes(post().json("{\"oauth_token\": 1}"));
    let hidden = format!("{large}&oauth_token=1");
    assert_ne!(proxy.send(post().form(&hidden)).status, 200);
    let handshake = Call::get("/ws")
        .header("Authorization", &authorization)
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    // This API does not switch: what matters is that it is asked.
    assert_eq!(proxy.status(handshake), 200);
    let seen = api.last_request();
    assert_eq!(seen.header("Upgrade"), Some("websocket"));
    assert_eq!(seen.header("X-Auth-User"), Some("user-7"));
}

#[test]
fn a_gateway_that_asks_gets_the_same_decision() {
    let issuer = Issuer::start();
    let (_api, proxy, app) = served(&issuer, "forward_auth.listen = '127.0.0.1:0'");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    for way in WAYS {
        let answer = proxy.asks(way, &bearer("/a", &token));
        answer.has_status(200);
        assert_eq!(answer.header("X-Auth-User"), Some("user-7"));
        assert_eq!(answer.header("X-Auth-Consumer"), Some(&*app.key));
        is_rejected(
            &proxy.asks(way, &bearer("/b", &token)),
            403,
            "insufficient_scope",
        );
        is_rejected(
            &proxy.asks(way, &bearer("/a", "x.y.z")),
            401,
            "invalid_token",
        );
        // A body that the gateway does not show is not signed anyway.
        let post = Call::post("/a").bearer(&token);
        proxy.asks(way, &post.form("a=1")).has_status(200);
    }
}

#[test]
fn a_session_and_a_token_do_not_mix() {
    let scene = exchanging(
        "operations.forbidden_status = 403\noperation = [{ path = '/both', access = ['consumer', 'user', 'anonymous'] },\
         { path = '/users', access = ['user'] }, { path = '/app', access = ['application', 'user'] }]",
    );
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let token = exchanged(&scene);
    let alone = Call::post("/service.oauth?mode=exchange").by(&caller.consumer);
    let alone = proxy.passes(alone).json()["access_token"].to_string();
    let alone = alone.trim_matches('"');
    let bob = proxy.user("bob");
    let visitor = Visitor::logged_in(proxy, &bob);
    let operator = Operator::with(proxy, WRITE);
    let cookies = visitor
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let cookies = cookies.chain(operator.cookie.clone());
    let cookies = Vec::from_iter(cookies).join("; ");
    let with_session = |call: Call| {
        call.header("Cookie", &cookies)
            .header("Sec-Fetch-Site", "same-origin")
    };
    let sent = |target: &str, token: &str| proxy.send(with_session(bearer(target, token)));
    sent("/both", &token).has_status(200);
    let key = &*caller.consumer.key;
    assert_eq!(
        identity(&scene.api),
        [&*caller.user.id, key, "a b", "consumer"]
    );
    assert!(!scene.api.last_request().fields.has("Cookie"));
    sent("/app", alone).has_status(200);
    assert_eq!(identity(&scene.api), ["", key, "", "application"]);
    // The session is right for each of these, and the token is not.
    let before = scene.api.count();
    sent("/users", &token).has_status(403);
    sent("/users", alone).has_status(403);
    for made_up in ["made-up", "x.y.z", &token[..token.len() - 1]] {
        for target in ["/both", "/users", "/app"] {
            is_rejected(&sent(target, made_up), 401, "invalid_token");
        }
    }
    assert_eq!(scene.api.count(), before);
    proxy.passes(with_session(Call::get("/users")));
    assert_eq!(identity(&scene.api), [&*bob.id, "", "", "user"]);
    // A token opens no page, no console and no admin API.
    let page = proxy.send(bearer("/service.oauth?mode=applications", &token));
    assert!(!page.text().contains("alice"), "{page:?}");
    for target in ["/", "/v1/consumers"] {
        for token in [&*token, alone] {
            let answer = operator_call(proxy, bearer(target, token));
            assert!([303, 401].contains(&answer.status), "{target}: {answer:?}");
        }
    }
}

/// Sends a call to the admin listener.
fn operator_call(proxy: &Proxy, call: Call) -> Answer {
    let address = proxy.admin();
    let wire = call.wire(&format!("http://{address}"), &address.to_string());
    let mut connection = Connection::to(address);
    connection.send(&wire);
    connection.answer("GET")
}

#[test]
fn the_guard_lets_the_token_go_on() {
    let issuer = Issuer::start();
    let (api, proxy, app) = served(&issuer, "service.role = 'guard'");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    proxy.passes(bearer("/a", &token));
    let seen = api.last_request();
    assert_eq!(
        seen.header("Authorization"),
        Some(&*format!("Bearer {token}"))
    );
    assert_eq!(seen.header("X-Auth-User"), Some("user-7"));
}

#[test]
fn a_reload_changes_what_is_accepted() {
    let issuer = Issuer::start();
    let (_api, mut proxy, app) = served(&issuer, "");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    proxy.passes(bearer("/a", &token));
    let asked = issuer.asked();
    proxy.reload("log.level = 'info'");
    proxy.passes(bearer("/a", &token));
    assert_eq!(
        issuer.asked(),
        asked,
        "the keys that were read are still known"
    );
    let other = issuer
        .section("")
        .replace("https://api.example.com", "https://other.example");
    proxy.reload(&other);
    is_rejected(&proxy.send(bearer("/a", &token)), 401, "invalid_token");
    proxy.reload("bearer.issuer = []");
    proxy.rejects(bearer("/a", &token), 401, "parameter_absent");
}

#[test]
fn a_configuration_that_would_expose_tokens_is_refused() {
    let builder = |config: &str| Proxy::in_front_of_url("http://127.0.0.1:9").config(config);
    let issuer = "[[bearer.issuer]]\nissuer = 'https://login.example.com'\naudience = 'x'\n";
    let keys = "jwks_url = 'https://login.example.com/keys'\n";
    for (config, problem) in [
        (
            format!(
                "service.base_url = 'http://api.example.com'\nservice.allow_http = true\n{issuer}{keys}"
            ),
            "in clear",
        ),
        ("bearer.own = true".to_owned(), "exchange.audience"),
        (
            issuer.to_owned(),
            "one of jwks_url, jwks_file and introspection_url",
        ),
        (format!("{issuer}{keys}jwks_file = 'a'"), "one of jwks_url"),
        (
            format!("{issuer}jwks_url = 'http://login.example.com/keys'"),
            "could sign tokens",
        ),
        (format!("{issuer}{keys}algorithms = ['HS256']"), "symmetric"),
        (
            format!("{issuer}{keys}algorithms = ['none']"),
            "asymmetric algorithm",
        ),
        (format!("{issuer}{keys}{issuer}{keys}"), "written twice"),
        (
            format!(
                "{issuer}introspection_url = 'http://login.example.com/x'\nclient_id = 'a'\nclient_secret_file = 'b'"
            ),
            "in clear",
        ),
        (
            format!("{issuer}introspection_url = 'https://login.example.com/x'"),
            "go together",
        ),
        (format!("{issuer}jwks_file = 'no-such-file'"), "jwks_file"),
        (
            format!("{issuer}{keys}audience_required = false"),
            "always names its audience",
        ),
        (
            format!("{issuer}{keys}user_mark = '=x'"),
            "the name of a claim",
        ),
    ] {
        let ended = builder(&config).serve_fails();
        assert!(ended.stderr.contains(problem), "{config}\n{ended:?}");
    }
}
