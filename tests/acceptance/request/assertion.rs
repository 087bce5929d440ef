//! The identity assertion, verified by the code of `docs/assertion.md` and `deploy/assertion` as an API would do it.
//!
//! Promise (Permissions and identity): APIs in Python, JavaScript and Ruby verify each assertion, also during a change of keys,
//! and reject wrong ones. Also in `src/request/identity/keys.rs`, `tests/acceptance/request/assertion/keys.rs`.
//! Promise (Permissions and identity): With `bind = "none"` no assertion is used longer than a second after a revocation or a
//! change.

mod exchange;
mod keys;

use std::{path::Path, process::Command};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Answer, Call, Placement, Proxy, Reply, Scene, Upstream, User, Visitor, fresh, gate::WAYS, http,
    now, program::run, proxy::Builder, until,
};

const AUDIENCE: &str = "https://api.internal";

/// The configuration with these keys, and these additions to the section of the assertion.
fn config(keys: &[&str], more: &str) -> String {
    format!(
        "[identity.assertion]\nheader = 'X-Auth-Assertion'\naudience = '{AUDIENCE}'\nkey_files = {keys:?}\n{more}\n"
    )
}

/// Makes a private key in the directory of a proxy, by the arguments of `openssl`.
fn make_key(directory: &Path, name: &str, openssl: &str) {
    let mut command = Command::new("openssl");
    command.args(openssl.split(' ')).arg("-out").arg(name);
    run(command.current_dir(directory), "").done();
}

const ED25519: &str = "genpkey -algorithm ed25519";
const P256: &str = "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256";
const P256_SEC1: &str = "ecparam -name prime256v1 -genkey -noout";

/// A scene with the keys a.pem (Ed25519), b.pem and c.pem (P-256), and these of them configured.
fn scene(keys: &[&str], more: &str) -> Scene {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api);
    for (name, openssl) in [("a.pem", ED25519), ("b.pem", P256), ("c.pem", P256_SEC1)] {
        make_key(builder.directory(), name, openssl);
    }
    let proxy = builder.config(&config(keys, more)).start();
    let caller = proxy.somebody();
    Scene { api, proxy, caller }
}

impl Scene {
    /// The assertion of a call that has to pass.
    #[track_caller]
    fn asserted(&self, call: Call) -> String {
        self.proxy.passes(call);
        let seen = self.api.last_request();
        let all = seen.fields.all("x-auth-assertion");
        assert_eq!(all.len(), 1, "{seen:?}");
        all[0].to_owned()
    }
}

/// A part of a JWT.
fn part(jwt: &str, number: usize) -> Value {
    let part = jwt.split('.').nth(number).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn claims(jwt: &str) -> Value {
    part(jwt, 1)
}

/// The verifiers of the guide, each with the files it needs to run: it reads an assertion, a method and a URL from its
/// arguments, and prints `yes` with the claims, or `no` with the reason.
struct Guide {
    python: String,
    node: String,
    ruby: String,
}

impl Guide {
    fn of(proxy: &Proxy) -> Self {
        let read = |path: &str| {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(AUDIENCE), "{path}");
            text.replace("https://auth.example.com", &proxy.origin())
        };
        let page = read("docs/assertion.md");
        let (_, python) = page.split_once("```python\n").unwrap();
        Self {
            python: python.split_once("```").unwrap().0.to_owned()
                + "
import json, sys
try:
    print('yes', json.dumps(claims(*sys.argv[1:])))
except jwt.InvalidTokenError as error:
    print('no', type(error).__name__, error)
except jwt.PyJWKClientError as error:
    print('no', type(error).__name__, error)
",
            node: read("deploy/assertion/claims.mjs")
                + "
claims(...process.argv.slice(1)).then(
  (found) => console.log('yes', JSON.stringify(found)),
  (error) => console.log('no', error.name, error.message),
);
",
            ruby: read("deploy/assertion/claims.rb")
                + "
begin
  puts 'yes ' + claims(*ARGV).to_json
rescue JWT::DecodeError => error
  puts \"no #{error.class} #{error}\"
end
",
        }
    }

    /// The verdicts in Python, JavaScript and Ruby.
    fn verdicts(&self, assertion: &str, method: &str, url: &str) -> [String; 3] {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let python = tests.join(".tools/venv/bin/python");
        let commands: [(&Path, &[&str], &str); 3] = [
            (&python, &["-c"], &self.python),
            (
                Path::new("node"),
                &["--input-type=module", "-e"],
                &self.node,
            ),
            (Path::new("ruby"), &["-e"], &self.ruby),
        ];
        commands.map(|(program, arguments, script)| {
            let mut command = Command::new(program);
            command.current_dir(tests.join("clients/node"));
            command.args(arguments).arg(script);
            if program == Path::new("node") {
                command.arg("--");
            }
            let ended = run(command.args([assertion, method, url]), "").done();
            let told = ended.stdout.trim().to_owned();
            assert!(
                told.starts_with("yes") || told.starts_with("no"),
                "{told} {}",
                ended.stderr
            );
            told
        })
    }

    /// All accept it, and read these claims.
    #[track_caller]
    fn accept(&self, assertion: &str, method: &str, url: &str) {
        for verdict in self.verdicts(assertion, method, url) {
            let read = verdict.strip_prefix("yes ").expect(&verdict);
            assert_eq!(
                serde_json::from_str::<Value>(read).unwrap(),
                claims(assertion)
            );
        }
    }

    /// All reject it.
    #[track_caller]
    fn reject(&self, assertion: &str, method: &str, url: &str) {
        for verdict in self.verdicts(assertion, method, url) {
            assert!(verdict.starts_with("no "), "{verdict}: {assertion}");
        }
    }
}

