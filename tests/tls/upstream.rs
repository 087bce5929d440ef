//! TLS to the API: the trusted peers, the proxy's own certificate, and the end of an answer.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, pem::PemObject},
    server::{ResolvesServerCertUsingSni, WebPkiClientVerifier},
    sign::CertifiedKey,
};

use super::resumption::reload;
use crate::support::{
    Call, Connection, Proxy, Upstream,
    authority::{Authority, Good, Identity, paths},
    names::Names,
    proxy::Builder,
    until,
};

pub(crate) fn server(identity: &Identity, peers: Option<&Authority>) -> Arc<ServerConfig> {
    let builder = ServerConfig::builder();
    let builder = match peers {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let root = CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap();
            roots.add(root).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
                .build()
                .unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![identity.der()];
    Arc::new(builder.with_single_cert(chain, identity.private()).unwrap())
}

fn trusting(builder: Builder, authority: &Authority) -> Builder {
    let path = authority.write(builder.directory(), "api");
    builder.config(&format!(
        "upstream.tls.ca = '{}'\noperation = [{{ path = '/open', access = ['anonymous'] }}]",
        path.display()
    ))
}

#[test]
fn an_api_with_a_wrong_certificate_is_502_and_the_log_says_why() {
    let (authority, other) = (Authority::new("CA"), Authority::new("other CA"));
    let expired = authority.sign(
        &["localhost"],
        Good::ENDED,
        rcgen::KeyPair::generate().unwrap(),
    );
    for (identity, reason, fix) in [
        (
            authority.server(&["elsewhere.test"]),
            "not valid for name",
            "upstream.tls.server_name",
        ),
        (
            other.server(&["localhost"]),
            "UnknownIssuer",
            "upstream.tls.ca",
        ),
        (expired, "expired", "renew its certificate"),
    ] {
        let api = Upstream::over_tls_with(server(&identity, None));
        let proxy = trusting(Proxy::in_front_of(&api), &authority).start();
        let answer = proxy.send(Call::get("/open"));
        answer.has_status(502);
        assert!(!answer.text().contains("certificate"), "{answer:?}");
        let checked = proxy.command(&["check"]);
        assert_eq!(checked.code(), Some(1), "{checked:?}");
        let line = checked
            .stderr
            .lines()
            .find(|line| line.contains("cannot be reached"));
        let line = line.unwrap();
        assert!(line.contains(fix) && line.contains("localhost:"), "{line}");
        proxy.logs(&["certificate", reason]);
        assert_eq!(api.count(), 0);
    }
}

#[test]
fn the_expected_name_of_the_api_can_differ_from_its_address() {
    let authority = Authority::new("CA");
    let api = Upstream::over_tls_with(server(&authority.server(&["elsewhere.test"]), None));
    let proxy = trusting(Proxy::in_front_of(&api), &authority)
        .config("upstream.tls.server_name = 'elsewhere.test'")
        .start();
    proxy.send(Call::get("/open")).has_status(200);
}

#[test]
fn a_name_of_the_api_that_ends_with_a_dot_has_none_in_tls() {
    let authority = Authority::new("CA");
    let identity = authority.server(&["api.test"]);
    let builder = ServerConfig::builder();
    let provider = builder.crypto_provider();
    let key = CertifiedKey::from_der(vec![identity.der()], identity.private(), provider).unwrap();
    // It fails for any other name than this.
    let mut by_name = ResolvesServerCertUsingSni::new();
    by_name.add("api.test", key).unwrap();
    let config = builder.with_no_client_auth();
    let api = Upstream::over_tls_with(Arc::new(config.with_cert_resolver(Arc::new(by_name))));
    let (_, port) = api.url().rsplit_once(':').unwrap();
    let builder = Proxy::in_front_of_url(&format!("https://API.test.:{port}"));
    let builder = trusting(builder, &authority).config("upstream.host = 'upstream'");
    let (builder, _names) = Names::of(builder, "api.test. 127.0.0.1");
    let proxy = builder.start();
    proxy.send(Call::get("/open")).has_status(200);
    let host = format!("api.test.:{port}");
    assert_eq!(api.last_request().header("host"), Some(&*host));
    let checked = proxy.command(&["check"]);
    assert_eq!(checked.code(), Some(0), "{checked:?}");
}

#[test]
fn the_proxy_shows_its_own_certificate_and_takes_up_a_new_one() {
    let (authority, other) = (Authority::new("CA"), Authority::new("other CA"));
    let identity = authority.server(&["localhost"]);
    let api = Upstream::over_tls_with(server(&identity, Some(&authority)));

    let without = trusting(Proxy::in_front_of(&api), &authority).start();
    without.send(Call::get("/open")).has_status(502);
    without.logs(&["CertificateRequired"]);

    let builder = trusting(Proxy::in_front_of(&api), &authority);
    other.peer(Good::NOW).write(builder.directory(), "own");
    let (certificate, key) = paths(builder.directory(), "own");
    let proxy = builder
        .config(&format!(
            "upstream.tls.certificate = '{}'\nupstream.tls.key = '{}'",
            certificate.display(),
            key.display()
        ))
        .start();
    proxy.send(Call::get("/open")).has_status(502);
    assert_eq!(api.count(), 0);

    // Renewed on the disk: the proxy notices by itself.
    let right = authority.peer(Good::NOW);
    fs::write(&certificate, &right.certificate).unwrap();
    proxy.logs(&["keeping the current certificates", "upstream.tls.key"]);
    fs::write(&key, &right.key).unwrap();
    until("the new certificate", || {
        proxy.send(Call::get("/open")).status == 200
    });

    // And by SIGHUP, on kept connections too.
    other.peer(Good::NOW).write(proxy.directory(), "own");
    reload(&proxy);
    let count = api.count();
    proxy.send(Call::get("/open")).has_status(502);
    assert_eq!(api.count(), count);
}

/// An API that answers every connection with `answer`, and ends it properly or not.
fn answering(authority: &Authority, answer: &'static str, proper: bool) -> SocketAddr {
    let config = server(&authority.server(&["localhost"]), None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.extend(byte);
            }
            drop(stream.write_all(answer.as_bytes()));
            if proper {
                stream.conn.send_close_notify();
            }
            drop(stream.flush());
        }
    });
    address
}

