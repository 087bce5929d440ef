//! The information about rejected and failed requests that an operator gets from ids, log lines and metrics.
//!
//! Promise (Storage and operation): Every request has an id; no log line contains a secret, a query, a form, or a whole token.
//! Promise (Storage and operation): No caller can add a metric or a label; at most 1,000 consumers have series. Also in
//! `tests/deploy/metrics.rs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{
    Answer, Call, Caller, Connection, PATIENCE, Postgres, Proxy, RedisServer, Reply, Scene, Token,
    Upstream, Visitor,
    legs::LOGIN,
    legs::{asks, authorization, exchanges, token_of},
    now,
    proxy::{Consumer, User},
    until,
    upstream::refusing_address,
    within,
};

/// The line of the access log that has this id.
#[track_caller]
fn line_of(proxy: &Proxy, id: &str) -> String {
    let field = format!("request_id={id}");
    proxy.log().wait_for(&field, |line| {
        let has_id = line.split(' ').any(|word| word == field);
        (has_id && line.contains(" access: ")).then(|| line.to_owned())
    })
}

#[track_caller]
fn id_of(answer: &Answer) -> String {
    let ids = answer.fields.all("x-request-id");
    assert_eq!(ids.len(), 1, "one id: {answer:?}");
    ids[0].to_owned()
}

#[test]
fn every_rejection_has_advice_and_the_id_of_its_log_line() {
    let (_api, proxy, caller) = Scene::with(
        "operation = [{ path = '/x', methods = ['GET'] }, { path = '/paid', permission = 'pay' }]\n\
             permission = [{ name = 'pay', title = 'Pay' }]\nlimits.form_bytes = '1KiB'",
    )
    .into_parts();
    let disabled = proxy.consumer("Disabled");
    let disabled_token = proxy.token(&disabled, &caller.user);
    proxy.command(&["consumer", "disable", &disabled.key]);
    let revoked = proxy.token(&caller.consumer, &caller.user);
    proxy.command(&["token", "revoke", &revoked.token]);
    let call = || Call::get("/x").of(&caller);
    let absent = Consumer::new("absent", "nothing");
    let unknown = Token::new("unknown", "nothing");
    let at = now().to_string();
    let once = || {
        call()
            .parameter("oauth_nonce", "once")
            .parameter("oauth_timestamp", &at)
    };
    proxy.send(once()).has_status(200);
    let calls = [
        (Call::get("/x"), 401, "parameter_absent"),
        (call().without("oauth_nonce"), 400, "parameter_absent"),
        (
            call().parameter("oauth_nonce", "a b"),
            400,
            "parameter_rejected",
        ),
        (
            call().parameter("oauth_version", "2.0"),
            400,
            "version_rejected",
        ),
        (call().method("PLAINTEXT"), 400, "signature_method_rejected"),
        (
            call().parameter("oauth_timestamp", "1"),
            401,
            "timestamp_refused",
        ),
        (Call::get("/x").by(&absent), 401, "consumer_key_unknown"),
        (
            Call::get("/x").by(&disabled).with(&disabled_token),
            401,
            "consumer_key_refused",
        ),
        (
            Call::get("/x").by(&caller.consumer).with(&unknown),
            401,
            "token_rejected",
        ),
        (
            Call::get("/x").by(&caller.consumer).with(&revoked),
            401,
            "token_revoked",
        ),
        (call().key("x"), 401, "signature_invalid"),
        (once(), 401, "nonce_used"),
        (Call::get("/paid").of(&caller), 404, "permission_denied"),
        (Call::get("/none").of(&caller), 404, "permission_denied"),
        (
            asks(&caller.consumer, "nonsense"),
            400,
            "parameter_rejected",
        ),
        (
            asks(&caller.consumer, "oob").key("x"),
            401,
            "signature_invalid",
        ),
    ];
    let mut ids = BTreeSet::new();
    for accept in ["*/*", "application/json"] {
        for (call, status, problem) in &calls {
            let answer = proxy.send(call.clone().header("Accept", accept));
            answer.is(*status, problem);
            let advice = answer.told("oauth_problem_advice").unwrap_or_default();
            assert!(advice.len() > 10, "advice: {answer:?}");
            let id = id_of(&answer);
            if accept == "application/json" {
                assert_eq!(answer.told("request_id"), Some(id.clone()));
            }
            let line = line_of(&proxy, &id);
            assert!(line.contains(&format!("verdict=\"{problem}\"")), "{line}");
            assert!(ids.insert(id), "each request has its own id");
        }
    }
    let method = proxy.send(call().parameter("oauth_signature_method", "HMAC-SHA3-256"));
    let advice = method.told("oauth_problem_advice").unwrap();
    for accepted in ["HMAC-SHA1", "HMAC-SHA256", "RSA-SHA512"] {
        assert!(advice.contains(accepted), "{advice}");
    }
    assert!(!advice.contains("PLAINTEXT"), "it is off: {advice}");
    // Rejections without a code have the advice as their text.
    let other = proxy.send(Call::post("/x").of(&caller).form("a=b"));
    other.has_status(405);
    assert!(other.text().contains("Allow"), "{other:?}");
    line_of(&proxy, &id_of(&other));
    let large = Call::post("/paid").of(&caller).form(&"a".repeat(2000));
    let large = proxy.send(large);
    large.has_status(413);
    line_of(&proxy, &id_of(&large));
    // The pages are rejected as HTML, with an id too.
    let page = proxy.send(Call::get(
        "/service.oauth?mode=auth_req_token&oauth_token=none",
    ));
    page.has_status(401);
    line_of(&proxy, &id_of(&page));
}

