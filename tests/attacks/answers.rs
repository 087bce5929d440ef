//! An API that lies, breaks off or says too much: 502, or an answer that ends visibly, never one that looks whole (RFC
//! 9112 §6.3, §8). The rest of it is discarded with its connection: the next caller gets the next answer.
//!
//! Promise (HTTP): A truncated or ambiguous response of the API never looks complete, and bytes after it reach no caller.
//! Promise (HTTP): A request is sent to the API at most once, unless nothing of it was written. Also in `tests/faults/api.rs`,
//! `tests/http2/upstream.rs`, `src/request/forward/tests.rs`.

use crate::support::rows;
use crate::{
    attacks::{
        case::{Case, Stage, answered},
        script::expand,
    },
    support::{Reply, Upstream, upstream::After},
};
use Get::{BadGateway, Broken, Whole};

/// The bytes that the API sends, and the answer that the caller is to get.
struct Told {
    name: &'static str,
    source: &'static str,
    sent: &'static str,
    method: &'static str,
    get: Get,
}

#[derive(Clone, Copy)]
enum Get {
    /// 502 of the proxy's own; the caller's connection goes on.
    BadGateway,
    /// A head, and a body that breaks off.
    Broken,
    /// This status with this text in it.
    Whole(u16, &'static str),
}

const fn told(name: &'static str, source: &'static str, sent: &'static str, get: Get) -> Told {
    Told {
        name,
        source,
        sent,
        method: "GET",
        get,
    }
}

/// Plays them: the request for `/n` is answered with the n-th.
#[track_caller]
fn play(count: usize, table: &'static [Told], after: After) {
    let api = Upstream::replying(move |seen| {
        let number = seen.target.strip_prefix('/').and_then(|n| n.parse().ok());
        match number.map(|n: usize| table[n].sent) {
            Some(sent) if after == After::Close => Reply::raw(expand(sent)).closing(),
            Some(sent) => Reply::raw(expand(sent)),
            None => Reply::ok(&seen.target),
        }
    });
    let stage = Stage::before(api, "");
    let cases: Vec<Case> = table
        .iter()
        .enumerate()
        .map(|(n, one)| {
            let Told { name, method, .. } = *one;
            let request =
                format!("{method} /{n} HTTP/1.1\r\nHost: $H\r\n$A[{method} /{n}]\r\n\r\n");
            let case = answered(name, one.source, 502, request).seen(&[&format!("{method} /{n}")]);
            match one.get {
                BadGateway => case,
                Broken => case.broken(),
                Whole(status, text) => case.answers(&[status]).told(text),
            }
        })
        .collect();
    stage.play(count, &cases);
}

#[test]
fn a_response_with_ambiguous_framing_is_502() {
    #[rustfmt::skip]
    const TABLE: &[Told] = &[
        told("two lengths", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", BadGateway),
        told("the same length twice", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("lengths in one line", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", BadGateway),
        told("a length and chunks", "RFC 9112 §6.1", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", BadGateway),
        told("chunks and a length", "RFC 9112 §6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n", BadGateway),
        told("a plus", "hyper CVE-2021-32715", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", BadGateway),
        told("a minus", "RFC 9110 §8.6", "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc", BadGateway),
        told("hexadecimal", "RFC 9110 §8.6", "HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc", BadGateway),
        told("an empty length", "RFC 9110 §8.6", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nabc", BadGateway),
        told("a length beyond 64 bits", "RFC 9110 §8.6", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551619\r\n\r\nabc", BadGateway),
        told("gzip alone", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", BadGateway),
        told("gzip and chunked", "RFC 9112 §6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", BadGateway),
        told("chunked twice", "RFC 9112 §6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", BadGateway),
        told("chunked on two lines", "RFC 9112 §6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BadGateway),
        told("nearly chunked", "RFC 9112 §6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", BadGateway),
        told("chunks in HTTP/1.0", "Pingora CVE-2026-2835; RFC 9112 §6.1", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", BadGateway),
    ];
    play(16, TABLE, After::Close);
}

#[test]
fn a_response_with_an_invalid_head_is_502() {
    #[rustfmt::skip]
    const TABLE: &[Told] = &[
        // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator"; the caller gets CRLF.
        told("lines that end with LF", "RFC 9112 §2.2", "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", Whole(200, "abc")),
        told("one line that ends with LF", "RFC 9112 §2.2", "HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 3\r\n\r\nabc", Whole(200, "abc")),
        told("a CR alone", "RFC 9112 §2.2", "HTTP/1.1 200 OK\r\nX-A: b\rX-B: c\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("a field over two lines", "RFC 9112 §5.2", "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("a space before the colon", "RFC 9112 §5.1", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc", Whole(200, "abc")),
        told("a space before the colon of a second length", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length : 4\r\n\r\nabc", BadGateway),
        told("a space before the colon of the coding", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding\t: chunked\r\n\r\nabc", BadGateway),
        told("a space before a name", "RFC 9112 §5.2", "HTTP/1.1 200 OK\r\n Content-Length: 3\r\n\r\nabc", BadGateway),
        told("no colon", "RFC 9112 §5", "HTTP/1.1 200 OK\r\nContent-Length 3\r\n\r\nabc", BadGateway),
        told("a NUL", "Envoy CVE-2019-9900", "HTTP/1.1 200 OK\r\nX-A: \0\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("a control byte in the reason", "RFC 9112 §4", "HTTP/1.1 200 O\x01K\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("another protocol", "RFC 9112 §4", "SSH-2.0-OpenSSH_9.2\r\n\r\n", BadGateway),
        told("ICY", "RFC 9112 §4", "ICY 200 OK\r\n\r\nabc", BadGateway), told("a TLS alert", "RFC 8446 §6", "\x15\x03\x01\0\x02\x02\x0a", BadGateway),
        told("HTTP/2 in words", "RFC 9112 §2.3", "HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("HTTP/0.9", "RFC 9112 §2.3", "<html>abc</html>", BadGateway), told("a short status", "RFC 9112 §4", "HTTP/1.1 20 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("a long status", "RFC 9112 §4", "HTTP/1.1 2000 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("a status below 100", "RFC 9110 §15", "HTTP/1.1 099 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("no status", "RFC 9112 §4", "HTTP/1.1 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("two spaces", "RFC 9112 §4", "HTTP/1.1  200 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("small letters", "RFC 9112 §2.3", "http/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        // Ignored as one in front of a request is; on an idle connection it would end that.
        told("an empty line first", "RFC 9112 §2.2", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Whole(200, "abc")),
        Told { method: "POST", ..told("nothing", "RFC 9110 §15.6.3", "", BadGateway) },
        told("a head without its empty line", "RFC 9112 §8", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", BadGateway),
        told("a head that is too large", "RFC 6585 §5", "HTTP/1.1 200 OK\r\nX-A: $R[70000:a]\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
        told("too many fields", "RFC 6585 §5", "HTTP/1.1 200 OK\r\n$R[500:X: a\r\n]Content-Length: 3\r\n\r\nabc", BadGateway),
    ];
    play(27, TABLE, After::Close);
}

#[test]
fn a_response_that_breaks_off_never_looks_complete() {
    #[rustfmt::skip]
    const TABLE: &[Told] = &[
        told("fewer bytes than its length", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Broken),
        told("no byte of its length", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", Broken),
        told("no last chunk", "RFC 9112 §8", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Broken),
        told("within a chunk", "RFC 9112 §8", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc", Broken),
        told("within the trailers", "RFC 9112 §8", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-A: b\r\n", Broken),
        told("no chunk at all", "RFC 9112 §7.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Broken),
        told("a size that is none", "RFC 9112 §7.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\nabc\r\n0\r\n\r\n", Broken),
        told("a size beyond 64 bits", "hyper CVE-2021-32714", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", Broken),
        told("more than the size", "RFC 9112 §7.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", Broken),
        told("a size line that ends with LF", "Go CVE-2025-22871", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", Broken),
        told("an extension with LF", "Netty CVE-2025-58056", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a\nabc\r\n0\r\n\r\n", Broken),
        told("chunks that end with LF", "RFC 9112 §7.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\n\n", Broken),
    ];
    play(12, TABLE, After::Close);
}

/// The bytes sent, followed by an answer to no request.
macro_rules! poisoned {
    ($sent:literal) => {
        concat!($sent, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
    };
}

#[test]
fn bytes_after_a_response_are_discarded() {
    #[rustfmt::skip]
    const TABLE: &[Told] = &[
        told("behind a length", "RFC 9112 §6.3", poisoned!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), Whole(200, "abc")),
        told("behind chunks", "RFC 9112 §7.1", poisoned!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), Whole(200, "abc")),
        told("behind trailers", "RFC 9112 §7.1.2", poisoned!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-A: b\r\n\r\n"), Whole(200, "abc")),
        told("behind a length of 0", "RFC 9112 §6.3", poisoned!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Whole(200, "")),
        told("a body of 204", "RFC 9112 §6.3", poisoned!("HTTP/1.1 204 No Content\r\n\r\n"), Whole(204, "")),
        told("a length of 204", "RFC 9110 §8.6", poisoned!("HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n"), Whole(204, "")),
        told("a body of 304", "RFC 9112 §6.3", poisoned!("HTTP/1.1 304 Not Modified\r\nContent-Length: 44\r\n\r\n"), Whole(304, "")),
        told("behind interim answers", "RFC 9110 §15.2", poisoned!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), Whole(200, "abc")),
        Told { method: "HEAD", ..told("a body of HEAD", "RFC 9110 §9.3.2", poisoned!("HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n"), Whole(200, "")) },
        Told { method: "HEAD", ..told("chunks of HEAD", "RFC 9110 §9.3.2", poisoned!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), Whole(200, "")) },
    ];
    play(10, TABLE, After::Keep);
}

#[test]
fn a_legal_but_odd_response_is_passed_on() {
    #[rustfmt::skip]
    const TABLE: &[Told] = &[
        told("until the connection ends", "RFC 9112 §6.3", "HTTP/1.1 200 OK\r\n\r\nabc", Whole(200, "abc")),
        told("HTTP/1.0", "RFC 9112 §6.3", "HTTP/1.0 200 OK\r\n\r\nabc", Whole(200, "abc")),
        told("no reason", "RFC 9112 §4", "HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\nabc", Whole(200, "abc")),
        told("no space before no reason", "RFC 9112 §4", "HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", Whole(200, "abc")),
        told("a status that no RFC has", "RFC 9110 §15", "HTTP/1.1 799 Odd\r\nContent-Length: 3\r\n\r\nabc", Whole(799, "abc")),
        told("chunks in capitals", "RFC 9112 §7.1", "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\nA\r\nabcdefghij\r\n0\r\n\r\n", Whole(200, "abcdefghij")),
        told("an extension", "RFC 9112 §7.1.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\n\r\n", Whole(200, "abc")),
        told("white space around a value", "RFC 9110 §5.5", "HTTP/1.1 200 OK\r\nContent-Length: \t 3 \t\r\n\r\nabc", Whole(200, "abc")),
        told("fifteen interim answers", "RFC 9110 §15.2", "$R[15:HTTP/1.1 102 Processing\r\n\r\n]HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Whole(200, "abc")),
        // Bounded by their bytes, not by their number.
        told("interim answers without end", "RFC 9110 §15.2", "$R[20000:HTTP/1.1 102 Processing\r\n\r\n]HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", BadGateway),
    ];
    play(10, TABLE, After::Close);
}

/// The API may have acted on a request whose kept connection ended without an answer.
#[test]
fn a_request_that_was_written_to_the_api_is_not_sent_again() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/once" => Reply::hang_up(),
        target => Reply::ok(target),
    });
    let stage = Stage::before(api, "");
    for [request] in rows(
        r"
        GET /once HTTP/1.1\r\nHost: $H\r\n$A[GET /once]\r\n\r\n
        HEAD /once HTTP/1.1\r\nHost: $H\r\n$A[HEAD /once]\r\n\r\n
        PUT /once HTTP/1.1\r\nHost: $H\r\n$A[PUT /once]\r\n\r\n
        DELETE /once HTTP/1.1\r\nHost: $H\r\n$A[DELETE /once]\r\n\r\n
        OPTIONS /once HTTP/1.1\r\nHost: $H\r\n$A[OPTIONS /once]\r\n\r\n
        POST /once HTTP/1.1\r\nHost: $H\r\n$A[POST /once]\r\n\r\n
        POST /once HTTP/1.1\r\nHost: $H\r\n$A[POST /once]\r\nContent-Length: 3\r\n\r\nabc
        PUT /once HTTP/1.1\r\nHost: $H\r\n$A[PUT /once]\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n
    ",
    ) {
        // It makes the connection one that is kept.
        let mut connection = stage.proxy.connect();
        connection.send(&stage.proxy.wire(&stage.get("/first")));
        connection.answer("GET").has_status(200);
        let before = (stage.api.count(), stage.api.connections());
        connection.send(&stage.bytes(request));
        let method = request.split(' ').next().unwrap();
        connection.answer(method).has_status(502);
        let after = (stage.api.count(), stage.api.connections());
        assert_eq!(after, (before.0 + 1, before.1), "{request}");
    }
}

/// HTTP/1.0 has no chunks: the end of the connection is the end of a body, so one that broke off is reset, not closed.
#[test]
fn a_caller_of_http_1_0_notices_a_truncated_response() {
    for [name, sent, whole] in rows(
        r"
        chunks                      | HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n | true
        no last chunk               | HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n | false
        a size that is none         | HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n | false
        fewer bytes than its length | HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc | false
    ",
    ) {
        let whole = whole == "true";
        let api = Upstream::replying(move |_| Reply::raw(sent).closing());
        let stage = Stage::before(api, "");
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes("GET /x HTTP/1.0\r\nHost: $H\r\n$A[GET /x]\r\n\r\n"));
        match connection.try_answer("GET") {
            Ok(Some(answer)) => {
                assert!(whole, "{name} looks whole: {answer:?}");
                assert_eq!(answer.text(), "abc", "{name}");
                assert!(
                    !answer.fields.has("transfer-encoding"),
                    "{name}: {answer:?}"
                );
            }
            other => assert!(!whole, "{name}: {other:?}"),
        }
    }
}
