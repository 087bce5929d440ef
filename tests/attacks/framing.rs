//! The end of a request: Content-Length and Transfer-Encoding (RFC 9112 §6).

use crate::{
    attacks::{
        case::{Stage, answered, passes, refused},
        script::{SMUGGLED, post},
    },
    support::rows,
};

/// A whole chunked body.
const CHUNKED: &str = "3\r\nabc\r\n0\r\n\r\n";

#[test]
fn an_ambiguous_content_length_is_rejected() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for (value, source) in [
        ("+3", "hyper CVE-2021-32715"),
        ("+0", "hyper CVE-2021-32715"),
        ("-1", "RFC 9112 §6.3"),
        ("-0", "RFC 9112 §6.3"),
        ("3,3", "RFC 9110 §8.6"),
        ("3, 3", "RFC 9110 §8.6"),
        ("3, 4", "RFC 9110 §8.6"),
        ("3,", "RFC 9110 §8.6"),
        (",3", "RFC 9110 §8.6"),
        ("0x3", "RFC 9110 §8.6"),
        ("3h", "RFC 9110 §8.6"),
        ("a", "RFC 9110 §8.6"),
        ("3.0", "RFC 9110 §8.6"),
        ("3e0", "RFC 9110 §8.6"),
        ("3;a=b", "RFC 9110 §8.6"),
        ("3 3", "RFC 9110 §8.6"),
        ("3_0", "Tomcat CVE-2022-42252"),
        ("\"3\"", "RFC 9110 §8.6"),
        ("", "RFC 9110 §8.6"),
        ("\t", "RFC 9110 §8.6"),
        ("18446744073709551616", "RFC 9110 §8.6: overflow of 64 bits"),
        (
            "18446744073709551619",
            "RFC 9110 §8.6: 3 after an overflow of 64 bits",
        ),
        ("4294967299999999999", "RFC 9110 §8.6"),
        ("9223372036854775808", "RFC 9110 §8.6: negative in 64 bits"),
        ("\u{b3}", "RFC 9110 §8.6: superscript three in Latin-1"),
        ("\u{d9}\u{a3}", "RFC 9110 §8.6: a digit of another script"),
        ("3\u{a0}", "RFC 9110 §8.6: a no-break space"),
        ("\0", "RFC 9110 §5.5"),
        ("3\0", "RFC 9110 §5.5"),
        ("3\u{b}", "RFC 9110 §5.5"),
    ] {
        cases.push(refused(
            &format!("Content-Length: {value:?}"),
            source,
            400,
            post(&format!("Content-Length: {value}"), "abc"),
        ));
    }
    for [name, fields] in rows(
        r"
        two lengths               | Content-Length: 3\r\nContent-Length: 0
        two lengths, 0 first      | Content-Length: 0\r\nContent-Length: 3
        two lengths in two cases  | Content-Length: 3\r\ncontent-length: 4
        a length and an empty one | Content-Length: 3\r\nContent-Length:
    ",
    ) {
        cases.push(refused(name, "RFC 9112 §6.3", 400, post(fields, "abc")));
    }
    // RFC 9112 §6.3 has a recipient replace equal lengths by a single valid one, and RFC 9110 §8.6 any number of digits: the
    // API gets `Content-Length: 3`, once.
    let from = stage.api.count();
    for [name, fields] in rows(
        r"
        the same length twice              | Content-Length: 3\r\nContent-Length: 3
        a length, a field, the same length | Content-Length: 3\r\nX-A: b\r\nCONTENT-LENGTH: 3
        more digits than any length has    | Content-Length: 00000000000000000003
    ",
    ) {
        cases.push(passes(
            name,
            "RFC 9112 §6.3; RFC 9110 §8.6",
            "POST /x | abc",
            post(fields, "abc"),
        ));
    }
    stage.play(37, &cases);
    let posts = stage.api.requests_since(from);
    for seen in posts.iter().filter(|seen| seen.method == "POST") {
        assert_eq!(seen.fields.all("content-length"), ["3"], "{seen:?}");
    }
}

