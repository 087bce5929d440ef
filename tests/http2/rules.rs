//! The rules of HTTP/1.1 hold here too, as do those of HTTP/2 alone.
//!
//! Promise (HTTP): The same rules apply to HTTP/2, with trailers as gRPC needs; a flood of frames closes its connection. Also
//! in `tests/http2/calls.rs`, `tests/http2/upstream.rs`, `tests/http2/curl.rs`, `tests/http2/floods.rs`, `src/wire/frames.rs`.

use crate::{
    http2::client::{
        Client, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Raw, block, head, run,
    },
    support::{Call, Connection, Proxy, Scene, Upstream, rows},
};

#[test]
fn requests_that_http_1_1_rejects_are_rejected_over_http2() {
    let Scene { api, proxy, caller } =
        Scene::with("[limits]\nhead_fields = 20\ntarget_bytes = '1KiB'\nform_bytes = '1KiB'");
    run(async {
        let mut client = Client::to(&proxy).await;
        let call = |target: &str| Call::get(target).of(&caller);
        let twice = client.request(&call("/")).0.headers()["authorization"].clone();
        let form = |body: &str| Call::post("/").form(body).of(&caller);
        let mut cases = vec![
            (
                400,
                call("/").header("Authorization", twice.to_str().unwrap()),
            ),
            (414, call(&format!("/{}", "x".repeat(2_000)))),
            (413, form(&format!("a={}", "x".repeat(2_000)))),
            (
                431,
                (0..30).fold(call("/"), |call, n| call.header(&format!("x-{n}"), "1")),
            ),
            (
                400,
                Call::get("/").header(
                    "Authorization",
                    "OAuth oauth_token=\"x\", oauth_token=\"x\"",
                ),
            ),
        ];
        for [status, method, target, host, field] in rows(
            r"
            # RFC 5849 §3.2
            400 | GET   | /?oauth_token=other |                |
            # RFC 9110 §7.4, §4.2.4, §9.3.8, §10.1.1
            421 | GET   | /                   | other.example  |
            400 | GET   | /                   | user@127.0.0.1 |
            405 | TRACE | /                   |                |
            405 | trace | /                   |                |
            400 | GET   | /                   |                | Expect: 200-ok
            ",
        ) {
            let mut call = Call::new(method, target).of(&caller);
            if !host.is_empty() {
                call = call.host(host);
            }
            if let Some((name, value)) = field.split_once(": ") {
                call = call.header(name, value);
            }
            cases.push((status.parse().unwrap(), call));
        }
        // A form under another type, RFC 5849 §3.4.1.3.1.
        let hidden = "text/plain, application/x-www-form-urlencoded";
        cases.push((401, Call::post("/").of(&caller).body(hidden, b"admin=1")));
        for (status, call) in cases {
            let (request, body) = client.request(&call);
            let answer = client.send_request(request, &body).await.unwrap();
            assert_eq!(answer.status, status, "{call:?}: {answer:?}");
        }
        api.saw_nothing();
        // Identity in any spelling is dropped, and so are fields about one connection.
        let call = call("/")
            .header("x-auth-user", "mallory")
            .header("x_auth_user", "mallory")
            .header("te", "trailers")
            .header("x-forwarded-for", "8.8.8.8");
        client.passes(call).await;
    });
    let seen = api.only_request();
    assert_eq!(seen.fields.all("X-Auth-User").len(), 1);
    assert_ne!(seen.header("X-Auth-User"), Some("mallory"));
    assert!(!seen.fields.has("x_auth_user") && !seen.fields.has("TE"));
    assert_eq!(seen.header("X-Forwarded-For"), Some("127.0.0.1"));
}

/// Sends one request by the byte; whether its stream was reset, or the status index of its answer was not 200's.
fn refused(proxy: &Proxy, fields: &[(&str, &str)], body: Option<&[u8]>) -> bool {
    let mut raw = Raw::to(proxy.address());
    let flags = if body.is_some() {
        END_HEADERS
    } else {
        END_HEADERS | END_STREAM
    };
    raw.frame(HEADERS, flags, 1, &block(fields)).unwrap();
    if let Some(body) = body {
        raw.frame(DATA, END_STREAM, 1, body).unwrap();
    }
    while let Some(frame) = raw.next() {
        match frame.kind {
            RST_STREAM => return true,
            // 200 is entry 8 of the static table (RFC 7541 appendix A).
            HEADERS => return frame.payload.first() != Some(&0x88),
            _ => {}
        }
    }
    true
}