#[test]
fn apis_in_three_languages_verify_only_the_right_assertion() {
    let exchange = format!("exchange.audience = '{AUDIENCE}'\n");
    for (key, alg) in [("a.pem", "EdDSA"), ("b.pem", "ES256"), ("c.pem", "ES256")] {
        let mut scene = scene(&[key], "");
        scene.proxy.reload(&exchange);
        let guide = Guide::of(&scene.proxy);
        let call = || Call::get("/photos/a%20b%2Fc?size=1&x=%20").of(&scene.caller);
        let assertion = scene.asserted(call());
        assert_eq!(part(&assertion, 0)["alg"], alg);
        let url = format!("{}/photos/a%20b%2Fc", scene.proxy.origin());
        guide.accept(&assertion, "GET", &url);
        guide.reject(&assertion, "POST", &url);
        guide.reject(&assertion, "GET", &url.replace("%20", "+"));
        guide.reject(&assertion, "GET", &format!("{url}?size=1&x=%20"));
        // A changed one, and one for another purpose with the same audience, keys and issuer.
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let other = signature.replacen(
            &signature[..1],
            if signature.starts_with('A') { "B" } else { "A" },
            1,
        );
        guide.reject(&format!("{signed}.{other}"), "GET", &url);
        let exchanged = scene.proxy.passes(exchanges(&scene));
        guide.reject(
            exchanged.json()["access_token"].as_str().unwrap(),
            "GET",
            &url,
        );

        let mut expiring = scene.proxy;
        expiring.reload(&config(&[key], "ttl = '1s'"));
        expiring.passes(Call::get("/").of(&scene.caller));
        let assertion = scene
            .api
            .last_request()
            .header("x-auth-assertion")
            .unwrap()
            .to_owned();
        until("the assertion expires", || {
            now() > claims(&assertion)["exp"].as_u64().unwrap()
        });
        guide.reject(&assertion, "GET", &format!("{}/", expiring.origin()));

        expiring.reload(&config(&[key], "").replace(AUDIENCE, "https://other.internal"));
        expiring.passes(Call::get("/").of(&scene.caller));
        let assertion = scene
            .api
            .last_request()
            .header("x-auth-assertion")
            .unwrap()
            .to_owned();
        guide.reject(&assertion, "GET", &format!("{}/", expiring.origin()));
    }
}

