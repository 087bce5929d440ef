//! WebSocket: where an operation allows it, verified first, then piped both ways.

use std::{
    io::Write as _,
    net::{Shutdown, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::support::{
    Call, Connection, Proxy, Upstream, Visitor, http::try_open, legs::LOGIN, now, until,
    upstream::After,
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

/// A connection, and a second handle of its stream for writing.
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
fn a_websocket_passes_verified_where_its_operation_admits_it() {
    let api = echoing();
    let proxy = Proxy::with(&api, &LISTED.replace(", 'anonymous'", ""));
    let caller = proxy.somebody();
    proxy.send(handshake("/ws")).has_status(401);
    api.saw_nothing();

    let (mut socket, writer) = open(&proxy);
    // The first bytes come with the handshake, and are more than a buffer can contain.
    let early = "e".repeat(40_000);
    let mut wire = proxy.wire(&handshake("/ws").of(&caller));
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
    assert_eq!(seen.header("X-Auth-User"), Some(caller.user.id.as_str()));
    assert_eq!(seen.header("Upgrade"), Some("websocket"));
    assert_eq!(seen.fields.all("Connection"), ["Upgrade"]);
    assert_eq!(seen.header("Sec-WebSocket-Key"), Some(KEY));
    assert!(!seen.fields.has("Authorization"));
    // A close of one side is passed on, and the other may finish.
    writer.shutdown(Shutdown::Write).unwrap();
    assert!(socket.is_closed());
    until("the tunnel is closed", || {
        proxy.metric("countersign_connections") == 0.0
    });
}

#[test]
fn a_websocket_carries_much_data_either_way_with_a_slow_reader() {
    let api = echoing();
    let proxy = Proxy::with(&api, LISTED);
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
fn websocket_handshake_that_no_server_could_accept_is_rejected() {
    let api = echoing();
    let proxy = Proxy::with(&api, LISTED);
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
    // The shape is checked before the nonce, which is still fresh.
    let (caller, now) = (proxy.somebody(), now().to_string());
    let once = |call: Call| {
        let call = call.of(&caller).parameter("oauth_nonce", "once");
        proxy.wire(&call.parameter("oauth_timestamp", &now))
    };
    for (call, status) in [(begin(), 400), (handshake("/ws"), 101)] {
        api.saw_nothing();
        let mut connection = proxy.connect();
        connection.send(&once(call));
        assert_eq!(connection.head().status(), status);
    }
}

#[test]
fn silent_and_stalled_websockets_are_ended() {
    let api = echoing();
    let proxy = Proxy::with(
        &api,
        &format!("{LISTED}[limits]\ntunnel_timeout = '500ms'\nbody_timeout = '500ms'"),
    );
    let mut silent = proxy.connect();
    silent.send(&proxy.wire(&handshake("/ws")));
    assert_eq!(silent.head().status(), 101);
    read(&mut silent, b"hello");
    assert!(silent.is_closed());

    let (mut stalled, mut writer) = open(&proxy);
    stalled.send(&proxy.wire(&handshake("/ws")));
    assert_eq!(stalled.head().status(), 101);
    // It writes without end and never reads: the echoed bytes fill every buffer on the way.
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
fn page_of_another_site_opens_no_websocket_with_a_session() {
    let api = echoing();
    let proxy = Proxy::with(
        &api,
        "[[operation]]\npath = '/ws'\naccess = ['user']\nupgrade = ['websocket']",
    );
    let user = proxy.user("alice");
    let mut visitor = Visitor::to(&proxy);
    let page = visitor.open(LOGIN);
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
