//! Odd requests that pass: the API sees byte for byte what was sent and signed (RFC 5849 §3.4, RFC 9112 §3.2.1), less
//! the credentials. Nothing is normalized on the way, so that the API reads the request that was judged.
//!
//! Promise (HTTP): Path, query, body and header values reach the API byte for byte, except for credentials and configured
//! changes. Also in `tests/acceptance/request/bodies.rs`.

use crate::{
    attacks::{
        case::{Case, Stage, passes},
        script::{form, post},
    },
    support::{http::in_chunks, rows},
};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

#[test]
fn targets_arrive_as_they_were_signed() {
    let stage = Stage::new("");
    let cases: Vec<Case> = [
        ("/", "RFC 9112 §3.2.1"),
        ("/?", "RFC 3986 §3.4: an empty query"),
        ("/??", "RFC 3986 §3.4"),
        ("/x?&", "RFC 5849 §3.4.1.3.1: an empty pair"),
        ("/x?&&a=1&&", "RFC 5849 §3.4.1.3.1: empty pairs"),
        ("/x?=", "RFC 5849 §3.4.1.3.1: no name, no value"),
        ("/x?=1", "RFC 5849 §3.4.1.3.1: no name"),
        ("/x?a", "RFC 5849 §3.4.1.3.1: no equals sign"),
        ("/x?a=", "RFC 5849 §3.4.1.3.1: no value"),
        ("/x?a==1", "RFC 5849 §3.4.1.3.1: two equals signs"),
        ("/x?a=1=2", "RFC 5849 §3.4.1.3.1: two equals signs"),
        ("/x?a=1&a=1&a=0", "RFC 5849 §3.4.1.3.2: the same again"),
        ("/x?b=1&a=2&B=3", "RFC 5849 §3.4.1.3.2: out of order"),
        ("/x?a=%20&b=+&c=%2B", "RFC 5849 §3.6: spaces"),
        ("/x?a=%2b&b=%2B", "RFC 3986 §2.1: small hexadecimal"),
        ("/x?%61=%41", "RFC 3986 §2.3: what need not be escaped"),
        ("/x?a=%00", "an escaped NUL"),
        ("/x?a=%0d%0aX-Auth-User:%20root", "an escaped line break"),
        ("/x?a=%ff%fe", "RFC 3629: no UTF-8"),
        ("/x?a=%e4%b8%ad", "RFC 3629: three bytes"),
        ("/x?a=%c0%ae", "RFC 3629 §3: overlong"),
        ("/x?a=%2526", "escaped twice"),
        ("/x?a=1;b=2", "a semicolon, that some split at"),
        ("/x?a[=1&[=2", "RFC 3986 §3.4: a bracket, as PHP has it"),
        ("/x?a=/../y", "dots in a query"),
        ("/x?a=http://evil.test/?b=c", "an address in a query"),
        ("/x?a='`{}|^", "RFC 3986 §2: what should be escaped"),
        ("/x?a=\\", "a backslash in a query"),
        ("/x?OAUTHX_token=x", "RFC 5849 §3.1: nearly oauth_"),
        ("/x?oauth=1&xoauth_token=2", "RFC 5849 §3.1: nearly oauth_"),
        ("/x?a=oauth_token=x", "RFC 5849 §3.1: in a value"),
        ("/x?mode=req_req_token", "a mode on another path"),
        ("/X/x", "RFC 3986 §6.2.2.1: the path has a case"),
        ("/%78", "RFC 3986 §6.2.2.2: what need not be escaped"),
        ("/%7e/~", "RFC 3986 §6.2.2.2: a tilde"),
        ("/a%2fb", "RFC 3986 §2.2: a small escaped slash"),
        ("/a%2Fb", "RFC 3986 §2.2: a large escaped slash"),
        ("/a%252Fb", "escaped twice"),
        ("/a//b", "an empty segment"),
        ("//a", "RFC 9112 §3.2.1: not an authority"),
        ("/a/", "a slash at the end"),
        ("/a/./b", "RFC 3986 §5.2.4"),
        ("/a/b;c=d/e", "RFC 3986 §3.3: path parameters"),
        (
            "/a:b@c,d!$&'()*+=",
            "RFC 3986 §3.3: all that a segment may have",
        ),
        ("/http://evil.test/", "an address in the path"),
        ("/a%20b", "a space"),
        ("/%e4%b8%ad", "RFC 3629"),
        ("/%ff", "RFC 3629: no UTF-8"),
        ("/.well-known/x", "RFC 8615"),
    ]
    .iter()
    .map(|(target, source)| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET {target}]\r\n\r\n");
        passes(target, source, &format!("GET {target}"), request)
    })
    .collect();
    stage.play(49, &cases);
}

