//! The request line (RFC 9112 §3): methods, versions, white space, and bytes that are not a request.

use crate::{
    attacks::{
        case::{Stage, answered, passes, refused},
        script::SMUGGLED,
    },
    support::{rows, words},
};

/// The fields of a correctly signed `GET /x`.
const FIELDS: &str = "Host: $H\r\n$A[GET /x]\r\n\r\n";

#[test]
fn a_request_line_that_is_not_three_words_is_rejected() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for [name, source, line] in rows(
        r#"
        HTTP/0.9                            | RFC 9112 §3                          | GET /x
        HTTP/0.9 with a space               | RFC 9112 §3                          | GET /x\x20
        a space behind                      | RFC 9112 §3                          | GET /x HTTP/1.1\x20
        two spaces behind                   | RFC 9112 §3                          | GET /x HTTP/1.1 \x20
        a tab behind                        | RFC 9112 §3                          | GET /x HTTP/1.1\t
        a space in front                    | RFC 9112 §2.2                        | \x20GET /x HTTP/1.1
        a tab in front                      | RFC 9112 §2.2                        | \tGET /x HTTP/1.1
        two spaces before the target        | RFC 9112 §3                          | GET  /x HTTP/1.1
        two spaces before the version       | RFC 9112 §3                          | GET /x  HTTP/1.1
        a tab before the target             | RFC 9112 §3                          | GET\t/x HTTP/1.1
        a tab before the version            | RFC 9112 §3                          | GET /x\tHTTP/1.1
        a vertical tab before the version   | RFC 9112 §3                          | GET /x\u{b}HTTP/1.1
        a form feed before the target       | RFC 9112 §3                          | GET\u{c}/x HTTP/1.1
        a no-break space before the version | RFC 9112 §3                          | GET /x\u{a0}HTTP/1.1
        a target of two words               | RFC 9112 §3.2; Apache CVE-2023-25690 | GET /x y HTTP/1.1
        two versions                        | RFC 9112 §3                          | GET /x HTTP/1.1 HTTP/1.1
        a second request line behind        | Apache CVE-2023-25690                | GET /x HTTP/1.1 GET /y HTTP/1.1
        no target                           | RFC 9112 §3                          | GET HTTP/1.1
        an empty target                     | RFC 9112 §3                          | GET  HTTP/1.1
        no method                           | RFC 9112 §3.1                        | /x HTTP/1.1
        an empty method                     | RFC 9112 §3.1                        | \x20/x HTTP/1.1
        a colon in the method               | RFC 9110 §5.6.2                      | GET: /x HTTP/1.1
        a slash in the method               | RFC 9110 §5.6.2                      | GET/ /x HTTP/1.1
        quotes in the method                | RFC 9110 §5.6.2                      | "GET" /x HTTP/1.1
        a byte beyond ASCII in the method   | RFC 9110 §5.6.2                      | G\u{c9}T /x HTTP/1.1
        a NUL in the method                 | RFC 9110 §5.6.2                      | GET\0 /x HTTP/1.1
        a fold                              | RFC 9112 §3                          | GET /x\r\n HTTP/1.1
        a bare LF within                    | RFC 9112 §2.2                        | GET /x\nHTTP/1.1
        a bare CR within                    | RFC 9112 §2.2                        | GET /x\rHTTP/1.1
        a bare CR behind                    | RFC 9112 §2.2                        | GET /x HTTP/1.1\r
        an answer                           | RFC 9112 §2.1                        | HTTP/1.1 200 OK
    "#,
    ) {
        cases.push(refused(name, source, 400, format!("{line}\r\n{FIELDS}")));
    }
    // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator", and a server "SHOULD ignore at least
    // one empty line (CRLF) received prior to the request-line". The API gets CRLF and no empty line in front.
    for [name, lines] in rows(
        r"
        LF alone behind the request line | GET /x HTTP/1.1\nHost: $H\r\n$A[GET /x]\r\n\r\n
        LF alone everywhere              | GET /x HTTP/1.1\nHost: $H\n$A[GET /x]\n\n
        two empty lines in front         | \r\n\r\nGET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\n\r\n
        LF in front                      | \nGET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\n\r\n
    ",
    ) {
        cases.push(passes(name, "RFC 9112 §2.2", "GET /x", lines));
    }
    for (name, lines) in [
        ("a NUL in front", format!("\0GET /x HTTP/1.1\r\n{FIELDS}")),
        (
            "a byte order mark in front",
            format!("\u{ef}\u{bb}\u{bf}GET /x HTTP/1.1\r\n{FIELDS}"),
        ),
        (
            "a TLS hello",
            format!("\u{16}\u{3}\u{1}\u{2}\0\u{1}\r\n{FIELDS}"),
        ),
        (
            "a PROXY protocol line",
            format!("PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET /x HTTP/1.1\r\n{FIELDS}"),
        ),
    ] {
        cases.push(refused(name, "RFC 9112 §2.2", 400, lines));
    }
    stage.play(39, &cases);
}

