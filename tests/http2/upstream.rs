//! HTTP/2 to the API (`upstream.http2`): the same calls in its form, with trailers, and the faults of an API.
//!
//! Promise (HTTP): A lost API that owes a response is noticed, over HTTP/2 within 15 s, over HTTP/1.1 after
//! `limits.body_timeout`. Also in `tests/faults/api.rs`, `src/wire/outbound/dial.rs`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    http2::{
        api::{Api, STREAMS},
        client::{Client, read, run},
    },
    support::{Call, Proxy, Upstream, proxy::Builder, tls::Certificate, upstream::After, words},
};

const OPEN: &str = "[operations]\nunlisted = 'anonymous'";

#[test]
fn calls_are_forwarded_over_http2() {
    let api = Api::start();
    let proxy = api.behind().start();
    let caller = proxy.somebody();
    let signed = |call: Call| call.of(&caller);
    let spoiled = |call: Call| {
        signed(call)
            .header("X-Auth-User", "mallory")
            .header("x_auth_user", "mallory")
            .header("Cookie", "a=b")
    };
    // By HTTP/1.1, with a length, without, and with fields of the connection.
    let get = spoiled(Call::get("/members/7?a=1&b=x%20y"))
        .header("Connection", "X-Named")
        .header("X-Named", "1")
        .header("TE", "trailers, deflate");
    proxy.send(get).has_status(200);
    let answer = proxy.send(spoiled(Call::post("/up").chunked(&[b"one ", b"two"])));
    assert_eq!(answer.has_status(200).text(), "one two");
    let answer = proxy.send(spoiled(Call::post("/up").bytes(b"three")));
    assert_eq!(answer.has_status(200).text(), "three");
    let mut head = proxy.connect();
    proxy
        .send_on(&mut head, signed(Call::new("HEAD", "/x")))
        .has_status(200);
    proxy
        .send_on(&mut head, signed(Call::get("/x")))
        .has_status(200);
    // By HTTP/2, without a length.
    run(async {
        let mut client = Client::to(&proxy).await;
        let (mut request, body) = client.request(&spoiled(Call::post("/up").bytes(b"four")));
        request.headers_mut().remove("content-length");
        let answer = client.send_request(request, &body).await.unwrap();
        assert_eq!(answer.has_status(200).text(), "four");
    });
    let heads = api.heads();
    assert_eq!(heads.len(), 6);
    for head in &heads {
        assert_eq!(head.uri.scheme_str(), Some("http"), "{head:?}");
        let authority = head.uri.authority().map(|authority| authority.as_str());
        assert_eq!(authority, Some(proxy.host().as_str()), "{head:?}");
        let users: Vec<_> = head.headers.get_all("x-auth-user").iter().collect();
        assert_eq!(users, [caller.user.id.as_str()], "{head:?}");
        assert_eq!(head.headers["te"], "trailers");
        assert_eq!(head.headers["x-forwarded-for"], "127.0.0.1");
        for name in
            words("host connection transfer-encoding x-named x_auth_user authorization keep-alive")
        {
            assert!(!head.headers.contains_key(name), "{name}: {head:?}");
        }
    }
    assert_eq!(
        heads[0].uri.path_and_query().unwrap(),
        "/members/7?a=1&b=x%20y"
    );
    assert_eq!(heads[2].headers["content-length"], "5");
    assert!(!heads[1].headers.contains_key("content-length"));
    assert_eq!(api.connections(), 1, "all share a connection");
}

#[test]
fn grpc_passes_with_its_trailers_over_http2() {
    let api = Api::start();
    let proxy = api.behind().start();
    let caller = proxy.somebody();
    let call = |path: &str| {
        let call = Call::post(path).body("application/grpc", b"");
        call.header("TE", "trailers").of(&caller)
    };
    run(async {
        let client = Client::to(&proxy).await;
        let (mut request, _) = client.request(&call("/grpc"));
        request.headers_mut().remove("content-length");
        let mut send = client.sender().ready().await.unwrap();
        let (response, mut upload) = send.send_request(request, false).unwrap();
        let mut response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        // Both ways at once: each message comes back before the next is sent.
        for message in [&b"one"[..], b"two", b"three"] {
            upload
                .send_data(Bytes::copy_from_slice(message), false)
                .unwrap();
            assert_eq!(response.body_mut().data().await.unwrap().unwrap(), message);
        }
        upload.send_data(Bytes::new(), true).unwrap();
        assert!(response.body_mut().data().await.is_none());
        let trailers = response.body_mut().trailers().await.unwrap();
        assert_eq!(trailers.expect("trailers")["grpc-status"], "0");

        let (request, _) = client.request(&call("/grpc-error"));
        let (response, _) = send
            .ready()
            .await
            .unwrap()
            .send_request(request, true)
            .unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.headers()["grpc-status"], "5");
        assert!(response.body().is_end_stream(), "trailers alone");
    });
    for head in api.heads() {
        assert_eq!(head.headers["te"], "trailers");
        assert_eq!(head.headers["content-type"], "application/grpc");
    }
    // In HTTP/1.1 no trailers were negotiated: they are dropped here, and the response is whole.
    let mut connection = proxy.connect();
    for _ in 0..2 {
        let answer = proxy.send_on(&mut connection, call("/grpc").bytes(b"message"));
        assert_eq!(answer.has_status(200).text(), "message");
        assert!(!answer.fields.has("grpc-status"));
    }
}