#[test]
fn forms_arrive_as_they_were_signed() {
    let stage = Stage::new("");
    let cases: Vec<Case> = [
        ("a=1&a=1&a=0", "RFC 5849 §3.4.1.3.2"),
        ("b=1&a=2", "RFC 5849 §3.4.1.3.2"),
        ("&&a=1&", "RFC 5849 §3.4.1.3.1"),
        ("a", "RFC 5849 §3.4.1.3.1"),
        ("=", "RFC 5849 §3.4.1.3.1"),
        ("=1", "RFC 5849 §3.4.1.3.1"),
        ("a=1=2", "RFC 5849 §3.4.1.3.1"),
        ("a=+&b=%20&c=%2b", "RFC 5849 §3.6"),
        ("a=%00", "an escaped NUL"),
        ("a=%0d%0a", "an escaped line break"),
        ("a=1;b=2", "a semicolon"),
        ("a=/../&b=?x#y", "what a target could not have"),
        ("a=%ff", "RFC 3629"),
        ("a=1\r\n", "a line break behind"),
        ("a=1\0", "a NUL"),
        ("GET / HTTP/1.1\r\n\r\n", "RFC 9112 §6: a request"),
        ("0\r\n\r\n", "RFC 9112 §7.1: a last chunk"),
        ("mode=req_req_token", "a mode on another path"),
    ]
    .iter()
    .map(|(body, source)| passes(body, source, &format!("POST /x | {body}"), form(FORM, body)))
    .collect();
    stage.play(18, &cases);
}

/// A body that no signature covers arrives as it was sent too, and under one framing.
#[test]
fn other_bodies_arrive_as_they_were_sent() {
    let stage = Stage::new("");
    let mut cases: Vec<Case> = Vec::new();
    for (name, body) in [
        ("a request", "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("a last chunk", "0\r\n\r\n"),
        ("an answer", "HTTP/1.1 200 OK\r\n\r\n"),
        ("every kind of line end", "\r\n\n\r\0"),
        ("all of Latin-1", "\u{80}\u{ff}\u{fe}"),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let seen = format!("POST /x | {body}");
        let length = body.chars().count();
        cases.push(passes(
            &format!("{name}, a length"),
            "RFC 9112 §6.2",
            &seen,
            post(&format!("Content-Length: {length}"), body),
        ));
        cases.push(passes(
            &format!("{name}, a chunk"),
            "RFC 9112 §7.1",
            &seen,
            post(
                "Transfer-Encoding: chunked",
                &format!("{length:x}\r\n{body}\r\n0\r\n\r\n"),
            ),
        ));
        let single: String = body
            .chars()
            .map(|one| format!("1;a=b\r\n{one}\r\n"))
            .collect();
        cases.push(passes(
            &format!("{name}, a chunk a byte"),
            "RFC 9112 §7.1.1",
            &seen,
            post(
                "Transfer-Encoding: chunked",
                &format!("{single}0\r\nX-A: b\r\n\r\n"),
            ),
        ));
    }
    stage.play(18, &cases);
}

/// Credentials are cut out with their own `&`, and every other byte stays where it is.
#[test]
fn parameters_around_the_credentials_arrive_as_they_were_sent() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for [name, seen, query] in rows(
        r"
        in front                     | GET /x?a=1       | a=1&$Q[GET /x?a=1]
        behind                       | GET /x?a=1       | $Q[GET /x?a=1]&a=1
        on both sides                | GET /x?a=%31&b=+ | a=%31&$Q[GET /x?a=1&b=+]&b=+
        empty pairs                  | GET /x?&a=1&&b   | &a=1&&$Q[GET /x?a=1&b]&b
        alone                        | GET /x?          | $Q[GET /x]
        oauth without its underscore | GET /x?oauth=1   | oauth=1&$Q[GET /x?oauth=1]
    ",
    ) {
        let script = format!("GET /x?{query} HTTP/1.1\r\nHost: $H\r\n\r\n");
        cases.push(passes(name, "RFC 5849 §3.5.3", seen, script));
    }
    for [name, seen, rest] in rows(
        r"
        in front of a form's        | POST /x \| a=%31    | Content-Length: $L\r\n\r\na=%31&$Q[POST /x?a=1]
        behind a form's             | POST /x \| a=1&     | Content-Length: $L\r\n\r\n$Q[POST /x?a=1]&a=1&
        on both sides of a form's   | POST /x \| &b=2&&a=1 | Content-Length: $L\r\n\r\n&b=2&&$Q[POST /x?a=1&b=2]&a=1
        a form of credentials alone | POST /x             | Content-Length: $L\r\n\r\n$Q[POST /x]
    ",
    ) {
        let script = format!("POST /x HTTP/1.1\r\nHost: $H\r\n{FORM}\r\n{rest}");
        cases.push(passes(name, "RFC 5849 §3.5.2", seen, script));
    }
    stage.play(10, &cases);
    let head =
        format!("POST /x HTTP/1.1\r\nHost: $H\r\n{FORM}\r\nTransfer-Encoding: chunked\r\n\r\n");
    let body = stage.bytes("a=1&$Q[POST /x?a=1]");
    let mut connection = stage.proxy.connect();
    connection.send(&[stage.bytes(&head), in_chunks(&[body])].concat());
    connection.answer("POST").has_status(200);
    assert_eq!(stage.api.last_request().body, b"a=1");
}
