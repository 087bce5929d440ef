//! The proxy as a proxy: bytes, bodies, connections, hosts, prefixes.
//!
//! Promise (HTTP): Over HTTP/1.1 field names are written in Title-Case, or unchanged with `upstream.header_case = "preserve"`.
//! Also in `tests/acceptance/wire/early_responses.rs`.

use crate::support::{Call, Proxy, Reply, Scene, Upstream, http::Fields, words};

#[test]
fn hop_by_hop_fields_of_every_connection_line_stop_here() {
    let api = Upstream::replying(|_| {
        Reply::ok("x")
            .header("Connection", "X-Hop-Answer")
            .header("Connection", "keep-alive, x-second-answer")
            .header("X-Hop-Answer", "1")
            .header("X-Second-Answer", "1")
            .header("Keep-Alive", "timeout=5")
            .header("Proxy-Authenticate", "Basic")
            .header("X-End", "stays")
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let call = Call::get("/")
        .of(&caller)
        .header("Connection", "X-Hop, keep-alive")
        .header("X-Hop", "1")
        .header("Connection", "x-second , X-Third")
        .header("X-Second", "1")
        .header("x-third", "1")
        .header("Keep-Alive", "timeout=1")
        .header("Proxy-Connection", "keep-alive")
        .header("Proxy-Authorization", "Basic YTpi")
        .header("TE", "trailers")
        .header("Upgrade", "websocket")
        .header("X-End", "stays");
    let answer = proxy.send(call);
    answer.has_status(200);
    let seen = api.only_request();
    for name in
        words("x-hop x-second x-third keep-alive proxy-connection proxy-authorization te upgrade")
    {
        assert!(!seen.fields.has(name), "{name} stops here: {seen:?}");
    }
    assert_eq!(seen.header("x-end"), Some("stays"));
    for name in words("x-hop-answer x-second-answer keep-alive proxy-authenticate") {
        assert!(!answer.fields.has(name), "{name} stops here: {answer:?}");
    }
    assert_eq!(answer.header("x-end"), Some("stays"));
}

#[test]
fn field_names_are_written_in_title_case() {
    let api = Upstream::replying(|_| Reply::ok("ok").header("x-FROM-api", "1"));
    let proxy = Proxy::in_front_of(&api).start();
    let alice = proxy.somebody();
    let call = Call::get("/").of(&alice);
    let answer = proxy.send(call.header("x-FROM-caller", "1"));
    let has = |fields: &Fields, name: &str| fields.0.iter().any(|(it, _)| it == name);
    let seen = api.only_request().fields;
    assert!(
        has(&seen, "X-From-Caller") && has(&seen, "X-Auth-User"),
        "{seen:?}"
    );
    assert!(has(&answer.fields, "X-From-Api"), "{answer:?}");
}

#[test]
fn responses_pass_unchanged() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/created" => Reply::status("201 Made It")
            .header("X-A", "1")
            .header("X-A", "2")
            .body("made"),
        "/none" => Reply::status("204 No Content"),
        "/moved" => {
            Reply::status("301 Moved Permanently").header("Location", "https://else.example/x")
        }
        "/same" => Reply::status("304 Not Modified").header("ETag", "\"x\""),
        "/refused" => Reply::status("401 Unauthorized")
            .header("WWW-Authenticate", "Basic realm=\"api\"")
            .body("no"),
        "/broken" => Reply::status("500 Internal Server Error").body("oh"),
        "/teapot" => Reply::status("418 I'm a teapot")
            .header("Set-Cookie", "a=b")
            .header("Set-Cookie", "c=d"),
        "/chunks" => Reply::ok("").chunked(&["one", "two"]),
        "/close" => Reply::ok("").until_close("all of it"),
        other => panic!("{other}"),
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let mut kept = proxy.connect();
    let mut ask = |target: &str| proxy.send_on(&mut kept, Call::get(target).of(&caller));
    let created = ask("/created");
    assert_eq!((created.status, created.text().as_str()), (201, "made"));
    assert_eq!(created.fields.all("x-a"), ["1", "2"]);
    assert_eq!(
        (ask("/none").status, ask("/same").header("etag")),
        (204, Some("\"x\""))
    );
    assert_eq!(
        ask("/moved").header("location"),
        Some("https://else.example/x")
    );
    let refused = ask("/refused");
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (401, Some("Basic realm=\"api\""))
    );
    assert_eq!(
        (
            ask("/broken").status,
            ask("/teapot").fields.all("set-cookie")
        ),
        (500, vec!["a=b", "c=d"])
    );
    assert_eq!(
        (
            ask("/chunks").text().as_str(),
            ask("/close").text().as_str()
        ),
        ("onetwo", "all of it")
    );
}