#[test]
fn a_transfer_encoding_other_than_one_chunked_is_rejected() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for (value, source) in [
        ("", "RFC 9112 §6.1"),
        ("identity", "RFC 9112 §7: removed"),
        ("gzip", "RFC 9112 §6.3: chunked is not the last"),
        ("gzip, chunked", "RFC 9112 §6.1: 501 or 400"),
        ("chunked, gzip", "RFC 9112 §6.3"),
        ("chunked, identity", "Kettle 2019, TE.TE"),
        ("identity, chunked", "Kettle 2019, TE.TE"),
        (
            "chunked, chunked",
            "RFC 9112 §6.1: must not be applied twice",
        ),
        ("chunked,", "Node.js CVE-2022-32215"),
        (",chunked", "RFC 9110 §5.6.1"),
        ("xchunked", "Kettle 2019, TE.TE"),
        ("chunkedx", "Kettle 2019, TE.TE"),
        ("chunked foo", "Kettle 2019, TE.TE"),
        ("chunked;q=1", "RFC 9112 §7"),
        ("chunked;", "RFC 9112 §7"),
        ("\"chunked\"", "Kettle 2019, TE.TE"),
        ("'chunked'", "Kettle 2019, TE.TE"),
        ("chun ked", "Kettle 2019, TE.TE"),
        ("chun\tked", "Kettle 2019, TE.TE"),
        ("chunk", "Kettle 2019, TE.TE"),
        ("cow", "Kettle 2019, TE.TE"),
        ("\u{b}chunked", "Kettle 2019, TE.TE: vertical tab"),
        ("\u{c}chunked", "Kettle 2019, TE.TE: form feed"),
        ("chunked\u{b}", "Kettle 2019, TE.TE"),
        ("\0chunked", "Envoy CVE-2019-9900"),
        ("chunked\0", "Envoy CVE-2019-9900"),
        ("chunked\u{7f}", "RFC 9110 §5.5"),
        ("\u{a0}chunked", "Kettle 2019, TE.TE: no-break space"),
        ("chunked\u{85}", "Kettle 2019, TE.TE: next line"),
        ("chu\u{fb}ked", "Kettle 2019, TE.TE"),
        ("\r\n chunked", "Node.js CVE-2022-32215: obs-fold"),
        ("\n chunked", "Node.js CVE-2022-32214"),
        ("\rchunked", "Node.js CVE-2022-35256"),
        ("chunked\r", "Node.js CVE-2022-35256"),
    ] {
        cases.push(refused(
            &format!("Transfer-Encoding: {value:?}"),
            source,
            400,
            post(&format!("Transfer-Encoding: {value}"), CHUNKED),
        ));
    }
    for [name, source, fields] in rows(
        r"
        chunked twice                   | RFC 9112 §6.1          | Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked
        chunked, then another           | Kettle 2019, TE.TE     | Transfer-Encoding: chunked\r\nTransfer-Encoding: cow
        another, then chunked           | Kettle 2019, TE.TE     | Transfer-Encoding: cow\r\nTransfer-Encoding: chunked
        identity, then chunked          | Node.js CVE-2022-32215 | Transfer-Encoding: identity\r\nTransfer-Encoding: chunked
        two cases of the name           | Kettle 2019, TE.TE     | Transfer-Encoding: chunked\r\ntransfer-encoding: x
        an empty one, then chunked      | RFC 9112 §6.1          | Transfer-Encoding:\r\nTransfer-Encoding: chunked
        a space before the colon        | RFC 9112 §5.1          | Transfer-Encoding : chunked
        a tab before the colon          | RFC 9112 §5.1          | Transfer-Encoding\t: chunked
        a space before the name         | RFC 9112 §5.2          | X-A: b\r\n Transfer-Encoding: chunked
        a vertical tab before the colon | RFC 9112 §5.1          | Transfer-Encoding\u{b}: chunked
        a NUL in the name               | RFC 9110 §5.1          | Transfer\0-Encoding: chunked
        a bare CR before the name       | Node.js CVE-2022-35256 | X: x\rTransfer-Encoding: chunked
        a fold in the name              | Kettle 2019, TE.TE     | Transfer-Encoding\r\n : chunked
        no colon                        | RFC 9112 §5            | Transfer-Encoding chunked
        a colon before                  | RFC 9110 §5.1          | :Transfer-Encoding: chunked
    ",
    ) {
        cases.push(refused(name, source, 400, post(fields, CHUNKED)));
    }
    // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator", and then this is one field.
    cases.push(passes(
        "a bare LF before the name",
        "Kettle 2019, TE.TE",
        "POST /x | abc",
        post("X: x\nTransfer-Encoding: chunked", CHUNKED),
    ));
    stage.play(50, &cases);
}

#[test]
fn content_length_with_chunked_is_dropped() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    // RFC 9112 §6.3: "the Transfer-Encoding overrides the Content-Length", which must be removed before the message
    // goes on; §6.1: the connection is closed after the response. Nothing after the body is served.
    for [name, fields] in rows(
        r"
        length, then chunked           | Content-Length: 3\r\nTransfer-Encoding: chunked
        chunked, then length           | Transfer-Encoding: chunked\r\nContent-Length: 3
        length 0, then chunked         | Content-Length: 0\r\nTransfer-Encoding: chunked
        chunked, then length 0         | Transfer-Encoding: chunked\r\nContent-Length: 0
        chunked in capitals            | Content-Length: 13\r\nTransfer-Encoding: CHUNKED
        the coding named by Connection | Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\nContent-Length: 3
        the length named by Connection | Connection: Content-Length\r\nTransfer-Encoding: chunked\r\nContent-Length: 3
    ",
    ) {
        cases.push(
            refused(
                name,
                "RFC 9112 §6.1; Kettle 2019, CL.TE",
                200,
                post(fields, CHUNKED),
            )
            .seen(&["POST /x | abc"]),
        );
    }
    for [name, fields] in rows(
        r"
        identity          | Content-Length: 3\r\nTransfer-Encoding: identity
        an empty coding   | Content-Length: 3\r\nTransfer-Encoding:
        an unknown coding | Content-Length: 3\r\nTransfer-Encoding: x
    ",
    ) {
        cases.push(refused(
            name,
            "RFC 9112 §6.1; Kettle 2019, CL.TE",
            400,
            post(fields, CHUNKED),
        ));
    }
    // A name that only CGI-like frameworks take for the framing field has no effect and does not reach the API either.
    for (name, fields, body) in [
        (
            "Transfer_Encoding beside a length",
            "Content-Length: 3\r\nTransfer_Encoding: chunked",
            "abc",
        ),
        (
            "Content_Length beside chunked",
            "Transfer-Encoding: chunked\r\nContent_Length: 99",
            CHUNKED,
        ),
        (
            "Content.Length beside a length",
            "Content-Length: 3\r\nContent.Length: 99",
            "abc",
        ),
    ] {
        cases.push(passes(
            name,
            "oauth2-proxy CVE-2025-64484",
            "POST /x | abc",
            post(fields, body),
        ));
    }
    stage.play(13, &cases);
}

