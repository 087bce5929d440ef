//! Slow peers that send too little at a time: each deadline, tried with a misbehaving peer.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use socket2::{Domain, Socket, Type};

use crate::{
    faults::{
        load::{Target, is_closed},
        process::connections_become,
    },
    support::{
        Call, Connection, PATIENCE, Proxy, Token, Upstream,
        http::try_open,
        proxy::{Builder, Consumer},
        signer::body_hash,
        tls::Certificate,
        until,
        upstream::After,
    },
};

/// The time between two dribbled bytes: a dozen of them fit into the shortest deadlines below.
const DRIBBLE: Duration = Duration::from_millis(40);

/// With the deadlines under test. Steps that have to be in time have the long defaults.
fn with_deadlines(api: &Upstream, config: &str) -> (Proxy, Consumer, Token, Target) {
    let proxy = Proxy::with(api, config);
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    (proxy, caller.consumer, caller.token, target)
}

/// Writes one byte after the other, until all are written or the peer has answered or closed; counts them.
fn dribble(stream: &mut TcpStream, bytes: &[u8]) -> usize {
    let mut byte = [0; 1];
    for (written, one) in bytes.chunks(1).enumerate() {
        stream.set_read_timeout(Some(DRIBBLE)).unwrap();
        let answered = !matches!(stream.peek(&mut byte), Err(error) if is_timeout(&error));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        if answered || stream.write_all(one).is_err() {
            return written;
        }
    }
    bytes.len()
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Dribbles the bytes after the first `at_once`: the connection must be cut short, with the reason in the answer.
#[track_caller]
fn is_cut_short(what: &str, stream: &mut TcpStream, wire: &[u8], at_once: usize) {
    stream.write_all(&wire[..at_once]).unwrap();
    let written = at_once + dribble(stream, &wire[at_once..]);
    assert!(
        written < wire.len(),
        "{what}: dribbling draws the deadline out"
    );
    let mut connection = Connection::over(stream.try_clone().unwrap());
    connection.answer("POST").has_status(408);
    assert!(connection.is_closed(), "{what}");
}

#[test]
fn a_head_that_comes_byte_by_byte_is_cut_at_its_deadline() {
    let api = Upstream::start();
    let (proxy, _, _, target) = with_deadlines(&api, "limits.head_timeout = '1s'");
    let (_, wire) = target.wire(Call::get("/x"));
    let mut new = try_open(target.address).unwrap();
    // A connection that sends nothing at all is closed without an answer.
    is_cut_short("a new connection", &mut new, &wire, 1);
    api.saw_nothing();

    let mut kept = try_open(target.address).unwrap();
    let (method, first) = target.wire(Call::get("/first"));
    kept.write_all(&first).unwrap();
    Connection::over(kept.try_clone().unwrap())
        .answer(&method)
        .has_status(200);
    is_cut_short("a kept connection", &mut kept, &wire, 1);

    // Empty lines before a head do not extend the deadline either.
    let mut empty = try_open(target.address).unwrap();
    let written = dribble(&mut empty, &b"\r\n".repeat(100));
    assert!(written < 200, "{written} bytes of empty lines");
    drop((new, kept, empty));
    connections_become(&proxy, 0.0);
    assert_eq!(api.count(), 1);
}

#[test]
fn a_form_that_comes_byte_by_byte_is_cut_at_its_deadline() {
    let api = Upstream::start();
    let (proxy, consumer, token, target) = with_deadlines(&api, "limits.form_timeout = '500ms'");
    let form = format!("a={}", "x".repeat(200));
    let kind = "application/x-www-form-urlencoded";
    let json = format!("\"{}\"", "x".repeat(200));
    let hashed = Call::post("/x").json(&json).by(&consumer).with(&token);
    let hashed = hashed.parameter("oauth_body_hash", &body_hash::<sha1::Sha1>(json.as_bytes()));
    for (what, wire) in [
        ("with a length", target.wire(Call::post("/x").form(&form)).1),
        (
            "in chunks",
            target
                .wire(
                    Call::post("/x")
                        .header("Content-Type", kind)
                        .chunked(&[form.as_bytes()]),
                )
                .1,
        ),
        ("under a hash", proxy.wire(&hashed)),
    ] {
        let mut stream = try_open(target.address).unwrap();
        is_cut_short(what, &mut stream, &wire, wire.len() - 190);
    }
    api.saw_nothing();
    connections_become(&proxy, 0.0);
}

#[test]
fn a_body_with_progress_has_time_and_a_stalled_one_is_cut() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let api = Upstream::handling(move |exchange| {
        let whole = exchange.whole_body();
        tell.lock().unwrap().send(whole.is_ok()).unwrap();
        whole?;
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Keep)
    });
    let (mut proxy, _, _, target) = with_deadlines(&api, "limits.body_timeout = '5s'");
    let json = format!("\"{}\"", "x".repeat(200));
    let mut stream = try_open(target.address).unwrap();
    let (_, wire) = target.wire(Call::post("/x").json(&json));
    let (at_once, rest) = wire.split_at(wire.len() - 190);
    stream.write_all(at_once).unwrap();
    assert_eq!(
        dribble(&mut stream, rest),
        190,
        "longer than the deadline, but never still"
    );
    Connection::over(stream).answer("POST").has_status(200);
    assert!(told.recv_timeout(PATIENCE).unwrap());

    proxy.reload("limits.body_timeout = '1s'");
    let chunks = Call::post("/x").chunked(&[b"never", b"whole"]);
    for (_, wire) in [
        target.wire(Call::post("/x").json(&json)),
        target.wire(chunks),
    ] {
        let mut stream = try_open(target.address).unwrap();
        stream.write_all(&wire[..wire.len() - 8]).unwrap();
        let mut connection = Connection::over(stream);
        connection.answer("POST").has_status(408);
        assert!(connection.is_closed());
        let whole = told.recv_timeout(PATIENCE).unwrap();
        assert!(!whole, "the API must see that the body broke off");
    }
    connections_become(&proxy, 0.0);
}

