//! Answers before the body was read: nothing in that body is ever a request (RFC 9112 §9.3, RFC 9110 §10.1.1).

use crate::support::rows;
use crate::{
    attacks::{
        case::{Case, Stage, answered, refused},
        script::{SMUGGLED, post},
    },
    support::{Upstream, http::latin1, upstream::After},
};

/// A POST that is refused, with a whole signed request for a body.
fn refusable(fields: &str, body: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: $H\r\n{fields}\r\n\r\n{body}")
}

#[test]
fn bytes_in_the_body_of_a_rejected_request_are_never_a_request() {
    let stage = Stage::new(
        "limits.form_bytes = '1KiB'\noperation = [{ path = '/x', methods = ['POST'] }, { path = '/smuggled' }, { path = '/probe/{id}' }]",
    );
    // The chunk contains the request; its size is the length of that, so it is written by hand.
    let smuggled = latin1(&stage.bytes(SMUGGLED));
    let chunks = format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len());
    let length = "Content-Length: $L";
    let mut cases: Vec<Case> = Vec::new();
    for (name, status, credentials) in [
        ("no credentials", 401, "X-A: b"),
        ("another scheme", 401, "Authorization: Basic YTpi"),
        ("a wrong signature", 401, "$A[POST /y]"),
        ("malformed credentials", 400, "Authorization: OAuth x"),
        ("a keep-alive wish", 401, "Connection: keep-alive"),
    ] {
        let case = answered(
            &format!("{name}, a length"),
            "Pingora CVE-2025-4366; Kettle 2025, 0.CL",
            status,
            refusable(&format!("{credentials}\r\n{length}"), SMUGGLED),
        );
        // The advice on a wrong signature reads a small body whole, so nothing is left unread (RFC 9112 §9.3).
        cases.push(if name == "a wrong signature" {
            case
        } else {
            case.closed()
        });
        cases.push(
            answered(
                &format!("{name}, chunks"),
                "Pingora CVE-2025-4366",
                status,
                refusable(
                    &format!("{credentials}\r\nTransfer-Encoding: chunked"),
                    &chunks,
                ),
            )
            .closed(),
        );
        cases.push(
            answered(
                &format!("{name}, a length that goes on"),
                "Pingora CVE-2025-4366",
                status,
                refusable(
                    &format!("{credentials}\r\nContent-Length: 100000"),
                    SMUGGLED,
                ),
            )
            .closed(),
        );
    }
    for [name, status, line] in rows(
        r"
        405                    | 405 | PUT /x HTTP/1.1\r\nHost: $H\r\n$A[PUT /x]
        404                    | 404 | POST /unlisted HTTP/1.1\r\nHost: $H\r\n$A[POST /unlisted]
        421                    | 421 | POST /x HTTP/1.1\r\nHost: evil.test
        a path that is refused | 400 | POST /x/../y HTTP/1.1\r\nHost: $H
        no mode                | 401 | POST /service.oauth HTTP/1.1\r\nHost: $H
        TRACE                  | 405 | TRACE /x HTTP/1.1\r\nHost: $H
        CONNECT                | 405 | CONNECT $H HTTP/1.1\r\nHost: $H
    ",
    ) {
        let status: u16 = status.parse().unwrap();
        cases.push(
            answered(
                name,
                "Pingora CVE-2025-4366",
                status,
                format!("{line}\r\n{length}\r\n\r\n{SMUGGLED}"),
            )
            .closed(),
        );
    }
    cases.push(
        answered(
            "a form that is too large",
            "RFC 9110 §15.5.14",
            413,
            refusable(
                &format!(
                    "$A[POST /x]\r\nContent-Type: application/x-www-form-urlencoded\r\n{length}"
                ),
                &format!("$R[2000:a]{SMUGGLED}"),
            ),
        )
        .closed(),
    );
    cases.push(
        answered(
            "a chunked form that is too large",
            "RFC 9110 §15.5.14",
            413,
            refusable("$A[POST /x]\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked", &format!("7d0\r\n$R[2000:a]\r\n{chunks}")),
        )
        .closed(),
    );
    stage.play(24, &cases);
}

#[test]
fn a_100_is_sent_only_when_the_body_is_wanted() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for [name, status, request] in rows(
        r"
        no credentials    | 401 | POST /x HTTP/1.1\r\nHost: $H\r\n
        a wrong signature | 401 | POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /y]\r\n
        another host      | 421 | POST /x HTTP/1.1\r\nHost: evil.test\r\n$A[POST /x]\r\n
        TRACE             | 405 | TRACE /x HTTP/1.1\r\nHost: $H\r\n$A[TRACE /x]\r\n
    ",
    ) {
        let status: u16 = status.parse().unwrap();
        for framing in ["Content-Length: 3", "Transfer-Encoding: chunked"] {
            cases.push(
                answered(
                    &format!("{name}, {framing}"),
                    "RFC 9110 §10.1.1",
                    status,
                    format!("{request}Expect: 100-continue\r\n{framing}\r\n\r\n"),
                )
                .closed(),
            );
        }
    }
    for value in [
        "100-continu",
        "100",
        "continue",
        "200-ok",
        "100-continue, x",
        "x, 100-continue",
        "",
        "100-continue;q=1",
        "y 100-continue",
    ] {
        cases.push(refused(
            &format!("Expect: {value}"),
            "RFC 9110 §10.1.1; Kettle 2025, Expect",
            400,
            format!("POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nExpect: {value}\r\nContent-Length: 3\r\n\r\nabc"),
        ));
    }
    stage.play(17, &cases);
}

