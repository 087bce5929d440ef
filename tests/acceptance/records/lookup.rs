//! Records that an application of the provider keeps, and that are looked up at `store.lookup.url`.
//!
//! Promise (Permissions and identity): Only a complete record with the requested key is taken from the application; an invalid
//! response causes 503, never 401.

use serde_json::{Value, json};

use crate::support::{
    Answer, Application, Call, Consumer, Operator, Postgres, Proxy, Reply, Token, Upstream,
    application::{consumer_record, looked_up_at, token_record},
    free_port, has,
    proxy::Builder,
    until,
};

const UNCACHED: &str = "cache.ttl = '0s'\ncache.negative_ttl = '0s'\ncache.stale_if_error = '0s'\n\
                        operations.unlisted = 'application'";

fn shop() -> Consumer {
    Consumer::new("shop", "shop secret")
}

fn with_shop() -> Application {
    Application::with([consumer_record("shop", "shop secret")])
}

#[test]
fn keys_and_tokens_of_an_application_verify_without_an_import() {
    let application = Application::with([
        consumer_record("shop", "shop secret"),
        token_record("first", "one", "shop", "7"),
        token_record("second", "two", "shop", "8"),
    ]);
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config("cache.ttl = '1s'\ncache.negative_ttl = '0s'");
    let proxy = application.looked_up_by(builder).start();
    let shop = shop();
    let call = |token: &Token| proxy.served(Call::get("/a").by(&shop).with(token));
    let (first, second) = (Token::new("first", "one"), Token::new("second", "two"));
    for (token, user) in [(&first, "7"), (&second, "8")] {
        call(token).has_status(200);
        assert_eq!(api.last_request().header("X-Auth-User"), Some(user));
        assert_eq!(
            api.last_request().header("X-Auth-Permissions"),
            Some("read")
        );
    }
    let asked = application.asked();
    assert_eq!(asked[0], json!({ "consumer_key": "shop" }));
    assert_eq!(
        asked[1],
        json!({ "consumer_key": "shop", "token": "first" })
    );
    call(&Token::new("first", "two")).is(401, "signature_invalid");
    call(&Token::new("third", "one")).is(401, "token_rejected");
    // Revoked by a command here, and by the application there.
    proxy.run("token revoke first");
    until("the revocation takes effect", || {
        call(&first).problem().as_deref() == Some("token_revoked")
    });
    call(&second).has_status(200);
    let mut revoked = token_record("second", "two", "shop", "8");
    revoked["revoked"] = json!(true);
    application.put(revoked);
    until("the application's word counts", || {
        call(&second).problem().as_deref() == Some("token_revoked")
    });
    // A key that was removed here is not taken from there again.
    proxy.run("consumer add --name Shop --key shop");
    let removed = proxy.run("consumer remove shop --yes");
    has(
        &removed.stderr,
        &["unknown from now on", "store.lookup.url"],
    );
    until("the key is unknown", || {
        let response = proxy.send(Call::get("/a").by(&shop).with(&second));
        response.status == 401 && response.problem().as_deref() != Some("token_revoked")
    });
}

