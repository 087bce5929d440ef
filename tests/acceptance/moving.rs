//! Moving between stores: what one exports, another takes in, and callers do not notice.

use crate::support::{Call, Postgres, Proxy, Upstream, proxy::Builder};

/// A new store of each kind in turn.
fn stores(api: &Upstream, postgres: &Postgres) -> [(&'static str, Builder); 2] {
    let on = |backend: &str, url: &str| {
        Proxy::in_front_of(api).config(&format!(
            "store.backend = '{backend}'\nstore.url = '{url}'\nnonce.scope = 'local'"
        ))
    };
    [
        ("sqlite", on("sqlite", "moved.db")),
        ("postgres", on("postgres", &postgres.database())),
    ]
}

#[test]
fn tokens_verify_in_every_store_to_which_they_are_moved() {
    let (api, postgres) = (Upstream::start(), Postgres::start());
    for (from, builder) in stores(&api, &postgres) {
        let proxy = builder.start();
        let (consumer, user, token) = proxy.somebody();
        let revoked = proxy.token(&consumer, &user);
        proxy.command(&["token", "revoke", &revoked.token]).done();
        let call = || Call::get("/a").by(&consumer).with(&token);
        assert_eq!(proxy.send(call()).status, 200, "{from}");
        let file = proxy.directory().join("export");
        let file = file.to_str().unwrap();
        proxy.command(&["export", file]).done();
        let text = std::fs::read_to_string(file).unwrap();
        let head: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(head["records"], text.lines().count() - 1, "{from}");
        for (to, builder) in stores(&api, &postgres) {
            let imported = builder.run(&["import", file, "--json"], "").done().json();
            assert_eq!(imported["added"], head["records"], "{from} to {to}");
            let again = builder.run(&["import", "-", "--json"], &text).done().json();
            assert_eq!(again["unchanged"], head["records"], "{from} to {to}");
            let proxy = builder.start();
            assert_eq!(proxy.send(call()).status, 200, "{from} to {to}");
            let old = Call::get("/a").by(&consumer).with(&revoked);
            assert_eq!(proxy.send(old).status, 401, "{from} to {to}");
        }
    }
}
