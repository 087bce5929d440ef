//! WebSocket: where an operation lets it pass, verified first, then piped both ways.

use std::{
    io::Write as _,
    net::{Shutdown, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::support::{
    Call, Connection, Proxy, Reply, Upstream, Visitor, http::try_open, upstream::After, within,
};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

const LISTED: &str = "[[operation]]\npath = '/ws'\naccess = ['consumer', 'user', 'anonymous']\nupgrade = ['websocket']\n\
                      [[operation]]\npath = '/plain'\naccess = ['consumer', 'anonymous']\n";

fn handshake(target: &str) -> Call {
    Call::get(target)
        .header("Upgrade", "websocket")
        .header("Connection", "keep-alive, Upgrade")
        .header("Sec-WebSocket-Key", KEY)
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Protocol", "chat")
}

/// An API that switches and then sends every byte back, until its peer has closed.
fn echoing() -> Upstream {
    Upstream::handling(|exchange| {
        exchange.whole_body()?;
        exchange.write(format!(
            "{SWITCHING}Sec-WebSocket-Protocol: chat\r\nKeep-Alive: timeout=5\r\n\r\nhello"
        ))?;
        while let Some(bytes) = exchange.raw_piece()? {
            exchange.write(bytes)?;
        }
        Ok(After::Close)
    })
}

/// A connection, and a second hold of its stream to write by.
fn open(proxy: &Proxy) -> (Connection, TcpStream) {
    let stream = try_open(proxy.address()).unwrap();
    let writer = stream.try_clone().unwrap();
    (Connection::over(stream), writer)
}

fn read(connection: &mut Connection, expected: &[u8]) {
    let got = connection.wire().exactly(expected.len()).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&got),
        String::from_utf8_lossy(expected)
    );
}

#[test]
fn passes_where_its_operation_says_so_verified_first() {
    let api = echoing();
    let proxy = Proxy::in_front_of(&api)
        .config(&LISTED.replace(", 'anonymous'", ""))
        .start();
    let (consumer, user, token) = proxy.somebody();
    proxy.send(handshake("/ws")).has_status(401);
    api.saw_nothing();

    let (mut socket, writer) = open(&proxy);
    // The first bytes come with the handshake, and more than a buffer holds.
    let early = "e".repeat(40_000);
    let mut wire = proxy.wire(&handshake("/ws").by(&consumer).with(&token));
    wire.extend(early.as_bytes());
    socket.send(&wire);
    let head = socket.head();
    assert_eq!(head.status(), 101);
    assert_eq!(head.fields.get("Upgrade"), Some("websocket"));
    assert_eq!(head.fields.all("Connection"), ["Upgrade"]);
    assert_eq!(head.fields.get("Sec-WebSocket-Accept"), Some(ACCEPT));
    assert_eq!(head.fields.get("Sec-WebSocket-Protocol"), Some("chat"));
    assert!(!head.fields.has("Keep-Alive"));
    read(&mut socket, b"hello");
    read(&mut socket, early.as_bytes());
    for n in 0..100 {
        let message = format!("message {n} GET / HTTP/1.1\r\n\r\n");
        socket.send(message.as_bytes());
        read(&mut socket, message.as_bytes());
    }
    let seen = api.only_request();
    assert_eq!(seen.header("X-Auth-User"), Some(user.id.as_str()));
    assert_eq!(seen.header("Upgrade"), Some("websocket"));
    assert_eq!(seen.fields.all("Connection"), ["Upgrade"]);
    assert_eq!(seen.header("Sec-WebSocket-Key"), Some(KEY));
    assert!(!seen.fields.has("Authorization"));
    // A side that closes is passed on, and the other may finish.
    writer.shutdown(Shutdown::Write).unwrap();
    assert!(socket.is_closed());
    within(Duration::from_secs(20), "the tunnel is closed", || {
        (proxy.metric("countersign_connections") == 0.0).then_some(())
    });
}

