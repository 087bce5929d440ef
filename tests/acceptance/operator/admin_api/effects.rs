//! Who learns of a change: the audit log and the other replicas.
//!
//! Promise (Admin API): Every change has an audit record with the token's name, and takes effect on every replica within a
//! second. Also in `tests/acceptance/operator/named_tokens.rs`.

use super::*;

#[test]
fn each_change_is_an_audit_record_of_token_and_address() {
    with_each_store(|store| {
        let upstream = Upstream::start();
        let proxy = with_api(&upstream, &format!("log.format = 'json'\n{store}")).start();
        for (method, path, body, event) in [
            (
                "POST",
                "/v1/consumers",
                json!({ "key": "shop", "name": "Shop" }),
                "consumer_registered",
            ),
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "name": "Store" }),
                "consumer_changed",
            ),
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "enabled": false }),
                "consumer_disabled",
            ),
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "enabled": true }),
                "consumer_enabled",
            ),
            (
                "POST",
                "/v1/consumers/shop/secret",
                json!({}),
                "consumer_secret_rotated",
            ),
            (
                "DELETE",
                "/v1/consumers/shop/secret/previous",
                Value::Null,
                "consumer_grace_ended",
            ),
            (
                "POST",
                "/v1/users",
                json!({ "id": "u", "name": "bob" }),
                "user_added",
            ),
            (
                "PATCH",
                "/v1/users/u",
                json!({ "display_name": "Bob" }),
                "user_changed",
            ),
            (
                "PUT",
                "/v1/users/u/password",
                json!({ "password": "a password" }),
                "password_changed",
            ),
            (
                "DELETE",
                "/v1/users/u/sessions",
                Value::Null,
                "sessions_ended",
            ),
            (
                "DELETE",
                "/v1/users/u/login-pauses",
                Value::Null,
                "login_pauses_ended",
            ),
            (
                "POST",
                "/v1/tokens",
                json!({ "consumer": "shop", "user": "u" }),
                "access_token_issued",
            ),
            ("DELETE", "/v1/tokens?user=u", Value::Null, "tokens_revoked"),
            (
                "PATCH",
                "/v1/users/u",
                json!({ "enabled": false }),
                "user_disabled",
            ),
            ("DELETE", "/v1/users/u", Value::Null, "user_removed"),
            (
                "DELETE",
                "/v1/consumers/shop",
                Value::Null,
                "consumer_removed",
            ),
        ] {
            done(&proxy, method, path, body);
            let record = proxy.log().wait_for(event, |line| {
                let record: Value = serde_json::from_str(line).ok()?;
                (record["target"] == "audit" && record["event"] == event).then_some(record)
            });
            assert_eq!(
                (&record["by"], &record["admin_token"], &record["address"]),
                (&json!("api"), &json!("write"), &json!("127.0.0.1")),
                "{record}"
            );
            let of_user = ["user", "password", "sessions", "login"]
                .iter()
                .any(|word| event.starts_with(word));
            let subject = if of_user {
                ("user", "u")
            } else {
                ("consumer", "shop")
            };
            if event != "tokens_revoked" {
                assert_eq!(record[subject.0], subject.1, "{record}");
            }
        }
        assert_eq!(
            proxy.logged(&["\"audit_id\"", "\"by\":\"api\""]),
            16,
            "each once"
        );
    });
}

#[test]
fn a_change_of_several_members_is_recorded_with_their_names() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let new = json!({ "key": "shop", "name": "Shop", "enabled": false });
    done(&proxy, "POST", "/v1/consumers", new);
    let patch = json!({ "enabled": true, "callbacks": ["oob"], "name": "Shop" });
    done(&proxy, "PATCH", "/v1/consumers/shop", patch);
    proxy.logs(&[
        "event=\"consumer_changed\"",
        "members=\"callbacks enabled\"",
    ]);
    assert_eq!(proxy.logged(&["consumer_enabled"]), 0);
}

#[test]
fn a_change_is_recorded_although_its_caller_has_gone() {
    const CALLERS: usize = 20;

    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    for number in 0..CALLERS {
        let body = format!("{{\"name\":\"Shop\",\"key\":\"k{number}\"}}");
        let head = format!(
            "POST /v1/consumers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRITE}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut connection = Connection::to(proxy.admin());
        connection.send(format!("{head}{body}").as_bytes());
    }
    // Some may have been removed before their request was read.
    done(
        &proxy,
        "POST",
        "/v1/consumers",
        json!({ "name": "Shop", "key": "last" }),
    );
    let registered = || listed(&proxy, "/v1/consumers", "key").len();
    until("all changes are recorded", || {
        let recorded = proxy.logged(&["event=\"consumer_registered\""]);
        recorded > 1 && recorded == registered()
    });
}

#[test]
fn a_change_whose_audit_record_cannot_be_stored_is_logged() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    // Changes are kept, their records are not.
    let trigger = "CREATE TRIGGER no_commands BEFORE INSERT ON changes WHEN NEW.kind = 'command'
                   BEGIN SELECT RAISE(ABORT, 'no room for commands'); END";
    store.execute_batch(trigger).unwrap();
    let new = json!({ "key": "shop", "name": "Shop" });
    done(&proxy, "POST", "/v1/consumers", new);
    let parts = ["audit", "event=\"consumer_registered\"", "consumer=shop"];
    proxy.logs(&parts);
    proxy.logs(&[
        "WARN",
        "not kept for other processes",
        "no room for commands",
    ]);
    // A command cannot log where serve does, so it says so.
    let told = proxy.run("consumer disable shop").stderr;
    has(
        &told,
        &["serve does not log what was done", "no room for commands"],
    );
    store.execute_batch("DROP TRIGGER no_commands").unwrap();
    proxy.run("consumer enable shop");
    proxy.logs(&["audit", "event=\"consumer_enabled\""]);
    assert_eq!(proxy.logged(&parts), 1);
    assert_eq!(proxy.logged(&["consumer_disabled"]), 0);
}