#[test]
fn claims_of_an_assertion_name_the_caller_and_the_purpose() {
    let more = "[[permission]]\nname = 'read'\n[[permission]]\nname = 'write'\n\
        [[operation]]\npath = '/open'\naccess = ['anonymous', 'application', 'consumer', 'user']\n\
        [[operation]]\npath = '/{*rest}'\n";
    let mut scene = scene(&["a.pem"], "");
    scene.proxy.reload(more);
    let options = "--key k:{1}/='<&>%2F# --permission read --permission write";
    let consumer = scene.proxy.consumer_with("Shop", options);
    let user = scene.caller.user.clone();
    let token = scene
        .proxy
        .token_with(&consumer, &user, "--permission write");
    let origin = scene.proxy.origin();

    let assertion = scene.asserted(Call::new("PATCH", "/a:b,c").by(&consumer).with(&token));
    let head = part(&assertion, 0);
    let set = scene.proxy.ask_admin("/jwks.json").json();
    assert_eq!(
        head,
        json!({"typ": "countersign+jwt", "alg": "EdDSA", "kid": set["keys"][0]["kid"]})
    );
    let mut found = claims(&assertion);
    let members = found.as_object_mut().unwrap();
    let iat = members.remove("iat").unwrap().as_u64().unwrap();
    assert!(now() - iat < 30);
    assert_eq!(members.remove("exp").unwrap(), iat + 60);
    assert!(members.remove("jti").unwrap().as_str().unwrap().len() >= 22);
    let expected = json!({
        "iss": origin, "aud": AUDIENCE, "sub": user.id, "client_id": "k:{1}/='<&>%2F#", "scope": "write",
        "kind": "consumer", "htm": "PATCH", "htu": format!("{origin}/a:b,c"),
    });
    assert_eq!(found, expected);

    let application = claims(&scene.asserted(Call::get("/open").by(&consumer)));
    assert_eq!(application["kind"], "application");
    assert_eq!(application["scope"], "read write");
    assert!(application.get("sub").is_none());

    let mut visitor = Visitor::logged_in(&scene.proxy, &user);
    visitor.send(Call::get("/open")).has_status(200);
    let seen = scene.api.last_request();
    let of_user = claims(seen.header("x-auth-assertion").unwrap());
    assert_eq!(
        (&of_user["kind"], &of_user["sub"]),
        (&json!("user"), &json!(user.id))
    );
    assert!(of_user.get("client_id").is_none());

    scene.proxy.passes(Call::get("/open"));
    assert!(!scene.api.last_request().fields.has("x-auth-assertion"));
    let ids = [&application, &of_user].map(|claims| claims["jti"].clone());
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn the_url_in_an_assertion_is_the_one_that_was_signed() {
    for (mode, target, signed) in [
        ("strip", "/v1/a?b", "https://api.example.com:8443/v1/a"),
        ("keep", "/v1/a?b", "https://api.example.com:8443/v1/a"),
        ("restore", "/a?b", "https://api.example.com:8443/v1/a"),
    ] {
        let mut scene = scene(&["a.pem"], "");
        scene.proxy.reload(&format!(
            "service = {{ public_api_urls = ['https://api.example.com:8443/v1'], prefix = '{mode}' }}"
        ));
        let call = Call::get(target)
            .of(&scene.caller)
            .host("API.example.com:8443")
            .for_origin("https://api.example.com:8443")
            .signs_target("/v1/a?b");
        assert_eq!(claims(&scene.asserted(call))["htu"], signed, "{mode}");
    }
}

#[test]
fn another_proxy_gets_an_assertion_for_the_request_it_describes() {
    let mut scene = scene(&["a.pem"], "");
    scene.proxy.reconfigure(
        "forward_auth.listen = '127.0.0.1:0'\n\
         [[operation]]\npath = '/open'\naccess = ['anonymous']\n[[operation]]\npath = '/a'\n",
    );
    scene.proxy.stop();
    scene.proxy.start();
    let guide = Guide::of(&scene.proxy);
    let url = format!("{}/a", scene.proxy.origin());
    for way in WAYS {
        let answer = scene
            .proxy
            .asks(way, &Call::get("/a?b=c").of(&scene.caller));
        answer.has_status(200);
        let all = answer.fields.all("x-auth-assertion");
        assert_eq!(all.len(), 1, "{answer:?}");
        guide.accept(all[0], "GET", &url);
        let anonymous = scene.proxy.asks(way, &Call::get("/open"));
        anonymous.has_status(200);
        assert_eq!(
            anonymous.fields.all("x-auth-assertion"),
            [""],
            "{anonymous:?}"
        );
    }
}

#[test]
fn assertion_serves_several_calls_until_its_credential_changes() {
    let mut scene = scene(&["a.pem"], "bind = 'none'\nttl = '2h'");
    let consumer = scene
        .proxy
        .consumer_with("Shop", "--permission read --permission write");
    let user = scene.caller.user.clone();
    let token = scene.proxy.token(&consumer, &user);
    let call = |path: &str| Call::post(path).by(&consumer).with(&token);
    let first = scene.asserted(call("/a"));
    let found = claims(&first);
    assert!(found.get("htm").is_none() && found.get("htu").is_none());
    assert_eq!(found["scope"], "read write");
    assert_eq!(scene.asserted(call("/b")), first);
    // Another credential has another one, and so does the consumer alone.
    let other = scene.asserted(Call::get("/").of(&scene.caller));
    assert_ne!(claims(&other)["jti"], found["jti"]);
    // A change of permissions arrives within a second.
    scene.proxy.run(&format!(
        "consumer update {} --permission write",
        consumer.key
    ));
    until("the permissions change", || {
        claims(&scene.asserted(call("/c")))["scope"] == "write"
    });
    // Another key signs at once.
    scene
        .proxy
        .reload(&config(&["b.pem", "a.pem"], "bind = 'none'\nttl = '2h'"));
    assert_eq!(part(&scene.asserted(call("/d")), 0)["alg"], "ES256");
    // A revoked token gets no assertion.
    scene.proxy.run(&format!("token revoke {}", token.token));
    until("the token is revoked", || {
        scene.proxy.status(call("/e")) == 401
    });
    let seen = scene.api.count();
    scene.proxy.rejects(call("/f"), 401, "token_revoked");
    assert_eq!(scene.api.count(), seen);
    // It is used for half its life: another one is signed before it expires.
    scene
        .proxy
        .reload(&config(&["a.pem"], "bind = 'none'\nttl = '6s'"));
    let of_caller = || claims(&scene.asserted(Call::get("/").of(&scene.caller)));
    let is_kept = || {
        let [first, second] = [of_caller(), of_caller()];
        first == second
    };
    until("it serves a second call", is_kept);
    until("another one comes while the first one is valid", || {
        let old = of_caller();
        until("another one comes", || of_caller()["jti"] != old["jti"]);
        now() < old["exp"].as_u64().unwrap()
    });
    // Half of a second rounds to none: each is signed.
    scene
        .proxy
        .reload(&config(&["a.pem"], "bind = 'none'\nttl = '1s'"));
    let call = || Call::get("/").of(&scene.caller);
    assert_ne!(scene.asserted(call()), scene.asserted(call()));
}

#[test]
fn an_assertion_that_a_caller_sends_is_dropped() {
    let mut scene = scene(&["a.pem"], "");
    scene.proxy.reload(
        "[[operation]]\npath = '/open'\naccess = ['anonymous', 'user', 'application', 'consumer']\n\
         [[operation]]\npath = '/watched'\nenforcement = 'observe'\n",
    );
    let spellings = [
        "X-Auth-Assertion",
        "x_auth_assertion",
        "X-Auth.Assertion",
        "X_AUTH-ASSERTION",
    ];
    let forged = |call: Call| {
        spellings
            .iter()
            .fold(call, |call, name| call.header(name, "forged"))
    };
    let mut visitor = Visitor::logged_in(&scene.proxy, &scene.caller.user);
    let calls: [(Call, usize); 4] = [
        (Call::get("/open"), 0),
        (Call::get("/open").of(&scene.caller), 1),
        (Call::get("/open").by(&scene.caller.consumer), 1),
        (Call::get("/watched"), 0),
    ];
    for (call, count) in calls {
        scene.proxy.passes(forged(call));
        let seen = scene.api.last_request();
        assert!(
            !seen.head.windows(6).any(|bytes| bytes == b"forged"),
            "{seen:?}"
        );
        assert_eq!(seen.fields.all("x-auth-assertion").len(), count, "{seen:?}");
    }
    visitor.send(forged(Call::get("/open"))).has_status(200);
    let seen = scene.api.last_request();
    assert!(
        !seen.head.windows(6).any(|bytes| bytes == b"forged"),
        "{seen:?}"
    );
    assert_eq!(seen.fields.all("x-auth-assertion").len(), 1, "{seen:?}");
    // Connection cannot remove it.
    let call = Call::get("/open")
        .of(&scene.caller)
        .header("Connection", "X-Auth-Assertion, close");
    scene.asserted(call);
}

#[test]
fn key_path_is_the_apis_without_assertion_keys() {
    let scene = Scene::start();
    scene.proxy.ask_admin("/jwks.json").has_status(404);
    scene
        .proxy
        .passes(Call::get("/.well-known/jwks.json").of(&scene.caller));
    assert_eq!(scene.api.only_request().target, "/.well-known/jwks.json");
    assert!(!scene.api.only_request().fields.has("x-auth-assertion"));
    let with_keys = self::scene(&["a.pem"], "");
    let posted = with_keys
        .proxy
        .send(Call::post("/.well-known/jwks.json").of(&with_keys.caller));
    posted.has_status(405);
    assert_eq!(
        http::get(with_keys.proxy.admin(), "/jwks.json").header("content-type"),
        Some("application/jwk-set+json")
    );
    with_keys.api.saw_nothing();
}

/// A call of the exchange.
fn exchanges(scene: &Scene) -> Call {
    Call::post("/service.oauth?mode=exchange").of(&scene.caller)
}
