//! The enabled versions and suites, and the disabled features.

use std::{
    io::Write,
    net::SocketAddr,
    process::{Command, Stdio},
};

use rustls::{
    ProtocolVersion,
    version::{TLS12, TLS13},
};

use super::caller::{Caller, with_certificates, with_tls};
use crate::support::{
    Upstream,
    authority::{Authority, Good, rsa_key},
    words,
};

/// Runs `openssl s_client` and returns all it says; `input` is typed once it is connected.
fn s_client(address: SocketAddr, options: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string()])
        .args(["-servername", "localhost", "-ign_eof"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (text.contains("HTTP/1.1 200 OK"), text)
}

const ASK: &str = "GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn tls_1_2_and_1_3_and_nothing_older() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    for (versions, spoken) in [
        (&[&TLS12][..], ProtocolVersion::TLSv1_2),
        (&[&TLS13], ProtocolVersion::TLSv1_3),
        (&[&TLS12, &TLS13], ProtocolVersion::TLSv1_3),
    ] {
        let heard = Caller::new(&authority, None, versions).ask_proxy(&proxy);
        assert_eq!(heard.unwrap().ok().version, spoken);
    }
    let lax = ["-cipher", "ALL:@SECLEVEL=0"];
    for (option, good) in [
        ("-tls1_2", true),
        ("-tls1_3", true),
        ("-tls1_1", false),
        ("-tls1", false),
    ] {
        let options = [&[option][..], &lax].concat();
        let (answered, text) = s_client(proxy.address(), &options, ASK);
        assert_eq!(answered, good, "{option}: {text}");
        if !good {
            assert!(
                text.contains("alert number 70") || text.contains("alert number 40"),
                "{option}: {text}"
            );
        }
    }
    assert_eq!(api.count(), 5);
}

#[test]
fn weak_suites_and_groups_are_refused() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let rsa = authority.sign(&["localhost"], Good::NOW, rsa_key());
    let ecdsa = authority.server(&["localhost"]);
    let proxy = with_certificates(&api, &[("rsa", &rsa), ("ecdsa", &ecdsa)]).start();
    for suites in words(
        "kRSA kDHE aNULL eNULL 3DES CAMELLIA ARIA AESCCM PSK ECDHE-RSA-AES128-SHA
         ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA384",
    ) {
        let suites = format!("{suites}:@SECLEVEL=0");
        let (answered, text) = s_client(proxy.address(), &["-tls1_2", "-cipher", &suites], ASK);
        assert!(!answered, "{suites}: {text}");
        assert!(
            text.contains("alert handshake failure") || text.contains("no cipher"),
            "{suites}: {text}"
        );
    }
    for suite in words("ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-CHACHA20-POLY1305") {
        let (answered, text) = s_client(proxy.address(), &["-tls1_2", "-cipher", suite], ASK);
        assert!(answered, "{suite}: {text}");
    }
    for (groups, good) in [
        ("P-256", true),
        ("X25519", true),
        ("P-521", false),
        ("ffdhe2048", false),
    ] {
        let (answered, text) = s_client(proxy.address(), &["-tls1_3", "-groups", groups], ASK);
        assert_eq!(answered, good, "{groups}: {text}");
    }
}

#[test]
fn no_compression_and_no_early_data() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let (answered, text) = s_client(proxy.address(), &["-tls1_2", "-comp"], ASK);
    assert!(answered && text.contains("Compression: NONE"), "{text}");
    assert!(text.contains("Secure Renegotiation IS supported"), "{text}");
    let (answered, text) = s_client(proxy.address(), &["-tls1_3"], ASK);
    assert!(answered && text.contains("Max Early Data: 0"), "{text}");
    // `audit` tests an attempt to renegotiate.
    assert_eq!(api.count(), 2);
}

#[test]
fn http_1_1_is_chosen_by_alpn_and_an_unknown_protocol_refused() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let offering = |protocols: &[&str]| {
        Caller::trusting(&authority)
            .offering(protocols)
            .ask_proxy(&proxy)
    };
    let heard = offering(&["spdy/3", "http/1.1"]).unwrap().ok();
    assert_eq!(heard.protocol.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(offering(&[]).unwrap().ok().protocol, None);
    // RFC 7301 §3.2: no protocol in common ends the handshake.
    let refused = offering(&["smtp"]).unwrap_err().to_string();
    assert!(refused.contains("NoApplicationProtocol"), "{refused}");
}
