//! The chunked coding (RFC 9112 §7.1): sizes, extensions, line ends, and the caller's faults in them.

use crate::{
    attacks::{
        case::{Case, Stage, answered, passes, refused},
        script::{SMUGGLED, post},
    },
    support::{Reply, Upstream, rows, until},
};

const CODED: &str = "Transfer-Encoding: chunked";

/// Bodies that no two readers are sure to split alike: name, source, body.
const BROKEN: &str = r#"
    no size                             | RFC 9112 §7.1                  | \r\nabc\r\n0\r\n\r\n
    a negative size                     | RFC 9112 §7.1                  | -3\r\nabc\r\n0\r\n\r\n
    a negative zero                     | RFC 9112 §7.1                  | -0\r\n\r\n
    a plus                              | hyper CVE-2021-32715           | +3\r\nabc\r\n0\r\n\r\n
    0x                                  | RFC 9112 §7.1                  | 0x3\r\nabc\r\n0\r\n\r\n
    0X                                  | RFC 9112 §7.1                  | 0X3\r\nabc\r\n0\r\n\r\n
    x alone                             | RFC 9112 §7.1                  | x3\r\nabc\r\n0\r\n\r\n
    h behind                            | RFC 9112 §7.1                  | 3h\r\nabc\r\n0\r\n\r\n
    no hexadecimal digit                | RFC 9112 §7.1                  | g\r\nabc\r\n0\r\n\r\n
    an underscore                       | RFC 9112 §7.1                  | 0_3\r\nabc\r\n0\r\n\r\n
    a point                             | RFC 9112 §7.1                  | 3.0\r\nabc\r\n0\r\n\r\n
    a comma                             | RFC 9112 §7.1                  | 3,3\r\nabc\r\n0\r\n\r\n
    quotes                              | RFC 9112 §7.1                  | "3"\r\nabc\r\n0\r\n\r\n
    a space before                      | RFC 9112 §7.1                  | \x203\r\nabc\r\n0\r\n\r\n
    a tab before                        | RFC 9112 §7.1                  | \t3\r\nabc\r\n0\r\n\r\n
    a space and a digit                 | RFC 9112 §7.1                  | 3 0\r\nabc\r\n0\r\n\r\n
    a NUL behind                        | RFC 9112 §7.1                  | 3\0\r\nabc\r\n0\r\n\r\n
    a vertical tab behind               | RFC 9112 §7.1                  | 3\u{b}\r\nabc\r\n0\r\n\r\n
    64 bits overflow to 3               | hyper CVE-2021-32714           | 10000000000000003\r\nabc\r\n0\r\n\r\n
    64 bits overflow to 0               | hyper CVE-2021-32714           | 10000000000000000\r\n\r\n
    all ones, twice                     | hyper CVE-2021-32714           | ffffffffffffffffffffffffffffffff\r\nabc\r\n0\r\n\r\n
    LF behind the size                  | Go CVE-2025-22871; TERM        | 3\nabc\r\n0\r\n\r\n
    CR behind the size                  | RFC 9112 §2.2; TERM            | 3\rabc\r\n0\r\n\r\n
    CR CR LF behind the size            | RFC 9112 §2.2                  | 3\r\r\nabc\r\n0\r\n\r\n
    LF CR behind the size               | RFC 9112 §2.2                  | 3\n\rabc\r\n0\r\n\r\n
    CR and another byte                 | Funky chunks, TERM             | 3\rX\nabc\r\n0\r\n\r\n
    LF in an extension                  | Netty CVE-2025-58056; TERM.EXT | 3;a\nabc\r\n0\r\n\r\n
    LF in an extension, then CRLF       | Netty CVE-2025-58056; TERM.EXT | 2;\nxx\r\n45\r\n0\r\n\r\n
    CR in an extension                  | Funky chunks, TERM.EXT         | 3;a\rb\r\nabc\r\n0\r\n\r\n
    CR CR LF in an extension            | Funky chunks, EXT.TERM         | 3;a\r\r\nabc\r\n0\r\n\r\n
    LF in a quoted extension            | Funky chunks, EXT.TERM         | 3;a="\n"\r\nabc\r\n0\r\n\r\n
    no CRLF behind the data             | RFC 9112 §7.1; SPILL           | 3\r\nabc0\r\n\r\n
    LF behind the data                  | Funky chunks, TERM.SPILL       | 3\r\nabc\n0\r\n\r\n
    CR behind the data                  | Funky chunks, SPILL.TERM       | 3\r\nabc\r0\r\n\r\n
    two other bytes behind the data     | Funky chunks, SPILL.TERM       | 3\r\nabcXX0\r\n\r\n
    CR and another byte behind the data | Funky chunks, SPILL.TERM       | 3\r\nabc\rX0\r\n\r\n
    more data than said                 | Funky chunks, SPILL.TERM       | 3\r\nabcd\r\n0\r\n\r\n
    less data than said                 | Funky chunks, TERM.SPILL       | 4\r\nabc\r\n0\r\n\r\n
    two CRLF behind the data            | RFC 9112 §7.1                  | 3\r\nabc\r\n\r\n0\r\n\r\n
    LF behind the last size             | Go CVE-2025-22871              | 3\r\nabc\r\n0\n\r\n
    CR and another byte at the very end | RFC 9112 §2.2                  | 3\r\nabc\r\n0\r\n\rX
    a last chunk that counts            | RFC 9112 §7.1                  | 3\r\nabc\r\n0x0\r\n\r\n
