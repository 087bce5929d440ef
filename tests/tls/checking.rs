//! The findings of `check` and `serve` about certificates that callers will refuse.
//!
//! Promise (Storage and operation): A certificate that ends soon is in `check`, `/readyz`, a metric and the log; no reload
//! replaces one by a worse one. Also in `tests/tls/reload.rs`.

use rcgen::KeyPair;

use super::caller::{Caller, with_certificates, with_tls};
use crate::support::{
    Connection, Proxy, Upstream,
    authority::{Authority, Good, Identity},
    has,
    program::Ended,
    proxy::Builder,
    until,
};

/// The line of `check` that has all of this.
#[track_caller]
fn said(ended: &Ended, parts: &[&str]) {
    let mut lines = ended.stderr.lines();
    assert!(
        lines.any(|line| parts.iter().all(|part| line.contains(part))),
        "{parts:?}: {ended:?}"
    );
}

fn dated(authority: &Authority, from: i64, until: i64) -> Identity {
    authority.sign(
        &["localhost"],
        Good { from, until },
        KeyPair::generate().unwrap(),
    )
}

#[test]
fn a_certificate_that_is_not_valid_today_is_an_error() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    for (from, until, what) in [
        (-86_400, -60, "expired at"),
        (3_600, 86_400, "is not valid before"),
    ] {
        let builder = with_tls(&api, &dated(&authority, from, until));
        let ended = builder.check();
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        let parts = [
            "✗ ",
            "listen.tls.certificate",
            "server-certificate.pem",
            what,
        ];
        said(&ended, &parts);
        // A restart must not cause an outage: callers that do not verify are served.
        let proxy = builder.start();
        proxy.logs(&["ERROR", "listen.tls.certificate", what]);
        let ready = proxy.ask_admin("/readyz");
        ready.has_status(200);
        has(&ready.text(), &["degraded: certificate_expired since 20"]);
        let condition = "countersign_degraded{cause=\"certificate_expired\"}";
        assert_eq!(proxy.metric(condition), 1.0);
    }
    let ended = with_tls(&api, &dated(&authority, -60, 60 * 86_400 + 60))
        .check()
        .done();
    assert!(!ended.stderr.contains("listen.tls"), "{ended:?}");
    has(&ended.stdout, &["has 60 days left, until 20"]);
}

#[test]
fn certificate_that_ends_soon_is_in_check_metrics_and_log() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let builder = with_tls(&api, &dated(&authority, -60, 5 * 86_400 + 3_600));
    let ended = builder.check().done();
    said(&ended, &["! ", "server-certificate.pem ends in 5 days"]);
    let proxy = builder.start();
    proxy.logs(&["WARN", "certificate_expiring", "in 5 days"]);
    is_logged_once(&proxy, 5);
    let ready = proxy.ask_admin("/readyz");
    ready.has_status(200);
    has(&ready.text(), &["degraded: certificate_expiring since 20"]);
    let file = proxy.directory().join("server-certificate.pem");
    let name = format!(
        "countersign_certificate_remaining_seconds{{file=\"{}\"}}",
        file.display()
    );
    let left = proxy.metric(&name);
    assert!((432_000.0..435_700.0).contains(&left), "{left}");
}

/// The log has one line for a threshold that the certificate passed.
#[track_caller]
fn is_logged_once(proxy: &Proxy, days: i64) {
    let text = format!("days_left={days} ");
    proxy.logs(&["WARN", &text]);
    let lines = proxy.log().lines();
    let count = lines.iter().filter(|line| line.contains("ends soon"));
    assert_eq!(count.count(), 1, "{lines:#?}");
}

#[test]
fn the_log_names_a_certificate_that_ends_within_30_7_or_1_days() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    for (seconds, days, is_degraded) in [
        (30 * 86_400 - 60, 29, false),
        (7 * 86_400 - 60, 6, true),
        (86_400 - 60, 0, true),
    ] {
        let proxy = with_tls(&api, &dated(&authority, -60, seconds)).start();
        is_logged_once(&proxy, days);
        let ready = proxy.ask_admin("/readyz").text();
        assert_eq!(ready.contains("certificate_expiring"), is_degraded);
    }
    let proxy = with_tls(&api, &dated(&authority, -60, 30 * 86_400 + 3_600)).start();
    let lines = proxy.log().lines();
    assert!(
        !lines.iter().any(|line| line.contains("ends soon")),
        "{lines:#?}"
    );
}