#[test]
fn only_http_1_0_and_1_1_are_versions() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for version in [
        "HTTP/1.2",
        "HTTP/1.9",
        "HTTP/1.",
        "HTTP/1",
        "HTTP/1.10",
        "HTTP/1.01",
        "HTTP/01.1",
        "HTTP/1.1.1",
        "HTTP/1,1",
        "HTTP/2",
        "HTTP/2.0",
        "HTTP/3.0",
        "HTTP/0.9",
        "HTTP/9.9",
        "HTTP/11",
        "HTTP/",
        "HTTP",
        "HTTP/-1.1",
        "HTTP/1.1x",
        "http/1.1",
        "Http/1.1",
        "HTTPS/1.1",
        "HTTP /1.1",
        "HTTP/ 1.1",
        "HTTP\\1.1",
        "ICY/1.1",
        "HTTP/1.\u{b9}",
    ] {
        cases.push(refused(
            version,
            "RFC 9112 §2.3",
            400,
            format!("GET /x {version}\r\n{FIELDS}"),
        ));
    }
    stage.play(27, &cases);
}

#[test]
fn methods_are_case_sensitive_tokens_signed_as_they_were_sent() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for method in words("PROPFIND X M-SEARCH !#$%&'*+.^_`|~09 PRI QUERY") {
        cases.push(passes(
            method,
            "RFC 9110 §9.1",
            &format!("{method} /x"),
            format!("{method} /x HTTP/1.1\r\nHost: $H\r\n$A[{method} /x]\r\n\r\n"),
        ));
    }
    // RFC 5849 §3.4.1.1 signs the method in upper case; the method is forwarded as it was sent.
    for (sent, signed) in [("get", "GET"), ("Post", "POST")] {
        cases.push(passes(
            sent,
            "RFC 5849 §3.4.1.1",
            &format!("{sent} /x"),
            format!("{sent} /x HTTP/1.1\r\nHost: $H\r\n$A[{signed} /x]\r\n\r\n"),
        ));
    }
    let long = "M".repeat(4000);
    cases.push(passes(
        "4000 characters",
        "RFC 9110 §9.1",
        &format!("{long} /x"),
        format!("{long} /x HTTP/1.1\r\nHost: $H\r\n$A[{long} /x]\r\n\r\n"),
    ));
    for (sent, signed) in [("GET", "get"), ("HEAD", "GET"), ("POST", "GET")] {
        cases.push(answered(
            &format!("{sent} signed as {signed}"),
            "RFC 5849 §3.4.1.1",
            401,
            format!("{sent} /x HTTP/1.1\r\nHost: $H\r\n$A[{signed} /x]\r\n\r\n"),
        ));
    }
    for method in ["TRACE", "CONNECT", "trace", "Connect"] {
        let signed = method.to_ascii_uppercase();
        cases.push(answered(
            method,
            "RFC 9110 §9.3.6, §9.3.8",
            405,
            format!("{method} /x HTTP/1.1\r\nHost: $H\r\n$A[{signed} /x]\r\n\r\n"),
        ));
        cases.push(
            answered(
                &format!("{method} with a body"),
                "RFC 9110 §9.3.6, §9.3.8",
                405,
                format!("{method} /x HTTP/1.1\r\nHost: $H\r\n$A[{signed} /x]\r\nContent-Length: $L\r\n\r\n{SMUGGLED}"),
            )
            .closed(),
        );
    }
    stage.play(20, &cases);
}

#[test]
fn one_empty_line_before_a_request_is_ignored() {
    let stage = Stage::new("");
    let request = format!("GET /x HTTP/1.1\r\n{FIELDS}");
    stage.play(
        2,
        &[
            passes(
                "in front of the first",
                "RFC 9112 §2.2",
                "GET /x",
                format!("\r\n{request}"),
            ),
            passes(
                "behind a body",
                "RFC 9112 §2.2",
                "GET /x",
                format!("{request}\r\n{SMUGGLED}"),
            )
            .answers(&[200, 200])
            .seen(&["GET /x", "GET /smuggled"]),
        ],
    );
}

#[test]
fn a_target_is_visible_ascii_and_its_fragment_is_dropped() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for (name, target) in [
        ("a NUL", "/x\0y"),
        ("a bell", "/x\u{7}y"),
        ("an escape", "/x\u{1b}[2J"),
        ("a DEL", "/x\u{7f}"),
        ("no slash", "x"),
        ("a question mark", "?a=b"),
        ("a backslash", "\\x"),
        ("a colon and slashes", "://x"),
    ] {
        let signed = "/x";
        cases.push(refused(
            name,
            "RFC 9112 §3.2; RFC 3986 §2",
            400,
            format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET {signed}]\r\n\r\n"),
        ));
    }
    // Other proxies pass these. They are read as if they were encoded, so they are not what is signed.
    for (name, target) in [
        ("a byte beyond ASCII", "/\u{e9}"),
        ("UTF-8", "/\u{c3}\u{a9}"),
        ("overlong UTF-8", "/\u{c0}\u{ae}\u{c0}\u{ae}/x"),
        ("quotes in the query", "/x?a=\""),
        ("a less-than sign in the query", "/x?a=<"),
        ("a greater-than sign in the query", "/x?a=>"),
    ] {
        cases.push(answered(
            name,
            "RFC 9112 §3.2; RFC 3986 §2",
            401,
            format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\n\r\n"),
        ));
    }
    // A fragment is for the caller alone (RFC 3986 §3.5: it is not sent to find the resource): it is dropped before anything
    // is verified, and the API never sees it.
    for (name, target, signed) in [
        ("a fragment", "/x#y", "/x"),
        ("a fragment in the query", "/x?a=b#c", "/x?a=b"),
    ] {
        cases.push(passes(
            name,
            "RFC 9112 §3.2; RFC 3986 §3.5",
            &format!("GET {signed}"),
            format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET {signed}]\r\n\r\n"),
        ));
    }
    stage.play(16, &cases);
}
