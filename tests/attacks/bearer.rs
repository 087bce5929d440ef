//! Attacks on calls with Bearer tokens: forged, stolen and mixed-up tokens, keys of others, hostile issuers.
//!
//! Promise (Permissions and identity): No Bearer token passes with a wrong signature, algorithm, issuer, audience, type or
//! time; hostile issuers delay no other calls.
//!
//! Sources: RFC 8725 (JWT best practices) §2, RFC 9068 §4 and §5, RFC 6750 §2 and §5.3, RFC 7515 §4.1.11, CVE-2015-9235 (alg
//! confusion), CVE-2018-0114 (a key in the head), CVE-2022-23540 (none).

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use crate::support::{
    Call, Consumer, Proxy, Reply, Upstream, fresh,
    issuer::{AUDIENCE, Issuer, Key, bearer_error},
    now, until,
};

/// The proxy in front of an API that counts, an issuer, and a consumer of both.
struct Stage {
    api: Upstream,
    proxy: Proxy,
    issuer: Issuer,
    app: Consumer,
}

impl Stage {
    fn with(key: Key, config: &str) -> Self {
        let (api, issuer) = (Upstream::start(), Issuer::with(key));
        let config = format!("{config}\nlog.access = true\n{}", issuer.section(""));
        let proxy = Proxy::with(&api, &config);
        let app = proxy.consumer("App");
        Self {
            api,
            proxy,
            issuer,
            app,
        }
    }

    fn claims(&self) -> Value {
        self.issuer.claims(&self.app.key, "user-7", "a")
    }

    /// Claims with some changed, or left out where they are null.
    fn changed(&self, changes: &Value) -> Value {
        let mut claims = self.claims();
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        claims
    }

    #[track_caller]
    fn passes(&self, token: &str) {
        self.proxy.passes(call(token));
    }

    /// No token that was made up here passes, and none is shown in the log.
    #[track_caller]
    fn rejects(&self, what: &str, token: &str) {
        let before = self.api.count();
        let answer = self.proxy.send(call(token));
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
        assert_eq!(bearer_error(&answer), Some("invalid_token"), "{what}");
        assert_eq!(self.api.count(), before, "{what}");
        for part in token.split('.').filter(|part| part.len() > 20) {
            assert_eq!(self.proxy.logged(&[part]), 0, "{what}");
        }
    }
}