#[test]
fn requests_that_only_http2_can_malform_are_rejected() {
    let api = Upstream::start();
    // Everything is open, so that only HTTP's own rules can refuse.
    let proxy = Proxy::with(&api, "[operations]\nunlisted = 'anonymous'");
    let host = proxy.host();
    let with = |more: &[(&str, &str)]| {
        let mut fields = vec![
            (":method".to_owned(), "GET".to_owned()),
            (":scheme".to_owned(), "http".to_owned()),
            (":path".to_owned(), "/x".to_owned()),
            (":authority".to_owned(), host.clone()),
        ];
        for (name, value) in more {
            match fields
                .iter_mut()
                .find(|(n, _)| n == name && name.starts_with(':'))
            {
                Some(field) => (*value).clone_into(&mut field.1),
                None => fields.push(((*name).to_owned(), (*value).to_owned())),
            }
        }
        fields
    };
    let refused = |fields: &[(String, String)], body: Option<&[u8]>| {
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        refused(&proxy, &fields, body)
    };
    assert!(!refused(&with(&[]), None), "the good one is served");
    assert!(!refused(
        &with(&[(":method", "POST"), ("content-length", "2")]),
        Some(b"ok")
    ));
    let served = api.count();
    for [what, name, value] in rows(
        r"
        RFC 9113 §8.2.2              | connection        | x-auth-user
        RFC 9113 §8.2.2              | keep-alive        | timeout=5
        RFC 9113 §8.2.2              | proxy-connection  | close
        RFC 9113 §8.2.2              | transfer-encoding | chunked
        RFC 9113 §8.2.2              | upgrade           | h2c
        RFC 9113 §8.2.2              | te                | gzip
        RFC 9113 §8.2.1              | X-Upper           | 1
        RFC 9113 §8.2.1              | x y               | 1
        RFC 9113 §8.2.1              | x:y               | 1
        RFC 9113 §8.2.1              | x-y               | 1\r\nx-auth-user: mallory
        RFC 9113 §8.2.1              | x-y               | 1\nx-auth-user: mallory
        RFC 9113 §8.2.1              | x-y               | 1\0
        RFC 9113 §8.3                | :status           | 200
        no extended CONNECT          | :protocol         | websocket
        a line break in the path     | :path             | /x HTTP/1.1\r\nx-auth-user: mallory
        a space in the path          | :path             | /x HTTP/1.1
        an empty path                | :path             |
        a path without its slash     | :path             | x
        an asterisk                  | :path             | *
        another scheme               | :scheme           | ftp
        a method that is not a token | :method           | GET /admin HTTP/1.1\r\n
        a Host that disagrees        | host              | other.example
        a length that is no number   | content-length    | 0x0
        a length without a body      | content-length    | 5
    ",
    ) {
        assert!(refused(&with(&[(name, value)]), None), "{what}: {name}");
        assert_eq!(api.count(), served, "{what}: {name}");
    }
    let lengths = with(&[("content-length", "0"), ("content-length", "5")]);
    assert!(refused(&lengths, None), "two lengths");
    // A pseudo-header twice, and one after the other fields.
    let mut twice = with(&[]);
    twice.insert(0, (":path".to_owned(), "/y".to_owned()));
    assert!(refused(&twice, None), "a path twice, RFC 9113 8.3");
    let mut late = with(&[("x-y", "1")]);
    let path = late.remove(2);
    late.push(path);
    assert!(
        refused(&late, None),
        "a pseudo-header behind a field, RFC 9113 8.3"
    );
    let mut missing = with(&[]);
    missing.remove(3);
    assert!(refused(&missing, None), "no authority and no Host");
    assert_eq!(api.count(), served);
}

#[test]
fn body_of_another_length_than_announced_never_arrives_whole() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "[operations]\nunlisted = 'anonymous'");
    let host = proxy.host();
    let fields = |length: &'static str| {
        vec![
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/x"),
            (":authority", host.as_str()),
            ("content-length", length),
        ]
    };
    assert!(
        refused(&proxy, &fields("5"), Some(b"four")),
        "short, RFC 9113 8.1.1"
    );
    assert!(
        refused(&proxy, &fields("3"), Some(b"four")),
        "long, RFC 9113 8.1.1"
    );
    assert!(
        refused(&proxy, &fields("0"), Some(b"four")),
        "long, RFC 9113 8.1.1"
    );
    for seen in api.requests() {
        let announced = seen.header("Content-Length").unwrap_or_default();
        // A request that announced no body may have been forwarded as such before the unannounced bytes came.
        let nothing = announced == "0" && seen.text().is_empty();
        assert!(
            nothing || seen.text().len().to_string() != announced,
            "{seen:?}"
        );
        assert_ne!(seen.text(), "four", "{seen:?}");
    }
}

