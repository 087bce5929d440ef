//! Responses that come before the whole request was sent, and transfers that break off: each side notices.
//!
//! Promise (HTTP): A rejection reaches a caller that is still sending its body, for five seconds.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use socket2::SockRef;

use crate::support::{Call, Connection, Proxy, Reply, Upstream, tls::Certificate, upstream::After};

/// More than any buffer between caller and proxy holds.
const LARGE: usize = 16 << 20;

/// Only a form that a signature could cover is refused for its size.
const OPEN: &str = "operations.unlisted = 'anonymous'\noperation = [{ path = '/form' }]";

fn over_tls(api: &Upstream) -> (Proxy, Certificate, PathBuf) {
    let certificate = Certificate::for_names(&["localhost"]);
    let builder = Proxy::in_front_of(api).at_https_localhost(&certificate);
    let proxy = builder.config(OPEN).start();
    let chain = proxy.directory().join("certificate.pem");
    (proxy, certificate, chain)
}

/// Sends all of it as most callers do: without reading the response meanwhile.
fn is_refused(connection: &mut Connection, wire: &[u8], what: &str) {
    if let Err(error) = connection.try_send(wire) {
        panic!("{what}: {error} before all was sent");
    }
    let answer = connection.answer("POST");
    assert_eq!(answer.status, 413, "{what}: {answer:?}");
    assert!(!answer.body.is_empty(), "{what}");
    assert!(connection.is_closed(), "{what}");
}

/// hyperium/hyper#2384, #3078, #3944: closing at once would reset the connection and lose the response.
#[test]
fn a_rejection_reaches_a_caller_that_is_still_sending() {
    let api = Upstream::start();
    let plain = Proxy::with(&api, OPEN);
    let (tls, certificate, _) = over_tls(&api);
    let body = vec![b'x'; LARGE];
    let form = "application/x-www-form-urlencoded";
    let chunks: Vec<&[u8]> = body.chunks(1 << 20).collect();
    for (framing, call) in [
        ("a length", Call::post("/form").body(form, &body)),
        (
            "chunks",
            Call::post("/form")
                .header("Content-Type", form)
                .chunked(&chunks),
        ),
    ] {
        let mut connection = plain.connect();
        is_refused(&mut connection, &plain.wire(&call), framing);
        let mut connection =
            Connection::over_tls(tls.address(), "localhost", &certificate.certificate);
        let wire = call.wire("https://localhost", "localhost");
        is_refused(&mut connection, &wire, &format!("{framing}, TLS"));
    }
    api.saw_nothing();
}

#[test]
fn a_rejection_during_an_upload_reaches_requests_and_node() {
    let api = Upstream::start();
    let plain = Proxy::with(&api, OPEN);
    let (tls, _, roots) = over_tls(&api);
    let port = tls.address().port();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let python = tests.join(".tools/venv/bin/python");
    assert!(python.exists(), "tests/run installs {}", python.display());
    for (program, script) in [
        (python.as_path(), "clients/python/upload.py"),
        (Path::new("node"), "clients/node/upload.js"),
    ] {
        for (url, roots) in [
            (format!("{}/form", plain.origin()), None),
            (format!("https://localhost:{port}/form"), Some(&roots)),
        ] {
            let mut command = Command::new(program);
            command
                .arg(tests.join(script))
                .arg(&url)
                .arg(LARGE.to_string());
            command.args(roots);
            let ended = command.output().unwrap();
            let printed = String::from_utf8_lossy(&ended.stdout);
            assert!(
                printed.starts_with("413 "),
                "{script} {url}: {printed}{}",
                String::from_utf8_lossy(&ended.stderr)
            );
        }
    }
    api.saw_nothing();
}

/// hyperium/hyper#4176: the request is not all sent when the response ends, and the rest of it is discarded.
#[test]
fn response_of_an_api_that_leaves_the_body_unread_arrives_whole() {
    let api = Upstream::handling(|exchange| {
        let target = exchange.seen.target.clone();
        exchange.write(format!(
            "HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n{target}",
            target.len()
        ))?;
        // Closing with unread bytes resets the connection after the response.
        Ok(After::Close)
    });
    let proxy = Proxy::with(&api, OPEN);
    let body = vec![b'x'; LARGE];
    let chunks: Vec<&[u8]> = body.chunks(1 << 20).collect();
    for round in 0..10 {
        for call in [
            Call::post("/early").bytes(&body),
            Call::post("/early").chunked(&chunks),
        ] {
            let mut connection = proxy.connect();
            connection.send(&proxy.wire(&call));
            let answer = connection.answer("POST");
            assert_eq!(answer.status, 403, "{round}: {answer:?}");
            assert_eq!(answer.text(), "/early");
            let answer = proxy.send(Call::get("/next"));
            assert_eq!(answer.text(), "/next", "{round}");
        }
    }
}

