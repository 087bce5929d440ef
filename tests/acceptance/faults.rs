//! HTTP that is broken, on either side of the proxy.

use crate::support::{Call, Proxy, Reply, Upstream, proxy::Builder, upstream::nobody};

#[test]
fn a_host_that_is_none_of_the_services_is_421() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    for host in ["evil.test", "127.0.0.1:1", "", "localhost"] {
        let answer = proxy.send(Call::get("/x").by(&consumer).with(&token).host(host));
        assert!(
            answer.status == 421 || (host.is_empty() && answer.status == 400),
            "{host:?}: {answer:?}"
        );
    }
    let login = Call::get("/service.oauth?mode=login").host("evil.test");
    proxy.send(login.clone()).has_status(421);
    // Every form of the response names the address to use, and the log line the host that was received.
    for accept in ["*/*", "text/html", "application/json"] {
        let answer = proxy.send(login.clone().header("Accept", accept));
        answer.has_status(421);
        assert!(
            answer
                .text()
                .contains(&format!("use http://{}", proxy.host())),
            "{answer:?}"
        );
    }
    proxy.log().wait_for("the line", |line| {
        let fields = ["access: ", " status=421 ", " host=evil.test "];
        fields
            .iter()
            .all(|field| line.contains(field))
            .then_some(())
    });
    api.saw_nothing();
}

#[test]
fn http_that_could_be_read_in_two_ways_is_refused_and_the_connection_closed() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("operations.unlisted = 'anonymous'")
        .start();
    let host = proxy.host();
    for (what, request) in [
        (
            "two lengths",
            "POST / HTTP/1.1\r\nHost: $H\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        ),
        (
            "a signed length",
            "POST / HTTP/1.1\r\nHost: $H\r\nContent-Length: +1\r\n\r\na",
        ),
        (
            "an unknown coding",
            "POST / HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: gzip\r\n\r\n",
        ),
        (
            "chunked not last",
            "POST / HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        ),
        (
            "a chunk size of nonsense",
            "POST / HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        ),
        (
            "a space before the colon",
            "GET / HTTP/1.1\r\nHost : $H\r\n\r\n",
        ),
        (
            "a folded line",
            "GET / HTTP/1.1\r\nHost: $H\r\nX-A: b\r\n c\r\n\r\n",
        ),
        (
            "two hosts",
            "GET / HTTP/1.1\r\nHost: $H\r\nHost: $H\r\n\r\n",
        ),
        ("no host", "GET / HTTP/1.1\r\nX: y\r\n\r\n"),
        (
            "a NUL in a value",
            "GET / HTTP/1.1\r\nHost: $H\r\nX-A: b\0c\r\n\r\n",
        ),
        (
            "a bare CR in a value",
            "GET / HTTP/1.1\r\nHost: $H\r\nX-A: b\rc\r\n\r\n",
        ),
        (
            "a space in the target",
            "GET /a b HTTP/1.1\r\nHost: $H\r\n\r\n",
        ),
        ("another version", "GET / HTTP/3.0\r\nHost: $H\r\n\r\n"),
        ("no version", "GET /\r\n\r\n"),
        ("no HTTP at all", "\u{16}\u{3}\u{1}\r\n\r\n"),
    ] {
        let mut connection = proxy.connect();
        connection.send(request.replace("$H", &host).as_bytes());
        if let Ok(Some(answer)) = connection.try_answer("POST") {
            assert!(
                [400, 501, 505].contains(&answer.status),
                "{what}: {answer:?}"
            );
            assert!(connection.is_closed(), "{what}: the connection ends");
        }
    }
    api.saw_nothing();
    // Where RFC 9112 says how to read it, the API gets it framed anew: chunked overrides the length, and the connection is
    // closed after the response (§6.1, §6.3); a fragment is no part of a target (§3.2).
    let mut connection = proxy.connect();
    let both = "POST / HTTP/1.1\r\nHost: $H\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    connection.send(both.replace("$H", &host).as_bytes());
    connection.answer("POST").has_status(200);
    assert!(connection.is_closed(), "length and chunks");
    assert!(!api.last_request().fields.has("content-length"));
    let mut connection = proxy.connect();
    connection.send(format!("GET /a#b HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    connection.answer("GET").has_status(200);
    assert_eq!(api.last_request().target, "/a");
    assert_eq!(api.count(), 2);
}

#[test]
fn a_body_that_nobody_read_is_not_taken_for_the_next_request() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let smuggled = proxy.wire(&Call::get("/smuggled").by(&consumer).with(&token));
    let refused = Call::post("/x")
        .body("text/plain", &smuggled)
        .by(&consumer)
        .with(&token)
        .key("wrong&wrong");
    let mut connection = proxy.connect();
    proxy
        .send_on(&mut connection, refused)
        .is(401, "signature_invalid");
    // Either the body was drained and the connection goes on, or the connection is closed; never a second answer.
    let good = proxy.wire(&Call::get("/next").by(&consumer).with(&token));
    if connection.try_send(&good).is_ok()
        && let Ok(Some(answer)) = connection.try_answer("GET")
    {
        answer.has_status(200);
    }
    assert!(
        api.requests().iter().all(|seen| seen.target == "/next"),
        "{:?}",
        api.requests()
    );
}

#[test]
fn an_api_that_is_down_or_broken_is_502() {
    let proxy = Builder::in_front_of_url(&format!("http://{}", nobody())).start();
    let (consumer, _, token) = proxy.somebody();
    let answer = proxy.send(Call::get("/x").by(&consumer).with(&token));
    answer.has_status(502);
    assert_eq!(answer.problem(), None);
    assert!(
        !answer.text().contains("127.0.0.1"),
        "nothing of the inside is told: {answer:?}"
    );

    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/nonsense" => Reply::raw("this is no HTTP\r\n\r\n").closing(),
        "/hang-up" => Reply::hang_up(),
        "/two-lengths" => {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
                .closing()
        }
        "/huge" => Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nX: {}\r\n\r\n",
            "x".repeat(1_000_000)
        ))
        .closing(),
        "/half-head" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Le").closing(),
        _ => Reply::ok("fine"),
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    for target in [
        "/nonsense",
        "/hang-up",
        "/two-lengths",
        "/huge",
        "/half-head",
    ] {
        let answer = proxy.send(Call::post(target).json("{}").by(&consumer).with(&token));
        assert_eq!(answer.status, 502, "{target}: {answer:?}");
        proxy
            .send(Call::get("/fine").by(&consumer).with(&token))
            .has_status(200);
    }
}

#[test]
fn an_answer_that_breaks_off_is_not_passed_off_as_whole() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/length" => {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this").closing()
        }
        _ => Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            .closing(),
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    for target in ["/length", "/chunks"] {
        let mut connection = proxy.connect();
        connection.send(&proxy.wire(&Call::get(target).by(&consumer).with(&token)));
        // A connection that ends in the middle is the honest way; so is a 502, if nothing was sent yet.
        if let Ok(Some(answer)) = connection.try_answer("GET") {
            assert_eq!(answer.status, 502, "{target}: {answer:?}");
        }
    }
}

#[test]
fn an_api_that_is_too_slow_is_504() {
    let api = Upstream::replying(|_| Reply::silence());
    let proxy = Proxy::in_front_of(&api)
        .config("upstream.response_timeout = '300ms'")
        .start();
    let (consumer, _, token) = proxy.somebody();
    proxy
        .send(Call::get("/x").by(&consumer).with(&token))
        .has_status(504);
    assert_eq!(api.count(), 1, "what may have been done is not done again");
}
