//! Bytes on the TLS port that are not TLS, or are cut off.
//!
//! Promise (TLS): A truncated message never counts as complete, on either side. Also in `tests/tls/upstream.rs`.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
};

use super::caller::{Caller, with_tls};
use crate::support::{PATIENCE, Proxy, Reply, Upstream, authority::Authority, has, until};

fn send(proxy: &Proxy, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map(|_| answer)
}

#[test]
fn plain_http_is_told_that_this_port_is_for_https() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(&[b'x'; 30_000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 400 ") && head.contains("Connection: close"),
        "{answer}"
    );
    has(head, &[&format!("Content-Length: {}", body.len())]);
    assert!(body.contains("HTTPS"), "{answer}");
    api.saw_nothing();
}

#[test]
fn garbage_ends_only_its_connection() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let mut proxy = with_tls(&api, &authority.server(&["localhost"]))
        .config("limits.handshake_timeout = '1s'")
        .start();
    let mut hello_of_ssl_3 = b"\x16\x03\x00\x00\x2f\x01\x00\x00\x2b\x03\x00".to_vec();
    hello_of_ssl_3.extend([7; 32]);
    hello_of_ssl_3.extend(b"\x00\x00\x04\x00\x0a\x00\x2f\x01\x00");
    for bytes in [
        &hello_of_ssl_3[..],
        b"\x80\x2e\x01\x00\x02",
        b"\x16\x03\x01\xff\xff\x01",
        b"\x16\x03\x01\x00\x05\x01\x00\xff\xff\xff",
        b"\x17\x03\x03\x00\x01\x00",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x16",
        b"",
    ] {
        // An alert at most; a reset is an end too.
        if let Ok(answer) = send(&proxy, bytes) {
            assert!(
                answer.is_empty() || answer[0] == 0x15,
                "{bytes:x?}: {answer:x?}"
            );
        }
    }
    until("no connection is left", || {
        proxy.metric("countersign_connections") == 0.0
    });
    api.saw_nothing();
    proxy.reload("limits.handshake_timeout = '10s'");
    Caller::trusting(&authority).ask_proxy(&proxy).unwrap().ok();
}

#[test]
fn a_cut_request_never_reaches_the_api_as_complete() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let caller = Caller::trusting(&authority);
    let cases = [
        // A head, a length, chunks: each cut without close_notify, and with it.
        "GET /open HTTP/1.1\r\nHost: localhost\r\n",
        "POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf",
        "POST /open HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ];
    for (request, proper) in cases
        .into_iter()
        .flat_map(|case| [(case, false), (case, true)])
    {
        let mut stream = caller.connect(proxy.address(), "localhost").unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        if proper {
            stream.conn.send_close_notify();
        }
        stream.flush().unwrap();
        stream.sock.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(!answer.contains(" 200 "), "{request:?}: {answer}");
    }
    for seen in api.requests() {
        // A forwarded beginning was broken off where the caller was: the API never had all of it.
        assert!(seen.method == "POST" && seen.body.len() < 10, "{seen:?}");
    }
    let finished = api
        .requests()
        .iter()
        .filter(|seen| seen.body.len() >= 10)
        .count();
    assert_eq!(finished, 0);
    Caller::trusting(&authority).ask_proxy(&proxy).unwrap().ok();
}

#[test]
fn an_idle_connection_is_ended_with_close_notify() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"]))
        .config("limits.idle_timeout = '1s'\nlimits.head_timeout = '2s'")
        .start();
    let caller = Caller::trusting(&authority);
    for request in ["", "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut stream = caller.connect(proxy.address(), "localhost").unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.starts_with(b"HTTP/1.1 200"), !request.is_empty());
    }
}

#[test]
fn a_response_that_was_cut_resets_the_connection() {
    // Many callers accept a missing close_notify: to HTTP/1.0 only the reset shows the cut.
    let cut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let (api, authority) = (
        Upstream::replying(move |_| Reply::raw(cut).closing()),
        Authority::new("CA"),
    );
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let mut stream = Caller::trusting(&authority)
        .connect(proxy.address(), "localhost")
        .unwrap();
    stream
        .write_all(b"GET /open HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let ended = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(ended.kind(), io::ErrorKind::ConnectionReset, "{ended}");
}

#[test]
fn every_tls_connection_ends_with_close_notify() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let caller = Caller::trusting(&authority);
    for request in [
        "GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /open HTTP/1.0\r\nHost: localhost\r\n\r\n",
        "GET /open HTTP/1.1\r\n\r\n",
        "garbage\r\n\r\n",
    ] {
        let mut stream = caller.connect(proxy.address(), "localhost").unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        // hyper answers HTTP/1.0 in its own version (RFC 9112 §2.3).
        assert!(answer.starts_with(b"HTTP/1."), "{request:?}");
    }
}