/// A response that ends with its connection is whole only if the connection ends properly (RFC 9112 §8).
#[test]
fn a_response_until_close_that_is_reset_is_incomplete() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // The part is read before the end comes.
    let (take, taken) = mpsc::channel();
    thread::spawn(move || {
        for reset in [true, false, true, false] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            assert_ne!(stream.read(&mut head).unwrap(), 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\na part").unwrap();
            taken.recv().unwrap();
            if reset {
                let now = Some(Duration::ZERO);
                SockRef::from(&stream).set_linger(now).unwrap();
            }
            drop::<TcpStream>(stream);
        }
    });
    let proxy = crate::support::proxy::Builder::in_front_of_url(&url)
        .config(OPEN)
        .start();
    for version in ["1.1", "1.0"] {
        for whole in [false, true] {
            let mut connection = proxy.connect();
            let host = proxy.host();
            connection.send(format!("GET /x HTTP/{version}\r\nHost: {host}\r\n\r\n").as_bytes());
            let head = connection.head();
            take.send(()).unwrap();
            match connection.wire().body(head.answer_framing("GET")) {
                Ok(body) => assert!(whole && body == b"a part", "{version}: {body:?}"),
                Err(error) => assert!(!whole, "{version}: {error}"),
            }
        }
    }
}

/// RFC 9110 §15.2: any number of interim responses may come, but not without end.
#[test]
fn interim_responses_without_end_are_502() {
    let api = Upstream::handling(|exchange| {
        let many = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(100);
        loop {
            exchange.write(&many)?;
        }
    });
    let proxy = Proxy::with(&api, OPEN);
    proxy.send(Call::get("/x")).has_status(502);
}

/// RFC 9110 §5.1: names are case-insensitive, but old callers and APIs compare the case.
#[test]
fn field_names_keep_their_case_both_ways_where_configured() {
    let api = Upstream::replying(|_| {
        Reply::ok("x")
            .header("x-SMALL-big", "1")
            .header("ETag", "\"x\"")
            .header("WWW-Authenticate", "Basic")
    });
    let proxy = Proxy::in_front_of(&api)
        .config(OPEN)
        .config("upstream.header_case = 'preserve'")
        .start();
    let mut connection = proxy.connect();
    let host = proxy.host();
    connection.send(
        format!("GET /x HTTP/1.1\r\nhOST: {host}\r\nSOAPAction: a\r\nx-oDD: 1\r\nx-ODD: 2\r\n\r\n")
            .as_bytes(),
    );
    let head = connection.head();
    let answered = String::from_utf8(head.raw).unwrap();
    for field in ["x-SMALL-big: 1", "ETag: \"x\"", "WWW-Authenticate: Basic"] {
        assert!(answered.contains(&format!("\r\n{field}\r\n")), "{answered}");
    }
    let seen = String::from_utf8(api.only_request().head).unwrap();
    for field in ["SOAPAction: a", "x-oDD: 1", "x-ODD: 2"] {
        assert!(seen.contains(&format!("\r\n{field}\r\n")), "{seen}");
    }
}

/// The connection of a caller, and how it can end.
fn opened(proxy: &Proxy) -> (Connection, TcpStream) {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    (Connection::over(stream.try_clone().unwrap()), stream)
}

#[test]
fn caller_that_closes_while_it_waits_ends_its_api_request() {
    let (tell, told) = mpsc::channel();
    let api = Upstream::handling(move |exchange| {
        exchange.whole_body()?;
        tell.send("waits").unwrap();
        assert!(exchange.peer_closed());
        tell.send("is over").unwrap();
        Ok(After::Close)
    });
    // Nothing else ends such a request.
    let proxy = Proxy::in_front_of(&api)
        .config(OPEN)
        .config("upstream.response_timeout = '10m'")
        .start();
    let next = || told.recv_timeout(Duration::from_secs(30));
    for (number, is_reset) in [false, true, false, true].into_iter().enumerate() {
        let (mut connection, stream) = opened(&proxy);
        let call = match number {
            0 | 1 => Call::get("/x"),
            _ => Call::post("/x").json("{}"),
        };
        connection.send(&proxy.wire(&call));
        assert_eq!(next(), Ok("waits"));
        if is_reset {
            SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
            drop((connection, stream));
        } else {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        assert_eq!(next(), Ok("is over"), "{number}");
    }
    crate::support::until("they are counted", || {
        proxy.metric("countersign_requests_total{verdict=\"aborted\"}") == 4.0
    });
}

#[test]
fn pipelined_request_is_served_after_the_one_before() {
    let (tell, told) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let goes_on = Mutex::new(goes_on);
    let api = Upstream::handling(move |exchange| {
        exchange.whole_body()?;
        tell.send(exchange.seen.target.clone()).unwrap();
        goes_on.lock().unwrap().recv().unwrap();
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Keep)
    });
    let proxy = Proxy::with(&api, OPEN);
    let (mut connection, stream) = opened(&proxy);
    connection.send(&proxy.wire(&Call::get("/1")));
    for number in 1..=20 {
        assert_eq!(told.recv().unwrap(), format!("/{number}"));
        let next = proxy.wire(&Call::get(&format!("/{}", number + 1)));
        let (begin, rest) = next.split_at(number * next.len() / 20);
        connection.send(begin);
        if number % 2 == 0 {
            connection.send(rest);
        }
        go_on.send(()).unwrap();
        connection.answer("GET").has_status(200);
        if number % 2 != 0 {
            connection.send(rest);
        }
    }
    // The last one waits when its caller ends.
    assert_eq!(told.recv().unwrap(), "/21");
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(connection.is_closed());
    go_on.send(()).unwrap();
}