/// Makes a change until its effect is seen within a second of its response: at least once, because a busy machine may
/// take longer. `change` returns a closure that checks whether it is effective.
#[track_caller]
fn holds_within_a_second<H: FnMut() -> bool>(what: &str, mut change: impl FnMut() -> H) {
    let begun = Instant::now();
    loop {
        let mut holds = change();
        let changed = Instant::now();
        until(what, &mut holds);
        let taken = changed.elapsed();
        if taken < Duration::from_secs(1) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {taken:?}");
    }
}

#[test]
fn a_change_at_one_replica_holds_at_the_other_within_a_second() {
    let server = Postgres::start();
    let upstream = Upstream::start();
    let store = format!(
        "store.backend = 'postgres'\nstore.url = '{}'\ncache.negative_ttl = '1h'",
        server.database()
    );
    let [one, other] = [(), ()].map(|()| with_api(&upstream, &store).start());
    let (consumer, user, _) = one.somebody().into_parts();
    let (place, of_user) = (
        format!("/v1/consumers/{}", consumer.key),
        format!("/v1/users/{}", user.id),
    );
    let of_tokens = format!("/v1/tokens?user={}", user.id);
    let call =
        |consumer: &Consumer, token: &Token| other.send(Call::get("/x").by(consumer).with(token));
    let rejected = |consumer: &Consumer, token: &Token, problem: &str| {
        call(consumer, token).problem().as_deref() == Some(problem)
    };
    // A token that the other process has seen, so that it has cached everything that the call needs.
    let known = || {
        for path in [&place, &of_user] {
            done(&one, "PATCH", path, json!({ "enabled": true }));
        }
        let new = json!({ "consumer": consumer.key, "user": user.id });
        let issued = done(&one, "POST", "/v1/tokens", new);
        let token = Token::new(text(&issued["token"]), text(&issued["token_secret"]));
        until("it is known", || call(&consumer, &token).status == 200);
        token
    };
    let disabled = json!({ "enabled": false });
    for (method, path, body, problem) in [
        ("PATCH", &place, &disabled, "consumer_key_refused"),
        ("PATCH", &of_user, &disabled, "token_revoked"),
        ("DELETE", &of_tokens, &Value::Null, "token_revoked"),
    ] {
        holds_within_a_second(path, || {
            let token = known();
            done(&one, method, path, body.clone());
            let (rejected, consumer) = (&rejected, &consumer);
            move || rejected(consumer, &token, problem)
        });
    }
    holds_within_a_second("one revoked token", || {
        let token = known();
        let place = format!("/v1/tokens/{}", token.token);
        done(&one, "DELETE", &place, Value::Null);
        let (rejected, consumer) = (&rejected, &consumer);
        move || rejected(consumer, &token, "token_revoked")
    });
    holds_within_a_second("enabled again", || {
        let token = known();
        done(&one, "PATCH", &place, disabled.clone());
        until("it is disabled", || {
            rejected(&consumer, &token, "consumer_key_refused")
        });
        done(&one, "PATCH", &place, json!({ "enabled": true }));
        let (call, consumer) = (&call, &consumer);
        move || call(consumer, &token).status == 200
    });
    let operator = Operator::with(&one, WRITE);
    holds_within_a_second("a change in the console", || {
        let token = known();
        until("the console has disabled it", || {
            let asked = operator.open(&format!("/consumer/disable?key={}", consumer.key));
            asked.answer.status == 200 && operator.confirm(&asked).answer.status == 200
        });
        let (rejected, consumer) = (&rejected, &consumer);
        move || rejected(consumer, &token, "consumer_key_refused")
    });
    let token = known();
    let mut now = consumer.clone();
    holds_within_a_second("a rotated secret", || {
        let rotated = done(&one, "POST", &format!("{place}/secret"), json!({}));
        let renewed = Consumer::new(&consumer.key, text(&rotated["secret"]));
        let before = std::mem::replace(&mut now, renewed.clone());
        let (call, rejected, token) = (&call, &rejected, &token);
        move || call(&renewed, token).status == 200 && rejected(&before, token, "signature_invalid")
    });
    // Both log a change that was made at one of them.
    for proxy in [&one, &other] {
        proxy.logs(&["token_revoked", "by=\"api\"", "admin_token=\"write\""]);
        proxy.logs(&["consumer_disabled", "by=\"console\""]);
    }
    // An entity tag is the same at both.
    let tag = |proxy: &Proxy| get(proxy, &place).header("ETag").map(str::to_owned);
    assert_eq!(tag(&one), tag(&other));
}
