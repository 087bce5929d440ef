//! Bodies that another proxy shows with its descriptions.

use std::net::{Shutdown, TcpStream};

use crate::support::{
    Answer, Call, Connection, Placement, Proxy, Scene, Upstream,
    call::FORM,
    gate::{WAYS, Way},
    has,
};

const CONFIG: &str = "forward_auth.listen = '127.0.0.1:0'\n\
                      operation = [\n\
                          { path = '/mine' },\n\
                          { path = '/open', access = ['anonymous', 'consumer'] },\n\
                          { path = '/hashed', body_hash = 'required' },\n\
                          { path = '/socket', access = ['anonymous'], upgrade = ['websocket'] },\n\
                          { path = '/service.oauth' },\n\
                      ]";

/// SHA-1 of `{"a":1}`, in base64.
const JSON: &str = r#"{"a":1}"#;
const HASH: &str = "n4nHQM60bXQYySSnisV5QdXpZSA=";

#[track_caller]
fn passes(answer: &Answer) {
    answer.has_status(200);
    assert_eq!(answer.header("X-Auth-Kind"), Some("consumer"), "{answer:?}");
}

/// The status that the caller gets, and the advice.
fn outcome(way: Way, answer: &Answer) -> (u16, String) {
    assert!(!answer.fields.has("X-Auth-Kind") || answer.status == 200);
    let status = answer.header("X-Countersign-Status");
    match (way, status) {
        (Way::Nginx, Some(status)) => {
            let challenge = answer.header("WWW-Authenticate").unwrap_or_default();
            (status.parse().unwrap(), challenge.to_owned())
        }
        _ => {
            let advice = answer.told("oauth_problem_advice").unwrap_or_default();
            let problem = answer.problem().unwrap_or_default();
            (answer.status, format!("{problem} {advice}"))
        }
    }
}

#[track_caller]
fn fails(way: Way, answer: &Answer, status: u16, words: &[&str]) {
    let (got, told) = outcome(way, answer);
    assert_eq!(got, status, "{way:?}: {answer:?}");
    has(&told, words);
}

fn hashed(scene: &Scene) -> Call {
    let call = Call::post("/mine").of(&scene.caller).json(JSON);
    call.parameter("oauth_body_hash", HASH)
}

#[test]
fn whole_forms_and_hashed_bodies_are_verified_and_pass_once() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    for way in WAYS {
        let form = Call::post("/mine?b=1").of(caller).form("a=1&a=%20x");
        for call in [
            form.clone(),
            form.clone().placed(Placement::Body),
            Call::new("PUT", "/mine").of(caller).form("a=1"),
            Call::get("/mine").of(caller).form("a=1"),
            Call::post("/mine")
                .of(caller)
                .body("Application/X-WWW-Form-Urlencoded ; charset=utf-8", b"a=1"),
            hashed(&scene),
            hashed(&scene).header("Content-Encoding", "gzip"),
            Call::post("/hashed")
                .of(caller)
                .json(JSON)
                .parameter("oauth_body_hash", HASH),
            form.clone().header("X-Envoy-Auth-Partial-Body", "false"),
        ] {
            let wire = proxy.wire(&call);
            let described = way.describe_whole(&proxy.origin(), &wire);
            passes(&proxy.asks_as(&described));
            fails(way, &proxy.asks_as(&described), 401, &["nonce_used"]);
            let mut public = proxy.connect();
            public.send(&wire);
            public.answer("POST").is(401, "nonce_used");
        }
        // What is not as it was signed.
        for call in [
            Call::post("/mine").of(caller).signs_body("a=1").form("a=2"),
            Call::post("/mine")
                .of(caller)
                .signs_body("a=1")
                .form("a=1&b=2"),
            Call::post("/mine").of(caller).signs_body("").form("a=1"),
        ] {
            let answer = proxy.asks_with_body(way, &call);
            fails(way, &answer, 401, &["signature_invalid"]);
        }
        let other = Call::post("/mine").of(caller).json("{}");
        let other = other.parameter("oauth_body_hash", HASH);
        fails(
            way,
            &proxy.asks_with_body(way, &other),
            401,
            &["oauth_body_hash"],
        );
    }
    scene.api.saw_nothing();
}

