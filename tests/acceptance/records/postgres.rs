//! The program on PostgreSQL: `serve` and the commands share a database.
//!
//! Promise (Permissions and identity): With PostgreSQL, an outage causes 503 within a second, never 401, is logged once, and ends
//! within two seconds after the server returns. Also in `tests/store_contract/postgres.rs`.

use std::{thread::sleep, time::Duration};

use crate::support::{
    Call, Consumer, Postgres, Proxy, Token, Upstream, has, proxy::Builder, until,
};

fn on(server: &Postgres, api: &Upstream) -> Builder {
    let url = server.database();
    Proxy::in_front_of(api).config(&format!(
        "store.backend = 'postgres'\nstore.url = '{url}'\nnonce.scope = 'local'\n\
         cache.ttl = '1s'\ncache.stale_if_error = '60s'"
    ))
}

/// Hangs the server once everything that a call needs is cached: late reports of earlier commands may drop it.
#[track_caller]
pub(crate) fn hang_beside_a_cache(server: &Postgres, passes: impl Fn() -> bool) {
    until("what is cached is used while PostgreSQL hangs", || {
        until("the store answers", &passes);
        server.hang();
        passes() || {
            server.go_on();
            false
        }
    });
}

/// Each outage is logged at its beginning and its end. A busy machine may have more than those of the test.
#[track_caller]
pub(crate) fn outages_are_logged(proxy: &Proxy, at_least: usize) {
    until("each outage is logged and has ended", || {
        let ended = proxy.logged(&["the store can be reached again"]);
        ended >= at_least && proxy.logged(&[" ERROR ", "the store cannot be reached"]) == ended
    });
    assert_eq!(
        proxy.logged(&[" ERROR "]),
        proxy.logged(&["the store cannot be reached"])
    );
}

#[test]
fn an_outage_is_logged_once_and_never_taken_for_a_wrong_token() {
    let server = Postgres::start();
    let api = Upstream::start();
    let proxy = on(&server, &api).start();
    let caller = proxy.somebody();
    let other = proxy.token(&caller.consumer, &caller.user);
    let known = || Call::get("/a").of(&caller);
    let unknown = || Call::get("/a").by(&caller.consumer).with(&other);
    hang_beside_a_cache(&server, || proxy.send(known()).status == 200);
    let ended = proxy.logged(&["the store can be reached again"]);
    for _ in 0..3 {
        // Cached credentials stay in use; others are unavailable, and the response comes in time.
        assert_eq!(proxy.send(known()).status, 200);
        let response = proxy.send(unknown());
        assert_eq!(response.status, 503, "{response:?}");
        assert!(response.header("Retry-After").is_some());
        assert_eq!(proxy.ask_admin("/readyz").status, 503);
        sleep(Duration::from_millis(400));
    }
    until("the outage is logged once", || {
        proxy.logged(&[" ERROR "]) == ended + 1
    });
    assert_eq!(proxy.logged(&["the store can be reached again"]), ended);
    server.go_on();
    until("it is ready again", || proxy.is_ready());
    outages_are_logged(&proxy, 1);
}

/// Each looks up a key that is not known and waits for the store.
#[test]
fn calls_that_wait_for_the_store_take_no_place_of_others() {
    let server = Postgres::start();
    let api = Upstream::start();
    let proxy = on(&server, &api)
        .config("listen.workers = 2\nlimits.concurrent_requests = 16")
        .start();
    let caller = proxy.somebody();
    let known = || proxy.status(Call::get("/a").of(&caller));
    hang_beside_a_cache(&server, || known() == 200);
    for round in 0..3 {
        let unknown = |number| {
            let consumer = Consumer::new(format!("{round}-{number}"), "secret");
            let mut connection = proxy.connect();
            connection.send(&proxy.wire(&Call::get("/a").by(&consumer)));
            connection
        };
        let waiting = Vec::from_iter((0..40).map(unknown));
        let statuses = [(); 8].map(|()| known());
        assert_eq!(statuses, [200; 8], "{round}");
        drop(waiting);
    }
    server.go_on();
}