#[test]
fn a_fault_has_one_id_in_the_response_and_in_both_logs() {
    // An outage is logged once; each of its calls is only in the detailed log.
    let Scene { proxy, caller, .. } = Scene::with(&format!(
        "log.level = 'debug'\nupstream.api_url = 'http://{}'",
        refusing_address()
    ));
    let answer = proxy.send(Call::get("/x").of(&caller));
    answer.has_status(502);
    let id = id_of(&answer);
    line_of(&proxy, &id);
    proxy.logs(&["request failed", &id]);
}

#[test]
fn only_the_safe_id_of_a_trusted_proxy_is_kept() {
    let api = Upstream::replying(|_| Reply::ok("").header("X-Request-Id", "of-the-api"));
    let proxy = Proxy::with(&api, "listen.trusted_proxies = ['127.0.0.1/32']");
    let caller = proxy.somebody();
    let id = "4bf9-2f35_77B3.4d";
    let answer = proxy.send(Call::get("/rejected").header("X-Request-Id", id));
    answer.has_status(401);
    assert_eq!(id_of(&answer), id);
    line_of(&proxy, id);
    // A request that is forwarded keeps it in its log line; the response of the API is passed on unchanged.
    let forwarded = Call::get("/forwarded").of(&caller);
    let answer = proxy.send(forwarded.header("X-Request-Id", "forwarded-1"));
    answer.has_status(200);
    assert_eq!(id_of(&answer), "of-the-api");
    assert!(line_of(&proxy, "forwarded-1").contains("verdict=\"forwarded\""));
    assert_eq!(
        api.last_request().header("x-request-id"),
        Some("forwarded-1")
    );
    for unsafe_id in [
        "x verdict=forwarded",
        "x\tconsumer=admin",
        "x=y",
        "x\"y",
        "x\u{1b}[31m",
        "\u{e9}",
        &"x".repeat(65),
        "",
    ] {
        let call = Call::get("/unsafe").header("X-Request-Id", unsafe_id);
        let mut connection: Connection = proxy.connect();
        connection.send(&proxy.wire(&call));
        let answer = connection.answer("GET");
        // A control character in a field is malformed HTTP, which may be rejected before anything is read of it.
        if answer.status != 400 {
            let id = id_of(&answer);
            assert_ne!(id, unsafe_id);
            assert!(
                id.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            );
        }
        let forged = |line: &String| line.contains("x verdict=") || line.contains("consumer=admin");
        assert!(!proxy.log().lines().iter().any(forged));
    }
    let twice = Call::get("/twice")
        .header("X-Request-Id", "a")
        .header("X-Request-Id", "b");
    assert!(!["a", "b"].contains(&id_of(&proxy.send(twice)).as_str()));

    let untrusting = Proxy::in_front_of(&api).start();
    let answer = untrusting.send(Call::get("/rejected").header("X-Request-Id", id));
    assert_ne!(id_of(&answer), id);
}

