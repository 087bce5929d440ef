//! Bounds of a head (RFC 9112 §3, §5.4; RFC 6585 §5), exact to the byte.
//!
//! Promise (HTTP): Every wait has a deadline, and every buffer a bound (`limits.*`); slow sending does not extend deadlines.
//! Also in `tests/acceptance/request/limits.rs`, `tests/http2/calls.rs`, `tests/faults/slow.rs`, `tests/http2/life.rs`.

use crate::{
    attacks::case::{Stage, passes, refused},
    support::http::latin1,
};

#[test]
fn the_size_of_a_head_is_limited_to_the_byte() {
    let stage =
        Stage::new("[limits]\nhead_bytes = '4KiB'\nhead_fields = 20\ntarget_bytes = '1KiB'");
    // Signatures differ in length once they are escaped: made first, filled up then.
    let fill = |total: usize| {
        let plain = stage.bytes("GET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\nX-A: ");
        let filling = total - plain.len() - "\r\n\r\n".len();
        format!("{}{}\r\n\r\n", latin1(&plain), "a".repeat(filling))
    };
    let fields = |count: usize| {
        let more: String = (2..count).map(|n| format!("X-{n}: a\r\n")).collect();
        format!("GET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\n{more}\r\n")
    };
    let target = |length: usize| {
        let target = format!("/{}", "a".repeat(length - 1));
        format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET {target}]\r\n\r\n")
    };
    let long = format!("GET /{}", "a".repeat(1023));
    stage.play(
        12,
        &[
            passes(
                "as many bytes as allowed",
                "RFC 6585 §5",
                "GET /x",
                fill(4096),
            ),
            refused("one byte more", "RFC 6585 §5", 431, fill(4097)),
            refused(
                "a head without end",
                "RFC 6585 §5",
                431,
                "GET /x HTTP/1.1\r\nX: $R[8000:a]",
            ),
            refused(
                "fields without end",
                "RFC 6585 §5",
                431,
                "GET /x HTTP/1.1\r\n$R[3000:X: a\r\n]",
            ),
            passes(
                "as many fields as allowed",
                "RFC 6585 §5",
                "GET /x",
                fields(20),
            ),
            refused("one field more", "RFC 6585 §5", 431, fields(21)),
            refused("many fields", "RFC 6585 §5", 431, fields(200)),
            passes(
                "as long a target as allowed",
                "RFC 9110 §15.5.15",
                &long,
                target(1024),
            ),
            refused(
                "one byte more of a target",
                "RFC 9110 §15.5.15",
                414,
                target(1025),
            ),
            // The request after it becomes its end, with an invalid version.
            refused(
                "a target without end",
                "RFC 9110 §15.5.15",
                400,
                "GET /$R[8000:a]",
            ),
            // A head is read whole before it is parsed: the status says that the head is too long.
            refused("a method without end", "RFC 9112 §3", 431, "$R[8000:A]"),
            refused(
                "a long absolute target",
                "RFC 9110 §15.5.15",
                414,
                "GET http://$H/$R[1024:a] HTTP/1.1\r\nHost: $H\r\n\r\n",
            ),
        ],
    );
    // The size of a body does not count here.
    stage.play(
        1,
        &[passes(
            "a body beyond the bounds of heads",
            "RFC 9112 §6",
            &format!("POST /x | {}", "b".repeat(9000)),
            "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nContent-Length: 9000\r\n\r\n$R[9000:b]",
        )],
    );
    // The end of the previous request is not the beginning of the next one's head.
    stage.play(
        1,
        &[passes(
            "two heads as large as allowed",
            "RFC 9112 §9.3.2",
            "GET /x",
            fill(4096) + &fill(4096),
        )
        .answers(&[200, 200])
        .seen(&["GET /x", "GET /x"])],
    );
}

/// Each field is compared with the names in Connection, so that the work would grow with the square of the head.
#[test]
fn the_number_of_fields_that_connection_names_is_limited() {
    let stage = Stage::new("");
    let named = |bytes: usize| {
        let fields: String = (0..80).map(|n| format!("X-{n}: a\r\n")).collect();
        format!(
            "GET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\nConnection: $R[{}:b,]\r\n{fields}\r\n",
            bytes / 2
        )
    };
    stage.play(
        4,
        &[
            passes(
                "as long as allowed",
                "RFC 9110 §7.6.1",
                "GET /x",
                named(1024),
            ),
            refused("longer", "RFC 9110 §7.6.1", 400, named(1026)),
            refused("as long as a head", "RFC 9110 §7.6.1", 400, named(28_000)),
            refused(
                "of empty elements",
                "RFC 9110 §7.6.1",
                400,
                "GET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\nConnection: b$R[28000:,]\r\n\r\n",
            ),
        ],
    );
}

/// A buffered body is bounded (RFC 9110 §15.5.14); a streamed one is not.
#[test]
fn the_size_of_a_form_is_limited_to_the_byte() {
    let stage = Stage::new("limits.form_bytes = '1KiB'");
    let form = |length: usize, framing: &str, end: &str| {
        let body = format!("a={}", "b".repeat(length - 2));
        format!(
            "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x {body}]\r\nContent-Type: application/x-www-form-urlencoded\r\n{framing}{body}{end}"
        )
    };
    let length = |length| form(length, "Content-Length: $L\r\n\r\n", "");
    let chunk = |length: usize| {
        let framing = format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n");
        form(length, &framing, "\r\n0\r\n\r\n")
    };
    let seen = |length: usize| format!("POST /x | a={}", "b".repeat(length - 2));
    let source = "RFC 9110 §15.5.14";
    let header = |length: usize| {
        format!(
            "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    stage.play(8, &[
        passes("as long as allowed", source, &seen(1024), length(1024)),
        refused("a byte more", source, 413, length(1025)),
        passes("as long as allowed, a chunk", source, &seen(1024), chunk(1024)),
        refused("a byte more, a chunk", source, 413, chunk(1025)),
        refused("announced only", source, 413, header(1025)),
        refused("announced, far more", source, 413, header(99_999_999_999_999)),
        refused("chunks of a byte", source, 413, "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n$R[1025:1\r\na\r\n]0\r\n\r\n"),
        passes("another body", source, &format!("POST /x | {}", "b".repeat(5000)), "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nContent-Length: 5000\r\n\r\n$R[5000:b]"),
    ]);
}
