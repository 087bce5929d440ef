//! The exchange without a user.
//!
//! Promise (Permissions and identity): The exchange gives only the permissions that the consumer, and its access token, may
//! use. Also in `tests/attacks/exchange.rs`, `tests/acceptance/request/assertion/exchange.rs`.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::*;
use crate::support::{Operator, Postgres, operator::WRITE, proxy::Builder};

const EXCHANGE: &str = "/service.oauth?mode=exchange";

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// The response to an exchange that the consumer of the scene signs alone, and its token.
#[track_caller]
fn exchanged_alone(scene: &Scene) -> (Value, String) {
    let call = Call::post(EXCHANGE).by(&scene.caller.consumer);
    let answer = scene.proxy.passes(call).json();
    let token = answer["access_token"].as_str().unwrap().to_owned();
    (answer, token)
}

#[test]
fn a_consumer_alone_gets_a_token_of_its_own() {
    let scene = exchanging(OPERATIONS);
    let (proxy, api, key) = (&scene.proxy, &scene.api, &scene.caller.consumer.key);
    let (answer, token) = exchanged_alone(&scene);
    assert_eq!(
        answer,
        json!({"access_token": token, "token_type": "Bearer", "expires_in": 900, "scope": "a b"})
    );
    let mut found = claims(&token);
    for name in ["iat", "exp", "jti"] {
        found.as_object_mut().unwrap().remove(name).unwrap();
    }
    let own = json!({
        "iss": proxy.origin(), "aud": "https://api.example.com", "sub": key, "client_id": key, "scope": "a b",
        "kind": "application",
    });
    assert_eq!(found, own);
    proxy.passes(bearer("/app", &token));
    assert_eq!(identity(api), ["", key, "a b", "application"]);
    proxy.passes(Call::get("/app").by(&scene.caller.consumer));
    let signed = api.last_request();
    assert_eq!(signed.header("X-Auth-Kind"), Some("application"));
    // What needs a user stays closed.
    let before = api.count();
    proxy.send(bearer("/a", &token)).has_status(403);
    assert_eq!(api.count(), before);
    let told = proxy.logs(&["token_exchanged", key]);
    assert!(!told.contains("user="), "{told}");
    assert_eq!(proxy.logged(&[token.split('.').nth(2).unwrap()]), 0);
}

/// A permission that is of use with a user alone would be of more use to who reads the scope and not the rest.
#[test]
fn a_token_has_no_permission_that_needs_a_user() {
    let scene =
        exchanging(&OPERATIONS.replace("\"/app/a\", access = [\"application\"]", "\"/app/a\""));
    assert_eq!(exchanged_alone(&scene).0["scope"], "b");
}

#[test]
fn a_token_of_a_consumer_has_its_permissions_alone() {
    let scene = exchanging(OPERATIONS);
    let (proxy, key) = (&scene.proxy, &scene.caller.consumer.key);
    let (_, wide) = exchanged_alone(&scene);
    let permissions = |token: &str| {
        proxy.passes(bearer("/app", token));
        identity(&scene.api)[2].clone()
    };
    assert_eq!(permissions(&wide), "a b");
    proxy.run(&format!("consumer update {key} --permission a"));
    until("the permission is gone", || permissions(&wide) == "a");
    let narrow = exchanged_alone(&scene);
    assert_eq!(narrow.0["scope"], "a");
    proxy.run(&format!(
        "consumer update {key} --permission a --permission b"
    ));
    until("it is back", || permissions(&wide) == "a b");
    assert_eq!(
        permissions(&narrow.1),
        "a",
        "what comes later is not the token's"
    );
}

#[test]
fn no_consumer_gets_a_token_for_calls_that_it_may_not_make() {
    let closed = "operation = [{ path = '/a', access = ['consumer'] }]";
    let needy = "permission = [{ name = 'a' }, { name = 'b' }, { name = 'c' }]\noperation = [\
                 { path = '/a' }, { path = '/app', permission = 'c', access = ['application'] }]";
    for config in ["", closed, needy] {
        let scene = exchanging(config);
        let (proxy, consumer) = (&scene.proxy, &scene.caller.consumer);
        let call = || Call::post(EXCHANGE).by(consumer);
        proxy.rejects(call(), 401, "token_rejected");
        proxy.rejects(call().key("wrong"), 401, "signature_invalid");
        // With a token it gets one.
        exchanged(&scene);
        if config == needy {
            proxy.run(&format!("consumer update {} --permission c", consumer.key));
            until("it has the permission", || proxy.status(call()) == 200);
        }
    }
    let scene = exchanging("operations.unlisted = ['application']");
    exchanged_alone(&scene);
}