#[test]
fn transfer_encoding_in_http_1_0_is_rejected() {
    let stage = Stage::new("");
    let request = |fields: &str, body: &str| {
        format!("POST /x HTTP/1.0\r\nHost: $H\r\n$A[POST /x]\r\n{fields}\r\n\r\n{body}")
    };
    let mut cases = Vec::new();
    for [name, fields] in rows(
        r"
        chunked                      | Transfer-Encoding: chunked
        chunked on a kept connection | Connection: keep-alive\r\nTransfer-Encoding: chunked
        chunked with a length        | Content-Length: 13\r\nTransfer-Encoding: chunked
        identity                     | Transfer-Encoding: identity
        gzip, chunked                | Transfer-Encoding: gzip, chunked
    ",
    ) {
        cases.push(refused(
            name,
            "RFC 9112 §6.1; Pingora CVE-2026-2835",
            400,
            request(fields, CHUNKED),
        ));
    }
    // Pingora read an HTTP/1.0 request without a length until the connection closed; a request without one has no body.
    cases.push(
        answered(
            "a body without a length",
            "RFC 9112 §6.3; Pingora CVE-2026-2835",
            200,
            request("X-A: b", SMUGGLED),
        )
        .closed()
        .seen(&["POST /x"]),
    );
    cases.push(passes(
        "a kept HTTP/1.0 connection with a length",
        "RFC 9112 §9.3",
        "POST /x | abc",
        request("Connection: keep-alive\r\nContent-Length: 3", "abc"),
    ));
    stage.play(7, &cases);
}

#[test]
fn a_request_ends_where_its_framing_says() {
    let stage = Stage::new("");
    let nothing = format!("POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\n\r\n{SMUGGLED}");
    let zero = post("Content-Length: 0", SMUGGLED);
    let inside = post("Content-Type: text/plain\r\nContent-Length: $L", SMUGGLED);
    stage.play(
        9,
        &[
            passes(
                "a length",
                "RFC 9112 §6.2",
                "POST /x | abc",
                post("Content-Length: 3", "abc"),
            ),
            passes(
                "leading zeros",
                "RFC 9110 §8.6",
                "POST /x | abc",
                post("Content-Length: 0003", "abc"),
            ),
            passes(
                "white space around",
                "RFC 9112 §5",
                "POST /x | abc",
                post("Content-Length: \t 3 \t", "abc"),
            ),
            passes(
                "chunked in any case",
                "RFC 9112 §7",
                "POST /x | abc",
                post("Transfer-Encoding: ChUnKeD", CHUNKED),
            ),
            passes(
                "chunked with white space around",
                "RFC 9112 §5",
                "POST /x | abc",
                post("Transfer-Encoding:\t chunked ", CHUNKED),
            ),
            passes(
                "a body of GET",
                "RFC 9110 §9.3.1",
                "GET /x | abc",
                "GET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\nContent-Length: 3\r\n\r\nabc",
            ),
            passes(
                "a body of DELETE",
                "RFC 9110 §9.3.5",
                "DELETE /x | abc",
                "DELETE /x HTTP/1.1\r\nHost: $H\r\n$A[DELETE /x]\r\nContent-Length: 3\r\n\r\nabc",
            ),
            answered(
                "no length: what follows is the next request",
                "RFC 9112 §6.3; CL.0",
                200,
                nothing,
            )
            .answers(&[200, 200])
            .seen(&["POST /x", "GET /smuggled"]),
            answered(
                "length 0: what follows is the next request",
                "RFC 9112 §6.3; CL.0",
                200,
                zero,
            )
            .answers(&[200, 200])
            .seen(&["POST /x", "GET /smuggled"]),
        ],
    );
    // A request inside a body is part of the body.
    let before = stage.api.count();
    let mut connection = stage.proxy.connect();
    let wire = stage.bytes(&inside);
    connection.send(&wire);
    connection.answer("POST").has_status(200);
    let probe = stage.proxy.send_on(&mut connection, stage.get("/next"));
    assert_eq!(probe.text(), "/next");
    let seen: Vec<_> = stage.api.requests()[before..].to_vec();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(wire.ends_with(&seen[0].body) && seen[0].body.starts_with(b"GET /smuggled"));
}