#[test]
fn a_caller_that_reads_nothing_is_cut() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let api = Upstream::handling(move |exchange| {
        let body = vec![b'x'; 64 << 20];
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
    let (proxy, _, _, target) = with_deadlines(&api, "limits.body_timeout = '500ms'");
    let mut stream = try_open(target.address).unwrap();
    let (_, wire) = target.wire(Call::get("/x"));
    stream.write_all(&wire).unwrap();
    assert!(told.recv_timeout(PATIENCE).unwrap(), "the API is let go");
    connections_become(&proxy, 0.0);
    // A caller that reads on later must not take it for complete.
    let answer = Connection::over(stream).try_answer("GET");
    assert!(answer.is_err(), "a part is not the whole");
}

#[test]
fn a_rejected_body_without_end_is_cut() {
    let api = Upstream::start();
    let (proxy, ..) = with_deadlines(&api, "limits.body_timeout = '500ms'");
    let head = format!(
        "POST /x HTTP/1.1\r\nHost: {}\r\nAuthorization: OAuth oauth_token=\"x\"\r\nContent-Length: 100000000000000\r\n\r\n",
        proxy.host()
    );
    // Fast: it is read and discarded for a time, so that the response arrives, but not without end.
    let begun = Instant::now();
    let mut stream = try_open(proxy.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b'x'; 64 * 1024];
    while stream.write_all(&piece).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "a refused body is read on");
    }
    // Slow: it is not waited for either.
    let mut stream = try_open(proxy.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut connection = Connection::over(stream.try_clone().unwrap());
    let answer = connection.answer("POST");
    assert!((400..500).contains(&answer.status), "{answer:?}");
    until("the caller is hung up on", || {
        thread::sleep(DRIBBLE);
        stream.write_all(b"x").is_err()
    });
    connections_become(&proxy, 0.0);
    api.saw_nothing();
}