"#;

/// In these the size line is valid, and only later bytes have the fault, so that the API gets the first chunk.
const BROKEN_LATER: &str = r"
    a negative size               | RFC 9112 §7.1              | -1\r\nd\r\n0\r\n\r\n
    64 bits overflow              | hyper CVE-2021-32714       | 10000000000000001\r\nd\r\n0\r\n\r\n
    LF behind the size            | Go CVE-2025-22871          | 1\nd\r\n0\r\n\r\n
    LF in an extension            | Netty CVE-2025-58056       | 1;a\nd\r\n0\r\n\r\n
    LF behind the data            | Funky chunks, TERM.SPILL   | 1\r\nd\n0\r\n\r\n
    no CRLF behind the data       | RFC 9112 §7.1              | 1\r\nd0\r\n\r\n
    a request where a size is due | RFC 9112 §7.1              | GET /smuggled HTTP/1.1\r\nHost: $H\r\n$A[GET /smuggled]\r\n\r\n
    an extension without end      | RFC 9112 §7.1.1: too large | 1;$R[17000:a]\r\nd\r\n0\r\n\r\n
    a trailer that is no field    | RFC 9112 §7.1.2            | 0\r\nGET /smuggled HTTP/1.1\r\n\r\n
";

/// Odd bodies that RFC 9112 has a recipient accept. The API gets the data in chunks of the proxy's own, so that it does
/// not parse the line again.
const ODD: &str = r#"
    # §7.1.1 has white space there: "BWS".
    a space behind                 | RFC 9112 §7.1                                            | 3 \r\nabc\r\n0\r\n\r\n
    a space before the extension   | RFC 9112 §7.1.1: BWS                                     | 3 ;a=b\r\nabc\r\n0\r\n\r\n
    # §7.1: "1*HEXDIG"; what counts is that nothing overflows.
    more leading zeros than digits | RFC 9112 §7.1: recipients MUST anticipate large numerals | $R[300:0]3\r\nabc\r\n0\r\n\r\n
    # §7.1.1: "A recipient MUST ignore unrecognized chunk extensions", and none is recognized.
    NUL in an extension            | RFC 9112 §7.1.1                                          | 3;a=\0\r\nabc\r\n0\r\n\r\n
    DEL in an extension            | RFC 9112 §7.1.1                                          | 3;a=\u{7f}\r\nabc\r\n0\r\n\r\n
"#;

