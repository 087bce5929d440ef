//! Callers' own certificates.

use rustls::version::{TLS12, TLS13};

use super::caller::{Caller, for_peers_of};
use crate::support::{
    Upstream,
    authority::{Authority, Good},
    has,
};

#[test]
fn only_a_client_certificate_of_the_authority_is_accepted() {
    let (api, authority, other) = (
        Upstream::start(),
        Authority::new("CA"),
        Authority::new("other CA"),
    );
    let proxy = for_peers_of(&api, &authority.server(&["localhost"]), &authority).start();
    let right = authority.peer(Good::NOW);
    let not_yet = Good {
        from: 3600,
        until: 7200,
    };
    for version in [&TLS12, &TLS13] {
        let caller = Caller::new(&authority, Some(&right), &[version]);
        caller.ask_proxy(&proxy).unwrap().ok();
        let cases = [
            ("none", None, ""),
            (
                "of another authority",
                Some(other.peer(Good::NOW)),
                "UnknownCA",
            ),
            (
                "expired",
                Some(authority.peer(Good::ENDED)),
                "CertificateExpired",
            ),
            ("not good yet", Some(authority.peer(not_yet)), ""),
        ];
        for (what, identity, alert) in &cases {
            let caller = Caller::new(&authority, identity.as_ref(), &[version]);
            let refused = caller.ask_proxy(&proxy).expect_err(what).to_string();
            has(&refused, &["alert", alert]);
        }
    }
    assert_eq!(api.count(), 2);
    proxy.logs(&["client certificate refused", "127.0.0.1"]);
}
