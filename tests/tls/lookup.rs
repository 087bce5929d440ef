//! TLS to the application of `store.lookup.url`: the secret is sent only to the right one, which may demand a certificate of
//! ours.

use super::upstream::server;
use crate::support::{
    Application, Call, Consumer, Proxy, Upstream,
    application::consumer_record,
    authority::{Authority, Good, Identity},
    proxy::Builder,
};

fn application(identity: &Identity, peers: &Authority) -> Application {
    let config = server(identity, Some(peers));
    Application::over([consumer_record("shop", "secret")], move |answer| {
        Upstream::replying_over_tls(config, answer)
    })
}

/// A proxy that trusts `authority`, and has a certificate of `own`.
fn asking(application: &Application, authority: &Authority, own: &Authority) -> Builder {
    let builder = Proxy::in_front_of(&Upstream::start());
    let ca = authority.write(builder.directory(), "shop");
    let (certificate, key) = own.peer(Good::NOW).write(builder.directory(), "own");
    application.looked_up_by(builder.config(&format!(
        "operations.unlisted = 'application'\nstore.lookup.ca = '{}'\nstore.lookup.certificate = '{}'\n\
         store.lookup.private_key = '{}'",
        ca.display(),
        certificate.display(),
        key.display()
    )))
}

#[test]
fn an_application_is_asked_with_certificates_of_either_side() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let application = application(&authority.server(&["localhost"]), &authority);
    let mut builder = asking(&application, &authority, &authority);
    builder.set("upstream.api_url", api.url().into());
    let proxy = builder.start();
    proxy.passes(Call::get("/a").by(&Consumer::new("shop", "secret")));
    assert_eq!(application.asked_for("shop"), 1);
}

#[test]
fn no_secret_goes_to_an_application_with_a_wrong_certificate() {
    let (authority, other) = (Authority::new("CA"), Authority::new("other CA"));
    for (identity, own, reason) in [
        (
            authority.server(&["elsewhere.test"]),
            &authority,
            "not valid for name",
        ),
        (other.server(&["localhost"]), &authority, "UnknownIssuer"),
        (authority.server(&["localhost"]), &other, ""),
    ] {
        let application = application(&identity, &authority);
        let builder = asking(&application, &authority, own);
        let checked = builder.run(&["check"], "");
        assert!(
            checked.stderr.contains("store.lookup.url: ") && checked.stderr.contains(reason),
            "{reason}: {checked:?}"
        );
        let proxy = builder.start();
        let call = Call::get("/a").by(&Consumer::new("shop", "secret"));
        proxy.send(call).has_status(503);
        assert_eq!(application.http().count(), 0, "{reason}");
    }
}