#[test]
fn explain_says_who_gets_no_token_alone() {
    let closed = "operation = [{ path = '/a', access = ['consumer'] }]";
    for (config, reason) in [
        (OPERATIONS, None),
        (closed, Some("token_rejected: without oauth_token")),
        ("operations.unlisted = ['application']", None),
    ] {
        let scene = exchanging(config);
        let (proxy, consumer) = (&scene.proxy, &scene.caller.consumer);
        let agree = |call: &dyn Fn() -> Call, reason: Option<&str>| {
            let told = proxy.explain(&call());
            let is_accepted = proxy.status(call()) == 200;
            assert_eq!(reason.is_none(), is_accepted);
            assert_eq!(told.status.success(), is_accepted, "{told:?}");
            has(&told.stdout, reason.as_slice());
        };
        let alone = || Call::post(EXCHANGE).by(consumer);
        agree(&alone, reason);
        agree(&|| alone().with(&scene.caller.token), None);
        // RFC 9068 §5
        let key = &*consumer.key;
        let add = ["user", "add", "bob", "--id", key, "--password-stdin"];
        proxy.command_with(&add, "correct horse battery").done();
        agree(&alone, reason.or(Some("the key is the id of a user")));
    }
}

#[test]
fn a_new_secret_ends_no_token_and_says_what_does() {
    let scene = exchanging(OPERATIONS);
    let (proxy, key) = (&scene.proxy, &*scene.caller.consumer.key);
    let (of_user, (_, alone)) = (exchanged(&scene), exchanged_alone(&scene));
    let operator = Operator::with(proxy, WRITE);
    let page = operator.open(&format!("/consumer/rotate?key={key}"));
    let asked = operator.submit(&page, &page.form_to("/consumer/rotate"));
    let told = proxy.command(&["consumer", "rotate-secret", key]).done();
    let revoke = format!("token revoke --consumer {key}");
    for text in [asked.answer.text().replace("&#34;", "\""), told.stderr] {
        has(&text, &["until they end, 15m at most", &revoke]);
    }
    proxy.passes(bearer("/a", &of_user));
    proxy.passes(bearer("/app", &alone));
    // What it says holds.
    proxy.run(&revoke);
    until("the user's ended", || {
        proxy.status(bearer("/a", &of_user)) == 401
    });
    proxy.passes(bearer("/app", &alone));
    proxy.run(&format!("consumer disable {key}"));
    until("its own ended", || {
        proxy.status(bearer("/app", &alone)) == 401
    });
}

#[test]
fn a_token_of_a_consumer_ends_with_it_on_every_replica() {
    const ORIGIN: &str = "http://localhost:8080";
    let (api, server) = (Upstream::start(), Postgres::start());
    let key = Builder::for_forward_auth();
    let mut openssl = std::process::Command::new("openssl");
    let words = "genpkey -algorithm ed25519 -out a.pem".split(' ');
    assert!(
        openssl
            .args(words)
            .current_dir(key.directory())
            .status()
            .unwrap()
            .success()
    );
    let (url, file) = (server.database(), key.directory().join("a.pem"));
    let replica = || {
        Proxy::in_front_of(&api)
            .config(&format!(
                "store.backend = 'postgres'\nstore.url = '{url}'\ncache.ttl = '1h'\n\
                 service.base_url = '{ORIGIN}'\noperations.unlisted = ['application']\n\
                 identity.assertion.key_files = ['{}']\nexchange.audience = 'https://api.example.com'\nbearer.own = true",
                file.display()
            ))
            .start()
    };
    let replicas = [replica(), replica()];
    for (command, problem) in [
        ("disable", "consumer_key_refused"),
        ("remove --yes", "consumer_key_unknown"),
    ] {
        let consumer = replicas[0].consumer(command);
        let asked = Call::post(EXCHANGE).by(&consumer).for_origin(ORIGIN);
        let answer = replicas[0].passes(asked.host("localhost:8080")).json();
        let token = answer["access_token"].as_str().unwrap();
        let call = || bearer("/a", token).host("localhost:8080");
        replicas.iter().for_each(|proxy| drop(proxy.passes(call())));
        replicas[0].run(&format!("consumer {command} {}", consumer.key));
        for proxy in &replicas {
            let ended = within(Duration::from_secs(1), command, || {
                let answer = proxy.send(call());
                (answer.status != 200).then_some(answer)
            });
            is_rejected(&ended, 401, "invalid_token");
            assert_eq!(ended.problem().as_deref(), Some(problem));
        }
    }
}
