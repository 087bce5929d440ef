//! The choice among several certificates.
//!
//! Promise (TLS): The requested name selects the certificate; a changed pair is loaded, an invalid one is not. Also in
//! `tests/tls/reload.rs`.

use rustls::version::{TLS12, TLS13};

use super::caller::{Caller, with_certificates};
use crate::support::{
    Upstream,
    authority::{Authority, Good, rsa_key},
    has,
};

#[test]
fn the_name_asked_for_chooses_the_certificate() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let one = authority.server(&["localhost", "one.test"]);
    let two = authority.server(&["two.test", "*.two.test"]);
    let proxy = with_certificates(&api, &[("one", &one), ("two", &two)]).start();
    let caller = Caller::trusting(&authority);
    for (name, shown) in [
        ("localhost", &one),
        ("one.test", &one),
        ("two.test", &two),
        ("TWO.test", &two),
        ("deep.two.test", &two),
    ] {
        let heard = caller.ask(proxy.address(), name).unwrap().ok();
        assert_eq!(heard.certificate, shown.der(), "{name}");
    }
    // A caller with an unknown server name, or none, gets the first.
    let error = caller
        .ask(proxy.address(), "three.test")
        .unwrap_err()
        .to_string();
    has(&error, &["localhost", "one.test"]);
    let heard = Caller::trusting(&authority).nameless().ask_proxy(&proxy);
    assert_eq!(heard.unwrap().ok().certificate, one.der());
    assert_eq!(api.count(), 6);
}

#[test]
fn caller_gets_the_one_of_two_certificates_that_it_can_verify() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let ecdsa = authority.server(&["localhost"]);
    let rsa = authority.sign(&["localhost"], Good::NOW, rsa_key());
    let proxy = with_certificates(&api, &[("ecdsa", &ecdsa), ("rsa", &rsa)]).start();
    let ask = |algorithms: &str| {
        let output = std::process::Command::new("openssl")
            .args([
                "s_client",
                "-connect",
                &proxy.address().to_string(),
                "-servername",
                "localhost",
            ])
            .args(["-sigalgs", algorithms])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(ask("rsa_pss_rsae_sha256:rsa_pkcs1_sha256").contains("Peer signature type: RSA-PSS"));
    assert!(ask("ecdsa_secp256r1_sha256").contains("Peer signature type: ECDSA"));
    for versions in [&TLS12, &TLS13] {
        let heard = Caller::new(&authority, None, &[versions]).ask_proxy(&proxy);
        assert_eq!(heard.unwrap().ok().certificate, ecdsa.der());
    }
}