#[test]
fn an_idle_connection_of_a_caller_is_closed() {
    let api = Upstream::start();
    let (proxy, _, _, target) = with_deadlines(
        &api,
        "limits = { idle_timeout = '500ms', head_timeout = '2s' }",
    );
    let serves = |stream: &mut TcpStream| {
        let (method, wire) = target.wire(Call::get("/x"));
        stream.write_all(&wire).unwrap();
        Connection::over(stream.try_clone().unwrap())
            .answer(&method)
            .has_status(200);
    };
    let mut silent = try_open(target.address).unwrap();
    serves(&mut silent);
    assert!(Connection::over(silent).is_closed());
    // Empty lines are not requests, and do not count as one.
    for filler in ["\r\n", "\r"] {
        let mut filling = try_open(target.address).unwrap();
        serves(&mut filling);
        let written = dribble(&mut filling, &filler.repeat(200).into_bytes());
        assert!(written < 100, "{filler:?}: {written} bytes");
    }
    connections_become(&proxy, 0.0);
}

#[test]
fn a_stalled_tls_handshake_is_cut() {
    let api = Upstream::start();
    let certificate = Certificate::for_names(&["localhost"]);
    let short = "limits = { handshake_timeout = '500ms', head_timeout = '500ms' }";
    let builder = Proxy::in_front_of(&api).at_https_localhost(&certificate);
    let mut proxy = builder.config(short).start();
    let mut silent = Connection::to(proxy.address());
    assert!(silent.is_closed());
    // A record of 512 bytes is announced, and comes byte by byte.
    let mut hello = vec![22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
    hello.resize(300, 7);
    let mut stream = try_open(proxy.address()).unwrap();
    let written = dribble(&mut stream, &hello);
    assert!(written < hello.len(), "dribbling draws the handshake out");
    proxy.reload("limits.handshake_timeout = '10s'");
    let mut done = Connection::over_tls(proxy.address(), "localhost", &certificate.certificate);
    assert!(done.is_closed(), "a silent connection after the handshake");
    connections_become(&proxy, 0.0);
}

/// A listener that accepts no connection: its queue is full.
fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&loopback.into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        filling.push(stream);
        assert!(filling.len() < 100, "a queue has an end");
    }
    (listener, filling)
}

#[test]
fn an_api_that_accepts_no_connection_is_504() {
    let short = "upstream.connect_timeout = '500ms'";
    let (listener, filling) = full_listener();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let proxy = Builder::in_front_of_url(&url).config(short).start();
    let caller = proxy.somebody();
    proxy.send(Call::get("/x").of(&caller)).has_status(504);
    drop(filling);

    // One that accepts connections without a TLS handshake.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", mute.local_addr().unwrap().port());
    let proxy = Builder::in_front_of_url(&url).config(short).start();
    let caller = proxy.somebody();
    proxy.send(Call::get("/x").of(&caller)).has_status(504);
}

#[test]
fn an_api_that_answers_byte_by_byte_or_not_at_all_is_given_up() {
    let api = Upstream::handling(|exchange| {
        let target = exchange.seen.target.clone();
        if target == "/unread" {
            // The body is never read; its bytes fill the sockets.
            thread::sleep(PATIENCE);
            return Ok(After::Close);
        }
        exchange.whole_body()?;
        match target.as_str() {
            "/silent" => {
                exchange.peer_closed();
            }
            "/dribbled" => {
                let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(500));
                for byte in head.bytes() {
                    thread::sleep(DRIBBLE);
                    exchange.write([byte])?;
                }
            }
            "/interim" => loop {
                thread::sleep(DRIBBLE);
                exchange.write("HTTP/1.1 102 Processing\r\n\r\n")?;
            },
            "/length" => {
                exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na part")?;
                exchange.peer_closed();
            }
            "/chunks" => {
                exchange.write(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na part\r\n",
                )?;
                exchange.peer_closed();
            }
            _ => exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?,
        }
        Ok(After::Close)
    });
    let (mut proxy, consumer, token, target) =
        with_deadlines(&api, "upstream.response_timeout = '500ms'");
    // Interim responses (RFC 9110 §15.2) do not extend a deadline.
    for (path, status) in [("/silent", 504), ("/dribbled", 504), ("/interim", 504)] {
        let answer = proxy.send(Call::get(path).by(&consumer).with(&token));
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    proxy.reload(
        "upstream.response_timeout = '60s'\nupstream.silence_timeout = '2s'\nlimits.body_timeout = '2s'",
    );
    for path in ["/length", "/chunks"] {
        let mut connection = proxy.connect();
        let (method, wire) = target.wire(Call::get(path));
        connection.send(&wire);
        let answer = connection.try_answer(&method);
        assert!(
            answer.is_err(),
            "{path}: a part is not the whole: {answer:?}"
        );
    }
    let large = "x".repeat(64 << 20);
    let (_, wire) = target.wire(Call::post("/unread").json(&large));
    let mut connection = proxy.connect();
    // The answer comes before all is written.
    let _ = connection.try_send(&wire);
    if let Ok(Some(answer)) = connection.try_answer("POST") {
        answer.has_status(504);
    }
    let answers = proxy.metric("countersign_requests_total{verdict=\"gateway_timeout\"}");
    assert_eq!(answers, 6.0, "{}", proxy.ask_admin("/metrics").text());
    proxy.passes(Call::get("/fine").by(&consumer).with(&token));
    connections_become(&proxy, 0.0);
}