/// A TLS API with that certificate, that speaks the protocol that ALPN selects.
fn with_alpn(certificate: &Certificate, protocols: &[&[u8]]) -> Arc<rustls::ServerConfig> {
    let mut config = certificate.server();
    let protocols = protocols.iter().map(|&protocol| protocol.to_vec());
    Arc::make_mut(&mut config).alpn_protocols = protocols.collect();
    config
}

fn trusting(builder: Builder, certificate: &Certificate) -> Proxy {
    let (path, _) = certificate.write(builder.directory());
    builder
        .config(&format!("upstream.tls.ca = '{}'\n{OPEN}", path.display()))
        .start()
}

#[test]
fn alpn_decides_on_http2_to_the_api() {
    let certificate = Certificate::for_names(&["localhost"]);
    let api = Api::over_tls(with_alpn(&certificate, &[b"h2", b"http/1.1"]));
    let proxy = trusting(api.behind(), &certificate);
    for _ in 0..5 {
        proxy.send(Call::get("/x")).has_status(200);
    }
    assert_eq!(api.connections(), 1);
    assert_eq!(api.heads()[0].uri.scheme_str(), Some("https"));
    // An API that knows only HTTP/1.1, or no ALPN, gets that.
    for protocols in [&[&b"http/1.1"[..]][..], &[]] {
        let api = Upstream::over_tls_with(with_alpn(&certificate, protocols));
        let builder = Proxy::in_front_of(&api).config("upstream.http2 = true");
        let proxy = trusting(builder, &certificate);
        for _ in 0..3 {
            proxy.passes(Call::post("/x").chunked(&[b"one"]));
        }
        assert_eq!(api.count(), 3);
        assert_eq!(
            api.last_request().header("Host"),
            Some(proxy.host().as_str())
        );
        assert_eq!(api.last_request().text(), "one");
    }
    // And one that knows both gets HTTP/1.1 if HTTP/2 is disabled.
    let api = Upstream::over_tls_with(with_alpn(&certificate, &[b"h2", b"http/1.1"]));
    let proxy = trusting(Proxy::in_front_of(&api), &certificate);
    proxy.send(Call::get("/x")).has_status(200);
}