#[test]
fn connections_are_kept_on_both_sides() {
    let Scene { api, proxy, caller } = Scene::with("listen.workers = 1");
    let mut kept = proxy.connect();
    for _ in 0..20 {
        proxy
            .send_on(&mut kept, Call::get("/").of(&caller))
            .has_status(200);
    }
    assert_eq!((api.count(), api.connections()), (20, 1));
    let mut other = proxy.connect();
    proxy
        .send_on(&mut other, Call::get("/").of(&caller))
        .has_status(200);
    assert_eq!(
        api.connections(),
        1,
        "an idle connection serves whoever comes"
    );
}

#[test]
fn connection_close_is_honoured_on_both_sides() {
    let api = Upstream::replying(|_| Reply::ok("x").header("Connection", "close").closing());
    let proxy = Proxy::with(&api, "listen.workers = 1");
    let caller = proxy.somebody();
    let mut kept = proxy.connect();
    for _ in 0..3 {
        let answer = proxy.send_on(&mut kept, Call::get("/").of(&caller));
        assert_eq!((answer.status, answer.text().as_str()), (200, "x"));
    }
    assert_eq!(api.connections(), 3);
    let answer = proxy.send_on(
        &mut kept,
        Call::get("/").of(&caller).header("Connection", "close"),
    );
    assert_eq!(
        answer
            .header("connection")
            .map(str::to_ascii_lowercase)
            .as_deref(),
        Some("close")
    );
    assert!(kept.is_closed());
}

#[test]
fn a_connection_that_the_api_closed_while_idle_is_replaced() {
    let api = Upstream::replying(|_| Reply::ok("x").closing());
    let proxy = Proxy::with(&api, "listen.workers = 1");
    let caller = proxy.somebody();
    let mut kept = proxy.connect();
    // A request that meets the close while it is written is not sent again: it may have arrived.
    let statuses = [(); 20].map(|()| {
        let answer = proxy.send_on(&mut kept, Call::get("/").of(&caller));
        answer.status
    });
    let served = statuses.iter().filter(|status| **status == 200).count();
    let met_the_close = statuses.iter().filter(|status| **status == 502).count();
    assert_eq!(served + met_the_close, 20, "{statuses:?}");
    assert!(served >= 10, "{statuses:?}");
    assert_eq!(api.count(), served, "and no request is sent twice");
}

#[test]
fn a_response_of_many_fields_passes_where_the_limit_allows_it() {
    let api = Upstream::replying(|_| {
        (0..120).fold(Reply::ok("x"), |reply, at| {
            reply.header(&format!("X-{at}"), "1")
        })
    });
    let proxy = Proxy::with(&api, "upstream.response_fields = 100");
    let caller = proxy.somebody();
    proxy.send(Call::get("/").of(&caller)).has_status(502);
    proxy.logs(&["bad_gateway", "upstream.response_fields"]);
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let answer = proxy.passes(Call::get("/").of(&caller));
    assert!(answer.fields.has("x-0") && answer.fields.has("x-119"));
}

#[test]
fn white_space_before_the_colon_of_a_response_is_taken_off() {
    let api = Upstream::replying(|_| {
        Reply::raw("HTTP/1.1 200 OK\r\nX-A : 1\r\nX-B\t: 2\r\nContent-Length : 2\r\n\r\nok")
    });
    let proxy = Proxy::in_front_of(&api).start();
    let answer = proxy.passes(Call::get("/").of(&proxy.somebody()));
    let passed = ["x-a", "x-b", "content-length"].map(|name| answer.header(name));
    assert_eq!(passed, [Some("1"), Some("2"), Some("2")]);
    assert_eq!(answer.text(), "ok");
}

