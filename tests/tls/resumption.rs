//! Resumed sessions: on any worker, after a reload, and never past the certificate they were issued under.

use rustix::process::Signal;
use rustls::{
    HandshakeKind::{Full, Resumed},
    version::{TLS12, TLS13},
};

use super::caller::{Caller, for_peers_of, with_tls};
use crate::support::{
    PATIENCE, Proxy, Upstream,
    authority::{Authority, Good},
    until, within,
};

/// Asks a proxy to reload and waits until it has.
pub(crate) fn reload(proxy: &Proxy) {
    let count = || {
        let lines = proxy.log().lines();
        lines
            .iter()
            .filter(|line| line.contains("configuration_reloaded"))
            .count()
    };
    let before = count();
    proxy.signal(Signal::HUP);
    until("the reload", || count() > before);
}

#[test]
fn sessions_are_resumed_on_every_worker_and_after_a_reload() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    for version in [&TLS12, &TLS13] {
        let caller = Caller::new(&authority, None, &[version]);
        assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Full);
        // Two workers share the port by the callers' ports: of this many connections both get some.
        for _ in 0..24 {
            assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Resumed);
        }
        // A new certificate for the same names: earlier tickets stay valid.
        authority
            .server(&["localhost"])
            .write(proxy.directory(), "server");
        reload(&proxy);
        for _ in 0..8 {
            assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Resumed);
        }
        // Under another name nothing is resumed, and another caller makes a full handshake.
        let other = Caller::new(&authority, None, &[version]);
        assert_eq!(other.ask_proxy(&proxy).unwrap().ok().kind, Full);
    }
}

#[test]
fn a_resumed_session_does_not_outlive_the_authority_of_its_peer() {
    let (api, authority, other) = (
        Upstream::start(),
        Authority::new("CA"),
        Authority::new("other CA"),
    );
    let proxy = for_peers_of(&api, &authority.server(&["localhost"]), &authority).start();
    for version in [&TLS12, &TLS13] {
        authority.write(proxy.directory(), "peers");
        reload(&proxy);
        let caller = Caller::new(&authority, Some(&authority.peer(Good::NOW)), &[version]);
        assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Full);
        assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Resumed);
        reload(&proxy);
        assert_eq!(
            caller.ask_proxy(&proxy).unwrap().ok().kind,
            Resumed,
            "the same authority"
        );

        // Another authority is added: every peer has to present its certificate again.
        let both = [&*authority.pem, &other.pem].concat();
        std::fs::write(proxy.directory().join("peers.pem"), both).unwrap();
        reload(&proxy);
        assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Full);

        let count = api.count();
        other.write(proxy.directory(), "peers");
        reload(&proxy);
        for _ in 0..4 {
            caller
                .ask_proxy(&proxy)
                .expect_err("its CA is no longer accepted");
        }
        assert_eq!(api.count(), count);
    }
}

#[test]
fn newly_demanded_client_authorities_end_earlier_tls_sessions() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let mut proxy = with_tls(&api, &authority.server(&["localhost"])).start();
    let caller = Caller::trusting(&authority);
    caller.ask_proxy(&proxy).unwrap().ok();
    assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Resumed);
    let path = authority.write(proxy.directory(), "peers");
    proxy.reconfigure(&format!("listen.tls.client_ca = '{}'", path.display()));
    reload(&proxy);
    for _ in 0..4 {
        caller.ask_proxy(&proxy).expect_err("it has no certificate");
    }
    assert_eq!(api.count(), 2);
}

#[test]
fn a_resumed_session_does_not_outlive_its_peers_certificate() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let proxy = for_peers_of(&api, &authority.server(&["localhost"]), &authority).start();
    for version in [&TLS12, &TLS13] {
        let caller = Caller::new(
            &authority,
            Some(&authority.peer(Good::until(8))),
            &[version],
        );
        assert_eq!(caller.ask_proxy(&proxy).unwrap().ok().kind, Full);
        // It reconnects without a pause, with a new ticket each time.
        let mut resumed = 0;
        within(PATIENCE, "the end of the certificate", || {
            match caller.ask_proxy(&proxy) {
                Ok(heard) => {
                    assert_eq!(heard.ok().kind, Resumed);
                    resumed += 1;
                    None
                }
                Err(_) => Some(()),
            }
        });
        assert!(resumed > 0);
        let count = api.count();
        caller.ask_proxy(&proxy).expect_err("it stays out");
        assert_eq!(api.count(), count);
    }
}