#[test]
fn a_bad_response_causes_503_and_the_log_names_it() {
    let (application, api) = (with_shop(), Upstream::start());
    let builder = Proxy::in_front_of(&api).config(UNCACHED);
    let builder = builder.config("store.lookup.timeout = '300ms'");
    let proxy = with_tokens(application.looked_up_by(builder)).start();
    let call = || proxy.send(Call::get("/a").by(&shop()));
    call().has_status(200);
    let with = |member: &str, value: Value| {
        let mut record = consumer_record("shop", "shop secret");
        record[member] = value;
        Reply::ok(record.to_string())
    };
    let huge = format!(
        "{}{}",
        consumer_record("shop", "shop secret"),
        " ".repeat(10 << 20)
    );
    for (reply, cause) in [
        (Reply::ok("<html>Log in</html>"), "the response is not JSON"),
        (Reply::ok(""), "the response is not JSON"),
        (
            Reply::ok(r#"["shop","shop secret"]"#),
            "is not a JSON object",
        ),
        (
            Reply::ok(r#"{"key":"shop","secret":"a","secret":"b"}"#),
            "duplicate field `secret`",
        ),
        (
            Reply::ok(r#"{"secret":"shop secret"}"#),
            "missing field `key`",
        ),
        (
            with("secert", json!("a")),
            "unknown field `secert`, did you mean secret?",
        ),
        (with("key", json!(7)), "key: invalid type"),
        (
            with("secret", json!(7)),
            "a secret or a hash is not in quotes",
        ),
        (with("secret", Value::Null), "secret is missing or empty"),
        (with("enabled", json!(1)), "enabled: invalid type"),
        (
            with("permissions", json!("read")),
            "permissions: expected a list",
        ),
        (with("permissions", json!(["no name"])), "permission"),
        (with("kind", json!("token")), "kind"),
        (with("revoked", json!(true)), "unknown field `revoked`"),
        (Reply::ok(huge), "longer than 64 KiB"),
        (
            Reply::status("302 Found").header("Location", "/elsewhere"),
            "302 Found",
        ),
        (
            Reply::status("401 Unauthorized"),
            "store.lookup.secret_file",
        ),
        (Reply::status("204 No Content"), "204 No Content"),
        (
            Reply::status("500 Internal Server Error"),
            "500 Internal Server Error",
        ),
        (Reply::hang_up(), "no response"),
        (Reply::silence(), "took longer than its time"),
        // The rest never comes.
        (
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
            "took longer",
        ),
    ] {
        // A record that was read before would be used for two seconds.
        forget(&proxy, &json!({ "consumer_key": "shop" }));
        application.replies(reply);
        let response = call();
        assert_eq!(response.status, 503, "{cause}: {response:?}");
        assert!(response.header("Retry-After").is_some(), "{cause}");
        assert!(!response.text().contains("lookup"), "{response:?}");
        proxy.logs(&["status=503", "cause=\"store.lookup.url: ", cause]);
        application.replies(None);
        call().has_status(200);
    }
    assert_eq!(proxy.logged(&["shop secret"]), 0);
}

#[test]
fn a_record_of_another_name_or_without_a_secret_is_not_used() {
    let (application, api) = (with_shop(), Upstream::start());
    let builder = Proxy::in_front_of(&api).config(UNCACHED);
    let proxy = application.looked_up_by(builder).start();
    let reject = |key: &str, secret: &str, token: Option<&Token>| {
        let call = Call::get("/a").by(&Consumer::new(key, secret));
        let call = token.iter().fold(call, |call, token| call.with(token));
        let response = proxy.send(call);
        assert_eq!(response.status, 401, "{key} {response:?}");
    };
    // As a database that compares without case and trailing spaces.
    for other in ["SHOP", "shop ", "Shop"] {
        application.put_as(other, consumer_record("shop", "shop secret"));
        reject(other, "shop secret", None);
    }
    assert_eq!(proxy.logged(&["it has another name"]), 1);
    application.put(token_record("t", "ts", "shop", "7"));
    application.put_as("T", token_record("t", "ts", "shop", "7"));
    application.put(token_record("empty", "", "shop", "7"));
    application.put(token_record("others", "ts", "other", "7"));
    application.put(consumer_record("other", "other secret"));
    for (token, secret) in [("T", "ts"), ("empty", ""), ("others", "ts")] {
        reject("shop", "shop secret", Some(&Token::new(token, secret)));
    }
    reject("shop", "shop secret", Some(&Token::new("others", "ts")));
    let of_another = [
        "is of another consumer than the call",
        "of=other consumer=shop",
    ];
    assert_eq!(proxy.logged(&of_another), 1);
    let mut empty = consumer_record("open", "");
    empty["accept"] = json!(["empty_secret"]);
    application.put(empty);
    reject("open", "", None);
    proxy.logs(&["its secret is empty, so anybody could sign", "open"]);
    // The right one verifies; here only applications are admitted.
    let right = Call::get("/a").by(&shop()).with(&Token::new("t", "ts"));
    proxy.rejects(right, 404, "permission_denied");
}

#[test]
fn cached_and_own_records_serve_while_the_application_fails() {
    let (application, api) = (with_shop(), Upstream::start());
    application.put(consumer_record("uncached", "secret"));
    let builder = Proxy::in_front_of(&api).config(
        "cache.ttl = '1s'\ncache.stale_if_error = '30s'\noperations.unlisted = 'application'",
    );
    let proxy = application.looked_up_by(builder).start();
    let (own, uncached) = (proxy.consumer("Own"), Consumer::new("uncached", "secret"));
    let call = |consumer: &Consumer| proxy.send(Call::get("/a").by(consumer)).status;
    let degraded = || {
        let ready = proxy.ask_admin("/readyz").has_status(200).text();
        ready.contains("degraded: lookup since ")
    };
    assert_eq!((call(&shop()), call(&own)), (200, 200));
    assert!(!degraded());
    application.replies(Reply::status("502 Bad Gateway"));
    assert_eq!(call(&uncached), 503);
    until("the outage is reported", degraded);
    assert_eq!(proxy.metric("countersign_degraded{cause=\"lookup\"}"), 1.0);
    proxy.logs(&["condition began", "lookup", "502 Bad Gateway"]);
    let asked = application.asked_for("shop");
    until("the entry is too old", || {
        assert_eq!((call(&shop()), call(&own)), (200, 200));
        application.asked_for("shop") > asked
    });
    application.replies(None);
    assert_eq!(call(&uncached), 200);
    until("the end is reported", || !degraded());
}

#[test]
fn start_needs_no_application_and_check_says_what_is_wrong() {
    let (application, api) = (with_shop(), Upstream::start());
    let builder = application.looked_up_by(Proxy::in_front_of(&api).config(UNCACHED));
    let checked = builder.run(&["check"], "").done();
    has(
        &checked.stdout,
        &[
            "lookup",
            application.http().url(),
            "/internal/oauth answers",
        ],
    );
    assert!(!checked.stderr.contains("lookup"), "{checked:?}");
    for (reply, cause) in [
        (
            Reply::status("401 Unauthorized"),
            "store.lookup.secret_file",
        ),
        (Reply::ok("{}"), "a key that no consumer has"),
        (Reply::ok("<html>"), "is not JSON"),
    ] {
        application.replies(reply);
        let checked = builder.run(&["check"], "");
        assert_eq!(checked.code(), Some(1), "{checked:?}");
        has(&checked.stderr, &["store.lookup.url: ", cause]);
    }
    // A router without the path, or an endpoint without a check.
    application.replies(Reply::status("404 Not Found"));
    let proxy = builder.start();
    has(
        &proxy.run("check").stderr,
        &["! ", "404 Not Found to a wrong secret"],
    );
    let own = proxy.consumer("Own");
    proxy.passes(Call::get("/a").by(&own));
    proxy.rejects(Call::get("/a").by(&shop()), 401, "consumer_key_unknown");
}

#[test]
fn the_keys_of_the_lookup_by_sql_name_what_took_their_place() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config(
        "store.lookup.url = 'postgres://lookup@db/shop'\nstore.lookup.consumer_sql = 'SELECT 1'\n\
         store.lookup.token_sql = 'SELECT 1'",
    );
    for ended in [builder.serve_fails(), builder.run(&["check"], "")] {
        assert_eq!(ended.code(), Some(2), "{ended:?}");
        for key in ["store.lookup.consumer_sql", "store.lookup.token_sql"] {
            let lines = ended.stderr.lines().filter(|line| line.contains(key));
            assert_eq!(
                lines
                    .filter(|line| line.contains("over HTTP instead of by SQL"))
                    .count(),
                1
            );
        }
    }
}

#[test]
fn an_application_is_asked_over_a_unix_socket() {
    let records = [consumer_record("shop", "shop secret")];
    let application = Application::over(records, Upstream::replying_on_unix_socket);
    let api = Upstream::start();
    let url = format!("{}:/internal/oauth", application.http().url());
    let proxy = looked_up_at(&url, Proxy::in_front_of(&api).config(UNCACHED)).start();
    proxy.passes(Call::get("/a").by(&shop()));
    assert_eq!(application.asked_for("shop"), 1);
    has(&proxy.run("check").stdout, &[&format!("{url} answers")]);
}

const WRITE: &str = "the-token-that-writes-0123456789";
const REPORT: &str = "the-token-that-reports-012345678";

/// Writes the file of the admin tokens, the second of which can only report changes.
fn with_tokens(builder: Builder) -> Builder {
    let tokens = format!("alice:{WRITE}\nshop:{REPORT} lookup\n");
    std::fs::write(builder.directory().join("admin.token"), tokens).unwrap();
    builder.config("admin.token_file = 'admin.token'")
}

fn admin(proxy: &Proxy, token: &str, call: Call) -> Answer {
    Operator::at(proxy).send(call.bearer(token))
}

/// Reports that a record has changed.
#[track_caller]
fn forget(proxy: &Proxy, record: &Value) {
    let call = Call::post("/v1/lookup/forget").json(&record.to_string());
    admin(proxy, REPORT, call).has_status(204);
}

#[test]
fn a_reported_change_takes_effect_in_every_replica() {
    let (api, server) = (Upstream::start(), Postgres::start());
    let application = with_shop();
    application.put(token_record("t", "ts", "shop", "7"));
    let url = server.database();
    let replica = || {
        let builder = Proxy::in_front_of(&api).config(&format!(
            "store.backend = 'postgres'\nstore.url = '{url}'\ncache.ttl = '1h'\n\
             cache.negative_ttl = '1h'\ncache.stale_if_error = '1h'"
        ));
        with_tokens(application.looked_up_by(builder)).start()
    };
    let replicas = [replica(), replica()];
    let call = |proxy: &Proxy, secret: &str, token: &Token| {
        let shop = Consumer::new("shop", secret);
        proxy.send(Call::get("/a").by(&shop).with(token)).status
    };
    let (token, new) = (Token::new("t", "ts"), Token::new("new", "ts"));
    let statuses =
        |secret: &str, token: &Token| replicas.each_ref().map(|proxy| call(proxy, secret, token));
    let secret = "shop secret";
    assert_eq!(statuses(secret, &token), [200, 200]);
    // A rotated secret covers the tokens of its consumer.
    application.put(consumer_record("shop", "another secret"));
    assert_eq!(statuses(secret, &token), [200, 200], "it is cached");
    forget(&replicas[0], &json!({ "consumer_key": "shop" }));
    assert_eq!(call(&replicas[0], "another secret", &token), 200, "at once");
    until("the new secret counts everywhere", || {
        statuses("another secret", &token) == [200, 200]
    });
    assert_eq!(statuses(secret, &token), [401, 401]);
    // A new token was unknown.
    assert_eq!(statuses("another secret", &new), [401, 401]);
    application.put(token_record("new", "ts", "shop", "7"));
    forget(&replicas[1], &json!({ "token": "new" }));
    until("the new token is known everywhere", || {
        statuses("another secret", &new) == [200, 200]
    });
    application.remove("new");
    forget(&replicas[0], &json!({ "token": "new" }));
    until("the removed token is unknown everywhere", || {
        statuses("another secret", &new) == [401, 401]
    });
    assert_eq!(statuses("another secret", &token), [200, 200]);
    // The report is refused while it cannot reach the others.
    server.stop();
    let call = Call::post("/v1/lookup/forget").json(r#"{"token":"t"}"#);
    admin(&replicas[0], REPORT, call).has_status(503);
}

#[test]
fn a_token_for_reports_can_do_nothing_else() {
    let api = Upstream::start();
    let application = with_shop();
    let builder = application.looked_up_by(Proxy::in_front_of(&api).config(UNCACHED));
    let proxy = with_tokens(builder).start();
    let body = r#"{"consumer_key":"shop"}"#;
    for (method, path) in [
        ("GET", "/v1/consumers"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/v1/audit"),
        ("POST", "/v1/consumers"),
        ("DELETE", "/v1/tokens?consumer=shop"),
        ("POST", "/v1/explain"),
    ] {
        let response = admin(&proxy, REPORT, Call::new(method, path).json(body));
        assert!(
            response
                .has_status(403)
                .text()
                .contains("/v1/lookup/forget")
        );
    }
    let post = |token: &str, body: &str| {
        let call = Call::post("/v1/lookup/forget").json(body);
        admin(&proxy, token, call)
    };
    for token in [REPORT, WRITE] {
        post(token, body).has_status(204);
    }
    post("another-token-0123456789-0123456", body).has_status(401);
    for invalid in [
        "{}",
        r#"{"consumer_key":"shop","token":"t"}"#,
        r#"{"token":""}"#,
        r#"{"token":7}"#,
        r#"{"consumer_key":"sh op"}"#,
        r#"{"key":"shop"}"#,
    ] {
        post(REPORT, invalid).has_status(422);
    }
    // Nor does it open the console.
    let page = Operator::at(&proxy).send(Call::post("/login").form(&format!("token={REPORT}")));
    assert!(
        page.has_status(403)
            .text()
            .contains("can only call POST /v1/lookup/forget")
    );
    assert!(page.header("Set-Cookie").is_none());
}

#[test]
fn operators_see_the_source_of_a_record_and_when_it_was_read() {
    let (application, api) = (with_shop(), Upstream::start());
    application.put(token_record("living-token", "ts", "shop", "7"));
    // The command finds the process by its configuration.
    let listen = format!("admin.listen = '127.0.0.1:{}'", free_port());
    let builder = Proxy::in_front_of(&api).config(UNCACHED).config(&listen);
    let builder = application.looked_up_by(builder);
    let proxy = with_tokens(builder).start();
    let own = proxy.consumer("Own");
    let get = |path: &str| admin(&proxy, WRITE, Call::get(path)).has_status(200).json();
    for path in ["/v1/consumers/shop", "/v1/tokens/living-token"] {
        let shown = get(path);
        assert!(shown["looked_up_at"].is_string(), "{shown}");
        assert!(!shown.to_string().contains("shop secret"), "{shown}");
    }
    assert!(
        get(&format!("/v1/consumers/{}", own.key))
            .get("looked_up_at")
            .is_none()
    );
    // They are not in the store.
    let listed = get("/v1/consumers");
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(get("/v1/tokens")["items"], json!([]));
    for words in [
        "consumer show shop --json",
        "token show living-token --json",
    ] {
        assert!(
            proxy.run(words).json()["looked_up_at"].is_string(),
            "{words}"
        );
    }
    let why = proxy.run("why shop").stdout;
    has(
        &why,
        &[
            "No call that names shop",
            "store.lookup.url has it, enabled, asked at ",
        ],
    );
    let operator = Operator::with(&proxy, WRITE);
    let page = operator.text("/consumer?key=shop");
    has(&page, &["It is not registered here", "store.lookup.url"]);
    assert!(!page.contains("/consumer/edit"), "{page}");
    assert!(
        operator
            .text(&format!("/consumer?key={}", own.key))
            .contains("/consumer/edit")
    );
    let found = operator.send(Call::get("/search?q=shop"));
    assert_eq!(
        found.has_status(303).header("Location"),
        Some("/consumer?key=shop")
    );
}
