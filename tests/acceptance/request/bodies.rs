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
    let caller = proxy.somebody();
    let head = |framing: &str| {
        let wire = proxy.wire(
            &Call::new("PUT", "/file")
                .of(&caller)
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
    let caller = proxy.somebody();
    let call = |method: &str| {
        let call = Call::new(method, "/file").of(&caller);
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
fn a_response_body_is_streamed() {
    let (go, proceed): (Sender<()>, Receiver<()>) = channel();
    let proceed = Mutex::new(proceed);
    let api = Upstream::handling(move |exchange| {
        exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")?;
        proceed.lock().unwrap().recv().unwrap();
        exchange.write("6\r\nsecond\r\n0\r\n\r\n")?;
        Ok(After::Keep)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let mut connection = proxy.connect();
    connection.send(&proxy.wire(&Call::get("/events").of(&caller)));
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

/// A form of this many bytes, and then this.
fn form(bytes: usize, end: &str) -> Vec<u8> {
    let mut form = b"text=".to_vec();
    form.resize(bytes, b'x');
    form.extend_from_slice(end.as_bytes());
    form
}

const WALL: &str = "operation = [{ path = '/wall', access = ['anonymous', 'consumer'] }, \
                    { path = '/account', access = ['user', 'consumer'] }, { path = '/members' }]";

#[test]
fn unsigned_form_is_streamed_past_the_limit_of_signed_forms() {
    let api = Upstream::replying(|seen| Reply::ok(seen.body.len().to_string()));
    let proxy = Proxy::with(
        &api,
        &format!("{WALL}\nlimits.form_bytes = '64KiB'\nlimits.form_fields = 9"),
    );
    let caller = proxy.somebody();
    let post =
        |path: &str, form: &[u8]| Call::post(path).body("application/x-www-form-urlencoded", form);
    let large = form(300_000, "&a=%&oauth=1&xoauth_token=oauth_token");
    for call in [
        post("/wall", &large),
        post("/wall", b"").chunked(&[&large[..9], &large[9..250_000], &large[250_000..]]),
    ] {
        assert_eq!(proxy.passes(call).text(), large.len().to_string());
        let seen = api.last_request();
        assert!(seen.whole && seen.body == large, "{:?}", seen.fields);
        assert_eq!(seen.header("x-auth-kind"), Some("anonymous"));
    }
    let many = "a=1&".repeat(99);
    proxy.passes(post("/wall", many.as_bytes()));
    // One that is signed, that could be, or that only a signature opens, has the limits of signed ones.
    let before = api.count();
    for call in [
        post("/wall", &large).of(&caller),
        post("/members", &large),
        post("/account", &large),
        post("/account", &large).header("Cookie", "other=x"),
        post("/wall", format!("{many}oauth_token=x").as_bytes()),
    ] {
        proxy.send(call).has_status(413);
    }
    let compressed = post("/wall", &large).header("Content-Encoding", "gzip");
    proxy.send(compressed).has_status(400);
    assert_eq!(api.count(), before);
}

/// The API would take the caller for the consumer that the form names.
#[test]
fn form_whose_credentials_come_late_never_arrives_whole() {
    let api = Upstream::handling(|exchange| {
        exchange.whole_body()?;
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Close)
    });
    let proxy = Proxy::with(&api, &format!("{WALL}\nlimits.form_bytes = '64KiB'"));
    for name in ["oauth_token", "%6fauth%5Ftoken", "+OAuth.token"] {
        for (bytes, reaches) in [(200_000, true), (1_000, false)] {
            let late = form(bytes, &format!("&{name}=x&oauth_consumer_key=k&a="));
            let whole = [&late[..], &form(bytes, "")].concat();
            let post = |framing: fn(Call, &[u8]) -> Call| {
                let call =
                    Call::post("/wall").header("Content-Type", "application/x-www-form-urlencoded");
                framing(call, &whole)
            };
            let before = api.count();
            let chunked = |call: Call, body: &[u8]| {
                let pieces: Vec<&[u8]> = body.chunks(7_001).collect();
                call.chunked(&pieces)
            };
            for framing in [
                (|call, body| call.bytes(body)) as fn(Call, &[u8]) -> Call,
                chunked,
            ] {
                let answer = proxy.send(post(framing));
                assert_eq!(answer.status == 413, reaches, "{answer:?}");
                assert!(answer.status >= 400, "{answer:?}");
                assert_eq!(answer.text().contains("Authorization field"), reaches);
            }
            let seen = api.requests_since(before);
            assert!(seen.iter().all(|seen| !seen.whole), "{name} {bytes}");
        }
    }
}