#[test]
fn carries_much_either_way_with_a_slow_reader() {
    let api = echoing();
    let proxy = Proxy::in_front_of(&api).config(LISTED).start();
    let (mut socket, mut writer) = open(&proxy);
    socket.send(&proxy.wire(&handshake("/ws")));
    assert_eq!(socket.head().status(), 101);
    read(&mut socket, b"hello");
    let much: Vec<u8> = (0..8u32 << 20)
        .map(|n| u8::try_from(n % 251).unwrap())
        .collect();
    let sent = much.clone();
    let writing = thread::spawn(move || writer.write_all(&sent).unwrap());
    thread::sleep(Duration::from_millis(300));
    let got = socket.wire().exactly(much.len()).unwrap();
    assert!(got == much, "every byte, in order");
    writing.join().unwrap();
}

#[test]
fn is_dropped_where_it_is_not_listed_and_what_else_is_asked_for_always() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).config(LISTED).start();
    for call in [
        handshake("/plain"),
        Call::get("/ws")
            .header("Upgrade", "h2c")
            .header("Connection", "Upgrade, HTTP2-Settings")
            .header("HTTP2-Settings", "AAMAAABkAAQAAP__"),
        Call::get("/ws")
            .header("Upgrade", "TLS/1.0")
            .header("Connection", "upgrade"),
        // Not named in Connection, so meant for nobody.
        Call::get("/ws")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Key", KEY),
    ] {
        proxy.send(call).has_status(200);
        let seen = api.last_request();
        for name in ["Upgrade", "Connection", "HTTP2-Settings"] {
            assert!(!seen.fields.has(name), "{name} in {seen:?}");
        }
        let field = format!("request_id={} ", seen.header("X-Request-Id").unwrap());
        proxy.log().wait_for("the line", |line| {
            (line.contains(&field) && line.contains(" upgrade=\"dropped\" ")).then_some(())
        });
    }
    proxy.send(Call::get("/ws")).has_status(200);
    // Of several offers the one goes on.
    proxy
        .send(handshake("/ws").header("Upgrade", "h2c, foo/2"))
        .has_status(200);
    assert_eq!(api.last_request().fields.all("Upgrade"), ["websocket"]);
    let lines = proxy.log().lines();
    let marked = lines.iter().filter(|line| line.contains("upgrade="));
    assert_eq!(marked.count(), 4, "{lines:?}");
}

#[test]
fn a_handshake_that_no_server_could_accept_is_refused() {
    let api = echoing();
    let proxy = Proxy::in_front_of(&api).config(LISTED).start();
    let begin = || {
        Call::get("/ws")
            .header("Upgrade", "websocket")
            .header("Connection", "Upgrade")
    };
    for (what, call) in [
        ("no key", begin()),
        (
            "a short key",
            begin().header("Sec-WebSocket-Key", "c2hvcnQ="),
        ),
        (
            "no base64",
            begin().header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ"),
        ),
        (
            "two keys",
            handshake("/ws").header("Sec-WebSocket-Key", KEY),
        ),
        (
            "a body",
            handshake("/ws").bytes(b"GET /admin HTTP/1.1\r\n\r\n"),
        ),
        ("a chunked body", handshake("/ws").chunked(&[b"x"])),
    ] {
        let mut connection = proxy.connect();
        let answer = proxy.send_on(&mut connection, call);
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
        assert!(connection.is_closed(), "{what}");
    }
    api.saw_nothing();
}

