//! The commands beside a running proxy.
//!
//! Promise (Signatures): `explain` accepts what `sign` makes and rejects what the server would reject. Also in
//! `src/cli/signature/explain/tests.rs`, `tests/commands/signing.rs`.
//! Promise (Permissions and identity): Revocations, rotations and disabled records take effect within a second in every
//! process; records of `store.lookup` after `cache.ttl`. Also in `tests/acceptance/provider/sessions.rs`,
//! `src/records/credentials/tests`.
//! Promise (Storage and operation): Each change by a command, and each call with a previous secret, is in the log of `serve`.
//! Also in `tests/store_contract/changes.rs`.

use crate::support::{
    Call, Consumer, PATIENCE, Postgres, Proxy, Scene, Upstream, free_port, has, legs::asks, until,
    within,
};

#[test]
fn a_consumer_that_was_unknown_is_known_within_a_second() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "cache.negative_ttl = '1h'");
    let user = proxy.user("alice");
    let early = Consumer::new("early", "s3cret");
    proxy.rejects(asks(&early, "oob"), 401, "consumer_key_unknown");
    proxy.consumer_with("Early", "--key early --secret s3cret");
    until("the consumer is known", || {
        proxy.send(asks(&early, "oob")).status == 200
    });
    let token = proxy.token(&early, &user);
    until("its token is known", || {
        proxy.send(Call::get("/x").by(&early).with(&token)).status == 200
    });
    proxy.run(&format!("token revoke {}", token.token));
    until("the revocation is seen", || {
        proxy
            .send(Call::get("/x").by(&early).with(&token))
            .problem()
            .as_deref()
            == Some("token_revoked")
    });
}

#[test]
fn the_key_of_the_store_is_changed_while_it_serves() {
    let server = Postgres::start();
    let stores = [
        String::new(),
        format!(
            "store.backend = 'postgres'\nstore.url = '{}'",
            server.database()
        ),
    ];
    for store in stores {
        let api = Upstream::start();
        let builder = Proxy::in_front_of(&api).config(&store);
        let [old, new] = ["old.key", "new.key"].map(|name| {
            let path = builder.directory().join(name);
            std::fs::write(&path, format!("{name:x<32}")).unwrap();
            path.display().to_string()
        });
        let mut proxy = builder
            .config(&format!("store.encryption_key_file = '{old}'"))
            .start();
        let (consumer, user, token) = proxy.somebody().into_parts();
        proxy.stop();
        proxy.reconfigure(&format!("store.encryption_key_file = ['{new}', '{old}']"));
        proxy.start();
        let passes = |proxy: &Proxy, token| proxy.passes(Call::get("/x").by(&consumer).with(token));
        passes(&proxy, &token);
        let other = proxy.token(&consumer, &user);
        // The consumer, the user and the first token; the second is under the new key already.
        let rekeyed = proxy.run("rekey --json").json();
        assert_eq!(
            (&rekeyed["rekeyed"], &rekeyed["unchanged"]),
            (&3.into(), &1.into())
        );
        // Both were cached before; the late one is read from the store now.
        let late = proxy.token(&consumer, &user);
        for token in [&token, &other, &late] {
            passes(&proxy, token);
        }
        proxy.stop();
        proxy.reconfigure(&format!("store.encryption_key_file = '{new}'"));
        proxy.start();
        for token in [&token, &other, &late] {
            passes(&proxy, token);
        }
    }
}

