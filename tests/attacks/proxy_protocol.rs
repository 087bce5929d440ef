//! The PROXY protocol: headers of a trusted proxy are used, everything else is closed early and cheaply.
//!
//! Promise (Storage and operation): With the PROXY protocol the trusted proxy names the caller; any other connection is closed
//! before TLS. Also in `tests/deploy/gateways.rs`.

use std::io::Write as _;

use crate::support::{Call, Connection, Proxy, Upstream, http::try_open, until};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2: version and command, family and transport, the length that it names, and the rest.
fn v2(command: u8, family: u8, length: usize, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(length).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, rest].concat()
}

/// Addresses and ports of two IPv4 hosts.
const ENDS: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0x30, 0x39, 0, 80];
/// The same of IPv6.
const ENDS6: [u8; 36] = {
    let mut ends = [0; 36];
    ends[0] = 0x20;
    ends[1] = 0x01;
    ends[2] = 0x0d;
    ends[3] = 0xb8;
    ends[15] = 7;
    ends[31] = 1;
    ends
};

fn start(api: &Upstream, more: &str) -> Proxy {
    let config = "listen.proxy_protocol = true\nlisten.trusted_proxies = ['127.0.0.1']\noperations.unlisted = 'anonymous'";
    Proxy::in_front_of(api).config(config).config(more).start()
}

/// A connection that begins with these bytes.
fn begun(proxy: &Proxy, header: &[u8]) -> Connection {
    let mut stream = try_open(proxy.address()).unwrap();
    stream.write_all(header).unwrap();
    Connection::over(stream)
}

fn closed(proxy: &Proxy) -> usize {
    proxy.logged(&["INFO", "connection closed: listen.proxy_protocol"])
}

