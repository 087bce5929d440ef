//! Trailers never become fields (RFC 9110 §6.5.1, RFC 9112 §7.1.2).

use crate::{
    attacks::{
        case::{Case, Stage, passes, refused},
        script::post,
    },
    support::words,
};

fn chunked(trailers: &str) -> String {
    post(
        "Transfer-Encoding: chunked",
        &format!("3\r\nabc\r\n0\r\n{trailers}\r\n"),
    )
}

#[test]
fn trailers_of_a_request_are_not_forwarded() {
    let stage = Stage::new("");
    let cases: Vec<Case> = [
        "X-Trailer: 1",
        "X-Auth-User: root",
        "x_auth_user: root",
        "Authorization: Basic YTpi",
        "Host: evil.test",
        "Content-Length: 99",
        "Transfer-Encoding: chunked",
        "Connection: close",
        "Connection: X-Auth-User",
        "Content-Type: application/x-www-form-urlencoded",
        "X-Forwarded-For: 10.0.0.1",
        "Cookie: a=b",
        "Expect: 100-continue",
        "Upgrade: websocket",
        "X-Auth-Kind: user",
        "X:",
        "X: \u{e9}",
    ]
    .iter()
    .map(|trailer| {
        passes(
            trailer,
            "RFC 9110 §6.5.1",
            "POST /x | abc",
            chunked(&format!("{trailer}\r\n")),
        )
    })
    .collect();
    stage.play(17, &cases);
    stage.play(
        2,
        &[
            passes(
                "two",
                "RFC 9112 §7.1.2",
                "POST /x | abc",
                chunked("X-Trailer: 1\r\nX-Trailer: 2\r\n"),
            ),
            passes(
                "announced",
                "RFC 9110 §6.6.2",
                "POST /x | abc",
                post(
                    "Trailer: X-Trailer\r\nTE: trailers\r\nTransfer-Encoding: chunked",
                    "3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n",
                ),
            ),
        ],
    );
    for seen in stage.api.requests() {
        assert_eq!(seen.trailers, [""; 0], "{seen:?}");
        for name in words("x-trailer x cookie authorization content-type trailer") {
            assert!(!seen.fields.has(name), "{name}: {seen:?}");
        }
    }
}

#[test]
fn malformed_trailers_are_rejected() {
    let stage = Stage::new("");
    let cases: Vec<Case> = [
        ("no colon", "X-Trailer\r\n"),
        ("no name", ": x\r\n"),
        ("a space before the colon", "X : y\r\n"),
        ("a space in front", " X: y\r\n"),
        ("obs-fold", "X: y\r\n z\r\n"),
        ("a bare LF", "X: y\nZ: z\r\n"),
        ("a bare CR", "X: y\rZ: z\r\n"),
        ("a NUL", "X: \0\r\n"),
        (
            "a request",
            "GET /smuggled HTTP/1.1\r\nHost: $H\r\n$A[GET /smuggled]\r\n",
        ),
        ("a chunk", "3\r\nabc\r\n"),
        ("a byte beyond ASCII in the name", "\u{c4}: y\r\n"),
    ]
    .iter()
    .map(|(name, trailers)| {
        refused(
            name,
            "RFC 9112 §7.1.2; Funky chunks",
            400,
            chunked(trailers),
        )
        // The body is forwarded as it comes, and the fault is after it: the API must see that it has no end.
        .cut("abc")
    })
    .collect();
    stage.play(11, &cases);
}
