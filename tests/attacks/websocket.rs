//! WebSocket where it is allowed (RFC 6455 §4): no byte of the caller's after its handshake is forwarded before a
//! matching 101, and an API that declines leaves a connection of plain requests, each verified.
//!
//! Promise (HTTP): WebSocket passes after verification where an operation allows it; only a 101 that completes the handshake
//! opens the tunnel. Also in `tests/attacks/upgrade.rs`, `tests/acceptance/wire/websocket.rs`,
//! `src/request/forward/websocket.rs`.

use std::sync::mpsc;

use crate::support::rows;
use crate::{
    attacks::{case::Stage, script::SMUGGLED},
    support::{Connection, Reply, Upstream, upstream::After},
};

const OPERATIONS: &str = "operation = [\
    { path = '/ws', upgrade = ['websocket'] }, { path = '/plain' }, { path = '/smuggled' }, { path = '/probe/{id}' }]";
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
const UNSIGNED: &str = "GET /plain HTTP/1.1\r\nHost: $H\r\n\r\n";
const LAST: &str = "GET /plain HTTP/1.1\r\nHost: $H\r\nConnection: close\r\n\r\n";

/// A handshake with these credentials and fields in the place of `Connection` and `Upgrade`.
fn handshake(credentials: &str, fields: &str) -> String {
    format!("GET /ws HTTP/1.1\r\nHost: $H\r\n{credentials}\r\n{fields}\r\n{KEY}\r\n\r\n")
}

fn good() -> String {
    handshake("$A[GET /ws]", "Connection: Upgrade\r\nUpgrade: websocket")
}

/// CVE-2026-2833: bytes after the handshake are not part of a tunnel until the API switches.
#[test]
fn requests_after_a_declined_websocket_are_verified() {
    for [name, answer, status] in rows(
        r"
        200 | HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n | 200
        a body | HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n | 200
        204 | HTTP/1.1 204 No Content\r\n\r\n | 204
        304 | HTTP/1.1 304 Not Modified\r\n\r\n | 304
        400 | HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n | 400
        another version | HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\nContent-Length: 0\r\n\r\n | 426
        500 | HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n | 500
        200 that looks like a switch | HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nContent-Length: 0\r\n\r\n | 200
        200 behind an interim answer | HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n | 200
    ",
    ) {
        let status: u16 = status.parse().unwrap();
        let api = Upstream::replying(move |seen| match seen.target.as_str() {
            "/ws" => Reply::raw(answer),
            target => Reply::ok(target),
        });
        let stage = Stage::before(api, OPERATIONS);
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&format!("{}{UNSIGNED}{SMUGGLED}", good())));
        connection.answer("GET").has_status(status);
        connection.answer("GET").has_status(401);
        connection.answer("GET").has_status(200);
        let seen: Vec<String> = stage
            .api
            .requests()
            .iter()
            .map(|seen| seen.target.clone())
            .collect();
        assert_eq!(seen, ["/ws", "/smuggled"], "{name}");
    }
}

/// A 101 that switches to something else, or has a length, opens nothing (RFC 6455 §4.1, RFC 9110 §8.6).
#[test]
fn only_the_right_101_opens_a_websocket() {
    for (name, answer) in [
        ("another accept", SWITCHING.replace("s3pP", "S3pP")),
        (
            "the accept in small letters",
            SWITCHING.replace(
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
                "s3pplmbitxaq9kygzzhzrbk+xoo=",
            ),
        ),
        (
            "two accepts",
            format!("{SWITCHING}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
        ),
        ("a list of accepts", SWITCHING.replace("xOo=", "xOo=, x")),
        ("no accept", SWITCHING.replace("Accept", "Reject")),
        ("h2c", SWITCHING.replace("websocket", "h2c")),
        (
            "no Upgrade",
            SWITCHING.replace("Upgrade: websocket\r\n", ""),
        ),
        (
            "no Connection",
            SWITCHING.replace("Connection: Upgrade\r\n", ""),
        ),
        (
            "Connection: close",
            SWITCHING.replace("Connection: Upgrade", "Connection: close"),
        ),
        ("HTTP/1.0", SWITCHING.replace("HTTP/1.1", "HTTP/1.0")),
    ] {
        let answer = format!("{answer}\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
        let api = Upstream::replying(move |seen| match seen.target.as_str() {
            "/ws" => Reply::raw(&answer),
            target => Reply::ok(target),
        });
        let stage = Stage::before(api, OPERATIONS);
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&format!("{}{LAST}", good())));
        let answer = connection.answer("GET");
        assert_eq!(answer.status, 502, "{name}: {answer:?}");
        let rest = crate::support::http::latin1(&connection.wire().rest());
        assert!(!rest.contains("poison"), "{name}: {rest}");
        assert_eq!(stage.api.count(), 1, "{name}");
    }
    // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator". The 101 is the right one, and later
    // bytes on either side belong to the tunnel.
    let answer = format!("{}\npoison", SWITCHING.replace("\r\n", "\n"));
    let api = Upstream::replying(move |_| Reply::raw(&answer));
    let stage = Stage::before(api, OPERATIONS);
    let mut connection = stage.proxy.connect();
    connection.send(&stage.bytes(&good()));
    assert_eq!(connection.answer("GET").status, 101);
    assert_eq!(connection.wire().exactly(6).unwrap(), b"poison");
    assert_eq!(stage.api.count(), 1);
}