#[test]
fn the_address_in_a_header_of_a_trusted_proxy_is_the_callers() {
    let api = Upstream::start();
    let proxy = start(&api, "");
    let mut extended = ENDS.to_vec();
    extended.extend([4, 0, 3, b'a', b'b', b'c']);
    let unix = [b'x'; 216];
    for (header, address) in [
        (
            b"PROXY TCP4 192.0.2.7 198.51.100.1 12345 80\r\n".to_vec(),
            "192.0.2.7",
        ),
        (
            b"PROXY TCP6 2001:db8::7 ::1 12345 80\r\n".to_vec(),
            "2001:db8::7",
        ),
        (
            b"PROXY TCP6 ::ffff:192.0.2.7 ::1 12345 80\r\n".to_vec(),
            "192.0.2.7",
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (
            b"PROXY UNKNOWN ffff::1 ffff::2 1 65535\r\n".to_vec(),
            "127.0.0.1",
        ),
        (v2(0x21, 0x11, 12, &ENDS), "192.0.2.7"),
        (v2(0x21, 0x11, 18, &extended), "192.0.2.7"),
        (v2(0x21, 0x21, 36, &ENDS6), "2001:db8::7"),
        (v2(0x20, 0x00, 0, &[]), "127.0.0.1"),
        (v2(0x20, 0x11, 12, &ENDS), "127.0.0.1"),
        (v2(0x21, 0x00, 0, &[]), "127.0.0.1"),
        (v2(0x21, 0x00, 3, b"abc"), "127.0.0.1"),
        (v2(0x21, 0x12, 12, &ENDS), "127.0.0.1"),
        (v2(0x21, 0x31, 216, &unix), "127.0.0.1"),
    ] {
        // With the first request in one piece, byte by byte, and with a second request on the same connection.
        for in_pieces in [false, true] {
            let forged = Call::get("/x")
                .header("X-Forwarded-For", "6.6.6.6")
                .header("X-Forwarded-Proto", "https")
                .header("X-Request-Id", "forged");
            let request = proxy.wire(&forged);
            let bytes = [&header[..], &request].concat();
            let mut connection = if in_pieces {
                let mut stream = try_open(proxy.address()).unwrap();
                bytes
                    .iter()
                    .for_each(|byte| stream.write_all(&[*byte]).unwrap());
                Connection::over(stream)
            } else {
                begun(&proxy, &bytes)
            };
            connection.answer("GET").has_status(200);
            let seen = api.last_request();
            let forwarded = seen.header("X-Forwarded-For").unwrap();
            // Where the proxy names no caller, fields of the request are not taken for the proxy's.
            let shown = String::from_utf8_lossy(&header);
            assert_eq!(forwarded, address, "{shown:?}");
            assert_eq!(seen.header("X-Forwarded-Proto"), Some("http"), "{shown:?}");
            assert_ne!(seen.header("X-Request-Id"), Some("forged"), "{shown:?}");
            proxy
                .send_on(&mut connection, Call::get("/again"))
                .has_status(200);
        }
    }
    proxy.logs(&["access", &format!("peer={}", "192.0.2.7")]);
    assert_eq!(closed(&proxy), 0);
}

#[test]
fn invalid_header_of_a_trusted_proxy_closes_and_is_logged() {
    let api = Upstream::start();
    let proxy = start(&api, "limits.handshake_timeout = '2s'");
    let request = proxy.wire(&Call::get("/x"));
    let line = |text: &str| text.as_bytes().to_vec();
    let tls = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0];
    let cases = [
        // None, or another protocol.
        Vec::new(),
        tls,
        line("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        line("proxy TCP4 192.0.2.7 198.51.100.1 1 80\r\n"),
        // Version 1.
        line("PROXY TCP4 192.0.2.7 198.51.100.1 1 80\n"),
        line("PROXY TCP4 192.0.2.7 198.51.100.1 1 80\rX\n"),
        line("PROXY TCP4 192.0.2.7 198.51.100.1 1 65536\r\n"),
        line("PROXY TCP4 192.0.2.7 198.51.100.1 -1 80\r\n"),
        line("PROXY TCP4 192.0.2.7 198.51.100.1 01 80\r\n"),
        line("PROXY TCP4 192.0.2.07 198.51.100.1 1 80\r\n"),
        line("PROXY TCP4 2001:db8::7 ::1 1 80\r\n"),
        line("PROXY TCP6 192.0.2.7 198.51.100.1 1 80\r\n"),
        line("PROXY TCP4  192.0.2.7 198.51.100.1 1 80\r\n"),
        line("PROXY TCP4 192.0.2.7\r\n"),
        line("PROXY TCP5 192.0.2.7 198.51.100.1 1 80\r\n"),
        line("PROXY \r\nXXXXXXXX\r\n"),
        [b"PROXY UNKNOWN \xff\xff\xff\r\n".to_vec()].concat(),
        line(&format!("PROXY UNKNOWN {}\r\n", "x".repeat(92))),
        // Version 2: version, command, family, transport.
        v2(0x11, 0x11, 12, &ENDS),
        v2(0x31, 0x11, 12, &ENDS),
        v2(0x22, 0x11, 12, &ENDS),
        v2(0x21, 0x41, 12, &ENDS),
        v2(0x21, 0x13, 12, &ENDS),
        // Less than its addresses, and more than is read.
        v2(0x21, 0x11, 11, &ENDS[..11]),
        v2(0x21, 0x21, 12, &ENDS),
        v2(0x21, 0x31, 12, &ENDS),
        v2(0x21, 0x11, 0, &[]),
        v2(0x21, 0x11, 4096, &[0; 4096]),
        v2(0x21, 0x11, 65_535, &ENDS),
        // It takes the request for part of the header, which ends before its length.
        v2(0x21, 0x11, 1000, &ENDS),
    ];
    for (number, header) in cases.iter().enumerate() {
        let shown = String::from_utf8_lossy(header).into_owned();
        let mut connection = try_open(proxy.address()).unwrap();
        let _ = connection.write_all(&[&header[..], &request].concat());
        let mut connection = Connection::over(connection);
        assert!(connection.is_closed(), "{shown:?}");
        until("it is logged", || closed(&proxy) > number);
        assert_eq!(closed(&proxy), number + 1, "{shown:?}");
    }
    // Cut off, or slow: none of these headers is ever complete.
    let whole = line("PROXY TCP4 192.0.2.7 198.51.100.1 12345 80\r\n");
    for cut in [
        &whole[..5],
        &whole[..20],
        &whole[..whole.len() - 1],
        &v2(0x21, 0x11, 12, &ENDS[..5]),
    ] {
        let connection = try_open(proxy.address()).unwrap();
        (&connection).write_all(cut).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(Connection::over(connection).is_closed());
        let mut silent = begun(&proxy, cut);
        assert!(silent.is_closed());
    }
    until("they are logged", || closed(&proxy) == cases.len() + 8);
    api.saw_nothing();
    until("they are let go", || {
        proxy.metric("countersign_connections") == 0.0
    });
}

#[test]
fn the_header_of_an_untrusted_proxy_is_not_read() {
    let api = Upstream::start();
    let proxy = start(&api, "listen.trusted_proxies = ['192.0.2.0/24']");
    let header = v2(0x21, 0x11, 12, &ENDS);
    let mut connection = begun(
        &proxy,
        &[&header[..], &proxy.wire(&Call::get("/x"))].concat(),
    );
    assert!(connection.is_closed());
    proxy.logs(&["listen.trusted_proxies"]);
    assert_eq!(closed(&proxy), 1);
    api.saw_nothing();
}

#[test]
fn limits_of_an_address_apply_to_the_caller_not_to_the_proxy() {
    let api = Upstream::start();
    let proxy = start(&api, "limits.connections_per_address = 1");
    let from = |address: &str| {
        let header = format!("PROXY TCP4 {address} 198.51.100.1 1 80\r\n");
        begun(
            &proxy,
            &[header.as_bytes(), &proxy.wire(&Call::get("/x"))].concat(),
        )
    };
    let mut first: Connection = from("192.0.2.7");
    first.answer("GET").has_status(200);
    let mut other = from("192.0.2.8");
    other.answer("GET").has_status(200);
    from("192.0.2.7").answer("GET").has_status(503);
    drop(first);
    until("its place is free", || {
        from("192.0.2.7").answer("GET").status == 200
    });
}