#[test]
fn many_streams_share_an_upstream_connection() {
    let api = Api::start();
    let proxy = api.behind().config(OPEN).start();
    let many = 4 * STREAMS;
    run(async {
        let clients = [Client::to(&proxy).await, Client::to(&proxy).await];
        let calls = (0..many).map(|n| {
            let mut client = clients[n as usize % 2].clone();
            let body = format!("body {n}").repeat(500);
            let call = Call::post("/slow").bytes(body.as_bytes());
            tokio::spawn(async move {
                let answer = client.passes(call).await;
                assert!(answer.text() == body, "{n}");
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
    assert_eq!(api.count("/slow"), many as usize);
    assert_eq!(api.connections(), 1);
}

/// The API may have acted on a request whose connection or stream ended without a response.
#[test]
fn a_request_that_was_written_over_http2_is_not_sent_again() {
    for (method, path) in [
        ("GET", "/hang-up"),
        ("DELETE", "/hang-up"),
        ("POST", "/hang-up"),
        ("GET", "/refused"),
        ("GET", "/internal-error"),
    ] {
        let api = Api::start();
        let proxy = api.behind().config(OPEN).start();
        proxy.send(Call::get("/first")).has_status(200);
        let answer = proxy.send(Call::new(method, path));
        assert_eq!(answer.status, 502, "{method} {path}: {answer:?}");
        assert_eq!(api.count(path), 1, "{method} {path}");
        proxy.send(Call::get("/next")).has_status(200);
    }
}

#[test]
fn upstream_connection_with_goaway_only_finishes_its_streams() {
    let api = Api::start();
    let proxy = api.behind().config(OPEN).start();
    run(async {
        let client = Client::to(&proxy).await;
        let begun = {
            let mut client = client.clone();
            tokio::spawn(async move { client.passes(Call::get("/slow")).await })
        };
        while api.count("/slow") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut client = client;
        client.passes(Call::get("/goaway")).await;
        for _ in 0..20 {
            client.passes(Call::post("/x").bytes(b"x")).await;
        }
        begun.await.unwrap();
    });
    assert_eq!(api.connections(), 2);
    assert_eq!(
        api.count("/slow") + api.count("/goaway") + api.count("/x"),
        22
    );
    api.open_becomes(1);
}

/// Shorter than the default, and long enough for the steps that must be in time.
const SHORT: &str = "[limits]\nbody_timeout = '2s'\n[upstream]\nresponse_timeout = '2s'\n\
                     [operations]\nunlisted = 'anonymous'";

#[test]
fn an_api_that_is_too_slow_has_its_stream_reset() {
    let api = Api::start();
    let proxy = api.behind().config(SHORT).start();
    proxy.send(Call::get("/x")).has_status(200);
    proxy.send(Call::get("/silent")).has_status(504);
    api.resets_become(1);
    // One that reads none of a large body.
    proxy
        .send(Call::post("/silent").bytes(&vec![b'x'; 1 << 20]))
        .has_status(504);
    api.resets_become(2);
    // One that stops in the middle of its response, or breaks off: never whole.
    for path in ["/half", "/cut"] {
        let mut connection = proxy.connect();
        connection.send(&proxy.wire(&Call::get(path)));
        let answer = connection.try_answer("GET");
        assert!(answer.is_err(), "{path} looks whole: {answer:?}");
    }
    api.resets_become(3);
    // A connection that is silently dead delays only one request.
    proxy.send(Call::get("/freeze")).has_status(504);
    let connections = api.connections();
    for _ in 0..5 {
        proxy.send(Call::get("/x")).has_status(200);
    }
    assert_eq!(api.connections(), connections + 1);
}

/// It answers no PING. Without one the request would wait for a minute, longer than a test does.
#[test]
fn http2_api_that_is_gone_is_noticed_while_it_owes_a_response() {
    let api = Api::start();
    let proxy = api.behind().config(OPEN).start();
    proxy.send(Call::get("/x")).has_status(200);
    proxy.send(Call::get("/freeze")).has_status(502);
    proxy.send(Call::get("/x")).has_status(200);
    assert_eq!(api.connections(), 2);
}

#[test]
fn a_caller_that_leaves_resets_the_upstream_stream() {
    let api = Api::start();
    let proxy = api.behind().config(OPEN).start();
    let mut connection = proxy.connect();
    connection.send(&proxy.wire(&Call::get("/silent")));
    while api.count("/silent") == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(connection);
    api.resets_become(1);
    let length = proxy.wire(&Call::post("/up").bytes(b"never whole"));
    let chunks = proxy.wire(&Call::post("/up").chunked(&[b"never", b"whole"]));
    for (count, wire) in [(1, length), (2, chunks)] {
        let mut connection = proxy.connect();
        connection.send(&wire[..wire.len() - 7]);
        while api.count("/up") < count {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(connection);
        crate::support::until("the body breaks off", || api.bodies().len() == count);
        assert_eq!(api.bodies().last(), Some(&Err(())), "it looks whole");
    }
    // All on one connection, which none of these ends has harmed.
    proxy.send(Call::get("/x")).has_status(200);
    assert_eq!(api.connections(), 1);
}

#[test]
fn a_response_before_the_end_of_the_body_arrives_over_http2() {
    let api = Api::start();
    let proxy = api.behind().config(OPEN).start();
    run(async {
        let client = Client::to(&proxy).await;
        let (request, _) = client.request(&Call::post("/early").bytes(&[0; 9]));
        let mut send = client.sender().ready().await.unwrap();
        let (response, _upload) = send.send_request(request, false).unwrap();
        let answer = read(response.await.unwrap()).await.unwrap();
        assert_eq!(answer.has_status(200).text(), "early");
    });
    let mut connection = proxy.connect();
    let wire = proxy.wire(&Call::post("/early").bytes(&vec![b'x'; 4 << 20]));
    drop(connection.try_send(&wire));
    assert_eq!(connection.answer("POST").has_status(200).text(), "early");
    proxy.send(Call::get("/x")).has_status(200);
}

#[test]
fn an_idle_upstream_connection_of_http2_is_closed() {
    let api = Api::start();
    let proxy = api
        .behind()
        .config(&format!("{OPEN}\n[upstream]\nidle_timeout = '500ms'"))
        .start();
    proxy.send(Call::get("/x")).has_status(200);
    api.open_becomes(0);
    proxy.send(Call::get("/x")).has_status(200);
    assert_eq!(api.connections(), 2);
}

/// HTTP/2 has no Upgrade (RFC 9113 §8.6): WebSocket uses a connection of HTTP/1.1.
#[test]
fn a_websocket_goes_to_an_http2_api_by_http_1_1() {
    let api = Upstream::handling(|exchange| {
        exchange.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello",
        )?;
        Ok(After::Close)
    });
    let proxy = Proxy::with(
        &api,
        "upstream.http2 = true\noperation = [{ path = '/ws', access = ['anonymous'], upgrade = ['websocket'] }]",
    );
    let mut connection = proxy.connect();
    let call = Call::get("/ws")
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Version", "13");
    connection.send(&proxy.wire(&call));
    assert_eq!(connection.head().status(), 101);
    assert_eq!(connection.wire().exactly(5).unwrap(), b"hello");
}