fn call(token: &str) -> Call {
    Call::get("/a").bearer(token)
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn no_forged_signature_passes() {
    for key in [Key::ed25519(), Key::p256(), Key::rsa()] {
        let stage = Stage::with(key, "");
        let (issuer, claims) = (&stage.issuer, stage.claims());
        let (algorithm, public) = (issuer.key.algorithm(), issuer.key.public());
        let head = |changes: Value| {
            let mut head = json!({"typ": "at+jwt", "alg": algorithm, "kid": "first"});
            for (name, value) in changes.as_object().unwrap() {
                head[name] = value.clone();
            }
            head
        };
        let good = issuer.token(&claims);
        stage.passes(&good);
        let [begin, payload, signature] = *good.split('.').collect::<Vec<_>>() else {
            unreachable!()
        };
        // Nothing is signed.
        for alg in ["none", "None", "NONE", "nOnE", "", "null"] {
            let head = text(head(json!({ "alg": alg })).to_string());
            stage.rejects(alg, &format!("{head}.{payload}."));
            stage.rejects(alg, &format!("{head}.{payload}.{signature}"));
        }
        stage.rejects("no signature", &format!("{begin}.{payload}."));
        // The public key as the secret of an HMAC (CVE-2015-9235).
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(&public)
        );
        let jwk = issuer.key.jwk("first").to_string();
        for secret in [
            public.clone(),
            pem.into_bytes(),
            jwk.into_bytes(),
            Vec::new(),
        ] {
            for alg in ["HS256", "HS384", "HS512"] {
                let forged = Key::Secret(if secret.is_empty() {
                    vec![0]
                } else {
                    secret.clone()
                });
                stage.rejects(alg, &forged.jwt(&head(json!({ "alg": alg })), &claims));
            }
        }
        // Keys of the attacker, by every name.
        for other in [Key::ed25519(), Key::p256(), Key::rsa()] {
            let alg = other.algorithm();
            let own = other.jwk("first");
            for changes in [
                json!({}),
                json!({"kid": "other"}),
                json!({"kid": "../../../../dev/null"}),
                json!({"kid": "first' OR '1'='1"}),
                json!({"kid": "https://evil.example/jwks"}),
                json!({"kid": "k".repeat(5_000)}),
                json!({"kid": ""}),
                json!({"kid": "first\u{0}"}),
                json!({"kid": 1}),
                json!({"kid": null}),
                json!({"kid": ["first"]}),
                json!({"jwk": own}),
                json!({"jwk": own, "kid": "other"}),
                json!({"jku": "https://evil.example/jwks"}),
                json!({"x5u": "https://evil.example/cert"}),
                json!({"x5c": ["AAAA"]}),
            ] {
                let mut head = head(json!({ "alg": alg }));
                for (name, value) in changes.as_object().unwrap() {
                    head[name] = value.clone();
                }
                stage.rejects(&format!("{alg} {changes}"), &other.jwt(&head, &claims));
            }
        }
        // The right key, and an extension that has to be understood or an algorithm that is not the key's.
        for changes in [
            json!({"crit": ["exp"], "exp": 1}),
            json!({"crit": []}),
            json!({"b64": false, "crit": ["b64"]}),
            json!({"alg": "ES384"}),
            json!({"alg": "PS256"}),
            json!({"alg": "RS512"}),
        ] {
            stage.rejects(
                &changes.to_string(),
                &issuer.key.jwt(&head(changes.clone()), &claims),
            );
        }
        // Parts of tokens that did pass: neither the cache nor the check takes one for the other.
        let richer = text(
            stage
                .changed(&json!({"sub": "admin", "scope": "a b"}))
                .to_string(),
        );
        let half = &signature[..signature.len() / 2];
        for (what, token) in [
            ("another payload", format!("{begin}.{richer}.{signature}")),
            ("half a signature", format!("{begin}.{payload}.{half}")),
            (
                "a longer signature",
                format!("{begin}.{payload}.{signature}AAAA"),
            ),
            ("an empty payload", format!("{begin}..{signature}")),
            ("two parts", format!("{begin}.{payload}")),
            ("four parts", format!("{good}.{signature}")),
            ("five parts", format!("{good}.{signature}.{signature}")),
            ("no head", format!(".{payload}.{signature}")),
            ("dots", "..".to_owned()),
            (
                "another head",
                format!("{}.{payload}.{signature}", text("{\"alg\":\"EdDSA\"}")),
            ),
            ("padding", format!("{good}=")),
            ("a letter more", format!("{good}A")),
            ("a letter less", good[..good.len() - 1].to_owned()),
        ] {
            stage.rejects(what, &token);
            stage.passes(&good);
        }
    }
}

#[test]
fn no_claim_that_is_not_right_passes() {
    let stage = Stage::with(Key::ed25519(), "");
    let token = |changes: &Value| stage.issuer.token(&stage.changed(changes));
    for changes in [
        json!({"exp": null}),
        json!({"exp": now() - 1}),
        json!({"exp": now()}),
        json!({"exp": 0}),
        json!({"exp": -1}),
        json!({"exp": (now() + 300).to_string()}),
        json!({"exp": 1e300}),
        json!({"exp": [now() + 300]}),
        json!({"nbf": now() + 120}),
        json!({"nbf": "now"}),
        json!({"iat": now() + 120}),
        json!({"aud": null}),
        json!({"aud": ""}),
        json!({"aud": []}),
        json!({"aud": "https://other.example"}),
        json!({"aud": format!("{AUDIENCE}/")}),
        json!({"aud": AUDIENCE.to_uppercase()}),
        json!({"aud": ["https://other.example"]}),
        json!({"aud": [[AUDIENCE]]}),
        json!({"aud": {"https://api.example.com": true}}),
        json!({"iss": null}),
        json!({"iss": "https://login.example.com/"}),
        json!({"iss": "https://LOGIN.example.com"}),
        json!({"iss": ["https://login.example.com"]}),
        json!({"iss": "https://evil.example"}),
        json!({"client_id": null}),
        json!({"client_id": ""}),
        json!({"client_id": 7}),
        json!({"client_id": [stage.app.key]}),
        json!({"client_id": format!("{} ", stage.app.key)}),
        json!({"client_id": format!("{}\n", stage.app.key)}),
        json!({"client_id": "x\r\nX-Auth-User: root"}),
        json!({"client_id": "someone-else"}),
        json!({"cnf": {"jkt": "x"}}),
        json!({"cnf": {}}),
        // Refresh tokens and ID tokens of servers that sign them with the same keys.
        json!({"typ": "Refresh"}),
        json!({"typ": "ID"}),
        json!({"token_use": "id"}),
        json!({"token_type": "refresh"}),
        json!({"at_hash": "x", "nonce": "n"}),
        json!({"sub": ["user-7"]}),
        json!({"sub": 7}),
        json!({"sub": "root\r\nX-Auth-Kind: user"}),
    ] {
        stage.rejects(&changes.to_string(), &token(&changes));
    }
    // A claim of the exchange means nothing in a token of another issuer.
    stage.passes(&token(&json!({"oauth_token": "x"})));
    assert_eq!(
        stage.api.last_request().header("X-Auth-User"),
        Some("user-7")
    );
    for changes in [
        json!({"iat": now() + 20, "nbf": now() + 20}),
        json!({"exp": (now() + 300) as f64 + 0.5}),
        json!({"aud": ["https://other.example", AUDIENCE]}),
        json!({"iat": null, "jti": null, "scope": null}),
    ] {
        stage.passes(&token(&changes));
    }
    // Other JWTs of the same issuer and for the same audience are not access tokens.
    for typ in [
        "JWT",
        "countersign+jwt",
        "id_token+jwt",
        "logout+jwt",
        "dpop+jwt",
        "",
        "at+jwtx",
        "application/",
    ] {
        let head = json!({"typ": typ, "alg": "EdDSA", "kid": "first"});
        stage.rejects(typ, &stage.issuer.key.jwt(&head, &stage.claims()));
    }
    let head = json!({"alg": "EdDSA", "kid": "first"});
    stage.rejects("no typ", &stage.issuer.key.jwt(&head, &stage.claims()));
    for typ in ["AT+JWT", "application/at+jwt"] {
        let head = json!({"typ": typ, "alg": "EdDSA", "kid": "first"});
        stage.passes(&stage.issuer.key.jwt(&head, &stage.claims()));
    }
}