/// The line of the access log for this path.
#[track_caller]
fn line_for(proxy: &Proxy, path: &str) -> String {
    let field = format!("path={path} ");
    proxy.logs(&[&field, " access: "])
}

#[track_caller]
fn has_fields(line: &str, fields: &[&str]) {
    for field in fields {
        assert!(line.contains(&format!(" {field}")), "{field} in {line}");
    }
}

#[track_caller]
fn lacks(line: &str, fields: &[&str]) {
    for field in fields {
        assert!(
            !line.contains(&format!(" {field}=")),
            "no {field} in {line}"
        );
    }
}

#[test]
fn line_of_a_rejected_call_names_caller_operation_and_reason() {
    let Scene { api, proxy, caller } = Scene::with(
        "operation = [{ path = '/paid/{id}', methods = ['GET', 'POST'], permission = 'pay' }, { path = '/{*rest}' }]\n\
             permission = [{ name = 'pay', title = 'Pay' }]",
    );
    let call = |path: &str| Call::get(path).of(&caller);
    let key = &caller.consumer.key;
    let prefix = format!("{}…", &caller.token.token[..8]);
    let send = |call: Call, status: u16| {
        let answer = proxy.send(call);
        answer.has_status(status);
        line_of(&proxy, &id_of(&answer))
    };

    // The other secret of a known mistake: nothing of the claim is proved.
    let line = send(call("/wrong").signs_method("POST"), 401);
    has_fields(
        &line,
        &[
            &format!("unverified_consumer={key} "),
            &format!("unverified_token={prefix} "),
            "operation=\"/{*rest}\"",
            "diagnosis=\"",
        ],
    );
    lacks(&line, &["consumer", "token", "missing_permission"]);
    // A used nonce is rejected after the signature has been checked.
    let at = now().to_string();
    let once = || {
        call("/nonce")
            .parameter("oauth_nonce", "once")
            .parameter("oauth_timestamp", &at)
    };
    proxy.send(once()).has_status(200);
    let line = send(once(), 401);
    has_fields(
        &line,
        &[&format!("consumer={key} "), &format!("token={prefix} ")],
    );
    lacks(
        &line,
        &["unverified_consumer", "unverified_token", "diagnosis"],
    );
    let line = send(call("/paid/7"), 404);
    has_fields(
        &line,
        &[
            &format!("consumer={key} "),
            "operation=\"GET,POST /paid/{id}\"",
            "missing_permission=pay",
        ],
    );
    // That no method accepts a form is told under a right signature alone.
    let line = send(Call::new("PUT", "/paid/8").of(&caller).form("a=1"), 405);
    has_fields(&line, &[&format!("consumer={key} ")]);
    lacks(&line, &["unverified_consumer"]);
    let line = send(
        Call::post("/paid/8").form("oauth_consumer_key=in-a-form"),
        400,
    );
    has_fields(
        &line,
        &[
            "unverified_consumer=in-a-form ",
            "operation=\"GET,POST /paid/{id}\"",
        ],
    );
    let line = send(asks(&caller.consumer, "nonsense"), 400);
    has_fields(
        &line,
        &[&format!("consumer={key} "), "operation=\"request_token\""],
    );
    let line = send(asks(&caller.consumer, "oob").key("x"), 401);
    has_fields(
        &line,
        &[
            &format!("unverified_consumer={key} "),
            "operation=\"request_token\"",
        ],
    );
    // A request that is served has an id too, and the API gets it.
    let forged = [("X-Request-Id", "forged-1"), ("X_Request_Id", "forged-2")];
    let served = forged.iter().fold(call("/served"), |call, (name, value)| {
        call.header(name, value)
    });
    proxy.send(served).has_status(200);
    let seen = api.last_request();
    let ids: Vec<&str> = ["x-request-id", "x_request_id"]
        .iter()
        .flat_map(|name| seen.fields.all(name))
        .collect();
    assert_eq!(ids.len(), 1, "{seen:?}");
    let line = line_for(&proxy, "\"/served\"");
    has_fields(
        &line,
        &[
            &format!("consumer={key} "),
            &format!("token={prefix} "),
            &format!("request_id={} ", ids[0]),
        ],
    );
    lacks(&line, &["operation", "unverified_consumer"]);
    assert!(!proxy.log().to_string().contains("forged-"));
    // A token call that succeeds has one too.
    let asked = proxy.request_token(&caller.consumer, "oob");
    let line = proxy.log().wait_for("the line", |line| {
        let is_of_call = line.contains("verdict=\"request_token_issued\"");
        is_of_call.then(|| line.to_owned())
    });
    has_fields(&line, &[&format!("consumer={key} "), "request_id="]);
    lacks(&line, &["token", "unverified_consumer"]);
    assert!(!line.contains(&asked.token[..9]));

    let forged = Consumer {
        key: "admin verdict=forwarded\n\u{1b}[31m\" consumer=root".into(),
        secret: "x".into(),
    };
    let line = send(Call::get("/forged").by(&forged), 401);
    has_fields(
        &line,
        &["unverified_consumer=admin?verdict?forwarded???31m??consumer?root "],
    );
    let secret = Token::new("short", "x");
    let line = send(Call::get("/short").by(&caller.consumer).with(&secret), 401);
    has_fields(&line, &["unverified_token=sh… "]);
    let text = proxy.log().to_string();
    for secret in [
        &caller.consumer.secret,
        &caller.token.secret,
        &caller.token.token[..9],
    ] {
        assert!(!text.contains(secret), "{secret} in the log");
    }
}