#[test]
fn a_body_that_may_be_cut_is_as_one_that_is_not_shown() {
    let scene = Scene::with(&format!(
        "{CONFIG}\nforward_auth.body_bytes = '12B'\nlimits.form_bytes = '64B'"
    ));
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let form = |body: &str| Call::post("/mine").of(caller).form(body);
    let partial = |value: &str| form("a=1").header("X-Envoy-Auth-Partial-Body", value);
    for way in WAYS {
        passes(&proxy.asks_with_body(way, &form("a=345678901")));
        for (call, words) in [
            (form("a=3456789012"), "more than 11 bytes"),
            (form(&format!("a={}", "b".repeat(70))), "more than 11 bytes"),
            (form(""), "without the body"),
            (partial("true"), "a part of the body"),
            (partial("TRUE"), "a part of the body"),
            (partial(""), "a part of the body"),
            (
                partial("false").header("X-Envoy-Auth-Partial-Body", "true"),
                "a part of the body",
            ),
            (
                partial("true").header("X-Envoy-Auth-Partial-Body", "false"),
                "a part of the body",
            ),
            (
                Call::post("/mine")
                    .of(caller)
                    .header("Content-Type", FORM)
                    .chunked(&[b"a=1"]),
                "send it with a Content-Length",
            ),
            (
                hashed(&scene).header("X-Envoy-Auth-Partial-Body", "true"),
                "a part of the body",
            ),
            // The credentials may be in what is missing.
            (
                Call::post("/mine").form("a=3456789012"),
                "more than 11 bytes",
            ),
        ] {
            fails(way, &proxy.asks_with_body(way, &call), 401, &[words]);
            assert_eq!(proxy.asks(way, &call).header("X-Auth-Kind"), None);
        }
        // A body that no signature covers may be cut.
        for call in [
            Call::post("/mine").of(caller).json(&"x".repeat(40)),
            Call::post("/mine").of(caller).json(&"x".repeat(200)),
            Call::post("/mine")
                .of(caller)
                .json("{}")
                .header("X-Envoy-Auth-Partial-Body", "true"),
            Call::post("/mine")
                .of(caller)
                .header("Content-Type", "application/json")
                .chunked(&[b"{}", b"{}"]),
        ] {
            passes(&proxy.asks_with_body(way, &call));
        }
    }
    let ignoring = Proxy::with(
        &scene.api,
        &format!("{CONFIG}\nforward_auth.body_bytes = '0B'"),
    );
    let other = ignoring.somebody();
    for way in WAYS {
        let call = Call::post("/mine").of(&other).form("a=1");
        fails(way, &ignoring.asks_with_body(way, &call), 401, &["body"]);
    }
    scene.api.saw_nothing();
}

/// The answers to a description whose framing is replaced by this one, and to whatever follows it on the connection. The
/// proxy gives up while the body is not whole.
fn framed(proxy: &Proxy, way: Way, call: &Call, framing: &str, body: &[u8]) -> Vec<Answer> {
    let mut head = way.describe(&proxy.origin(), &proxy.wire(call));
    head.truncate(head.len() - 2);
    head.extend(framing.as_bytes());
    head.extend(b"\r\n");
    head.extend(body);
    let stream = TcpStream::connect(proxy.forward_auth()).unwrap();
    let ending = stream.try_clone().unwrap();
    let end = || drop(ending.shutdown(Shutdown::Write));
    let mut connection = Connection::over(stream);
    connection.send(&head);
    let is_whole = !framing.contains(": 8\r\n") && !body.ends_with(b"2\r\n");
    let mut answers = Vec::new();
    if is_whole {
        answers.extend(connection.try_answer("POST").ok().flatten());
    }
    end();
    while let Ok(Some(answer)) = connection.try_answer("POST") {
        answers.push(answer);
    }
    answers
}