/// A token that can be one of another server is not shown to the one that is asked: it could use it.
#[test]
fn no_jwt_goes_to_the_issuer_of_opaque_tokens() {
    let (issuer, keys, api) = (Issuer::start(), Issuer::start(), Upstream::start());
    let builder = Proxy::in_front_of(&api);
    let asked = issuer.asked_section(&builder).replace("login.", "asked.");
    let proxy = builder
        .config(&format!("{asked}\n{}", keys.section("")))
        .start();
    let app = proxy.consumer("App");
    let claims = keys.claims(&app.key, "user-7", "");
    let good = keys.token(&claims);
    proxy.passes(call(&good));
    let payload = good.split('.').nth(1).unwrap();
    let whole = |head: &str| format!("{}.{payload}.{}", text(head), text("signature"));
    for token in [
        whole(r#"{"typ":"at+jwt","alg":"ES256K","kid":"first"}"#),
        whole(r#"{"typ":"at+jwt","alg":"none"}"#),
        whole(r#"{"typ":"at+jwt"}"#),
        whole(r#"{"typ":"at+jwt","alg":7}"#),
        whole("{\"alg\":"),
        whole("{"),
        whole("\n {\"alg\":\"EdDSA\"}"),
        // With another payload, encrypted, in parts.
        format!("{}.{}.x", text(r#"{"alg":"EdDSA"}"#), text("no claims")),
        format!("{}.a.b.c.d", text(r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#)),
        good[..good.rfind('.').unwrap()].to_owned(),
        format!("{good}.x"),
        keys.token(&json!({"iss": "https://other.example"})),
        keys.token(&json!({})),
    ] {
        let answer = proxy.send(call(&token));
        assert_eq!(answer.status, 401, "{token}");
        assert_eq!(issuer.asked(), 0, "{token}");
    }
    // A JWT that it has signed says whose it is.
    let own = keys.token(&json!({"iss": "https://asked.example.com"}));
    for asked in ["made-up", "a.b.c", "eyJhbGciOiJub25lIn0", &own] {
        let before = issuer.asked();
        assert_eq!(proxy.status(call(asked)), 401);
        assert!(issuer.asked() > before, "{asked}");
    }
}

#[test]
fn an_issuer_speaks_only_for_itself() {
    let (mut other, issuer) = (Issuer::start(), Issuer::start());
    other.name = "https://second.example.com".to_owned();
    let api = Upstream::start();
    let config = format!(
        "{}\n{}",
        issuer.section(""),
        other.section("algorithms = ['ES256']")
    );
    let proxy = Proxy::with(&api, &config);
    let app = proxy.consumer("App");
    let first = issuer.claims(&app.key, "user-7", "a");
    let second = other.claims(&app.key, "user-7", "a");
    proxy.passes(call(&issuer.token(&first)));
    for (what, token) in [
        ("signed by the other", other.token(&first)),
        ("the name of the other", issuer.token(&second)),
        ("an algorithm that is not listed", other.token(&second)),
    ] {
        let answer = proxy.send(call(&token));
        assert_eq!(
            (answer.status, bearer_error(&answer)),
            (401, Some("invalid_token")),
            "{what}"
        );
    }
    // Secrets and keys for encryption in its set verify nothing, and two keys of one name neither.
    let secret = Key::Secret(b"known to many".to_vec());
    let encrypts = Key::p256();
    let twice = [Key::p256(), Key::p256()];
    let mut jwk = encrypts.jwk("encrypts");
    jwk["use"] = json!("enc");
    other.serves(&[
        secret.jwk("secret"),
        jwk,
        twice[0].jwk("twice"),
        twice[1].jwk("twice"),
        json!({"kty": "new", "kid": "new"}),
        json!("no key"),
    ]);
    for (key, kid) in [
        (&secret, "secret"),
        (&encrypts, "encrypts"),
        (&twice[0], "twice"),
        (&twice[1], "twice"),
    ] {
        let head = json!({"typ": "at+jwt", "alg": key.algorithm(), "kid": kid});
        let answer = proxy.send(call(&key.jwt(&head, &second)));
        assert_ne!(answer.status, 200, "{kid}");
    }
    assert_eq!(api.count(), 1);
}

#[test]
fn a_token_is_taken_from_one_place_alone() {
    let stage = Stage::with(
        Key::ed25519(),
        "operation = [{ path = '/a', access = ['consumer', 'anonymous'] }]",
    );
    let good = stage.issuer.token(&stage.claims());
    let authorization = format!("Bearer {good}");
    let authorized = |target: &str| Call::post(target).header("Authorization", &authorization);
    for scheme in ["bearer", "BEARER", "Bearer "] {
        let call = Call::get("/a").header("Authorization", &format!("{scheme} {good}"));
        stage.proxy.passes(call);
        assert_eq!(
            stage.api.last_request().header("X-Auth-Kind"),
            Some("consumer")
        );
    }
    let before = stage.api.count();
    let get = |value: &str| Call::get("/a").header("Authorization", value);
    let signed = || Call::get("/a").by(&stage.app);
    let rows = [
        (
            "in the query",
            Call::get(&format!("/a?access_token={good}")),
        ),
        (
            "in the query, escaped",
            Call::get(&format!("/a?access%5Ftoken={good}")),
        ),
        (
            "in a form",
            Call::post("/a").form(&format!("access_token={good}")),
        ),
        (
            "in header and query",
            authorized(&format!("/a?access_token={good}")),
        ),
        (
            "in header and form",
            authorized("/a").form("access_token=x"),
        ),
        (
            "a token of OAuth 1.0a in the query",
            authorized("/a?oauth_token=x"),
        ),
        (
            "a signature in the query",
            signed()
                .placed(crate::support::Placement::Query)
                .header("Authorization", &authorization),
        ),
        (
            "a signature in the form",
            Call::post("/a")
                .by(&stage.app)
                .placed(crate::support::Placement::Body)
                .header("Authorization", &authorization),
        ),
        ("nothing after Bearer", get("Bearer")),
        ("a blank after Bearer", get("Bearer ")),
        ("two tokens", get(&format!("Bearer {good} {good}"))),
        ("a list", get(&format!("Bearer {good}, Bearer {good}"))),
        ("a parameter", get(&format!("Bearer token=\"{good}\""))),
        ("quotes", get(&format!("Bearer \"{good}\""))),
        ("an equals sign within", get(&format!("Bearer a=b{good}"))),
        ("equals signs alone", get("Bearer ==")),
        ("a colon", get("Bearer a:b")),
        ("beyond ASCII", get("Bearer \u{e9}")),
        (
            "8 KiB and more",
            get(&format!("Bearer {}", "a".repeat(8_193))),
        ),
    ];
    for (what, call) in rows {
        let answer = stage.proxy.send(call);
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
        assert_eq!(
            bearer_error(&answer),
            Some("invalid_request"),
            "{what}: {answer:?}"
        );
    }
    for (what, second) in [
        ("twice", &*authorization),
        ("another scheme", "Basic YTpi"),
        ("empty", ""),
    ] {
        let answer = stage
            .proxy
            .send(get(&authorization).header("Authorization", second));
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
    }
    let both = stage
        .proxy
        .send(signed().header("Authorization", &authorization));
    assert_eq!(both.status, 400, "a signature and a token");
    let hidden = authorized("/a")
        .header("Authorization_", "x")
        .form("oauth.token=x");
    assert_eq!(stage.proxy.status(hidden), 400);
    assert_eq!(stage.api.count(), before);
    assert_eq!(
        stage.proxy.logged(&[good.split('.').next_back().unwrap()]),
        0
    );
    // A signature covers a parameter of that name.
    stage
        .proxy
        .passes(Call::get("/a?access_token=1").of(&stage.proxy.somebody()));
}

#[test]
fn no_token_is_accepted_in_clear() {
    let issuer = Issuer::start();
    let api = Upstream::start();
    let config = format!(
        "service.base_url = 'https://api.example.com'\n{}",
        issuer.section("")
    );
    let mut proxy = Proxy::with(&api, &config);
    let app = proxy.consumer("App");
    let token = issuer.token(&issuer.claims(&app.key, "user-7", "a"));
    let answer = proxy.send(call(&token));
    assert_eq!(
        (answer.status, bearer_error(&answer)),
        (400, Some("invalid_request"))
    );
    // A proxy in front that ends TLS says so, if it is trusted.
    let said = || call(&token).header("X-Forwarded-Proto", "https");
    assert_eq!(proxy.status(said()), 400);
    proxy.reload("listen.trusted_proxies = ['127.0.0.1']");
    proxy.passes(said());
    assert_eq!(
        proxy.status(call(&token).header("X-Forwarded-Proto", "http")),
        400
    );
}

#[test]
fn a_token_ends_in_time_also_in_the_cache() {
    let stage = Stage::with(Key::p256(), "cache.ttl = '1h'");
    let end = now() + 4;
    let token = stage.issuer.token(&stage.changed(&json!({ "exp": end })));
    stage.passes(&token);
    until("it is expired", || {
        let answer = stage.proxy.send(call(&token));
        assert!(answer.status == 401 || now() <= end, "{answer:?}");
        answer.status == 401
    });
    assert!(now() >= end);
    let answer = stage.proxy.send(call(&token));
    answer.is(401, "token_expired");
    assert_eq!(bearer_error(&answer), Some("invalid_token"));
    let key = &stage.app.key;
    stage.proxy.logs(&[
        "token_expired",
        &format!("consumer={key}"),
        "door=\"bearer\"",
    ]);
}

#[test]
fn a_hostile_issuer_takes_neither_memory_nor_time() {
    let stage = Stage::with(Key::ed25519(), "");
    let elsewhere = Upstream::start();
    let good = stage.issuer.token(&stage.claims());
    stage.passes(&good);
    let memory = || stage.proxy.metric("process_resident_memory_bytes");
    let before = memory();
    let huge = "x".repeat(32 << 20);
    let deep = format!("{{\"keys\":{}1{}}}", "[".repeat(30_000), "]".repeat(30_000));
    for reply in [
        Reply::status("307 Temporary Redirect").header("Location", elsewhere.url()),
        Reply::ok(&huge),
        Reply::status("200 OK").chunked(&[&huge]),
        Reply::ok("").until_close(&huge),
        Reply::ok(deep),
        Reply::ok("{}"),
        Reply::ok("{\"keys\":[]}"),
        Reply::hang_up(),
        Reply::silence(),
    ] {
        stage.issuer.replies(reply);
        // Each start reads the keys again.
        let proxy = Proxy::with(&stage.api, &stage.issuer.section("timeout = '300ms'"));
        let app = proxy.consumer("App");
        let token = stage
            .issuer
            .token(&stage.issuer.claims(&app.key, "user-7", "a"));
        assert_eq!(proxy.status(call(&token)), 503);
        let caller = proxy.somebody();
        proxy.passes(Call::get("/a").of(&caller));
        let most = proxy.metric("process_resident_memory_bytes");
        assert!(most - before < f64::from(24 << 20), "{most} after {before}");
    }
    assert_eq!(elsewhere.count(), 0, "redirects are not followed");
    // Keys that were read before go on to serve.
    stage.passes(&good);
    stage.passes(&stage.issuer.token(&stage.claims()));
}

#[test]
fn made_up_keys_and_tokens_do_not_flood_the_issuer() {
    let stage = Stage::with(Key::ed25519(), "");
    stage.passes(&stage.issuer.token(&stage.claims()));
    let before = stage.issuer.asked();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let head = json!({"typ": "at+jwt", "alg": "EdDSA", "kid": fresh("made-up-")});
                    let token = stage.issuer.key.jwt(&head, &stage.claims());
                    assert_eq!(stage.proxy.status(call(&token)), 401);
                }
            });
        }
    });
    let asked = stage.issuer.asked() - before;
    // One request in ten seconds.
    assert!(asked <= 12, "{asked} requests for 400 tokens");
    stage.passes(&stage.issuer.token(&stage.claims()));
}