#[test]
fn the_line_of_a_failed_call_names_the_api_and_the_cause() {
    let api = Upstream::replying(|_| Reply::ok("").header("Content-Length", "nonsense"));
    let slow = Upstream::replying(|_| Reply::silence());
    let gone = refusing_address().to_string();
    for (address, timeout, status, cause) in [
        (gone.as_str(), "60s", 502, "cause=\"API unreachable: "),
        (
            api.authority(),
            "60s",
            502,
            "cause=\"broken response of the API",
        ),
        (slow.authority(), "500ms", 504, "cause=\"API too slow\""),
    ] {
        let proxy = Proxy::with(
            &api,
            &format!(
                "upstream = {{ api_url = 'http://{address}', response_timeout = '{timeout}' }}"
            ),
        );
        let caller = proxy.somebody();
        let answer = proxy.send(Call::get("/x").of(&caller));
        answer.has_status(status);
        let line = line_of(&proxy, &id_of(&answer));
        has_fields(
            &line,
            &[
                &format!("upstream=\"{address}\""),
                cause,
                &format!("consumer={} ", caller.consumer.key),
                &format!("token={}… ", &caller.token.token[..8]),
            ],
        );
        assert!(
            !answer.text().contains(address),
            "only the log has it: {answer:?}"
        );
    }
}

#[test]
fn the_line_of_an_observed_call_tells_who_would_fail_and_why() {
    let (_api, proxy, caller) = Scene::with(
        "signature.enforcement = 'observe'\noperation = [{ path = '/paid', permission = 'pay' }, { path = '/{*rest}' }]\npermission = [{ name = 'pay', title = 'Pay' }]",
    ).into_parts();
    let key = &caller.consumer.key;
    let call = |path: &str| Call::get(path).of(&caller);
    for call in [
        call("/good"),
        call("/paid"),
        call("/wrong").signs_method("POST"),
        Call::get("/unsigned"),
    ] {
        proxy.send(call).has_status(200);
    }
    let line = line_for(&proxy, "\"/good\"");
    has_fields(
        &line,
        &["verdict=\"observed\"", &format!("consumer={key} ")],
    );
    lacks(&line, &["reason", "unverified_consumer"]);
    let line = line_for(&proxy, "\"/paid\"");
    has_fields(
        &line,
        &[
            &format!("consumer={key} "),
            "reason=\"permission_denied\"",
            "missing_permission=pay",
            "operation=\"/paid\"",
        ],
    );
    let line = line_for(&proxy, "\"/wrong\"");
    has_fields(
        &line,
        &[
            &format!("unverified_consumer={key} "),
            "reason=\"signature_invalid\"",
            "diagnosis=\"",
        ],
    );
    let line = line_for(&proxy, "\"/unsigned\"");
    has_fields(&line, &["reason=\"parameter_absent\""]);
    lacks(&line, &["consumer", "unverified_consumer"]);
}

