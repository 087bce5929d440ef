//! TLS to the system that checks logins: a password is sent only to the right one.
//!
//! Promise (TLS): Certificates of the API, `login.url` and `store.lookup.url` are verified before anything is sent; ours is
//! sent if asked. Also in `tests/tls/lookup.rs`, `tests/tls/upstream.rs`.

use super::upstream::server;
use crate::support::{
    Proxy, Reply, Upstream, User, Visitor,
    authority::{Authority, Good, Identity},
    proxy::Builder,
};

/// The system, behind TLS.
fn system(identity: &Identity) -> Upstream {
    Upstream::replying_over_tls(server(identity, None), |_| {
        Reply::ok(r#"{"id":"4711","display_name":"Ada Lovelace"}"#)
    })
}

/// A proxy that asks it.
fn asking(api: &Upstream, system: &Upstream, trusted: Option<&Authority>) -> Builder {
    let url = system.url();
    let builder = Proxy::in_front_of(api).config(&format!(
        "login.backend = 'http'\nlogin.url = '{url}/check'"
    ));
    let Some(authority) = trusted else {
        return builder;
    };
    let path = authority.write(builder.directory(), "login");
    builder.config(&format!("login.ca = '{}'", path.display()))
}

fn log_in(proxy: &Proxy) -> (u16, String) {
    let mut visitor = Visitor::to(proxy);
    let page = visitor.open("/service.oauth?mode=login");
    let user = User::new("ada", "enchantress");
    let answer = visitor.log_in(&page, &user).answer;
    (answer.status, answer.text())
}

#[test]
fn a_login_is_checked_by_a_system_of_a_private_authority() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let system = system(&authority.server(&["localhost"]));
    let builder = asking(&api, &system, Some(&authority));
    let checked = builder.run(&["check"], "").done();
    let line = format!("login          {}/check takes connections\n", system.url());
    assert!(checked.stdout.contains(&line), "{checked:?}");
    assert_eq!(system.count(), 0, "check sends nothing");
    let (status, page) = log_in(&builder.start());
    assert_eq!(status, 200);
    assert!(page.contains("Ada Lovelace"), "{page}");
    assert_eq!(system.count(), 1);
}

#[test]
fn no_password_goes_to_a_login_system_with_a_wrong_certificate() {
    let api = Upstream::start();
    let (authority, other) = (Authority::new("CA"), Authority::new("other CA"));
    let expired = rcgen::KeyPair::generate().unwrap();
    let expired = authority.sign(&["localhost"], Good::ENDED, expired);
    let good = authority.server(&["localhost"]);
    for (identity, trusted, reason) in [
        (
            authority.server(&["elsewhere.test"]),
            Some(&authority),
            "not valid for name",
        ),
        (
            other.server(&["localhost"]),
            Some(&authority),
            "UnknownIssuer",
        ),
        (expired, Some(&authority), "expired"),
        // Without login.ca the system's authorities are trusted.
        (good, None, "UnknownIssuer"),
    ] {
        let system = system(&identity);
        let builder = asking(&api, &system, trusted);
        let checked = builder.run(&["check"], "");
        assert_eq!(checked.code(), Some(1), "{checked:?}");
        let url = format!("login.url: {}/check: ", system.url());
        let mut lines = checked.stderr.lines();
        assert!(
            lines.any(|line| line.contains(&url) && line.contains(reason)),
            "{reason}: {checked:?}"
        );
        let proxy = builder.start();
        let (status, page) = log_in(&proxy);
        assert_eq!(status, 503);
        assert!(!page.contains("certificate"), "{page}");
        proxy.logs(&["login.url", reason]);
        assert_eq!(system.count(), 0);
    }
}