#[test]
fn certificate_that_ends_before_it_begins_is_rejected() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let builder = with_tls(&api, &dated(&authority, 86_400, 3_600));
    for command in ["check", "serve"] {
        let ended = builder.run(&[command], "");
        assert_eq!(ended.code(), Some(2), "{ended:?}");
        said(&ended, &["listen.tls.certificate", "before it begins"]);
    }
}

#[test]
fn handshakes_that_fail_are_counted_by_their_reason() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let count = |reason: &str| {
        let name = "countersign_tls_handshake_failures_total";
        proxy.metric(&format!("{name}{{reason=\"{reason}\"}}"))
    };
    assert!(
        Caller::trusting(&Authority::new("other CA"))
            .ask_proxy(&proxy)
            .is_err()
    );
    until("our certificate was rejected", || {
        count("our_certificate") == 1.0
    });
    let mut plain = Connection::to(proxy.address());
    plain.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    plain.answer("GET").has_status(400);
    // The handshake ends once the caller has read the answer and closed.
    drop(plain);
    until("it was no TLS", || count("other") == 1.0);
    assert_eq!(count("caller_certificate"), 0.0);
}

#[test]
fn one_expired_certificate_of_several_is_reported() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let (good, bad) = (
        authority.server(&["localhost"]),
        dated(&authority, -86_400, -60),
    );
    let ended = with_certificates(&api, &[("good", &good), ("bad", &bad)]).check();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    said(&ended, &["bad-certificate.pem", "expired"]);
    assert!(!ended.stderr.contains("good-certificate.pem"), "{ended:?}");
}

#[test]
fn our_own_expired_certificate_for_the_api_is_named() {
    let authority = Authority::new("CA");
    let builder = Builder::in_front_of_url("https://127.0.0.1:1");
    let (certificate, key) = dated(&authority, -86_400, -60).write(builder.directory(), "ours");
    let builder = builder.config(&format!(
        "upstream.tls.certificate = '{}'\nupstream.tls.key = '{}'",
        certificate.display(),
        key.display()
    ));
    let ended = builder.check();
    said(&ended, &["upstream.tls.certificate", "expired"]);
}

#[test]
fn every_public_host_needs_a_certificate() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let one = authority.server(&["auth.test", "*.api.test", "192.0.2.1", "localhost"]);
    let two = authority.server(&["other.test"]);
    let builder =
        |text: &str| with_certificates(&api, &[("one", &one), ("two", &two)]).config(text);
    for (base, public, missing) in [
        ("https://auth.test", "https://v1.api.test", None),
        ("https://AUTH.test:8443", "https://other.test/v1", None),
        ("https://auth.test", "https://192.0.2.1", None),
        // Plain HTTP shows no certificate.
        ("https://auth.test", "http://plain.test", None),
        (
            "https://login.test",
            "https://v1.api.test",
            Some("login.test"),
        ),
        ("https://auth.test", "https://api.test", Some("api.test")),
        (
            "https://auth.test",
            "https://a.v1.api.test",
            Some("a.v1.api.test"),
        ),
        ("https://auth.test", "https://192.0.2.2", Some("192.0.2.2")),
        (
            "https://auth.test",
            "https://[2001:db8::1]",
            Some("2001:db8::1"),
        ),
    ] {
        let text = format!("service.base_url = '{base}'\nservice.public_api_urls = ['{public}']");
        let ended = builder(&text).check();
        let Some(host) = missing else {
            assert_eq!(ended.code(), Some(0), "{text}: {ended:?}");
            assert!(!ended.stderr.contains("no certificate is for"), "{ended:?}");
            continue;
        };
        assert_eq!(ended.code(), Some(1), "{text}: {ended:?}");
        let parts = ["✗ ", "listen.tls.certificate", host];
        said(&ended, &parts);
        // A proxy in front may present its own certificate to callers.
        let behind = builder(&format!("{text}\nlisten.trusted_proxies = ['10.0.0.0/8']")).check();
        assert_eq!(behind.code(), Some(0), "{text}: {behind:?}");
        said(&behind, &["! ", "listen.tls.certificate", host]);
    }
    let proxy = builder("service.base_url = 'https://login.test'").start();
    proxy.logs(&["ERROR", "no certificate is for login.test"]);
}
