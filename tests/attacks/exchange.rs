//! Attacks on the exchange without a user: tokens that would shed their user, gain permissions, or pass for a user.
//!
//! Sources: RFC 9068 §5 (a client id that is the id of a user), RFC 8725 §2.8 and §3.12 (tokens of one issuer for two purposes).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::{Call, Caller, Proxy, Token, Upstream, issuer::Key, now, until};

const EXCHANGE: &str = "/service.oauth?mode=exchange";

/// The proxy with an exchange whose key the attacker does not have, but the test.
struct Stage {
    api: Upstream,
    proxy: Proxy,
    caller: Caller,
    key: Key,
}

impl Stage {
    fn start() -> Self {
        let api = Upstream::start();
        let builder = Proxy::in_front_of(&api);
        let (key, pem) = Key::ed25519_pem();
        std::fs::write(builder.directory().join("a.pem"), pem).unwrap();
        let proxy = builder
            .config(
                "identity.assertion.key_files = ['a.pem']\nexchange.audience = 'https://api.example.com'\nbearer.own = true\n\
                 permission = [{ name = 'a' }, { name = 'b' }]\noperations.forbidden_status = 403\n\
                 operation = [{ path = '/user', access = ['consumer'] }, { path = '/app', access = ['application'] },\
                 { path = '/both', access = ['consumer', 'application'] }, { path = '/b', permission = 'b', access = ['application'] }]",
            )
            .start();
        let caller = proxy.somebody_with("--permission a");
        Self {
            api,
            proxy,
            caller,
            key,
        }
    }

    fn exchanges(&self) -> Call {
        Call::post(EXCHANGE).by(&self.caller.consumer)
    }

    #[track_caller]
    fn exchanged(&self, call: Call) -> String {
        let answer = self.proxy.passes(call).json();
        answer["access_token"].as_str().unwrap().to_owned()
    }

    /// A token of the exchange with these changes of its claims; null takes one out.
    fn changed(&self, token: &str, changes: &Value) -> String {
        let part = |number| {
            let part = token.split('.').nth(number).unwrap();
            serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        let (head, mut claims) = (part(0), part(1));
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        self.key.jwt(&head, &claims)
    }

    fn status(&self, target: &str, token: &str) -> u16 {
        let authorization = format!("Bearer {token}");
        self.proxy
            .status(Call::get(target).header("Authorization", &authorization))
    }
}

#[test]
fn a_token_that_is_sent_is_never_left_out() {
    let stage = Stage::start();
    let (proxy, caller) = (&stage.proxy, &stage.caller);
    let with = |token: &str, secret: &str| stage.exchanges().with(&Token::new(token, secret));
    let own = &caller.token;
    for (call, problem) in [
        (with("made-up", ""), "token_rejected"),
        (with("made-up", &own.secret), "token_rejected"),
        (with(&own.token, ""), "signature_invalid"),
        (
            with(&own.token, &own.secret).spoiled("oauth_token", ""),
            "signature_invalid",
        ),
        (
            with(&own.token, &own.secret).spoiled("oauth_token", "x"),
            "token_rejected",
        ),
        (
            stage.exchanges().spoiled("oauth_token", &own.token),
            "signature_invalid",
        ),
    ] {
        proxy.rejects(call, 401, problem);
    }
    // Names that are like it do not count, and are signed.
    let query = Call::post(&format!("{EXCHANGE}&oauth_Token=x")).by(&caller.consumer);
    proxy.send(query).has_status(400);
    // A Bearer token is exchanged for nothing.
    let alone = stage.exchanged(stage.exchanges());
    let of_user = stage.exchanged(stage.exchanges().with(own));
    for token in [&alone, &of_user] {
        let authorization = format!("Bearer {token}");
        let call = Call::post(EXCHANGE).header("Authorization", &authorization);
        proxy.rejects(call, 401, "parameter_absent");
    }
    proxy.run(&format!("token revoke {}", own.token));
    until("it is revoked", || {
        proxy.status(stage.exchanges().with(own)) == 401
    });
    proxy.rejects(stage.exchanges().with(own), 401, "token_revoked");
    assert_eq!(stage.api.count(), 0);
}

#[test]
fn no_claim_turns_one_kind_of_token_into_the_other() {
    let stage = Stage::start();
    let (own, user) = (&stage.caller.token, &stage.caller.user.id);
    let alone = stage.exchanged(stage.exchanges());
    let of_user = stage.exchanged(stage.exchanges().with(own));
    let kinds = |token: &str| ["/user", "/app"].map(|path| stage.status(path, token));
    assert_eq!(kinds(&of_user), [200, 403]);
    assert_eq!(kinds(&alone), [403, 200]);
    // Those that other versions of the claims would have: each is signed by the right key.
    for (token, changes) in [
        (&alone, json!({"kind": null})),
        (&alone, json!({"kind": "consumer"})),
        (&alone, json!({"kind": ["application"]})),
        (&alone, json!({"sub": user, "kind": null})),
        (&alone, json!({"oauth_token": own.token})),
        (&alone, json!({"oauth_token": own.token, "kind": null})),
        (&alone, json!({"oauth_token": "", "kind": null})),
        (&of_user, json!({"oauth_token": null})),
        (&of_user, json!({"oauth_token": 7})),
        (&of_user, json!({"kind": "application"})),
        (&of_user, json!({"sub": null})),
        (
            &of_user,
            json!({"sub": stage.caller.consumer.key, "oauth_token": null}),
        ),
        (&of_user, json!({"sub": stage.caller.consumer.key})),
    ] {
        let changed = stage.changed(token, &changes);
        assert_eq!(kinds(&changed), [401, 401], "{changes}");
    }
    // Its subject is of no use.
    let of_user = stage.changed(&alone, &json!({ "sub": user }));
    assert_eq!(kinds(&of_user), [403, 200]);
    let seen = stage.api.last_request();
    assert_eq!(seen.header("X-Auth-User"), None);
    // No scope gives what the consumer does not have.
    let wide = stage.changed(&alone, &json!({"scope": "a b", "exp": now() + 600}));
    assert_eq!(stage.status("/b", &wide), 403);
    assert_eq!(stage.status("/both", &wide), 200);
    let seen = stage.api.last_request();
    assert_eq!(seen.header("X-Auth-Permissions"), Some("a"));
}

#[test]
fn a_key_that_is_the_id_of_a_user_gets_no_token() {
    let stage = Stage::start();
    let proxy = &stage.proxy;
    let consumer = proxy.consumer_with("Alice", &format!("--key {}", stage.caller.user.id));
    let call = || Call::post(EXCHANGE).by(&consumer);
    proxy.rejects(call(), 401, "consumer_key_refused");
    // Of a user it gets one, and its own calls go on.
    let token = proxy.token(&consumer, &stage.caller.user);
    stage.exchanged(call().with(&token));
    proxy.passes(Call::get("/app").by(&consumer));
}