#[test]
fn a_caller_of_http_1_0_learns_that_the_connection_ends() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/length" => Reply::ok("ok"),
        _ => Reply::status("200 OK").chunked(&["o", "k"]),
    });
    let proxy = Proxy::with(&api, "operations.unlisted = 'anonymous'");
    let ask = |target: &str, fields: &str| {
        let mut connection = proxy.connect();
        let host = proxy.host();
        let head = format!(
            "GET {target} HTTP/1.0\r\nHost: {host}\r\nConnection: keep-alive\r\n{fields}\r\n"
        );
        connection.send(head.as_bytes());
        let answer = connection.answer("GET");
        (
            answer.fields.all("connection").join(", "),
            answer.text(),
            connection.is_closed(),
        )
    };
    let ended = |text: &str| ("close".to_owned(), text.to_owned(), true);
    assert_eq!(ask("/chunks", ""), ended("ok"));
    assert_eq!(ask("/length", "").0, "keep-alive");
    // Of two options a caller may believe either.
    let (options, _, is_closed) = ask("/length", "Expect: x\r\n");
    assert_eq!((options.as_str(), is_closed), ("close", true));
}

#[test]
fn a_connection_is_given_up_before_the_api_ends_it() {
    let api = Upstream::replying(|seen| {
        Reply::ok("x").header("Keep-Alive", seen.header("x-said").unwrap_or_default())
    });
    let proxy = Proxy::with(
        &api,
        "listen.workers = 1\noperations.unlisted = 'anonymous'",
    );
    let connections = |said: &str| {
        let before = api.connections();
        for _ in 0..2 {
            proxy.passes(Call::get("/").header("X-Said", said));
        }
        api.connections() - before
    };
    assert_eq!(connections("max=9"), 1);
    assert_eq!(connections("timeout=60, max=9"), 0);
    assert_eq!(connections("timeout=x"), 0);
    // The second request comes too late for the connection of the first.
    assert_eq!(connections("timeout=0"), 1);
    assert_eq!(connections("max=9, Timeout = 0"), 2);
    assert_eq!(connections("max=9,timeout=\"0\""), 2);
}

/// Some callers send these bytes as they are, and other proxies pass them.
#[test]
fn a_target_with_bytes_that_no_uri_has_passes_with_them_encoded() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let mut connection = proxy.connect();
    for (sent, signed) in [
        (
            &b"/r/x?filter={\"cardtype\":2}"[..],
            "/r/x?filter={%22cardtype%22:2}",
        ),
        (b"/r?a=<b>&c=`", "/r?a=%3Cb%3E&c=`"),
        (b"/r?q=caf\xe9&r=\xc3\xa9", "/r?q=caf%E9&r=%C3%A9"),
        (b"/<x>`/\"y\"", "/%3Cx%3E%60/\"y\""),
        (b"/plain?a=1", "/plain?a=1"),
    ] {
        let wire = proxy.wire(&Call::get(signed).of(&caller).header("X-A", "\"<>\""));
        let rest = wire.splitn(3, |&byte| byte == b' ').nth(2).unwrap();
        connection.send(&[b"GET ", sent, b" ", rest].concat());
        connection.answer("GET").has_status(200);
        let seen = api.last_request();
        assert_eq!(
            (seen.target.as_str(), seen.header("x-a")),
            (signed, Some("\"<>\""))
        );
    }
    // The log and the rejection name what was sent.
    connection.send(
        &[
            b"GET /unsigned?\xe9 HTTP/1.1\r\nHost: ",
            proxy.host().as_bytes(),
            b"\r\n\r\n",
        ]
        .concat(),
    );
    let answer = connection.answer("GET");
    assert!(answer.has_status(401).fields.has("x-request-id"));
    proxy.logs(&["401", "/unsigned", "request_id"]);
}