#[test]
fn body_of_another_length_than_described_is_never_complete() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let form = || Call::post("/mine").of(caller).form("a=1&b=2");
    for way in WAYS {
        for (framing, body) in [
            // Shorter than what follows, which is then no request; longer than what comes.
            ("Content-Length: 3\r\n", &b"a=1&b=2"[..]),
            ("Content-Length: 8\r\n", b"a=1&b=2"),
            ("Content-Length: 7\r\nContent-Length: 3\r\n", b"a=1&b=2"),
            ("Content-Length: 7, 7\r\n", b"a=1&b=2"),
            ("Content-Length: +7\r\n", b"a=1&b=2"),
            (
                "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n",
                b"7\r\na=1&b=2\r\n0\r\n\r\n",
            ),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n",
                b"a=1&b=2",
            ),
            (
                "Transfer-Encoding: chunked\r\n",
                b"7\r\na=1&b=2\r\n0\r\n\r\n",
            ),
            ("Transfer-Encoding: chunked\r\n", b"7\r\na=1&b=2\r\n"),
            ("X-Forwarded-Content-Length: 7\r\n", b"a=1&b=2"),
            ("", b""),
        ] {
            let answers = framed(proxy, way, &form(), framing, body);
            let passed = answers.iter().filter(|answer| answer.status == 200).count();
            assert_eq!(passed, 0, "{way:?} {framing}: {answers:?}");
        }
        // The framing alone made the difference.
        let answers = framed(proxy, way, &form(), "Content-Length: 7\r\n", b"a=1&b=2");
        passes(&answers[0]);
        // A consumer who signed only the beginning: a proxy that cuts without saying so has to be named.
        let cut = Call::post("/mine")
            .of(caller)
            .signs_body("a=1")
            .form("a=1&b=2");
        let answers = framed(proxy, way, &cut, "Content-Length: 7\r\n", b"a=1&b=2");
        assert_eq!(outcome(way, &answers[0]).0, 401);
    }
    scene.api.saw_nothing();
}

#[test]
fn the_described_type_says_whether_the_body_is_a_form() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let form = || Call::post("/mine").of(caller);
    for way in WAYS {
        // Signed as a form, described as something else.
        let call = form().signs_body("a=1").body("text/plain", b"a=1");
        fails(
            way,
            &proxy.asks_with_body(way, &call),
            401,
            &["signature_invalid"],
        );
        // Without a type the API may get it as a form: the proxy may have kept the type to itself.
        let call = form().bytes(b"a=1");
        fails(
            way,
            &proxy.asks_with_body(way, &call),
            401,
            &["Content-Type"],
        );
        let call = form()
            .bytes(JSON.as_bytes())
            .parameter("oauth_body_hash", HASH);
        passes(&proxy.asks_with_body(way, &call));
        let call = form().signs_body("a=1").body("text/plain", b"a=1");
        let two = call.header("Content-Type", FORM);
        fails(
            way,
            &proxy.asks_with_body(way, &two),
            400,
            &["Content-Type"],
        );
        let encoded = form().form("a=1").header("Content-Encoding", "gzip");
        fails(
            way,
            &proxy.asks_with_body(way, &encoded),
            400,
            &["Content-Encoding"],
        );
    }
    scene.api.saw_nothing();
}

#[test]
fn a_body_of_the_proxy_itself_is_not_one_that_a_caller_signed() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let own = b"{\"check\":1}";
    let length = format!("Content-Length: {}\r\n", own.len());
    for way in WAYS {
        for call in [
            Call::post("/mine").of(caller).form("a=1"),
            Call::post("/mine").of(caller).signs_body("").form("a=1"),
            hashed(&scene),
        ] {
            let answers = framed(proxy, way, &call, &length, own);
            assert_eq!(outcome(way, &answers[0]).0, 401, "{way:?}: {answers:?}");
        }
        let call = Call::post("/mine").of(caller).json("{}");
        passes(&framed(proxy, way, &call, &length, own)[0]);
    }
}

#[test]
fn a_demanded_body_hash_is_demanded_of_a_body_that_is_not_shown() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let call = |method: &str| Call::new(method, "/hashed").of(caller);
    for way in WAYS {
        passes(&proxy.asks(way, &call("GET")));
        passes(&proxy.asks(way, &call("DELETE")));
        for unhashed in [
            call("POST"),
            call("PUT").json("{}"),
            call("PATCH").bytes(b"x"),
            call("DELETE").json("{}"),
        ] {
            let answer = proxy.asks(way, &unhashed);
            fails(way, &answer, 400, &["parameter_absent"]);
        }
        let answer = proxy.asks_with_body(way, &call("POST").json("{}"));
        fails(way, &answer, 400, &["parameter_absent"]);
        passes(&proxy.asks_with_body(way, &call("POST").form("a=1")));
    }
}

