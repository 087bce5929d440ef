//! Decisions for another proxy that forwards the requests itself.
//!
//! Promise (Storage and operation): Forward-auth permits the same requests as the public listener, and rejects an incomplete or
//! ambiguous description. Also in `tests/acceptance/gateway/described_bodies.rs`,
//! `tests/acceptance/gateway/forward_auth/without_an_api.rs`, `tests/acceptance/gateway/forward_auth/descriptions.rs`,
//! `tests/deploy/traces.rs`.

mod descriptions;
mod without_an_api;

use rustix::process::Signal;

use crate::support::{
    Answer, Call, Connection, Proxy, Scene, Upstream, Visitor,
    gate::{WAYS, Way},
    has,
    legs::{APPLICATIONS, asks, token_of},
    proxy::Builder,
    rows,
};

const CONFIG: &str = r#"
    forward_auth.listen = "127.0.0.1:0"
    operation = [
        { path = "/members/{id}", methods = ["GET"], permission = "members" },
        { path = "/mine" },
        { path = "/app", access = ["application"] },
        { path = "/account", access = ["user", "consumer"] },
        { path = "/open", access = ["anonymous", "consumer"] },
        { path = "/socket", access = ["anonymous"], upgrade = ["websocket"] },
    ]
    permission = [{ name = "members" }]
"#;

const IDENTITY: [&str; 4] = ["User", "Consumer", "Permissions", "Kind"];

/// The values of the identity headers, which are all there, once.
#[track_caller]
fn identity(answer: &Answer) -> [&str; 4] {
    answer.has_status(200);
    IDENTITY.map(|name| {
        let values = answer.fields.all(&format!("X-Auth-{name}"));
        assert_eq!(values.len(), 1, "{answer:?}");
        values[0]
    })
}