#[test]
fn an_answer_that_is_none_to_the_handshake_is_502_and_opens_no_tunnel() {
    for (what, answer) in [
        ("another accept", SWITCHING.replace("s3pP", "S3pP")),
        (
            "no accept",
            SWITCHING.replace("Sec-WebSocket-Accept", "X-Nothing"),
        ),
        (
            "another protocol",
            SWITCHING.replace("Upgrade: websocket", "Upgrade: h2c"),
        ),
        (
            "no Connection",
            SWITCHING.replace("Connection: Upgrade\r\n", ""),
        ),
        ("HTTP/1.0", SWITCHING.replace("HTTP/1.1", "HTTP/1.0")),
    ] {
        let api = Upstream::handling(move |exchange| {
            exchange.whole_body()?;
            exchange.write(format!(
                "{answer}\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
            ))?;
            Ok(After::Close)
        });
        let proxy = Proxy::in_front_of(&api).config(LISTED).start();
        let mut connection = proxy.connect();
        let answer = proxy.send_on(&mut connection, handshake("/ws"));
        assert_eq!(answer.status, 502, "{what}: {answer:?}");
        connection.send(b"GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(
            !connection
                .wire()
                .rest()
                .windows(6)
                .any(|six| six == b"stolen"),
            "{what}"
        );
        assert_eq!(api.count(), 1, "{what}");
    }
}

#[test]
fn an_api_that_declines_answers_as_ever_and_the_connection_goes_on() {
    let api = Upstream::replying(|seen| {
        if seen.fields.has("Upgrade") {
            Reply::status("426 Upgrade Required")
                .header("Sec-WebSocket-Version", "8")
                .body("other version")
        } else {
            Reply::ok("plain")
        }
    });
    let proxy = Proxy::in_front_of(&api).config(LISTED).start();
    let mut connection = proxy.connect();
    let answer = proxy.send_on(&mut connection, handshake("/ws"));
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (426, "other version")
    );
    // What follows is a request again, checked like any other.
    proxy
        .send_on(&mut connection, Call::get("/plain"))
        .has_status(200);
    proxy
        .send_on(&mut connection, Call::get("/unlisted"))
        .has_status(401);
}

#[test]
fn silence_and_stalled_readers_come_to_a_limit() {
    let api = echoing();
    let proxy = Proxy::in_front_of(&api)
        .config(&format!(
            "{LISTED}[limits]\ntunnel_timeout = '500ms'\nbody_timeout = '500ms'"
        ))
        .start();
    let mut silent = proxy.connect();
    silent.send(&proxy.wire(&handshake("/ws")));
    assert_eq!(silent.head().status(), 101);
    read(&mut silent, b"hello");
    assert!(silent.is_closed());

    let (mut stalled, mut writer) = open(&proxy);
    stalled.send(&proxy.wire(&handshake("/ws")));
    assert_eq!(stalled.head().status(), 101);
    // It writes for ever and never reads: what comes back fills every buffer on the way.
    let (ended, waits) = mpsc::channel();
    thread::spawn(move || {
        while writer.write_all(&[b'x'; 65_536]).is_ok() {}
        ended.send(()).unwrap();
    });
    waits
        .recv_timeout(Duration::from_secs(30))
        .expect("the tunnel is ended");
}

#[test]
fn a_page_of_another_site_cannot_open_one_with_a_users_session() {
    let api = echoing();
    let proxy = Proxy::in_front_of(&api)
        .config("[[operation]]\npath = '/ws'\naccess = ['user']\nupgrade = ['websocket']")
        .start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::to(&proxy);
    let page = visitor.open("/service.oauth?mode=login");
    visitor.log_in(&page, &user);
    for (origin, site, status) in [
        (Some("https://evil.example"), None, 403),
        (None, None, 403),
        (Some("null"), None, 403),
        (None, Some("cross-site"), 403),
        (Some(proxy.origin().as_str()), Some("same-site"), 403),
        (Some(proxy.origin().as_str()), None, 101),
        (Some(proxy.origin().as_str()), Some("same-origin"), 101),
    ] {
        let mut call = handshake("/ws");
        if let Some(origin) = origin {
            call = call.header("Origin", origin);
        }
        if let Some(site) = site {
            call = call.header("Sec-Fetch-Site", site);
        }
        let answer = visitor.send(call);
        assert_eq!(answer.status, status, "{origin:?} {site:?}: {answer:?}");
    }
}