#[test]
fn a_rotated_secret_works_until_its_grace_is_over() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let secret = proxy.directory().join("secret");
    std::fs::write(&secret, "from a file\n").unwrap();
    let from_file = format!("@{}", secret.display());
    let consumer = proxy.consumer_with(
        "Shop",
        &format!("--key shop --secret {from_file} --callback https://a.test/x"),
    );
    assert_eq!(
        (consumer.key.as_str(), consumer.secret.as_str()),
        ("shop", "from a file")
    );
    let user = proxy.user("alice");
    let token = proxy.token(&consumer, &user);
    let call = |secret: &str| {
        let consumer = Consumer::new("shop", secret);
        proxy.send(Call::get("/x").by(&consumer).with(&token))
    };
    call("from a file").has_status(200);
    let rotated = proxy
        .run("consumer rotate-secret shop --grace 1h --json")
        .json();
    let new = rotated["secret"].as_str().unwrap().to_owned();
    until("the new secret verifies", || call(&new).status == 200);
    let uses = || proxy.metric("countersign_previous_secret_total");
    let is_marked = |line: &String| line.contains(" secret=\"previous\" ");
    assert_eq!(uses(), 0.0);
    call("from a file").has_status(200);
    let old = Consumer::new("shop", "from a file");
    proxy.request_token(&old, "https://a.test/x");
    until("both uses are counted", || uses() == 2.0);
    let marked = within(PATIENCE, "both uses are logged", || {
        let mut lines = proxy.log().lines();
        lines.retain(is_marked);
        (lines.len() == 2).then_some(lines)
    });
    assert!(marked.iter().all(|line| line.contains(" consumer=shop ")));
    let rotated = proxy.run("consumer rotate-secret shop --json").json();
    let newest = rotated["secret"].as_str().unwrap().to_owned();
    until("the newest secret verifies", || call(&newest).status == 200);
    call(&new).is(401, "signature_invalid");
    proxy.run("consumer remove shop");
    until("the consumer is gone", || call(&newest).status == 401);
    call(&newest).is(401, "consumer_key_unknown");
    assert_eq!(proxy.command(&["consumer", "show", "shop"]).code(), Some(1));
}

#[test]
fn health_asks_the_running_process() {
    let api = Upstream::start();
    // The command reads the address from the configuration, so it must be known before.
    let mut proxy = Proxy::with(&api, &format!("admin.listen = '127.0.0.1:{}'", free_port()));
    proxy.run("health");
    proxy.run("health --ready");
    proxy.kill();
    assert_eq!(proxy.command(&["health"]).code(), Some(1));
}

#[test]
fn explain_sees_that_the_nonce_was_used_while_the_proxy_runs() {
    let (_api, proxy, caller) = Scene::start().into_parts();
    let wire = |call: &Call| String::from_utf8(proxy.wire(call)).unwrap();
    let explain = |wire: &str| proxy.command_with(&["explain", "--request", "-"], wire);
    let request = wire(&Call::get("/a").of(&caller));
    let before = explain(&request).done().stdout;
    assert!(before.contains("Nonce\n  not used yet\n"), "{before}");
    let mut connection = proxy.connect();
    connection.send(request.as_bytes());
    connection.answer("GET").has_status(200);
    let after = explain(&request);
    assert_eq!(after.code(), Some(1));
    has(&after.stdout, &["nonce_used: a request with this nonce"]);
    explain(&wire(&Call::get("/a").of(&caller))).done();
}

#[test]
fn serve_logs_who_ran_which_command() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "log.format = 'json'");
    let logged = |event: &str| {
        let record = proxy.log().wait_for(event, |line| {
            let record: serde_json::Value = serde_json::from_str(line).ok()?;
            (record["target"] == "audit" && record["event"] == event).then_some(record)
        });
        assert_eq!(record["by"], "command", "{record}");
        assert!(record["pid"].as_u64().unwrap() > 1, "{record}");
        for who in ["os_user", "host", "audit_id"] {
            assert!(!record[who].as_str().unwrap().is_empty(), "{who}: {record}");
        }
        record
    };
    let caller = proxy.somebody();
    assert_eq!(
        logged("consumer_registered")["consumer"],
        caller.consumer.key
    );
    assert_eq!(logged("user_added")["user"], caller.user.id);
    let issued = logged("access_token_issued");
    assert_eq!(issued["token"], format!("{}…", &caller.token.token[..8]));
    proxy.run(&format!("token revoke {}", caller.token.token));
    let revoked = logged("token_revoked");
    for field in ["token", "consumer", "user"] {
        assert_eq!(revoked[field], issued[field], "{revoked}");
    }
    let export = proxy.run("export -").stdout;
    proxy.command_with(&["import", "-"], &export).done();
    assert_eq!(logged("records_imported")["unchanged"], 3);
    logged("store_exported");
    let records = proxy.log().lines();
    let audits = records
        .iter()
        .filter(|line| line.contains("\"audit_id\"") && line.contains("\"by\":\"command\""));
    assert_eq!(audits.count(), 6, "each once: {records:?}");
}
