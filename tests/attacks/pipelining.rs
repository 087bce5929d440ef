//! Several requests on one connection (RFC 9112 §9.3.2): each answered once, in order, and none after a broken one.

use crate::attacks::{
    case::{Stage, answered, refused},
    script::{SMUGGLED, form, get, post},
};

#[test]
fn every_pipelined_request_is_answered_once_and_in_order() {
    let stage = Stage::new("");
    let one = |n: u8| format!("GET /{n} HTTP/1.1\r\nHost: $H\r\n$A[GET /{n}]\r\n\r\n");
    let wrong = "GET /y HTTP/1.1\r\nHost: $H\r\n$A[GET /z]\r\n\r\n";
    let none = "GET /y HTTP/1.1\r\nHost: $H\r\n\r\n";
    let chunked = post("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n");
    stage.play(
        7,
        &[
            answered("three", "RFC 9112 §9.3.2", 200, one(1) + &one(2) + &one(3))
                .answers(&[200, 200, 200])
                .seen(&["GET /1", "GET /2", "GET /3"]),
            answered(
                "behind a length",
                "RFC 9112 §9.3.2",
                200,
                post("Content-Length: 3", "abc") + &one(1),
            )
            .answers(&[200, 200])
            .seen(&["POST /x | abc", "GET /1"]),
            answered(
                "behind chunks",
                "RFC 9112 §9.3.2",
                200,
                chunked.clone() + &chunked + &one(1),
            )
            .answers(&[200, 200, 200])
            .seen(&["POST /x | abc", "POST /x | abc", "GET /1"]),
            answered(
                "behind a form",
                "RFC 9112 §9.3.2",
                200,
                form("Content-Type: application/x-www-form-urlencoded", "a=1") + &one(1),
            )
            .answers(&[200, 200])
            .seen(&["POST /x | a=1", "GET /1"]),
            answered(
                "behind a refused one without a body",
                "RFC 9112 §9.3",
                401,
                format!("{wrong}{none}{}", one(1)),
            )
            .answers(&[401, 401, 200])
            .seen(&["GET /1"]),
            answered(
                "an unsigned one behind a signed one",
                "RFC 5849 §3",
                200,
                one(1) + none,
            )
            .answers(&[200, 401])
            .seen(&["GET /1"]),
            answered(
                "behind HEAD",
                "RFC 9110 §9.3.2",
                200,
                format!(
                    "HEAD /x HTTP/1.1\r\nHost: $H\r\n$A[HEAD /x]\r\n\r\n{}",
                    one(1)
                ),
            )
            .answers(&[200, 200])
            .seen(&["HEAD /x", "GET /1"]),
        ],
    );
}

#[test]
fn a_request_after_a_broken_one_is_never_served() {
    let stage = Stage::new("");
    let good = get("X-A: b");
    let broken = |fields: &str| {
        format!("{good}GET /y HTTP/1.1\r\nHost: $H\r\n$A[GET /y]\r\n{fields}\r\n\r\n")
    };
    let mut cases = Vec::new();
    for (name, fields) in [
        ("two lengths", "Content-Length: 0\r\nContent-Length: 1"),
        (
            // Chunked overrides the length (RFC 9112 §6.3), and this body is not chunked.
            "a length and chunks",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
        ),
        ("obs-fold", "X-A: b\r\n c"),
        ("a space before the colon", "X-A : b"),
        ("two hosts", "Host: $H"),
        ("two credentials", "Authorization: Basic YTpi"),
        ("a NUL", "X-A: \0"),
    ] {
        cases.push(
            refused(name, "RFC 9112 §9.3.2", 200, broken(fields))
                .answers(&[200, 400])
                .seen(&["GET /x"]),
        );
    }
    // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator"; none of the three is broken.
    let behind = broken("X-A: b\nX-B: c") + SMUGGLED;
    cases.push(
        answered("a bare LF", "RFC 9112 §9.3.2", 200, behind)
            .answers(&[200, 200, 200])
            .seen(&["GET /x", "GET /y", "GET /smuggled"]),
    );
    cases.push(
        answered(
            "behind Connection: close",
            "RFC 9112 §9.6",
            200,
            get("Connection: close") + SMUGGLED,
        )
        .closed()
        .seen(&["GET /x"]),
    );
    cases.push(
        answered(
            "behind HTTP/1.0",
            "RFC 9112 §9.3",
            200,
            format!("GET /x HTTP/1.0\r\nHost: $H\r\n$A[GET /x]\r\n\r\n{SMUGGLED}"),
        )
        .closed()
        .seen(&["GET /x"]),
    );
    cases.push(
        refused(
            "nonsense behind a good one",
            "RFC 9112 §3",
            200,
            get("X-A: b") + "nonsense\r\n\r\n",
        )
        .answers(&[200, 400])
        .seen(&["GET /x"]),
    );
    cases.push(
        refused(
            "one more byte than the length",
            "RFC 9112 §6.3",
            200,
            post("Content-Length: 3", "abc\0"),
        )
        .answers(&[200, 400])
        .seen(&["POST /x | abc"]),
    );
    stage.play(12, &cases);
}

/// Each request is checked by itself: a used nonce is also used on the same connection.
#[test]
fn the_same_bytes_twice_are_one_request_and_one_replay() {
    let stage = Stage::new("");
    let wire = stage.bytes(&get("X-A: b"));
    let mut connection = stage.proxy.connect();
    connection.send(&[wire.clone(), wire].concat());
    connection.answer("GET").has_status(200);
    connection.answer("GET").is(401, "nonce_used");
    assert_eq!(stage.api.count(), 1);
}
