//! Behind a trusted proxy (RFC 7239 §8.1): of several values the nearest one counts, none of them twice, and one that
//! names another host or none is refused.
//!
//! Promise (HTTP): A forwarded field of the configured family counts only from a trusted proxy, and never decides whether to
//! verify. Also in `src/request/parse/origin/forwarded.rs`, `tests/attacks/identity.rs`, `tests/acceptance/wire/origins.rs`,
//! `src/request/parse/origin/tests.rs`.

use crate::attacks::{
    case::{Stage, answered, passes, refused},
    script::get,
};
use crate::support::rows;

const SOURCE: &str = "RFC 7239 §8.1; Traefik GHSA-5m6w-wvh7-57vm";
const BASE: &str = "service.base_url = 'https://api.test'\n";

/// Fields of a caller; the addresses and the scheme that the API then gets if their sender is trusted.
#[rustfmt::skip]
const HEARD: [(&str, &str, &str); 21] = [
    ("X-A: b", "127.0.0.1", "http"),
    ("X-Forwarded-For: 203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("X-Forwarded-For: 203.0.113.9, 127.0.0.2", "203.0.113.9, 127.0.0.2, 127.0.0.1", "http"),
    ("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9", "6.6.6.6, 203.0.113.9, 127.0.0.1", "http"),
    ("X_Forwarded_For: 6.6.6.6", "127.0.0.1", "http"),
    ("X-Forwarded-For: 203.0.113.9\r\nX_Forwarded_For: 6.6.6.6", "203.0.113.9, 127.0.0.1", "http"),
    ("X-Forwarded-Proto: https", "127.0.0.1", "https"),
    ("X-Forwarded-Proto: HTTPS", "127.0.0.1", "https"),
    ("X-Forwarded-Proto: http", "127.0.0.1", "http"),
    ("X-Forwarded-Proto: wss", "127.0.0.1", "https"),
    ("X-Forwarded-Proto: ws", "127.0.0.1", "http"),
    ("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http", "127.0.0.1", "http"),
    ("X-Forwarded-Proto: http, https", "127.0.0.1", "https"),
    ("X_Forwarded_Proto: https", "127.0.0.1", "http"),
    ("X-Forwarded_Proto: https", "127.0.0.1", "http"),
    ("X-Forwarded-Host: api.test", "127.0.0.1", "http"),
    ("X-Forwarded-Host: evil.test, api.test", "127.0.0.1", "http"),
    ("X-Forwarded-Host: api.test:443\r\nX-Forwarded-Proto: https", "127.0.0.1", "https"),
    ("X_Forwarded_Host: evil.test", "127.0.0.1", "http"),
    ("Connection: X-Forwarded-For, X-Forwarded-Proto\r\nX-Forwarded-Proto: https", "127.0.0.1", "https"),
    ("X-Forwarded-Prefix: /admin\r\nX-Forwarded-Uri: /admin\r\nX-Forwarded-Method: DELETE", "127.0.0.1", "http"),
];

#[test]
fn forwarded_fields_of_the_nearest_proxy_count_if_it_is_trusted() {
    for trusted in [true, false] {
        let peers = if trusted {
            "127.0.0.0/8"
        } else {
            "192.0.2.0/24"
        };
        let stage = Stage::new(&format!("{BASE}listen.trusted_proxies = ['{peers}']"));
        for (fields, addresses, scheme) in HEARD {
            let before = stage.api.count();
            stage.play(1, &[passes(fields, SOURCE, "GET /x", get(fields))]);
            let seen = &stage.api.requests_since(before)[0].fields;
            let told = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"]
                .map(|name| seen.all(name).join(" and "));
            let heard = if trusted {
                [addresses, scheme]
            } else {
                ["127.0.0.1", "http"]
            };
            assert_eq!(told[..2], heard, "{fields:?}, trusted: {trusted}");
            assert!(told[2].starts_with("api.test"), "{fields:?}: {told:?}");
        }
    }
}

#[test]
fn wrong_forwarded_fields_of_a_trusted_proxy_are_rejected() {
    let stage = Stage::new(&format!("{BASE}listen.trusted_proxies = ['127.0.0.0/8']"));
    let cases: Vec<_> = [
        ("X-Forwarded-Host: evil.test", 421),
        (
            "X-Forwarded-Host: api.test\r\nX-Forwarded-Host: evil.test",
            421,
        ),
        ("X-Forwarded-Host: api.test, evil.test", 421),
        ("X-Forwarded-Host: api.test.", 421),
        ("X-Forwarded-Host: a b", 400),
        ("X-Forwarded-Host: user@api.test", 400),
        ("X-Forwarded-Host: api.test/x", 400),
        ("X-Forwarded-Proto: gopher", 400),
        ("X-Forwarded-Proto: https;x", 400),
        ("X-Forwarded-Proto: \"https\"", 400),
    ]
    .iter()
    .map(|(fields, status)| match status {
        400 => refused(fields, SOURCE, 400, get(fields)),
        status => answered(fields, SOURCE, *status, get(fields)),
    })
    .collect();
    stage.play(10, &cases);
}

/// Fields of a caller behind a proxy that writes `Forwarded`; the values that the API gets if the proxy is trusted.
#[rustfmt::skip]
const READ: [(&str, &str, &str); 16] = [
    ("Forwarded: for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("Forwarded: for=203.0.113.9;proto=https;host=api.test", "203.0.113.9, 127.0.0.1", "https"),
    ("Forwarded: for=\"[2001:db8::7]:4711\";proto=https", "2001:db8::7, 127.0.0.1", "https"),
    ("Forwarded: for=6.6.6.6;proto=https;host=evil.test, for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("Forwarded: for=6.6.6.6;proto=https;host=evil.test\r\nForwarded: for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("Forwarded: for=203.0.113.9;proto=https, for=127.0.0.2", "203.0.113.9, 127.0.0.1", "https"),
    ("Forwarded: for=6.6.6.6;proto=https;host=evil.test, for=unknown", "127.0.0.1", "http"),
    ("Forwarded: for=6.6.6.6;proto=https;host=evil.test, for=\"_x\"", "127.0.0.1", "http"),
    ("Forwarded: for=\"6.6.6.6, for=6.6.6.6;proto=https\", for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("Forwarded: for=\"6.6.6.6\r\nForwarded: for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("X-Forwarded-For: 6.6.6.6\r\nForwarded: for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("Forwarded: for=203.0.113.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.test", "203.0.113.9, 127.0.0.1", "http"),
    ("Forwarded: for=203.0.113.9\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a b", "203.0.113.9, 127.0.0.1", "http"),
    ("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https", "127.0.0.1", "http"),
    ("X_Forwarded_For: 6.6.6.6\r\nForwarded: for=203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("Connection: Forwarded\r\nForwarded: for=203.0.113.9;proto=https", "203.0.113.9, 127.0.0.1", "https"),
];

#[test]
fn forwarded_counts_only_where_the_trusted_proxy_sets_it() {
    for trusted in ["127.0.0.0/8", "192.0.2.0/24"] {
        let stage = Stage::new(&format!(
            "{BASE}listen = {{ trusted_proxies = ['{trusted}'], forwarded = 'forwarded' }}"
        ));
        for (fields, addresses, scheme) in READ {
            let before = stage.api.count();
            stage.play(1, &[passes(fields, SOURCE, "GET /x", get(fields))]);
            let seen = &stage.api.requests_since(before)[0].fields;
            let told = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"]
                .map(|name| seen.all(name).join(" and "));
            let believed = trusted == "127.0.0.0/8";
            let heard = if believed {
                [addresses, scheme]
            } else {
                ["127.0.0.1", "http"]
            };
            assert_eq!(told[..2], heard, "{fields:?}, trusted: {trusted}");
            assert!(told[2].starts_with("api.test"), "{fields:?}: {told:?}");
            let named = fields.contains("Connection: Forwarded");
            let arrives = believed && fields.contains("Forwarded: for=") && !named;
            assert_eq!(seen.has("forwarded"), arrives, "{fields:?}");
        }
    }
    let stage = Stage::new(&format!(
        "{BASE}listen = {{ trusted_proxies = '127.0.0.1', forwarded = 'forwarded' }}"
    ));
    let cases: Vec<_> = [
        ("Forwarded: for=\"6.6.6.6, for=203.0.113.9", 400),
        (
            "Forwarded: for=\"6.6.6.6, for=203.0.113.9;host=\"api.test\"",
            400,
        ),
        ("Forwarded: for=203.0.113.9;for=6.6.6.6", 400),
        ("Forwarded: for=203.0.113.9;proto=gopher", 400),
        ("Forwarded: for=203.0.113.9;host=\"a b\"", 400),
        ("Forwarded: for=203.0.113.9;host=user@api.test", 400),
        ("Forwarded: for=203.0.113.9;host=evil.test", 421),
        (
            "Forwarded: for=203.0.113.9;host=api.test, for=127.0.0.2;host=evil.test",
            421,
        ),
    ]
    .iter()
    .map(|(fields, status)| match status {
        400 => refused(fields, SOURCE, 400, get(fields)),
        status => answered(fields, SOURCE, *status, get(fields)),
    })
    .collect();
    stage.play(8, &cases);
}

/// By default `Forwarded` is not trusted, and it is dropped even from a trusted proxy: otherwise the API would read a
/// attacker's values from it.
#[test]
fn forwarded_fields_that_a_trusted_proxy_never_sets_are_dropped() {
    for [family, fields, dropped] in rows(
        r"
        x-forwarded | Forwarded: for=6.6.6.6;proto=https;host=evil.test\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Prefix: /p | forwarded
        forwarded | X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Prefix: /p\r\nForwarded: for=203.0.113.9 | x-forwarded-prefix
    ",
    ) {
        for ours in [true, false] {
            let stage = Stage::new(&format!(
                "{BASE}listen = {{ trusted_proxies = '127.0.0.1', forwarded = '{family}' }}\nupstream.forwarded = {ours}"
            ));
            let bytes = stage.bytes(&get(fields));
            let mut connection = stage.proxy.connect();
            connection.send(&bytes);
            connection.answer("GET").has_status(200);
            let seen = stage.api.only_request().fields;
            assert!(!seen.has(dropped), "{family}: {seen:?}");
            let forged = |(_, value): &(String, String)| {
                value.contains("6.6.6.6") || value.contains("evil.test")
            };
            assert!(!seen.0.iter().any(forged), "{family}: {seen:?}");
            let told = seen.all("x-forwarded-for");
            match (ours, family) {
                (true, _) => assert_eq!(told, ["203.0.113.9, 127.0.0.1"]),
                (false, "forwarded") => assert!(told.is_empty(), "{told:?}"),
                (false, _) => assert_eq!(told, ["203.0.113.9"]),
            }
        }
    }
}