#[test]
fn metrics_count_by_operation_and_status_with_no_callers_label() {
    let (_api, proxy, caller) = Scene::with(
        "operation = [{ path = '/paid/{id}', methods = ['GET'], permission = 'pay' }, { path = '/open', access = ['anonymous', 'consumer'] }]\npermission = [{ name = 'pay', title = 'Pay' }]",
    ).into_parts();
    let call = |path: &str| Call::get(path).of(&caller);
    for (call, status) in [
        (Call::get("/open"), 200),
        (call("/open"), 200),
        (call("/open").signs_method("POST"), 401),
        (call("/paid/1"), 404),
        (call("/paid/2"), 404),
        (Call::post("/paid/2").of(&caller), 405),
        (call("/made-up-1"), 404),
        (call("/made-up-2"), 404),
        (asks(&caller.consumer, "oob"), 200),
        (Call::get(LOGIN), 200),
        (Call::get("/x").host("elsewhere.test"), 421),
    ] {
        proxy.send(call).has_status(status);
    }
    let count = |operation: &str, status: &str| {
        proxy.metric(&format!(
            "countersign_operation_requests_total{{operation=\"{operation}\",status=\"{status}\"}}"
        ))
    };
    until("the counts are there", || {
        count("/open", "2xx") == 2.0 && count("none", "4xx") == 1.0
    });
    assert_eq!(count("/open", "4xx"), 1.0);
    assert_eq!(count("GET /paid/{id}", "4xx"), 2.0);
    assert_eq!(count("other_method", "4xx"), 1.0);
    assert_eq!(count("unlisted", "4xx"), 2.0);
    assert_eq!(count("request_token", "2xx"), 1.0);
    assert_eq!(count("page", "2xx"), 1.0);
    let text = proxy.ask_admin("/metrics").text();
    let samples = || text.lines().filter(|line| !line.starts_with('#'));
    let diagnosed = "countersign_signature_diagnoses_total{diagnosis=\"other_method\"} 1";
    assert!(samples().any(|line| line == diagnosed), "{text}");
    // A consumer that has signed rightly is a label.
    for name in ["made-up", "elsewhere.test", &caller.token.token[..8]] {
        assert!(!text.contains(name), "{name} is no label");
    }
    // More callers, keys and paths add no series.
    let before = samples().count();
    for number in 0..20 {
        let unknown = Consumer {
            key: format!("unknown-{number}"),
            secret: "x".into(),
        };
        proxy
            .send(
                Call::get(&format!("/made-up-{number}"))
                    .by(&unknown)
                    .header("X-Request-Id", &number.to_string()),
            )
            .has_status(401);
    }
    let after = proxy.ask_admin("/metrics").text();
    let after = after.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(after.count(), before);
}