#[test]
fn an_expectation_of_100_is_not_forwarded() {
    let stage = Stage::new("");
    // RFC 9110 §10.1.1: a server MAY omit the 100 where the body has begun to arrive. This one sends it to every caller
    // that asks, unless there is no body or the caller speaks HTTP/1.0.
    for [name, version, fields, body, interim] in rows(
        r"
        a body that is there  | 1.1 | Content-Length: 3                         | abc                   | 1
        chunks that are there | 1.1 | Transfer-Encoding: chunked                | 3\r\nabc\r\n0\r\n\r\n | 1
        no body               | 1.1 | X-A: b                                    |                       | 0
        a length of 0         | 1.1 | Content-Length: 0                         |                       | 0
        in capitals           | 1.1 | Expect: 100-CONTINUE\r\nContent-Length: 3 | abc                   | 1
        HTTP/1.0              | 1.0 | Content-Length: 3                         | abc                   | 0
    ",
    ) {
        let interim: usize = interim.parse().unwrap();
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&format!("POST /x HTTP/{version}\r\nHost: $H\r\n$A[POST /x]\r\nExpect: 100-continue\r\n{fields}\r\n\r\n{body}")));
        let answer = connection.answer("POST");
        assert_eq!(
            (answer.status, answer.interim.len()),
            (200, interim),
            "{name}: {answer:?}"
        );
        assert!(!stage.api.last_request().fields.has("expect"), "{name}");
    }
}

/// Pingora CVE-2025-4366, Kettle 2025 (0.CL): an API that answers before it has read the body leaves both connections
/// in the middle of one, and no other request may use them.
#[test]
fn an_early_response_leaves_no_half_body_on_any_connection() {
    // Answers at the head, and continues as if there were no body.
    let api = Upstream::handling(|exchange| {
        let target = exchange.seen.target.clone();
        let length = target.len();
        exchange.write(format!(
            "HTTP/1.1 200 OK\r\nX-Target: {target}\r\nContent-Length: {length}\r\n\r\n{target}"
        ))?;
        Ok(After::Keep)
    });
    let stage = Stage::before(api, "");
    let unsigned = "GET /unsigned HTTP/1.1\r\nHost: $H\r\n\r\n";
    for (name, fields, body) in [
        (
            "a length that goes on",
            "Content-Length: 100000",
            SMUGGLED.to_owned(),
        ),
        (
            "a chunk that goes on",
            "Transfer-Encoding: chunked",
            format!("186a0\r\n{SMUGGLED}"),
        ),
        (
            "a length, the body behind the answer",
            "Content-Length: 4000",
            unsigned.to_owned(),
        ),
    ] {
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&post(fields, &body)));
        connection.answer("POST").has_status(200);
        // The rest of the body: requests, whole and signed.
        let rest = stage.bytes(SMUGGLED);
        while connection.try_send(&rest).is_ok() && stage.api.count() < 2 {
            if connection.is_closed() {
                break;
            }
        }
        // Others pass, each with its own answer.
        for n in 0..5 {
            let target = format!("/next/{n}");
            let answer = stage.proxy.send(stage.get(&target));
            assert_eq!((answer.status, answer.text()), (200, target), "{name}");
        }
    }
    // Such an API parses the body as requests; one that the proxy forwarded carries an identity.
    for seen in stage.api.requests() {
        let known = seen.target == "/x" || seen.target.starts_with("/next/");
        assert!(
            known || !seen.fields.has("x-auth-kind"),
            "a body was read as a request: {seen:?}"
        );
    }
}

/// Kettle 2022 (pause-based desync): a body that pauses gets 408 and a close; the connection never goes on after it.
#[test]
fn bytes_after_a_pause_in_a_body_are_never_a_request() {
    let stage =
        Stage::new("[limits]\nhead_timeout = '1s'\nform_timeout = '1s'\nbody_timeout = '1s'");
    for (name, request) in [
        ("a head", "GET /x HTTP/1.1\r\nHost: $H\r\nX-A: ".to_owned()),
        ("a form", "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 400\r\n\r\n".to_owned()),
        ("a form in chunks", "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
        ("a body", post("Content-Length: 400", "")),
        ("a chunk", post("Transfer-Encoding: chunked", "ff\r\n")),
    ] {
        let before = stage.api.count();
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&request));
        let answer = connection.answer("POST");
        assert_eq!(answer.status, 408, "{name}: {answer:?}");
        drop(connection.try_send(&stage.bytes(SMUGGLED)));
        assert_eq!(connection.wire().rest(), b"", "{name}");
        for seen in stage.api.requests_since(before) {
            assert!(seen.target == "/x" && !seen.whole, "{name}: {seen:?}");
        }
    }
}
