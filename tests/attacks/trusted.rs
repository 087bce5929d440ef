//! Behind a trusted proxy (RFC 7239 §8.1): of several words the one next to us counts, none of them twice, and one that
//! names another host or none is refused.

use crate::{
    case::{Stage, answered, passes, refused},
    script::get,
};

const SOURCE: &str = "RFC 7239 §8.1; Traefik GHSA-5m6w-wvh7-57vm";
const BASE: &str = "service.base_url = 'https://api.test'\n";

/// Fields of a caller; the addresses and the scheme that the API is then told if their sender is trusted.
#[rustfmt::skip]
const HEARD: [(&str, &str, &str); 19] = [
    ("X-A: b", "127.0.0.1", "http"),
    ("X-Forwarded-For: 203.0.113.9", "203.0.113.9, 127.0.0.1", "http"),
    ("X-Forwarded-For: 203.0.113.9, 127.0.0.2", "203.0.113.9, 127.0.0.2, 127.0.0.1", "http"),
    ("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9", "6.6.6.6, 203.0.113.9, 127.0.0.1", "http"),
    ("X_Forwarded_For: 6.6.6.6", "127.0.0.1", "http"),
    ("X-Forwarded-For: 203.0.113.9\r\nX_Forwarded_For: 6.6.6.6", "203.0.113.9, 127.0.0.1", "http"),
    ("X-Forwarded-Proto: https", "127.0.0.1", "https"),
    ("X-Forwarded-Proto: HTTPS", "127.0.0.1", "https"),
    ("X-Forwarded-Proto: http", "127.0.0.1", "http"),
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
fn the_word_of_the_nearest_counts_if_it_is_trusted() {
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
fn a_word_that_is_none_or_names_another_is_refused() {
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
