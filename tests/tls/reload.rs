//! Certificates that change while the proxy runs.

use std::fs;

use rcgen::KeyPair;
use rustix::process::Signal;
use rustls::pki_types::CertificateDer;

use super::{
    caller::{Caller, with_tls},
    resumption::reload,
};
use crate::support::{
    Proxy, Upstream,
    authority::{Authority, Good, Identity, paths},
    until,
};

fn shown(authority: &Authority, proxy: &Proxy) -> CertificateDer<'static> {
    Caller::trusting(authority)
        .ask_proxy(proxy)
        .unwrap()
        .ok()
        .certificate
}

fn wait_until_shown(authority: &Authority, proxy: &Proxy, identity: &Identity) {
    until("the new certificate", || {
        shown(authority, proxy) == identity.der()
    });
}

#[test]
fn new_certificate_is_loaded_by_itself_and_a_broken_one_is_not() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let (first, second, third) = (
        authority.server(&["localhost"]),
        authority.server(&["localhost"]),
        authority.server(&["localhost"]),
    );
    let proxy = with_tls(&api, &first).start();
    let (certificate, key) = paths(proxy.directory(), "server");
    assert_eq!(shown(&authority, &proxy), first.der());

    // Written in place, the certificate first: until the key is there, the old pair goes on.
    fs::write(&certificate, &second.certificate).unwrap();
    proxy.logs(&["keeping the current certificates", "listen.tls.key"]);
    assert_eq!(shown(&authority, &proxy), first.der());
    fs::write(&key, &second.key).unwrap();
    wait_until_shown(&authority, &proxy, &second);

    // One that callers would reject.
    let expired = authority.sign(&["localhost"], Good::ENDED, KeyPair::generate().unwrap());
    expired.write(proxy.directory(), "server");
    proxy.logs(&["keeping the current certificates", "expired at"]);
    assert_eq!(shown(&authority, &proxy), second.der());

    // A broken one, and none at all.
    fs::write(&certificate, "-----BEGIN CERTIFICATE-----\nno\n").unwrap();
    proxy.logs(&["keeping the current certificates", "listen.tls.certificate"]);
    fs::remove_file(&certificate).unwrap();
    proxy.logs(&["keeping the current certificates", "check the path"]);
    assert_eq!(shown(&authority, &proxy), second.der());

    // Swapped as a whole by a link, as a mounted secret is, and with an old date.
    let swapped = proxy.directory().join("swapped");
    fs::create_dir(&swapped).unwrap();
    third.write(&swapped, "server");
    let (new_certificate, new_key) = paths(&swapped, "server");
    let file = fs::File::options()
        .write(true)
        .open(&new_certificate)
        .unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::remove_file(&key).unwrap();
    std::os::unix::fs::symlink(new_key, &key).unwrap();
    std::os::unix::fs::symlink(new_certificate, &certificate).unwrap();
    wait_until_shown(&authority, &proxy, &third);
}

#[test]
fn sighup_reads_certificates_or_changes_nothing_at_all() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let (first, second) = (
        authority.server(&["localhost"]),
        authority.server(&["localhost"]),
    );
    let mut proxy = with_tls(&api, &first).start();
    second.write(proxy.directory(), "server");
    reload(&proxy);
    assert_eq!(shown(&authority, &proxy), second.der());

    // A connection from before goes on.
    let caller = Caller::trusting(&authority);
    let mut kept = caller.connect(proxy.address(), "localhost").unwrap();

    // With a broken certificate the rest of the configuration is not applied either.
    let (certificate, _) = paths(proxy.directory(), "server");
    fs::write(&certificate, "nothing").unwrap();
    proxy.reconfigure("operation = [{ path = '/other', access = ['anonymous'] }]");
    proxy.signal(Signal::HUP);
    proxy.logs(&[
        "keeping the current configuration",
        "listen.tls.certificate",
    ]);
    assert_eq!(shown(&authority, &proxy), second.der());
    use std::io::{Read, Write};
    kept.write_all(b"GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    kept.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