#[test]
fn keys_and_tokens_of_an_existing_system_verify_without_an_import() {
    let server = Postgres::start();
    let api = Upstream::start();
    let url = server.database();
    server.sql(
        "test0",
        "CREATE TABLE clients (client_key text, secret text);
         INSERT INTO clients VALUES ('shop', 'shop secret');
         CREATE TABLE tokens (token text, secret text, client_key text, uid int, revoked boolean);
         INSERT INTO tokens VALUES ('first', 'one', 'shop', 7, false), ('second', 'two', 'shop', 8, false);
         CREATE ROLE reader LOGIN; GRANT SELECT ON clients, tokens TO reader",
    );
    let text = |role: &str, tokens: &str| {
        let lookup = url.replace("postgres@", &format!("{role}@"));
        format!(
            "store.backend = 'postgres'\nstore.url = '{url}'\nnonce.scope = 'local'\ncache.ttl = '1s'\n\
             cache.negative_ttl = '0s'\nstore.lookup.url = '{lookup}'\n\
             store.lookup.consumer_sql = \"SELECT client_key AS key, secret, NULL AS name, '{{read}}'::text[] AS \
             permissions, true AS enabled FROM clients WHERE client_key = $1\"\n\
             store.lookup.token_sql = \"\"\"\nSELECT token, secret, client_key AS consumer, uid AS user_id,\n\
             'read' AS permissions, NULL::bigint AS expires_at, revoked FROM {tokens} WHERE token = $1\"\"\""
        )
    };
    for (role, tokens, expected) in [
        ("reader", "nowhere", "store.lookup.token_sql: "),
        ("postgres", "tokens", "store.lookup.url: "),
    ] {
        let wrong = Proxy::in_front_of(&api).config(&text(role, tokens));
        for ended in [wrong.serve_fails(), wrong.run(&["check"], "")] {
            assert_eq!(ended.code(), Some(1), "{ended:?}");
            has(&ended.stderr, &[expected]);
        }
    }
    let proxy = Proxy::with(&api, &text("reader", "tokens"));
    let consumer = Consumer::new("shop", "shop secret");
    let token = |token: &str, secret: &str| Token::new(token, secret);
    let call = |token: &Token| proxy.served(Call::get("/a").by(&consumer).with(token));
    let (first, second) = (token("first", "one"), token("second", "two"));
    for (token, user) in [(&first, "7"), (&second, "8")] {
        call(token).has_status(200);
        assert_eq!(api.last_request().header("X-Auth-User"), Some(user));
    }
    call(&token("first", "two")).is(401, "signature_invalid");
    call(&token("third", "one")).is(401, "token_rejected");
    // Revoked by a command here, and by the other system there.
    proxy.run("token revoke first");
    until("the revocation takes effect", || {
        call(&first).problem().as_deref() == Some("token_revoked")
    });
    call(&second).has_status(200);
    server.sql(
        "test0",
        "UPDATE tokens SET revoked = true WHERE token = 'second'",
    );
    until("the other system's word counts", || {
        call(&second).problem().as_deref() == Some("token_revoked")
    });
    // Its secret is gone: nobody signs with an empty one.
    server.sql("test0", "UPDATE clients SET secret = ''");
    let nobody = Consumer::new("shop", "");
    let empty = token("second", "two");
    until("an empty secret is none", || {
        let response = proxy.send(Call::get("/a").by(&nobody).with(&empty));
        response.status == 401 && proxy.logged(&["the secret is empty"]) > 0
    });
    // A key that was removed here is not taken from there again.
    server.sql("test0", "UPDATE clients SET secret = 'shop secret'");
    proxy.run("consumer add --name Shop --key shop");
    let removed = proxy.run("consumer remove shop --yes");
    has(
        &removed.stderr,
        &["unknown from now on", "store.lookup.consumer_sql"],
    );
    until("the key is unknown", || {
        let response = proxy.send(Call::get("/a").by(&consumer).with(&second));
        response.status == 401 && response.problem().as_deref() != Some("token_revoked")
    });
}

#[test]
fn while_the_existing_system_is_down_its_credentials_get_503_and_others_are_served() {
    let server = Postgres::start();
    let api = Upstream::start();
    let url = server.database();
    server.sql(
        "test0",
        "CREATE TABLE clients (client_key text, secret text);
         INSERT INTO clients VALUES ('shop', 'shop secret')",
    );
    // SQLite has no schema of ours in that database.
    let proxy = Proxy::with(
        &api,
        &format!(
            "cache.ttl = '0s'\ncache.negative_ttl = '0s'\ncache.stale_if_error = '0s'\n\
             operations.unlisted = 'application'\nstore.lookup.url = '{url}'\n\
             store.lookup.consumer_sql = \"SELECT client_key AS key, secret, NULL AS name, NULL AS permissions, \
             true AS enabled FROM clients WHERE client_key = $1\""
        ),
    );
    let (shop, own) = (Consumer::new("shop", "shop secret"), proxy.consumer("Own"));
    let call = |consumer: &Consumer| proxy.send(Call::get("/a").by(consumer));
    call(&shop).has_status(200);
    call(&own).has_status(200);
    let degraded = || {
        let ready = proxy.ask_admin("/readyz");
        assert_eq!(ready.status, 200, "{ready:?}");
        ready.text().contains("degraded: lookup since ")
    };
    assert!(!degraded());
    server.stop();
    until("it is known to be down", || {
        let response = call(&shop);
        response.status == 503 && response.header("Retry-After").is_some()
    });
    call(&own).has_status(200);
    until("the outage is reported", degraded);
    assert_eq!(proxy.metric("countersign_degraded{cause=\"lookup\"}"), 1.0);
    server.start_again();
    until("it is served again", || call(&shop).status == 200);
    until("the end is reported", || !degraded());
    outages_are_logged(&proxy, 1);
}