#[test]
fn broken_chunked_body_is_rejected_and_never_arrives_whole() {
    let stage = Stage::new("");
    let mut cases: Vec<Case> = rows(BROKEN)
        .iter()
        .map(|[name, source, body]| {
            // The bytes before the fault may be with the API, which sees that the body is incomplete.
            refused(name, source, 400, post(CODED, body)).cut("abc\r")
        })
        .collect();
    stage.play(42, &cases);
    let stage = Stage::new("");
    cases = rows(ODD)
        .iter()
        .map(|[name, source, body]| passes(name, source, "POST /x | abc", post(CODED, body)))
        .collect();
    // A quoted string has no CRLF in it (RFC 9110 §5.6.4), so that this ends the line; and the bytes after the body are
    // not a request.
    cases.push(
        refused(
            "CRLF in a quoted extension",
            "Funky chunks, EXT.TERM",
            400,
            post(CODED, "3;a=\"\r\nabc\r\n0\r\n\r\n\"\r\nabc\r\n0\r\n\r\n"),
        )
        .answers(&[200, 400])
        .seen(&["POST /x | abc"]),
    );
    // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator". hyper does so only once a CRLF has
    // come: everything before it is trailers, and is dropped.
    cases.push(
        answered(
            "LF at the very end",
            "RFC 9112 §2.2",
            200,
            post(CODED, "3\r\nabc\r\n0\r\n\n") + SMUGGLED,
        )
        .seen(&["POST /x | abc"]),
    );
    stage.play(7, &cases);
}

/// hyper CVE-2021-32714: sizes that fit 64 bits are waited for, all bytes are data, and the API never sees an end.
#[test]
fn bytes_within_an_endless_chunk_are_never_a_request() {
    let stage = Stage::new("limits.body_timeout = '1s'");
    for size in ["ffffffffffffffff", "8000000000000003"] {
        let before = stage.api.count();
        let smuggled = stage.bytes(SMUGGLED);
        let head = post(CODED, &format!("{size}\r\n"));
        let mut connection = stage.proxy.connect();
        connection.send(&[stage.bytes(&head), smuggled.clone()].concat());
        connection.answer("POST").has_status(408);
        assert_eq!(connection.wire().rest(), b"", "{size}: nothing more");
        until("all of it is the body", || {
            let seen = stage.api.requests_since(before);
            assert!(seen.iter().all(|seen| !seen.whole), "{size}: {seen:?}");
            seen.len() == 1 && seen[0].body == smuggled
        });
    }
}

#[test]
fn a_broken_chunked_form_is_never_forwarded() {
    let stage = Stage::new("");
    let head = "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x a=1]\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases: Vec<Case> = rows(BROKEN_LATER)
        .iter()
        .map(|[name, source, fault]| {
            refused(name, source, 400, format!("{head}3\r\na=1\r\n{fault}"))
        })
        .collect();
    stage.play(9, &cases);
    // As with "LF at the very end" above: the next request is taken for trailers, and dropped.
    let body = "3\r\na=1\r\n0\r\nX: y\n\r\n";
    stage.play(
        1,
        &[answered(
            "a trailer with a bare LF",
            "RFC 9112 §7.1.2",
            200,
            format!("{head}{body}{SMUGGLED}"),
        )
        .seen(&["POST /x | a=1"])],
    );
}

