//! Upgrades that no operation allows (RFC 9110 §7.8): dropped, and nothing is piped.

use std::time::{Duration, Instant};

use crate::{
    attacks::{
        case::{Case, Stage, answered, passes},
        script::{SMUGGLED, get},
    },
    support::{Reply, Upstream, rows, until},
};

#[test]
fn an_unknown_upgrade_is_dropped_and_the_request_served() {
    let stage = Stage::new("");
    let mut cases: Vec<Case> = Vec::new();
    for [name, source, fields] in rows(
        r"
        h2c | RFC 9113 §3.1 | Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA
        h2c, the settings not named | RFC 9113 §3.1 | Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA
        h2c, nothing named             | RFC 9113 §3.1         | Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA
        h2c in capitals                | RFC 9113 §3.1         | CONNECTION: UPGRADE\r\nUPGRADE: H2C
        h2c among others               | RFC 9113 §3.1         | Connection: Upgrade\r\nUpgrade: websocket, h2c
        h2                             | RFC 9113 §3.1         | Connection: Upgrade\r\nUpgrade: h2
        TLS                            | RFC 2817              | Connection: Upgrade\r\nUpgrade: TLS/1.0
        WebSocket where none is listed | RFC 6455 §4.1 | Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
        WebSocket without Connection | RFC 6455 §4.1 | Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
        an unknown protocol            | Pingora CVE-2026-2833 | Connection: Upgrade\r\nUpgrade: foo
        two lines                      | RFC 9110 §7.8         | Connection: Upgrade\r\nUpgrade: foo\r\nUpgrade: bar
        empty                          | RFC 9110 §7.8         | Connection: Upgrade\r\nUpgrade:
    ",
    ) {
        cases.push(passes(name, source, "GET /x", get(fields)));
        // The following bytes are the next request, verified like any other, and are not piped.
        cases.push(
            answered(
                &format!("{name}, and a request behind"),
                "Pingora CVE-2026-2833",
                200,
                get(fields) + SMUGGLED,
            )
            .answers(&[200, 200])
            .seen(&["GET /x", "GET /smuggled"]),
        );
        cases.push(
            answered(
                &format!("{name}, and an unsigned request behind"),
                "Pingora CVE-2026-2833",
                200,
                get(fields) + "GET /admin HTTP/1.1\r\nHost: $H\r\n\r\n",
            )
            .answers(&[200, 401])
            .seen(&["GET /x"]),
        );
    }
    stage.play(36, &cases);
    for seen in stage.api.requests() {
        assert!(
            !seen.fields.has("connection") && !seen.fields.has("upgrade"),
            "{seen:?}"
        );
    }
    stage
        .proxy
        .logs(&[" access: ", "path=\"/x\"", "upgrade=\"dropped\""]);
}

#[test]
fn unrequested_101_is_502() {
    let api = Upstream::replying(|seen| {
        if seen.target.starts_with("/probe/") {
            return Reply::ok(&seen.target);
        }
        Reply::raw(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        )
    });
    let stage = Stage::before(api, "");
    let seen = ["GET /x"];
    stage.play(
        3,
        &[
            answered("unasked", "RFC 9110 §15.2.2", 502, get("X-A: b")).seen(&seen),
            answered(
                "asked for and dropped",
                "Pingora CVE-2026-2833",
                502,
                get("Connection: Upgrade\r\nUpgrade: foo"),
            )
            .seen(&seen),
            answered(
                "a request behind",
                "Pingora CVE-2026-2833",
                502,
                get("Connection: Upgrade\r\nUpgrade: foo")
                    + "GET /admin HTTP/1.1\r\nHost: $H\r\n\r\n",
            )
            .answers(&[502, 401])
            .seen(&seen),
        ],
    );
}

/// An ignored offer must not keep the caller waiting for the end of its connection.
#[test]
fn a_close_after_an_offered_upgrade_ends_the_connection_at_once() {
    let stage = Stage::new("");
    for request in [
        get("Connection: Upgrade, close\r\nUpgrade: h2c"),
        "CONNECT $H HTTP/1.1\r\nHost: $H\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        // Far less than the proxy waits for the caller's own end, if the machine is not too busy.
        until("it ends at once", || {
            let mut connection = stage.proxy.connect();
            connection.send(&stage.bytes(&request));
            connection.answer("GET");
            let answered = Instant::now();
            assert!(connection.is_closed(), "{request}");
            answered.elapsed() < Duration::from_secs(4)
        });
    }
}
