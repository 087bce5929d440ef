//! What an operator lives with: restarts, commands beside a running proxy, probes, metrics, logs, signals.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    Call, Connection, Proxy, Upstream, Visitor, http,
    legs::{authorization, exchanges},
    within,
};

#[test]
fn probes_tell_life_and_readiness() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api)
        .config("listen.drain_delay = '2s'")
        .start();
    proxy.ask_admin("/healthz").has_status(200);
    proxy.ask_admin("/readyz").has_status(200);
    // They are on the admin listener alone.
    for target in ["/healthz", "/readyz", "/metrics"] {
        proxy.send(Call::get(target)).is(401, "parameter_absent");
    }
    proxy.signal(Signal::TERM);
    let admin = proxy.admin();
    within(Duration::from_secs(2), "not ready while draining", || {
        (http::get(admin, "/readyz").status == 503).then_some(())
    });
    assert!(proxy.wait().success());
}

#[test]
fn metrics_count_by_verdict_and_hold_nothing_that_a_caller_can_grow() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("operation = [{ path = '/open', access = ['anonymous'] }, { path = '/{*rest}' }]")
        .start();
    let (consumer, _, token) = proxy.somebody();
    let call = || Call::get("/made-up-path").by(&consumer).with(&token);
    for _ in 0..3 {
        proxy.send(call()).has_status(200);
    }
    proxy.send(call().key("x")).has_status(401);
    proxy.send(Call::get("/open")).has_status(200);
    let count = |verdict: &str| {
        proxy.metric(&format!(
            "countersign_requests_total{{verdict=\"{verdict}\"}}"
        ))
    };
    within(Duration::from_secs(5), "the counts are there", || {
        (count("forwarded") == 3.0
            && count("signature_invalid") == 1.0
            && count("anonymous") == 1.0)
            .then_some(())
    });
    let text = proxy.ask_admin("/metrics").text();
    for name in [
        "countersign_verify_seconds",
        "countersign_upstream_seconds",
        "countersign_request_seconds",
        "countersign_nonces",
        "countersign_nonce_window_bytes",
        "countersign_cache_requests_total",
        "countersign_store_seconds",
        "countersign_connections",
        "countersign_clock_skew_seconds",
    ] {
        assert!(
            text.contains(&format!("# HELP {}", name.trim_end_matches("_total"))),
            "{name} with its help:\n{text}"
        );
    }
    assert_eq!(proxy.metric("countersign_nonces"), 3.0);
    for secret in [&consumer.key, &token.token, "made-up-path", "alice"] {
        assert!(!text.contains(secret), "{secret} is no label");
    }
}

#[test]
fn an_access_log_line_a_request_and_no_secret_in_any_line() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("log.level = 'trace'")
        .start();
    let (consumer, user, token) = proxy.somebody();
    let call = Call::post("/visible-path?hidden=query")
        .form("hidden=form")
        .by(&consumer)
        .with(&token);
    proxy
        .send(call.header("Cookie", "hidden=cookie"))
        .has_status(200);
    proxy
        .send(
            Call::get("/refused-path?hidden=query")
                .by(&consumer)
                .with(&token)
                .key("x"),
        )
        .has_status(401);
    proxy
        .send(Call::get("/basic").header("Authorization", "Basic aGlkZGVu"))
        .has_status(401);
    let host = proxy.host();
    for target in [
        format!("http://hidden:hidden@{host}/absolute-path"),
        format!("http://{host}?hidden=query"),
        "hidden:hidden@host:443".to_owned(),
    ] {
        let answer = proxy.send(Call::get(&target));
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let request_token = proxy.request_token(&consumer, "oob");
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&authorization(&request_token));
    let consent = visitor.log_in(&login, &user);
    let verifier = visitor
        .decide(&consent, "allow")
        .element("verifier")
        .unwrap();
    let access_token = crate::support::legs::token_of(&proxy.send(exchanges(
        &consumer,
        &request_token,
        &verifier,
    )));

    proxy
        .log()
        .wait_for("the line of the refused request", |line| {
            line.contains("/refused-path").then_some(())
        });
    let line = proxy.log().wait_for("the line of the request", |line| {
        line.contains("/visible-path").then(|| line.to_owned())
    });
    assert!(line.contains("POST") && line.contains("200"), "{line}");
    within(Duration::from_secs(5), "the exchange is in the log", || {
        proxy
            .log()
            .lines()
            .iter()
            .any(|line| line.contains("audit"))
            .then_some(())
    });
    let text = proxy.log().to_string();
    let mut secrets = vec![
        "hidden".to_owned(),
        "aGlkZGVu".to_owned(),
        consumer.secret.clone(),
        token.secret,
        token.token[..9].to_owned(),
        request_token.secret,
        request_token.token[..9].to_owned(),
        access_token.secret,
        access_token.token[..9].to_owned(),
        verifier.replace(' ', ""),
        verifier,
        user.password,
        "oauth_signature=".to_owned(),
    ];
    secrets.extend(visitor.cookies.into_values());
    for secret in secrets {
        let line = text.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "{secret} in the log");
    }
}

#[test]
fn the_access_log_can_be_switched_off() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("log.access = false")
        .start();
    let (consumer, _, token) = proxy.somebody();
    proxy
        .send(Call::get("/quiet").by(&consumer).with(&token))
        .has_status(200);
    assert!(!proxy.log().to_string().contains("/quiet"));
}

#[test]
fn logs_can_be_json() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("log.format = 'json'")
        .start();
    let (consumer, _, token) = proxy.somebody();
    proxy
        .send(Call::get("/x").by(&consumer).with(&token))
        .has_status(200);
    proxy
        .log()
        .wait_for("the request", |line| line.contains("/x").then_some(()));
    for line in proxy.log().lines() {
        serde_json::from_str::<serde_json::Value>(&line)
            .unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn sighup_takes_a_good_file_and_refuses_a_bad_one_without_dropping_a_connection() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let mut kept: Connection = proxy.connect();
    let call = || Call::get("/x").by(&consumer).with(&token);
    proxy.send_on(&mut kept, call()).has_status(200);
    proxy.reconfigure("operation = [{ path = '/else' }]");
    proxy.signal(Signal::HUP);
    within(
        Duration::from_secs(5),
        "the new configuration rules",
        || (proxy.send_on(&mut kept, call()).status == 404).then_some(()),
    );
    proxy.reconfigure("operation = [{ path = '/x' }]\nlisten.nonsense = 1");
    proxy.signal(Signal::HUP);
    proxy.log().wait_for("the refusal", |line| {
        line.contains("nonsense").then_some(())
    });
    proxy
        .send_on(&mut kept, call())
        .is(404, "permission_denied");
}