/// The API has the head and a first chunk when the fault arrives: the caller gets 400, the API sees a body that breaks
/// off, and neither connection is used again.
#[test]
fn a_later_fault_in_a_chunked_body_cuts_the_upstream_request() {
    let stage = Stage::new("");
    for [name, source, fault] in &rows(BROKEN_LATER) {
        let before = stage.api.count();
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&post(CODED, "3\r\nabc\r\n")));
        until("the API has the first chunk", || {
            let requests = stage.api.requests();
            requests.len() > before && requests[before].body == b"abc"
        });
        connection.send(&stage.bytes(&format!("{fault}{SMUGGLED}")));
        let answer = connection.answer("POST");
        assert_eq!(answer.status, 400, "{name} [{source}]: {answer:?}");
        assert_eq!(
            connection.wire().rest(),
            b"",
            "{name} [{source}]: nothing more"
        );
        // Another request uses another connection, and the broken one is never completed.
        stage.proxy.send(stage.get("/after")).has_status(200);
        let seen = &stage.api.requests()[before..];
        let targets: Vec<&str> = seen.iter().map(|seen| seen.target.as_str()).collect();
        assert_eq!(targets, ["/x", "/after"], "{name} [{source}]");
        assert!(!seen[0].whole, "{name} [{source}]: {:?}", seen[0]);
    }
    // Not a fault: see "LF at the very end" above.
    stage.play(
        1,
        &[answered(
            "a trailer with a bare LF",
            "RFC 9112 §7.1.2",
            200,
            post(CODED, "3\r\nabc\r\n0\r\nX: y\n\r\n") + SMUGGLED,
        )
        .seen(&["POST /x | abc"])],
    );
}

#[test]
fn a_request_body_that_breaks_off_never_looks_complete() {
    let stage = Stage::new("");
    for [name, framing, part] in rows(
        r"
        a length                   | Content-Length: 10         | abc
        a chunk                    | Transfer-Encoding: chunked | a\r\nabc
        between two chunks         | Transfer-Encoding: chunked | 3\r\nabc\r\n
        before the end of trailers | Transfer-Encoding: chunked | 3\r\nabc\r\n0\r\nX: y\r\n
    ",
    ) {
        let before = stage.api.count();
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&post(framing, part)));
        until("the API has what was sent", || {
            let requests = stage.api.requests();
            requests.len() > before && requests[before].body == b"abc"
        });
        drop(connection);
        stage.proxy.send(stage.get("/after")).has_status(200);
        let seen = &stage.api.requests()[before..];
        assert_eq!(seen.len(), 2, "{name}: {seen:?}");
        assert!(!seen[0].whole, "{name}: {seen:?}");
    }
}

#[test]
fn chunk_extensions_are_not_forwarded() {
    let stage = Stage::new("");
    let cases: Vec<Case> = rows(
        r#"
        plain                                | 3\r\nabc\r\n0\r\n\r\n
        capital digits                       | 00A\r\nabcdefghij\r\n0\r\n\r\n
        leading zeros                        | 000000000003\r\nabc\r\n0000\r\n\r\n
        an extension                         | 3;a\r\nabc\r\n0;b\r\n\r\n
        an extension with a value            | 3;a=b;c=d\r\nabc\r\n0\r\n\r\n
        a quoted extension                   | 3;a="b;0\\""\r\nabc\r\n0\r\n\r\n
        an extension that reads like a chunk | 3;a=0\r\nabc\r\n0\r\n\r\n
        white space in an extension          | 3; a = \tb\r\nabc\r\n0\r\n\r\n
        one byte a chunk                     | 1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n
        chunks within data                   | 5\r\n0\r\n\r\n\r\n0\r\n\r\n
    "#,
    )
    .iter()
    .map(|[name, body]| {
        let data = match *name {
            "capital digits" => "POST /x | abcdefghij",
            "chunks within data" => "POST /x | 0\r\n\r\n",
            _ => "POST /x | abc",
        };
        passes(name, "RFC 9112 §7.1", data, post(CODED, body))
    })
    .collect();
    stage.play(10, &cases);
    for seen in stage.api.requests() {
        let head = String::from_utf8_lossy(&seen.head).into_owned();
        assert!(!head.contains(';'), "{head}");
    }
}

/// A body is the same in whatever pieces it arrives.
#[test]
fn chunks_that_arrive_byte_by_byte_are_the_same_body() {
    let api = Upstream::replying(|seen| Reply::ok(&seen.body));
    let stage = Stage::before(api, "");
    let mut connection = stage.proxy.connect();
    let wire = stage.bytes(&post(CODED, "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n"));
    for byte in wire {
        connection.send(&[byte]);
    }
    assert_eq!(connection.answer("POST").text(), "abcde");
}