#[test]
fn trailers_never_become_header_fields() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "[operations]\nunlisted = 'anonymous'");
    let mut raw = Raw::to(proxy.address());
    let head = head(&proxy, "POST", "/x", &[("trailer", "x-auth-user")]);
    raw.frame(HEADERS, END_HEADERS, 1, &head).unwrap();
    raw.frame(DATA, 0, 1, b"body").unwrap();
    let trailers = block(&[("x-auth-user", "mallory"), ("authorization", "OAuth x")]);
    raw.frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers)
        .unwrap();
    let answer = raw.next_of(HEADERS);
    assert_eq!(answer.payload.first(), Some(&0x88), "{answer:?}");
    let seen = api.only_request();
    assert_eq!(seen.text(), "body");
    assert!(
        !seen.fields.has("X-Auth-User") && !seen.fields.has("Authorization"),
        "{seen:?}"
    );
    assert!(!seen.fields.has("Trailer"), "{seen:?}");
}

/// Bytes that are not HTTP/1.1 get 400 or only the end: RFC 9112 §2.2 leaves the choice to the server.
#[track_caller]
fn is_ended(connection: &mut Connection) {
    if let Some(answer) = connection.try_answer("GET").expect("no half answer") {
        answer.has_status(400);
        assert!(connection.is_closed());
    }
}

#[test]
fn http2_can_be_switched_off() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "[listen]\nhttp2 = false");
    let mut connection = proxy.connect();
    connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    is_ended(&mut connection);
    api.saw_nothing();
}

#[test]
fn http2_begins_only_with_a_whole_preface_on_a_fresh_connection() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "[operations]\nunlisted = 'anonymous'");
    let mut kept = proxy.connect();
    proxy.send_on(&mut kept, Call::get("/")).has_status(200);
    kept.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    is_ended(&mut kept);
    let mut other = proxy.connect();
    other.send(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
    is_ended(&mut other);
    assert_eq!(api.count(), 1);
    // A method of that name is a request of HTTP/1.1.
    let mut method = proxy.connect();
    method.send(format!("PRI / HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.host()).as_bytes());
    assert!(method.answer("PRI").status < 500);
}

/// All streams of a connection belong to one caller, and each of them to the caller that a trusted proxy names for it.
#[test]
fn forms_of_all_streams_count_for_their_caller() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "limits = { form_bytes = '16KiB', form_memory = '64KiB' }\nlisten.trusted_proxies = '127.0.0.1'",
    );
    let alice = proxy.somebody();
    run(async {
        let mut client = Client::to(&proxy).await;
        let signed = |address: &str| {
            let call = Call::post("/x").of(&alice);
            call.header("X-Forwarded-For", address)
        };
        client.passes(signed("192.0.2.1").form("a=1")).await;
        let mut stalled = Vec::new();
        for _ in 0..4 {
            let (mut request, _) = client.request(&signed("192.0.2.1").form("a=1"));
            request.headers_mut().remove("content-length");
            let mut send = client.sender().ready().await.unwrap();
            let (response, mut body) = send.send_request(request, false).unwrap();
            body.send_data(vec![b'a'; 4_096].into(), false).unwrap();
            stalled.push((response, body));
        }
        // One more of this caller drops the first of them.
        let (mut request, _) = client.request(&signed("192.0.2.1").form("a=1"));
        request.headers_mut().remove("content-length");
        let mut send = client.sender().ready().await.unwrap();
        let (_fifth, mut body) = send.send_request(request, false).unwrap();
        body.send_data(vec![b'a'; 4_096].into(), false).unwrap();
        let first = stalled.remove(0).0.await.unwrap();
        assert_eq!(first.status(), 503);
        client.passes(signed("192.0.2.2").form("a=1")).await;
        client.passes(signed("192.0.2.1").json("{}")).await;
        drop(stalled);
    });
}
