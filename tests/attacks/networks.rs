//! An address that a caller claims opens no operation that is for certain networks (`from`).

use std::io::Write as _;

use crate::attacks::{
    case::{Stage, answered, passes},
    script::get,
};
use crate::support::{Call, Connection, Proxy, Upstream, http::try_open};

const SOURCE: &str = "RFC 7239 §8.1";

fn config(trusted: &str, more: &str) -> String {
    format!(
        "service.base_url = 'https://api.test'\nlisten.trusted_proxies = ['{trusted}']\n{more}\n\
         operation = [{{ path = '/x', from = ['10.0.0.0/8'] }}, {{ path = '/{{*rest}}' }}]"
    )
}

/// Fields, and whether their caller is in the network where a trusted proxy sent them.
#[rustfmt::skip]
const CLAIMS: [(&str, bool); 22] = [
    ("X-A: b", false),
    ("X-Forwarded-For: 10.0.0.1", true),
    ("X-Forwarded-For: 10.0.0.1:4711", true),
    ("X-Forwarded-For: ::ffff:10.0.0.1", true),
    ("X-Forwarded-For: [::ffff:10.0.0.1]:4711", true),
    ("X-Forwarded-For: 6.6.6.6, 10.0.0.1", true),
    ("X-Forwarded-For: 10.0.0.1, 127.0.0.2", true),
    ("X-Forwarded-For: 10.0.0.1, 6.6.6.6", false),
    ("X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 6.6.6.6", false),
    ("X-Forwarded-For: ::ffff:6.6.6.6", false),
    ("X-Forwarded-For: ::10.0.0.1", false),
    ("X-Forwarded-For: 64:ff9b::10.0.0.1", false),
    ("X-Forwarded-For: 010.0.0.1", false),
    ("X-Forwarded-For: 0xa.0.0.1", false),
    ("X-Forwarded-For: 10.1", false),
    ("X-Forwarded-For: 10.0.0.1, unknown", false),
    ("X-Forwarded-For: 10.0.0.1, unknown, 127.0.0.2", false),
    ("X_Forwarded_For: 10.0.0.1", false),
    ("Forwarded: for=10.0.0.1", false),
    ("X-Real-IP: 10.0.0.1\r\nTrue-Client-IP: 10.0.0.1\r\nClient-IP: 10.0.0.1", false),
    ("Connection: X-Forwarded-For\r\nX-Forwarded-For: 6.6.6.6", false),
    ("X-Forwarded-For: 10.0.0.1 6.6.6.6", false),
];

#[test]
fn a_claimed_address_counts_only_from_a_trusted_proxy() {
    for (trusted, is_believed) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let stage = Stage::new(&config(trusted, ""));
        let cases = CLAIMS.map(|(fields, is_inside)| match is_inside && is_believed {
            true => passes(fields, SOURCE, "GET /x", get(fields)),
            false => answered(fields, SOURCE, 404, get(fields)),
        });
        stage.play(CLAIMS.len(), &cases);
    }
}

/// The same for a proxy that writes `Forwarded`.
const ELEMENTS: [(&str, bool); 6] = [
    ("Forwarded: for=10.0.0.1", true),
    ("Forwarded: for=\"[::ffff:10.0.0.1]:4711\"", true),
    ("Forwarded: for=10.0.0.1, for=6.6.6.6", false),
    ("Forwarded: for=10.0.0.1, for=unknown", false),
    ("Forwarded: for=10.0.0.1, proto=https", false),
    ("X-Forwarded-For: 10.0.0.1", false),
];

#[test]
fn element_without_an_address_opens_nothing() {
    let stage = Stage::new(&config("127.0.0.0/8", "listen.forwarded = 'forwarded'"));
    let cases = ELEMENTS.map(|(fields, is_inside)| match is_inside {
        true => passes(fields, SOURCE, "GET /x", get(fields)),
        false => answered(fields, SOURCE, 404, get(fields)),
    });
    stage.play(ELEMENTS.len(), &cases);
}

#[test]
fn the_address_of_a_proxy_is_not_that_of_its_caller() {
    let api = Upstream::start();
    let rule = "operation = [{ path = '/x', access = ['anonymous'], from = ['127.0.0.0/8', '10.0.0.0/8'] }]";
    let trusted = "listen.trusted_proxies = ['127.0.0.1']";
    let proxy = Proxy::with(&api, &format!("{trusted}\n{rule}"));
    let from = |address: &str| Call::get("/x").header("X-Forwarded-For", address);
    proxy.send(Call::get("/x")).is(404, "permission_denied");
    proxy.send(from("unknown")).is(404, "permission_denied");
    proxy.send(from("127.0.0.2")).has_status(200);
    // Nor is that of a proxy in front of it, which reports no caller.
    let both = format!("listen.trusted_proxies = ['127.0.0.0/8']\n{rule}");
    let proxy = Proxy::with(&api, &both);
    proxy.send(from("127.0.0.2")).is(404, "permission_denied");
    proxy.send(from("10.0.0.1, 127.0.0.2")).has_status(200);
    // Over the PROXY protocol the header names the caller; the fields of the request do not.
    let config = format!("listen.proxy_protocol = true\n{trusted}\n{rule}");
    let proxy = Proxy::in_front_of(&api).config(&config).start();
    for (header, status) in [
        ("PROXY TCP4 10.0.0.1 198.51.100.1 1 80", 200),
        ("PROXY TCP6 ::ffff:10.0.0.1 ::1 1 80", 200),
        ("PROXY TCP4 6.6.6.6 198.51.100.1 1 80", 404),
        ("PROXY UNKNOWN", 404),
    ] {
        let mut stream = try_open(proxy.address()).unwrap();
        let request = proxy.wire(&from("10.0.0.1"));
        let bytes = [header.as_bytes(), b"\r\n", &request].concat();
        stream.write_all(&bytes).unwrap();
        Connection::over(stream).answer("GET").has_status(status);
    }
}
