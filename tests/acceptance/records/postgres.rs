//! The program on PostgreSQL: `serve` and the commands share a database.

use std::{thread::sleep, time::Duration};

use crate::support::{Call, Consumer, Postgres, Proxy, Upstream, proxy::Builder, until};

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
