//! The ways a connection ends by itself: drained, idle, or because its caller is too slow.

use std::time::Duration;

use rustix::process::Signal;

use crate::{
    http2::client::{
        Client, END_HEADERS, END_STREAM, End, GOAWAY, HEADERS, PING, RST_STREAM, Raw, SETTINGS,
        block, frame, head, run,
    },
    support::{Call, PATIENCE, Proxy, Reply, Upstream, until, upstream::After},
};

#[test]
fn sigterm_finishes_running_streams_and_sends_goaway() {
    let api = Upstream::replying(|seen| {
        if seen.target == "/slow" {
            std::thread::sleep(Duration::from_millis(700));
        }
        Reply::ok("finished")
    });
    let mut proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    run(async {
        let mut client = Client::to(&proxy).await;
        client.passes(Call::get("/").of(&caller)).await;
        let (request, _) = client.request(&Call::get("/slow").of(&caller));
        let mut send = client.sender().ready().await.unwrap();
        let (response, _) = send.send_request(request, true).unwrap();
        let answered = tokio::spawn(response);
        while api.count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        proxy.signal(Signal::TERM);
        let answer = crate::http2::client::read(answered.await.unwrap().unwrap())
            .await
            .unwrap();
        assert_eq!(answer.has_status(200).text(), "finished");
        let refused = async {
            loop {
                let (request, _) = client.request(&Call::get("/late").of(&caller));
                match client.send_request(request, &[]).await {
                    // One may still be taken until the GOAWAY has arrived.
                    Ok(answer) => drop(answer.has_status(200)),
                    Err(error) => return error,
                }
            }
        };
        let error = refused.await;
        assert!(
            error.is_go_away() || error.is_io() || error.is_reset(),
            "{error}"
        );
    });
    assert!(proxy.wait().success());
}

#[test]
fn caller_that_ignores_goaway_gets_503_once_nonces_are_closed() {
    let (go, proceed) = std::sync::mpsc::channel::<()>();
    let proceed = std::sync::Mutex::new(proceed);
    let api = Upstream::replying(move |_| {
        proceed.lock().unwrap().recv().unwrap();
        Reply::ok("finished")
    });
    let mut proxy = Proxy::with(&api, "operations.unlisted = 'anonymous'");
    let mut caller = Raw::to(proxy.address());
    let request = head(&proxy, "GET", "/held", &[]);
    caller
        .frame(HEADERS, END_HEADERS | END_STREAM, 1, &request)
        .unwrap();
    api.wait_for(1);
    proxy.signal(Signal::TERM);
    proxy.logs(&["finishing what is running"]);
    // Without an answer to the PING after the GOAWAY, h2 still accepts requests.
    caller
        .frame(HEADERS, END_HEADERS | END_STREAM, 3, &request)
        .unwrap();
    assert_eq!(caller.next_of(HEADERS).stream, 3);
    let unavailable = "countersign_requests_total{verdict=\"unavailable\"}";
    assert_eq!(proxy.metric(unavailable), 1.0);
    go.send(()).unwrap();
    assert_eq!(caller.next_of(HEADERS).stream, 1);
    drop(caller);
    assert!(proxy.wait().success());
    assert_eq!(api.count(), 1);
}

#[test]
fn idle_http2_connections_get_goaway_and_are_closed() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "[limits]\nidle_timeout = '300ms'\nhead_timeout = '300ms'",
    );
    let head = head(&proxy, "GET", "/x", &[]);
    // After a request, and without one; a PING is not a request.
    let mut used = Raw::to(proxy.address());
    used.frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)
        .unwrap();
    used.next_of(HEADERS);
    let goaway = used.next_of(GOAWAY);
    assert_eq!(goaway.payload[4..8], [0; 4], "NO_ERROR");
    let mut unused = Raw::to(proxy.address());
    unused.frame(PING, 0, 0, &[1; 8]).unwrap();
    let goaway = unused.next_of(GOAWAY);
    assert_eq!(goaway.payload[4..8], [0; 4], "NO_ERROR");
    assert_eq!(used.end(), End::Closed);
    until("both are let go", || {
        proxy.metric("countersign_connections") == 0.0
    });
}

#[test]
fn cut_frames_and_open_header_blocks_end_the_connection() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "[limits]\nhead_timeout = '2s'\nidle_timeout = '60s'");
    let head = block(&[(":method", "GET")]);
    // A header block whose rest never comes, though its caller is not silent.
    let mut block_open = Raw::to(proxy.address());
    block_open.frame(HEADERS, 0, 1, &head).unwrap();
    // hyper has no means to end a connection by GOAWAY at once; RFC 9113 §5.4.1 recommends one and does not demand it.
    assert_eq!(block_open.end(), End::Closed);
    // A frame cut short.
    let mut cut = Raw::to(proxy.address());
    cut.bytes(&frame(PING, 0, 0, &[0; 8])[..12]).unwrap();
    assert_eq!(cut.end(), End::Closed);
    // A preface cut short is not HTTP at all.
    let mut connection = proxy.connect();
    connection.send(b"PRI * HTTP/2.0\r\n\r\nSM");
    assert!(connection.is_closed() || connection.try_answer("GET").is_ok());
}

#[test]
fn bodies_of_streams_must_make_progress() {
    let api = Upstream::replying(|_| Reply::ok(vec![b'x'; 1 << 20]));
    let proxy = Proxy::with(
        &api,
        "[limits]\nbody_timeout = '300ms'\n[operations]\nunlisted = 'anonymous'",
    );
    run(async {
        let client = Client::to(&proxy).await;
        // An answer that is not read: the window stays full.
        let (request, _) = client.request(&Call::get("/large"));
        let mut send = client.sender().ready().await.unwrap();
        let (response, _) = send.send_request(request, true).unwrap();
        let mut response = response.await.unwrap();
        let broken = loop {
            if let Err(error) = response.body_mut().data().await.expect("not the end") {
                break error;
            }
        };
        assert!(broken.is_reset());
        // A body that never comes.
        let (request, _) = client.request(&Call::post("/up").bytes(b"12345"));
        let mut send = client.sender().ready().await.unwrap();
        let (response, _stream) = send.send_request(request, false).unwrap();
        assert_eq!(response.await.unwrap().status(), 408);
    });
}

/// A caller may open no window at all: the response is aborted, and so is the connection to the API that it came by.
#[test]
fn an_unread_stream_is_reset_and_its_upstream_request_ended() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let api = Upstream::handling(move |exchange| {
        let body = vec![b'x'; 32 << 20];
        exchange.write(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ))?;
        tell.lock()
            .unwrap()
            .send(exchange.write(&body).is_err())
            .unwrap();
        Ok(After::Close)
    });
    let proxy = Proxy::with(
        &api,
        "[limits]\nbody_timeout = '300ms'\n[operations]\nunlisted = 'anonymous'",
    );
    let head = head(&proxy, "GET", "/x", &[]);
    // With the window that every stream has, and with none (RFC 9113 section 6.5.2).
    for window in [65_535_u32, 0] {
        let mut raw = Raw::to(proxy.address());
        let setting = [&4_u16.to_be_bytes()[..], &window.to_be_bytes()].concat();
        raw.frame(SETTINGS, 0, 0, &setting).unwrap();
        raw.frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)
            .unwrap();
        assert_eq!(raw.next_of(RST_STREAM).stream, 1, "{window}");
        let broken = told.recv_timeout(PATIENCE).expect("the API is let go");
        assert!(broken, "{window}");
        // The connection goes on.
        raw.frame(PING, 0, 0, &[7; 8]).unwrap();
        raw.next_of(PING);
    }
}