#[test]
fn a_response_until_close_is_complete_only_with_close_notify() {
    let authority = Authority::new("CA");
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nas far as it goes";
    for proper in [true, false] {
        let address = answering(&authority, answer, proper);
        let url = format!("https://localhost:{}", address.port());
        let proxy = trusting(Builder::in_front_of_url(&url), &authority).start();
        // To HTTP/1.1 as chunks, whose last one shows the end; to HTTP/1.0 by the end of the connection.
        let mut caller = proxy.connect();
        caller.send(&proxy.wire(&Call::get("/open")));
        match caller.try_answer("GET") {
            Ok(Some(answer)) => {
                assert!(proper && answer.text() == "as far as it goes", "{answer:?}")
            }
            Ok(None) | Err(_) => assert!(!proper),
        }
        let mut old = proxy.connect();
        old.send(format!("GET /open HTTP/1.0\r\nHost: {}\r\n\r\n", proxy.host()).as_bytes());
        match old.try_answer("GET") {
            Ok(Some(answer)) => {
                assert!(proper && answer.text() == "as far as it goes", "{answer:?}")
            }
            Ok(None) | Err(_) => assert!(!proper),
        }
    }
}

#[test]
fn a_response_with_a_length_is_complete_without_close_notify() {
    let authority = Authority::new("CA");
    let whole = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole";
    let address = answering(&authority, whole, false);
    let url = format!("https://localhost:{}", address.port());
    let proxy = trusting(Builder::in_front_of_url(&url), &authority).start();
    assert_eq!(
        proxy.send(Call::get("/open")).has_status(200).text(),
        "whole"
    );

    let cut = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 50\r\n\r\ncut";
    let address = answering(&authority, cut, true);
    let url = format!("https://localhost:{}", address.port());
    let proxy = trusting(Builder::in_front_of_url(&url), &authority).start();
    let mut caller = Connection::to(proxy.address());
    caller.send(&proxy.wire(&Call::get("/open")));
    assert!(
        caller.try_answer("GET").is_err(),
        "a proper end makes a cut answer no longer"
    );
}