/// Nothing is piped for an invalid or forbidden handshake either.
#[test]
fn a_websocket_handshake_is_verified_before_anything_is_piped() {
    let stage = Stage::new(OPERATIONS);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket";
    for [name, source, status, credentials] in rows(
        r"
        no credentials         | RFC 5849 §3                 | 401 | X-A: b
        another path's         | RFC 5849 §3.4.1.2           | 401 | $A[GET /plain]
        another method's       | RFC 5849 §3.4.1.1           | 401 | $A[POST /ws]
        a session that is none | RFC 6455 §10.2              | 403 | Cookie: countersign=x; __Host-countersign=x
        forged identity        | oauth2-proxy CVE-2025-64484 | 401 | X-Auth-User: root\r\nX-Auth-Kind: user
    ",
    ) {
        let status: u16 = status.parse().unwrap();
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&format!("{}{UNSIGNED}", handshake(credentials, upgrade))));
        let answer = connection.answer("GET");
        assert_eq!(answer.status, status, "{name} [{source}]: {answer:?}");
        stage.api.saw_nothing();
    }
    let mut replayed = stage.proxy.connect();
    let wire = stage.bytes(&good());
    replayed.send(&wire);
    replayed.answer("GET").has_status(200);
    replayed.send(&wire);
    replayed.answer("GET").is(401, "nonce_used");
    assert_eq!(stage.api.count(), 1);
}

/// The forwarded form of the handshake: one WebSocket, whatever was offered, or a plain request.
#[test]
fn only_an_upgrade_to_websocket_is_forwarded() {
    let stage = Stage::new(OPERATIONS);
    for [name, fields, asked] in rows(
        r"
        plain            | Connection: Upgrade\r\nUpgrade: websocket        | true
        capitals         | CONNECTION: UPGRADE\r\nUPGRADE: WEBSOCKET        | true
        among others     | Connection: Upgrade\r\nUpgrade: h2c, websocket   | true
        in two lines     | Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket | true
        Connection twice | Connection: X-B\r\nConnection: Upgrade\r\nUpgrade: websocket | true
        naming others    | Connection: Upgrade, X-Auth-User, Sec-WebSocket-Key, Host\r\nUpgrade: websocket | true
        h2c              | Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk | false
        h2c beside       | Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk | false
        nearly           | Connection: Upgrade\r\nUpgrade: websockets       | false
        a version of it  | Connection: Upgrade\r\nUpgrade: websocket/13     | false
        not named        | Upgrade: websocket                               | false
        named nearly     | Connection: Upgrades\r\nUpgrade: websocket       | false
        a lookalike      | Connection: Upgrade\r\nX_Upgrade: websocket      | false
    ",
    ) {
        let asked = asked == "true";
        let mut connection = stage.proxy.connect();
        let before = stage.api.count();
        connection.send(&stage.bytes(&format!("{}{UNSIGNED}", handshake("$A[GET /ws]", fields))));
        connection.answer("GET").has_status(200);
        connection.answer("GET").has_status(401);
        let seen = stage.api.requests_since(before);
        assert_eq!(seen.len(), 1, "{name}");
        let expected = if asked {
            (vec!["Upgrade"], vec!["websocket"])
        } else {
            (vec![], vec![])
        };
        let seen = &seen[0].fields;
        assert_eq!(
            (seen.all("connection"), seen.all("upgrade")),
            expected,
            "{name}: {seen:?}"
        );
        assert!(!seen.has("http2-settings"), "{name}: {seen:?}");
        assert_eq!(seen.all("x-auth-kind"), ["consumer"], "{name}: {seen:?}");
        assert_eq!(seen.all("host"), [stage.proxy.host()], "{name}: {seen:?}");
    }
}

/// The bytes after a handshake reach the API after its 101, each once, and the proxy reads none of them as HTTP.
#[test]
fn bytes_before_the_101_are_piped_after_it() {
    let (head_seen, wait_for_head) = mpsc::channel();
    let (switch, wait_to_switch) = mpsc::channel::<()>();
    let (piped, wait_for_pipe) = mpsc::channel();
    let gates = std::sync::Mutex::new((head_seen, wait_to_switch, piped));
    let api = Upstream::handling(move |exchange| {
        let (head_seen, wait_to_switch, piped) = &*gates.lock().unwrap();
        head_seen.send(()).unwrap();
        wait_to_switch.recv().unwrap();
        exchange.write(format!(
            "{SWITCHING}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        ))?;
        let mut all = Vec::new();
        while let Some(piece) = exchange.raw_piece()? {
            all.extend(piece);
        }
        piped.send(all).unwrap();
        Ok(After::Close)
    });
    let stage = Stage::before(api, OPERATIONS);
    let stream = crate::support::http::try_open(stage.proxy.address()).unwrap();
    let writer = stream.try_clone().unwrap();
    let mut connection = Connection::over(stream);
    let early = stage.bytes(&format!("{UNSIGNED}{SMUGGLED}"));
    connection.send(&[stage.bytes(&good()), early.clone()].concat());
    wait_for_head.recv().unwrap();
    switch.send(()).unwrap();
    let head = connection.head();
    assert_eq!(head.status(), 101);
    for never in ["content-length", "transfer-encoding"] {
        assert!(!head.fields.has(never), "{never} in a 101, RFC 9110 §8.6");
    }
    writer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(wait_for_pipe.recv().unwrap(), early);
    assert_eq!(stage.api.count(), 1);
    assert!(connection.is_closed());
}