/// An event stream between two events, and a long poll. `limits.body_timeout` is for the bodies of callers.
#[test]
fn a_silent_response_has_the_time_of_its_operation() {
    const SILENCE: Duration = Duration::from_millis(1_200);
    let api = Upstream::handling(|exchange| {
        let begins = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";
        match &*exchange.seen.target {
            "/poll" => thread::sleep(SILENCE),
            _ => {
                exchange.write(begins)?;
                thread::sleep(SILENCE);
                exchange.write("6\r\nsecond\r\n0\r\n\r\n")?;
                return Ok(After::Keep);
            }
        }
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Keep)
    });
    let (proxy, consumer, token, target) = with_deadlines(
        &api,
        "limits.body_timeout = '300ms'\n\
        upstream.response_timeout = '500ms'\n\
        upstream.silence_timeout = '500ms'\n\
        operation = [\
            { path = '/events', silence_timeout = '1m' }, \
            { path = '/poll', response_timeout = '1m' }, \
            { path = '/export' }]",
    );
    let get = |path: &str| Call::get(path).by(&consumer).with(&token);
    assert_eq!(proxy.passes(get("/events")).text(), "firstsecond");
    assert_eq!(proxy.passes(get("/poll")).text(), "ok");
    let mut connection = proxy.connect();
    let (method, wire) = target.wire(Call::get("/export"));
    connection.send(&wire);
    assert!(
        connection.try_answer(&method).is_err(),
        "a part is not the whole"
    );
    proxy.logs(&[
        "verdict=\"gateway_timeout\"",
        "status=200",
        "the API was silent for 0.5 s (upstream.silence_timeout)",
    ]);
}

#[test]
fn an_idle_connection_to_the_api_is_closed() {
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(Mutex::new(tell));
    let api = Upstream::handling(move |exchange| {
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        let closed = exchange.peer_closed();
        tell.lock().unwrap().send(closed).unwrap();
        Ok(After::Close)
    });
    let (proxy, consumer, token, _) = with_deadlines(&api, "upstream.idle_timeout = '500ms'");
    proxy.passes(Call::get("/x").by(&consumer).with(&token));
    assert!(told.recv_timeout(PATIENCE).unwrap());
}

#[test]
fn a_caller_that_leaves_a_slow_api_ends_the_request_there() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let api = Upstream::handling(move |exchange| {
        let closed = exchange.peer_closed();
        tell.lock().unwrap().send(closed).unwrap();
        Ok(After::Close)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let mut stream = try_open(target.address).unwrap();
    stream.write_all(&target.wire(Call::get("/x")).1).unwrap();
    api.wait_for(1);
    assert!(!is_closed(&stream));
    drop(stream);
    assert!(told.recv_timeout(PATIENCE).unwrap());
    connections_become(&proxy, 0.0);
}