/// The recipe of docs/health.md, without jq.
#[test]
fn json_log_lists_who_would_fail_why_and_since_when() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "signature.enforcement = 'observe'\nlog = { format = 'json', access = false }",
    );
    let good = proxy.somebody();
    let bad = proxy.consumer("Bad");
    let bad_token = proxy.token(&bad, &good.user);
    for _ in 0..2 {
        proxy.send(Call::get("/x").of(&good)).has_status(200);
        let wrong = Call::get("/x").by(&bad).with(&bad_token);
        proxy.send(wrong.signs_method("POST")).has_status(200);
    }
    let mut found = BTreeMap::new();
    within(PATIENCE, "both lines are there", || {
        found.clear();
        let mut lines = 0;
        for line in proxy.log().lines() {
            let line: Value = serde_json::from_str(&line).unwrap();
            let Some(reason) = line["reason"].as_str() else {
                continue;
            };
            lines += 1;
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let who = (text("consumer"), text("unverified_consumer"));
            let why = (reason.to_owned(), text("diagnosis"));
            found.entry((who, why)).or_insert(text("timestamp"));
        }
        (lines == 2).then_some(())
    });
    let (((consumer, unverified), (reason, diagnosis)), since) = found.pop_first().unwrap();
    assert_eq!((consumer.as_str(), unverified), ("", bad.key));
    assert_eq!(
        (reason.as_str(), diagnosis.as_str()),
        ("signature_invalid", "other_method")
    );
    assert!(since.starts_with("20") && since.ends_with('Z'), "{since}");
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn no_level_writes_a_token_or_a_secret_on_any_store() {
    let (server, redis) = (Postgres::start(), RedisServer::start());
    let postgres = || {
        format!(
            "store.backend = 'postgres'\nstore.url = '{}'",
            server.database()
        )
    };
    let beside = format!("{}\nnonce.url = '{}'", postgres(), redis.url());
    for store in [String::new(), postgres(), beside] {
        let api = Upstream::start();
        let level = "trace,tokio_postgres=trace,rusqlite=trace,redis=trace,hyper=trace,h2=trace";
        let config = format!("{store}\nlog.level = '{level}'");
        let proxy = Proxy::with(&api, &config);
        let Caller {
            consumer,
            user,
            token: issued,
        } = proxy.somebody();
        let mut secrets = vec![
            consumer.secret.clone(),
            user.password.clone(),
            issued.token.clone(),
            issued.secret.clone(),
        ];
        let rotated = proxy.command(&[
            "consumer",
            "rotate-secret",
            &consumer.key,
            "--grace",
            "1h",
            "--json",
        ]);
        secrets.push(rotated.json()["secret"].as_str().unwrap().to_owned());

        let request = proxy.request_token(&consumer, "oob");
        let mut browser = Visitor::to(&proxy);
        let login = browser.open(&authorization(&request));
        let wrong = User {
            password: "a wrong password".to_owned(),
            ..user.clone()
        };
        let login = browser.log_in(&login, &wrong);
        login.answer.has_status(403);
        let consent = browser.log_in(&login, &user);
        let shown = browser.decide(&consent, "allow");
        let verifier = shown.element("verifier").unwrap();
        let wrong_verifier = exchanges(&consumer, &request, "wrong-verifier");
        proxy.rejects(wrong_verifier, 401, "verifier_invalid");
        let access = token_of(&proxy.served(exchanges(&consumer, &request, &verifier)));
        let call = Call::get("/a?code=in-the-query")
            .by(&consumer)
            .with(&access);
        proxy.passes(call.clone());
        proxy.rejects(call.key("x"), 401, "signature_invalid");
        let form = Call::post("/b")
            .form("a=in-the-form")
            .by(&consumer)
            .with(&access);
        let form = form.header("Cookie", "a=in-a-cookie");
        proxy.passes(form);
        let basic = Call::get("/c").header("Authorization", "Basic aW4tYmFzaWM=");
        proxy.send(basic).has_status(401);
        let host = proxy.host();
        for target in [
            format!("http://of-a-user:in-the-authority@{host}/d"),
            format!("http://{host}?in-the-target"),
            "of-a-user:in-the-authority@host:443".to_owned(),
        ] {
            let answer = proxy.send(Call::get(&target));
            assert!((400..500).contains(&answer.status), "{answer:?}");
        }
        let revoked = proxy.run(&format!("token revoke {}", access.token));
        secrets.extend([wrong.password, "wrong-verifier".to_owned()]);
        secrets.extend(
            [
                "in-the-query",
                "in-the-form",
                "in-a-cookie",
                "aW4tYmFzaWM=",
                "in-the-authority",
                "in-the-target",
                "oauth_signature=",
            ]
            .map(str::to_owned),
        );
        secrets.extend([verifier.replace(' ', ""), verifier]);
        secrets.extend([request.token, request.secret, access.token, access.secret]);
        secrets.extend(browser.cookies.into_values());
        // Long enough for the changes to have been read, and the uses to have been written.
        until("the uses are written", || {
            let shown = proxy.run("token list --json");
            let tokens = shown.json_lines();
            let is_written = |token: &Value| !token["last_used_at"].is_null();
            tokens.iter().any(is_written)
        });
        let lines = proxy.log().lines();
        assert!(lines.iter().any(|line| line.contains(" access: ")));
        for secret in &secrets {
            assert!(secret.len() >= 8, "{secret}");
            for line in lines
                .iter()
                .map(String::as_str)
                .chain([&*revoked.stderr, &*rotated.stderr])
            {
                assert!(!line.contains(secret.as_str()), "{secret} in {line}");
            }
        }
    }
}

#[test]
fn the_access_log_can_be_switched_off() {
    let (_api, proxy, caller) = Scene::with("log.access = false").into_parts();
    proxy.send(Call::get("/quiet").of(&caller)).has_status(200);
    assert!(!proxy.log().to_string().contains("/quiet"));
}