#[test]
fn unsigned_forms_and_token_calls_are_as_on_the_public_listener() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    for way in WAYS {
        let answer = proxy.asks_with_body(way, &Call::post("/mine").form("a=1"));
        fails(
            way,
            &answer,
            401,
            &["parameter_absent", "signed with OAuth 1.0a"],
        );
        let answer = proxy.asks_with_body(way, &Call::post("/open").form("a=1"));
        assert_eq!(
            answer.has_status(200).header("X-Auth-Kind"),
            Some("anonymous")
        );
        for form in ["mode=req_req_token", "mode=revoke_token&a=1"] {
            let call = Call::post("/service.oauth").of(caller).form(form);
            let answer = proxy.asks_with_body(way, &call);
            assert_eq!(outcome(way, &answer).0, 404, "{way:?}: {answer:?}");
        }
        let call = Call::post("/service.oauth").of(caller).form("a=1");
        passes(&proxy.asks_with_body(way, &call));
        let socket = Call::get("/socket")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(outcome(way, &proxy.asks_with_body(way, &socket)).0, 200);
        let with_body = socket.json("{}");
        assert_eq!(outcome(way, &proxy.asks_with_body(way, &with_body)).0, 400);
    }
    scene.api.saw_nothing();
}

#[test]
fn a_form_has_the_limits_of_the_public_listener() {
    let config = format!("{CONFIG}\nlimits = {{ form_bytes = '100B', form_fields = 3 }}");
    let scene = Scene::with(&config);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let form = |body: &str| Call::post("/mine").of(caller).form(body);
    for way in WAYS {
        passes(&proxy.asks_with_body(way, &form("a=1&b=2&c=3")));
        let answer = proxy.asks_with_body(way, &form("a=1&b=2&c=3&d=4"));
        assert_eq!(outcome(way, &answer).0, 413, "{answer:?}");
        let long = "a=".to_owned() + &"b".repeat(98);
        passes(&proxy.asks_with_body(way, &form(&long)));
        let answer = proxy.asks_with_body(way, &form(&(long + "b")));
        fails(way, &answer, 401, &["more than 100 bytes"]);
    }
}

#[test]
fn the_connection_serves_the_next_description_after_a_body() {
    let scene = Scene::with(CONFIG);
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let form = || Call::post("/mine").of(caller).form("a=1");
    let json = || Call::post("/mine").of(caller).json(&"x".repeat(100_000));
    for way in WAYS {
        let mut connection = Connection::to(proxy.forward_auth());
        for (call, expected) in [
            (form(), 200),
            (json(), 200),
            (form().key("wrong"), 401),
            (json().key("wrong"), 401),
            (Call::get("/mine").of(caller), 200),
        ] {
            connection.send(&way.describe_whole(&proxy.origin(), &proxy.wire(&call)));
            let answer = connection.answer("POST");
            assert_eq!(outcome(way, &answer).0, expected, "{way:?}: {answer:?}");
            assert_ne!(answer.header("Connection"), Some("close"), "{answer:?}");
        }
        // A proxy that promises a body and sends none is answered all the same, if the signature does not cover it.
        let described = way.describe(&proxy.origin(), &proxy.wire(&json()));
        let mut promised = described[..described.len() - 2].to_vec();
        promised.extend(b"Content-Length: 5\r\n\r\n");
        connection.send(&promised);
        passes(&connection.answer("POST"));
        assert!(connection.is_closed());
    }
    let observing = Upstream::start();
    let proxy = Proxy::with(
        &observing,
        &format!("{CONFIG}\nsignature.enforcement = 'observe'"),
    );
    let answer = proxy.asks_with_body(Way::Verify, &Call::post("/mine").form("a=1"));
    assert_eq!(answer.has_status(200).header("X-Auth-Kind"), Some(""));
}

#[test]
fn body_that_cannot_be_verified_counts_as_a_body() {
    let scene = Scene::with(&format!("{CONFIG}\nforward_auth.body_bytes = '12B'"));
    let (proxy, caller) = (&scene.proxy, &scene.caller);
    let added = |method: &str, path: &str| {
        let call = || Call::new(method, path).of(caller);
        [
            call().chunked(&[b"a=1"]),
            call().bytes(b"a=3456789012"),
            call()
                .bytes(b"a=1")
                .header("X-Envoy-Auth-Partial-Body", "true"),
        ]
    };
    for way in WAYS {
        // Somebody between the consumer and the gateway has added it, and left out its type.
        for call in ["GET", "POST", "DELETE"]
            .map(|method| added(method, "/mine"))
            .into_iter()
            .flatten()
        {
            fails(
                way,
                &proxy.asks_with_body(way, &call),
                401,
                &["Content-Type"],
            );
        }
        for call in ["GET", "DELETE"]
            .map(|method| added(method, "/hashed"))
            .into_iter()
            .flatten()
        {
            let typed = call.header("Content-Type", "text/plain");
            fails(
                way,
                &proxy.asks_with_body(way, &typed),
                400,
                &["parameter_absent"],
            );
        }
    }
    scene.api.saw_nothing();
}