/// The intended status: nginx gets it in a field of its own.
#[track_caller]
fn status(way: Way, answer: &Answer) -> u16 {
    if way != Way::Nginx {
        assert!(!answer.fields.has("X-Countersign-Status"), "{answer:?}");
        return answer.status;
    }
    if answer.status == 200 {
        return 200;
    }
    assert!([401, 403].contains(&answer.status), "{answer:?}");
    has(
        answer.header("WWW-Authenticate").unwrap(),
        &["OAuth realm=\"countersign\"", "oauth_problem_advice=\""],
    );
    answer
        .header("X-Countersign-Status")
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn described_call_is_permitted_once_with_its_identity_returned() {
    let Scene { api, proxy, caller } = Scene::with("forward_auth.listen = '127.0.0.1:0'");
    let (user, key) = (&*caller.user.id, &*caller.consumer.key);
    for way in WAYS {
        for target in ["/a%2Fb//c%20d;e/%7E?q=a%20b&empty=&x=%2F%7E&b=2&b=1", "/"] {
            let wire = proxy.wire(&Call::new("DELETE", target).of(&caller));
            let answer = proxy.asks_by(way, &proxy.origin(), &wire);
            assert_eq!(identity(&answer), [user, key, "", "consumer"], "{way:?}");
            assert!(answer.body.is_empty());
            // Both listeners share one nonce window.
            for again in WAYS {
                let answer = proxy.asks_by(again, &proxy.origin(), &wire);
                assert_eq!(status(again, &answer), 401);
                if again != Way::Nginx {
                    answer.is(401, "nonce_used");
                }
            }
            let mut public = proxy.connect();
            public.send(&wire);
            public.answer("DELETE").is(401, "nonce_used");
        }
        let wire = proxy.wire(&Call::get("/").of(&caller));
        let mut public = proxy.connect();
        public.send(&wire);
        public.answer("GET").has_status(200);
        let answer = proxy.asks_by(way, &proxy.origin(), &wire);
        assert_eq!(
            status(way, &answer),
            401,
            "replayed from the public listener"
        );
    }
    assert_eq!(api.count(), WAYS.len(), "nothing described is forwarded");
}

#[test]
fn of_one_request_at_both_listeners_at_once_only_one_passes() {
    let Scene { api, proxy, caller } = Scene::with("forward_auth.listen = '127.0.0.1:0'");
    let mut permitted = 0;
    for round in 0..10 {
        let wire = proxy.wire(&Call::get("/raced").of(&caller));
        let describe = |way: Way| (proxy.forward_auth(), way.describe(&proxy.origin(), &wire));
        let mut requests = vec![(proxy.address(), wire.clone()); 3];
        requests.extend(WAYS.map(describe));
        let mut opened: Vec<_> = requests
            .into_iter()
            .map(|(address, wire)| (Connection::to(address), wire))
            .collect();
        for (connection, wire) in &mut opened {
            connection.send(&wire[..wire.len() - 1]);
        }
        for (connection, wire) in &mut opened {
            connection.send(&wire[wire.len() - 1..]);
        }
        let statuses = opened.iter_mut().map(|(it, _)| it.answer("GET").status);
        let statuses: Vec<u16> = statuses.collect();
        let passed = |status: &&u16| **status == 200;
        assert_eq!(statuses.iter().filter(passed).count(), 1, "{statuses:?}");
        permitted += statuses[3..].iter().filter(passed).count();
        assert_eq!(api.count() + permitted, round + 1);
    }
}

#[test]
fn a_permission_without_an_assertion_has_an_empty_header_for_it() {
    let builder = Builder::for_forward_auth().config(CONFIG).config(
        "identity.assertion = { header = 'X-Auth-Assertion', key_files = ['key.pem'], audience = 'https://api.internal' }",
    );
    let key = builder.directory().join("key.pem");
    let made = std::process::Command::new("openssl")
        .args(["genpkey", "-algorithm", "ed25519", "-out"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    let proxy = builder.start();
    let caller = proxy.somebody();
    for way in WAYS {
        let forged = |call: Call| call.header("X-Auth-Assertion", "forged");
        let answer = proxy.asks(way, &forged(Call::get("/open")));
        assert_eq!(answer.fields.all("X-Auth-Assertion"), [""]);
        let answer = proxy.asks(way, &forged(Call::get("/mine").of(&caller)));
        let token = answer.header("X-Auth-Assertion").unwrap();
        assert_eq!(token.split('.').count(), 3, "{token}");
    }
}

#[test]
fn rejection_is_the_public_listeners_and_in_a_field_for_nginx() {
    let Scene { proxy, caller, .. } = Scene::with(CONFIG);
    let secret = caller.consumer.clone();
    let wrong = crate::support::Consumer::new(secret.key, "wrong");
    let far_host = "elsewhere.example";
    for (call, expected, nginx, problem) in [
        (Call::get("/mine"), 401, 401, "parameter_absent"),
        (
            Call::get("/mine").by(&wrong).with(&caller.token),
            401,
            401,
            "signature_invalid",
        ),
        (
            Call::get("/mine").of(&caller).without("oauth_nonce"),
            400,
            401,
            "parameter_absent",
        ),
        (
            Call::get("/members/7").of(&caller),
            404,
            403,
            "permission_denied",
        ),
        (Call::post("/members/7").of(&caller), 405, 403, ""),
        (Call::get("/open/../mine"), 400, 401, "parameter_rejected"),
        (Call::new("TRACE", "/open"), 405, 403, ""),
        (Call::get("/open").host(far_host), 421, 403, ""),
    ] {
        let origin = match expected {
            421 => format!("http://{far_host}"),
            _ => proxy.origin(),
        };
        let at_proxy = {
            let mut connection = proxy.connect();
            connection.send(&proxy.wire(&call));
            connection.answer("GET")
        };
        assert_eq!(at_proxy.status, expected, "{at_proxy:?}");
        for way in WAYS {
            let answer = proxy.asks_by(way, &origin, &proxy.wire(&call));
            assert_eq!(status(way, &answer), expected, "{way:?}: {answer:?}");
            if way == Way::Nginx {
                assert_eq!(answer.status, nginx);
                let challenge = answer.header("WWW-Authenticate").unwrap();
                assert_eq!(challenge.contains("oauth_problem=\""), !problem.is_empty());
                has(challenge, &[problem]);
            } else {
                assert_eq!(answer.problem().unwrap_or_default(), problem, "{answer:?}");
                assert_eq!(answer.header("Allow"), at_proxy.header("Allow"));
            }
            assert_ne!(
                answer.header("Connection"),
                Some("close"),
                "it is another proxy's"
            );
            for name in IDENTITY {
                assert!(!answer.fields.has(&format!("X-Auth-{name}")), "{answer:?}");
            }
        }
    }
}

#[test]
fn a_body_that_the_signature_covers_is_not_verified_without_it() {
    let Scene { api, proxy, caller } = Scene::with(CONFIG);
    let form = "application/x-www-form-urlencoded";
    for way in WAYS {
        for call in [
            Call::post("/mine").of(&caller).form("a=1"),
            // The signature would be valid for a request without the form.
            Call::post("/mine").of(&caller).signs_body("").form("a=1"),
            Call::get("/mine").of(&caller).header("Content-Type", form),
            Call::post("/mine").of(&caller).signs_body("").header(
                "content-type",
                "Application/X-WWW-Form-Urlencoded ; charset=utf-8",
            ),
            Call::post("/mine")
                .of(&caller)
                .parameter("oauth_body_hash", "2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
        ] {
            let answer = proxy.asks(way, &call);
            assert_eq!(status(way, &answer), 401, "{way:?} {answer:?}");
            let (text, told) = match way {
                Way::Nginx => (answer.header("WWW-Authenticate").unwrap().to_owned(), None),
                _ => (
                    answer.told("oauth_problem_advice").unwrap(),
                    answer.problem(),
                ),
            };
            has(&text, &["body"]);
            assert!(told.is_none_or(|told| told == "signature_invalid"));
        }
        // It may be signed in the form.
        let answer = proxy.asks(way, &Call::post("/mine").form("a=1"));
        assert_eq!(status(way, &answer), 401);
        if way != Way::Nginx {
            has(
                &answer
                    .is(401, "parameter_absent")
                    .told("oauth_problem_advice")
                    .unwrap(),
                &["body"],
            );
        }
        let call = Call::post("/mine").of(&caller).json("{}");
        assert_eq!(identity(&proxy.asks(way, &call))[3], "consumer");
        // An unsigned form is for an operation that is open to everyone.
        assert_eq!(
            identity(&proxy.asks(way, &Call::post("/open").form("a=1")))[3],
            "anonymous"
        );
    }
    api.saw_nothing();
}

#[test]
fn described_requests_have_the_limits_of_the_public_listener() {
    let (_api, proxy, caller) = Scene::with(
        "forward_auth.listen = '127.0.0.1:0'\n\
         limits = { target_bytes = '1KiB', head_bytes = '4KiB', head_fields = 30, requests_per_consumer = '12 per 1h' }",
    ).into_parts();
    let target = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    for way in WAYS {
        assert_eq!(
            identity(&proxy.asks(way, &Call::get(&target(1024)).of(&caller)))[3],
            "consumer"
        );
        let answer = proxy.asks(way, &Call::get(&target(1025)).of(&caller));
        assert_eq!(status(way, &answer), 414);
        let answer = proxy.asks(
            way,
            &Call::get("/")
                .of(&caller)
                .header("X-Long", &"x".repeat(4096)),
        );
        assert_eq!(status(way, &answer), 431);
        let many = (0..30).fold(Call::get("/").of(&caller), |call, index| {
            call.header(&format!("X-{index}"), "1")
        });
        assert_eq!(status(way, &proxy.asks(way, &many)), 431);
        let big = Call::get(&target(1024))
            .of(&caller)
            .header("X-Long", &"x".repeat(2048));
        assert_eq!(identity(&proxy.asks(way, &big))[3], "consumer");
    }
    // Both listeners share one rate.
    for _ in 0..6 {
        proxy.passes(Call::get("/").of(&caller));
    }
    proxy.send(Call::get("/").of(&caller)).has_status(429);
    for way in WAYS {
        let answer = proxy.asks(way, &Call::get("/").of(&caller));
        assert_eq!(status(way, &answer), 429);
        assert!(answer.fields.has("Retry-After"));
    }
}

#[test]
fn a_full_nonce_window_is_503_for_every_description() {
    let scene = Scene::with("forward_auth.listen = '127.0.0.1:0'\nnonce.max_entries = 1");
    let call = || Call::get("/").of(&scene.caller);
    scene.proxy.passes(call());
    for way in WAYS {
        let answer = scene.proxy.asks(way, &call());
        assert_eq!(status(way, &answer), 503, "{answer:?}");
        let sent = if way == Way::Nginx { 403 } else { 503 };
        assert_eq!(answer.status, sent, "{answer:?}");
        assert!(answer.fields.has("Retry-After"), "{answer:?}");
    }
    assert_eq!(scene.api.count(), 1);
}

#[test]
fn session_opens_user_operations_and_its_lack_leads_to_login() {
    let Scene { proxy, caller, .. } = Scene::with(CONFIG);
    let visitor = Visitor::logged_in(&proxy, &caller.user);
    let cookie: Vec<String> = visitor
        .cookies
        .iter()
        .map(|(n, v)| format!("{n}={v}"))
        .collect();
    let cookie = cookie.join("; ");
    let of_user = |method: &str| Call::new(method, "/account").header("Cookie", &cookie);
    let origin = proxy.origin();
    for way in WAYS {
        for (call, expected) in [
            (of_user("GET"), 200),
            (of_user("GET").header("Sec-Fetch-Site", "cross-site"), 403),
            (of_user("POST"), 403),
            (of_user("POST").header("Origin", &origin), 200),
            (
                of_user("POST").header("Origin", "https://evil.example"),
                403,
            ),
            // A proxy that removes `Upgrade` still shows that a handshake was begun.
            (
                of_user("GET").header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                403,
            ),
            (Call::get("/mine").header("Cookie", &cookie), 404),
        ] {
            let answer = proxy.asks(way, &call);
            assert_eq!(status(way, &answer), expected, "{way:?} {call:?}");
        }
        let navigation = Call::get("/account?a=1")
            .header("Accept", "text/html")
            .header("Sec-Fetch-Mode", "navigate")
            .header("Sec-Fetch-Site", "none");
        let answer = proxy.asks(way, &navigation);
        assert_eq!(status(way, &answer), 303);
        has(
            answer.header("Location").unwrap(),
            &["/service.oauth?mode=login&return_to=", "account"],
        );
        if way == Way::Nginx {
            assert_eq!(answer.status, 401);
        }
    }
}

#[test]
fn an_upgrade_is_permitted_where_the_operation_admits_it() {
    let Scene { proxy, .. } = Scene::with(CONFIG);
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    let socket = |target: &str| {
        Call::get(target)
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Key", KEY)
    };
    for way in WAYS {
        for (call, expected) in [
            (socket("/socket"), 200),
            (Call::get("/socket"), 200),
            (socket("/open"), 404),
            (Call::get("/open").header("Upgrade", "h2c"), 404),
            (Call::get("/socket").header("Upgrade", "h2c"), 404),
            (
                Call::get("/socket").header("Upgrade", "websocket, h2c"),
                404,
            ),
            (Call::post("/socket").header("Upgrade", "websocket"), 404),
            (socket("/socket").header("Upgrade", "h2c"), 404),
            (Call::get("/open").header("Sec-WebSocket-Key", KEY), 404),
            (Call::get("/socket").header("Sec-WebSocket-Key", KEY), 200),
            // No server could accept these, and the public listener rejects them too.
            (Call::get("/socket").header("Sec-WebSocket-Key", "x"), 400),
            (Call::get("/socket").header("Upgrade", "websocket"), 400),
            (socket("/socket").header("Sec-WebSocket-Key", KEY), 400),
        ] {
            let answer = proxy.asks(way, &call);
            assert_eq!(
                status(way, &answer),
                expected,
                "{way:?} {call:?}: {answer:?}"
            );
        }
    }
}

#[test]
fn described_preflights_and_observed_calls_pass_as_in_public() {
    let preflight = || {
        Call::new("OPTIONS", "/mine")
            .header("Origin", "https://app.example")
            .header("Access-Control-Request-Method", "PUT")
    };
    let start = |config: &str| {
        let builder = Builder::for_forward_auth().config(CONFIG);
        builder.config(config).start()
    };
    let (rejects, forwards) = (start(""), start("operations.preflight = 'forward'"));
    let observes = start("signature.enforcement = 'observe'");
    let caller = observes.somebody();
    for way in WAYS {
        assert_eq!(status(way, &rejects.asks(way, &preflight())), 401);
        let answer = forwards.asks(way, &preflight());
        assert_eq!(identity(&answer), ["", "", "", "anonymous"]);
        let with_body = preflight().header("Content-Type", "text/plain");
        assert_eq!(status(way, &forwards.asks(way, &with_body)), 401);
        // Observed calls are forwarded without any identity.
        for call in [
            preflight(),
            Call::get("/mine"),
            Call::get("/mine").of(&caller).key("wrong"),
            Call::post("/mine").of(&caller).form("a=1"),
            Call::get("/mine").of(&caller),
        ] {
            let answer = observes.asks(way, &call);
            assert_eq!(identity(&answer), [""; 4], "{way:?} {call:?}");
        }
        let answer = observes.asks(way, &Call::get("/a/../b"));
        assert_eq!(status(way, &answer), 200);
    }
    observes.logs(&["verdict=\"observed\"", "path=\"/mine\""]);
    let observed = "countersign_requests_total{verdict=\"observed\"}";
    assert_eq!(observes.metric(observed), 18.0);
}

#[test]
fn decisions_are_logged_and_counted_as_requests() {
    let Scene { proxy, caller, .. } = Scene::with(CONFIG);
    let id = proxy.asks(Way::Nginx, &Call::get("/members/7?secret=1").of(&caller));
    let id = id.header("X-Request-Id").unwrap().to_owned();
    let key = format!("consumer={}", caller.consumer.key);
    proxy.logs(&[
        "method=\"GET\"",
        "path=\"/members/7\"",
        "status=404",
        "verdict=\"permission_denied\"",
        &key,
        &id,
    ]);
    proxy.asks(Way::Forwarded, &Call::new("PUT", "/mine").of(&caller));
    proxy.logs(&[
        "method=\"PUT\"",
        "path=\"/mine\"",
        "status=200",
        "verdict=\"forwarded\"",
        &key,
    ]);
    let counts =
        |name: &str| proxy.metric(&format!("countersign_requests_total{{verdict=\"{name}\"}}"));
    assert_eq!(
        (counts("forwarded"), counts("permission_denied")),
        (1.0, 1.0)
    );
    assert!(!proxy.log().to_string().contains("secret=1"));
}

#[test]
fn the_logged_address_is_the_one_that_a_trusted_gateway_names() {
    for (trusted, is_named) in [("127.0.0.1", true), ("192.0.2.1", false)] {
        let config = format!("{CONFIG}\nlisten.trusted_proxies = ['{trusted}']");
        let proxy = Builder::for_forward_auth().config(&config).start();
        for way in WAYS {
            let method = format!("{way:?}").to_uppercase();
            let described = way.description(&proxy.origin(), &method, "/open");
            let head = format!("{described}X-Forwarded-For: 192.0.2.7, 203.0.113.9\r\n\r\n");
            raw(&proxy, &head).has_status(200);
            let line = proxy.logs(&[&format!("method=\"{method}\""), "peer=127.0.0.1 "]);
            assert_eq!(line.contains(" address=203.0.113.9 "), is_named, "{line}");
            assert!(!line.contains("192.0.2.7"), "{line}");
        }
    }
}

#[test]
fn forward_auth_serves_a_unix_socket_and_drains_its_requests() {
    let mut builder = Builder::for_forward_auth();
    let path = builder.directory().join("gate.sock");
    builder.set(
        "forward_auth.listen",
        format!("unix:{}", path.display()).into(),
    );
    // Left behind by a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let mut proxy = builder.start();
    let caller = proxy.somebody();
    proxy.logs(&["listening", "forward-auth", "gate.sock"]);
    let connect = || {
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        crate::support::http::Wire::new(Box::new(stream))
    };
    let wire = proxy.wire(&Call::get("/a").of(&caller));
    let described = Way::Nginx.describe(&proxy.origin(), &wire);
    let (mut one, mut half) = (connect(), connect());
    one.write(&described).unwrap();
    assert_eq!(one.head().unwrap().unwrap().status(), 200);
    let wire = proxy.wire(&Call::get("/b").of(&caller));
    let described = Way::Nginx.describe(&proxy.origin(), &wire);
    half.write(&described[..50]).unwrap();
    proxy.signal(Signal::TERM);
    proxy.logs(&["draining"]);
    half.write(&described[50..]).unwrap();
    assert_eq!(half.head().unwrap().unwrap().status(), 200);
    assert!(proxy.wait().success());
    assert!(std::os::unix::net::UnixStream::connect(&path).is_err());
}

#[test]
fn check_warns_of_a_forward_auth_listener_that_others_reach() {
    for (address, warned) in [
        ("0.0.0.0:0", true),
        ("[::]:0", true),
        ("127.0.0.1:0", false),
        ("[::1]:0", false),
        ("unix:/run/g.sock", false),
    ] {
        let mut builder = Builder::for_forward_auth();
        builder.set("forward_auth.listen", address.into());
        let ended = builder.run(&["check"], "");
        let told = ended.stdout + &ended.stderr;
        assert_eq!(
            told.contains("forward_auth.listen:"),
            warned,
            "{address}: {told}"
        );
    }
}

/// A request to the listener that is not made by [`Way::describe`].
#[track_caller]
fn raw(proxy: &Proxy, head: &str) -> Answer {
    let mut connection = Connection::to(proxy.forward_auth());
    let bytes: Vec<u8> = head.chars().map(|it| it as u8).collect();
    connection.send(&bytes);
    connection.answer(head.split(' ').next().unwrap())
}
