//! The keys that a reload cannot change.

use super::*;

fn with_api(text: &str) -> Config {
    read(&format!(
        "upstream.api_url = 'https://127.0.0.1:9000'\n{text}"
    ))
}

#[test]
fn a_key_that_needs_a_restart_is_named_and_put_back() {
    let running = with_api("");
    for (text, key) in [
        ("listen.address = '127.0.0.1:9999'", "listen.address"),
        ("listen.workers = 7", "listen.workers"),
        ("nonce.path = 'elsewhere.nonces'", "nonce.path"),
        ("store.url = 'elsewhere.db'", "store.url"),
        (
            "store.encryption_key_file = 'store.key'",
            "store.encryption_key_file",
        ),
        ("cache.ttl = '17s'", "cache.ttl"),
        ("login.ca = 'ca.pem'", "login.ca"),
        (
            "admin.probe_listen = '127.0.0.1:9997'",
            "admin.probe_listen",
        ),
        ("log.format = 'json'", "log.format"),
    ] {
        let mut new = with_api(text);
        assert_eq!(new.keep_fixed(&running), [key]);
        assert_eq!(new, running, "{key}");
    }
    for text in ["log.level = 'warn'", "upstream.tls.ca = 'ca.pem'"] {
        let mut new = with_api(text);
        assert!(new.keep_fixed(&running).is_empty());
        assert_ne!(new, running, "{text}");
    }
}

#[test]
fn keys_of_inner_sections_are_put_back_too() {
    let read = |path: &str| {
        with_api(&format!(
            "store.lookup.url = 'http://127.0.0.1/{path}'\nstore.lookup.secret_file = 'secret'"
        ))
    };
    let (running, mut new) = (read("a"), read("b"));
    assert_eq!(new.keep_fixed(&running), ["store.lookup.url"]);
    assert_eq!(new, running);
}

#[test]
fn a_listener_keeps_to_plain_http_or_to_tls() {
    let pair = |name: &str| {
        with_api(&format!(
            "listen.tls.certificate = '{name}.pem'\nlisten.tls.key = '{name}.key'"
        ))
    };
    let (plain, tls) = (with_api(""), pair("a"));
    for (running, written) in [(&plain, &tls), (&tls, &plain)] {
        let mut new = written.clone();
        assert_eq!(new.keep_fixed(running), ["listen.tls.certificate"]);
        assert_eq!(new, *running);
    }
    let mut new = pair("b");
    assert!(new.keep_fixed(&tls).is_empty());
    assert_eq!(new, pair("b"));
}
