//! Bodies: streamed, large, wanted or not.

use std::sync::{
    Mutex,
    mpsc::{Receiver, Sender, channel},
};

use crate::support::{
    Call, Proxy, Reply, Upstream,
    http::{BodyReader, Framing},
    upstream::After,
};

#[test]
fn a_request_body_is_streamed() {
    let (pieces, arrived): (Sender<Vec<u8>>, Receiver<Vec<u8>>) = channel();
    let pieces = Mutex::new(pieces);
    let api = Upstream::handling(move |exchange| {
        while let Some(piece) = exchange.body_piece()? {
            pieces.lock().unwrap().send(piece).unwrap();
        }
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")?;
        Ok(After::Keep)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let head = |framing: &str| {
        let wire = proxy.wire(
            &Call::new("PUT", "/file")
                .by(&consumer)
                .with(&token)
                .header("Content-Type", "text/plain"),
        );
        let text = String::from_utf8(wire).unwrap();
        format!(
            "{}\r\n{framing}\r\n\r\n",
            text.strip_suffix("\r\n\r\n").unwrap()
        )
    };
    let take = |wanted: &[u8]| {
        let mut got = Vec::new();
        while got.len() < wanted.len() {
            got.extend(
                arrived
                    .recv_timeout(crate::support::PATIENCE)
                    .expect("the piece arrives before the next is sent"),
            );
        }
        assert_eq!(got, wanted);
    };
    let mut connection = proxy.connect();
    connection.send(head("Transfer-Encoding: chunked").as_bytes());
    connection.send(b"5\r\nfirst\r\n");
    take(b"first");
    connection.send(b"6\r\nsecond\r\n0\r\n\r\n");
    take(b"second");
    assert_eq!(connection.answer("PUT").text(), "done");
    assert_eq!(api.last_request().framing, Framing::Chunked);

    connection.send(head("Content-Length: 11").as_bytes());
    connection.send(b"first");
    take(b"first");
    connection.send(b"second");
    take(b"second");
    assert_eq!(connection.answer("PUT").text(), "done");
    assert_eq!(api.last_request().framing, Framing::Length(11));
}

/// hyper sends the next request on a connection in the version of the last response, and HTTP/1.0 has no chunks.
#[test]
fn a_body_without_a_length_is_sent_whole_to_an_api_of_http_1_0() {
    let api = Upstream::replying(|_| {
        Reply::raw("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let call = |method: &str| {
        let call = Call::new(method, "/file").by(&consumer).with(&token);
        let wire = proxy.wire(&call.header("Content-Type", "text/plain"));
        String::from_utf8(wire).unwrap()
    };
    let mut connection = proxy.connect();
    for _ in 0..2 {
        connection.send(call("GET").as_bytes());
        assert_eq!(connection.answer("GET").text(), "ok");
        let put = call("PUT");
        let head = put.strip_suffix("\r\n\r\n").unwrap();
        connection.send(
            format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n")
                .as_bytes(),
        );
        assert_eq!(connection.answer("PUT").text(), "ok");
        let seen = api.last_request();
        assert_eq!(
            (seen.framing, seen.text()),
            (Framing::Chunked, "whole".to_owned())
        );
        assert!(
            seen.head.windows(10).any(|part| part == b" HTTP/1.1\r"),
            "{seen:?}"
        );
    }
}

#[test]
fn an_answer_is_streamed() {
    let (go, proceed): (Sender<()>, Receiver<()>) = channel();
    let proceed = Mutex::new(proceed);
    let api = Upstream::handling(move |exchange| {
        exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")?;
        proceed.lock().unwrap().recv().unwrap();
        exchange.write("6\r\nsecond\r\n0\r\n\r\n")?;
        Ok(After::Keep)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let mut connection = proxy.connect();
    connection.send(&proxy.wire(&Call::get("/events").by(&consumer).with(&token)));
    let head = connection.head();
    let mut body = BodyReader::new(head.answer_framing("GET"));
    assert_eq!(
        body.piece(connection.wire()).unwrap().as_deref(),
        Some(b"first".as_slice())
    );
    go.send(()).unwrap();
    assert_eq!(
        body.piece(connection.wire()).unwrap().as_deref(),
        Some(b"second".as_slice())
    );
    assert_eq!(body.piece(connection.wire()).unwrap(), None);
}

#[test]
fn large_bodies_pass_both_ways_byte_for_byte() {
    let api =
        Upstream::replying(|seen| Reply::ok(seen.body.iter().rev().copied().collect::<Vec<u8>>()));
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let body: Vec<u8> = (0..5_000_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let answer = proxy.send(
        Call::new("PUT", "/file")
            .body("application/octet-stream", &body)
            .by(&consumer)
            .with(&token),
    );
    answer.has_status(200);
    assert!(api.only_request().body == body && answer.body.iter().rev().eq(body.iter()));
}

#[test]
fn a_json_body_is_neither_signed_nor_changed() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let json = r#"{"oauth_token": "x", "a": "b=c&d"}"#;
    proxy
        .send(
            Call::post("/members?x=1")
                .json(json)
                .by(&consumer)
                .with(&token),
        )
        .has_status(200);
    assert_eq!(api.last_request().text(), json);
    let multipart = Call::post("/members").body(
        "multipart/form-data; boundary=x",
        b"--x\r\n\r\noauth_token=1\r\n--x--\r\n",
    );
    proxy
        .send(multipart.by(&consumer).with(&token))
        .has_status(200);
    assert_eq!(
        api.last_request().text(),
        "--x\r\n\r\noauth_token=1\r\n--x--\r\n"
    );
}

#[test]
fn expect_100_continue_is_answered_only_when_the_body_is_wanted() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let split = |call: Call| {
        let wire = proxy.wire(&call);
        let end = crate::support::http::find(&wire, b"\r\n\r\n").unwrap() + 4;
        (wire[..end].to_vec(), wire[end..].to_vec())
    };
    let call = || {
        Call::post("/x")
            .json("{}")
            .header("Expect", "100-continue")
            .by(&consumer)
            .with(&token)
    };
    let (head, body) = split(call());
    let mut connection = proxy.connect();
    connection.send(&head);
    assert_eq!(connection.head().status(), 100);
    connection.send(&body);
    connection.answer("POST").has_status(200);
    assert_eq!(api.only_request().text(), "{}");

    let (head, _) = split(call().key("wrong&wrong"));
    let mut connection = proxy.connect();
    connection.send(&head);
    let answer = connection.answer("POST");
    assert_eq!(
        (answer.status, answer.interim.len()),
        (401, 0),
        "no 100 for a body that nobody wants"
    );
    assert_eq!(api.count(), 1);
}

#[test]
fn interim_answers_of_the_api_do_not_take_the_place_of_the_answer() {
    let api = Upstream::replying(|_| {
        Reply::raw(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        )
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let mut kept = proxy.connect();
    for _ in 0..2 {
        let answer = proxy.send_on(&mut kept, Call::get("/").by(&consumer).with(&token));
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
    }
}

#[test]
fn a_caller_that_hangs_up_ends_the_request_behind() {
    let (gone, closed) = channel();
    let gone = Mutex::new(gone);
    let api = Upstream::handling(move |exchange| {
        gone.lock().unwrap().send(exchange.peer_closed()).unwrap();
        Ok(After::Close)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, _, token) = proxy.somebody();
    let mut connection = proxy.connect();
    connection.send(&proxy.wire(&Call::get("/slow").by(&consumer).with(&token)));
    api.wait_for(1);
    drop(connection);
    assert!(
        closed
            .recv_timeout(crate::support::PATIENCE)
            .expect("the proxy lets go of the API")
    );
}
