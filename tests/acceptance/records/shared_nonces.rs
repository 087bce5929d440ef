//! Several processes on one store: no request passes twice, whichever process gets it.
//!
//! Promise (Permissions and identity): An outage of the store causes 503, never 401; no credential outlives
//! `cache.stale_if_error`. Also in `src/records/credentials/tests`, `tests/acceptance/records/postgres.rs`,
//! `tests/store_contract/postgres.rs`.
//! Promise (Permissions and identity): With shared nonces, exactly one of several identical requests to all replicas passes,
//! also after a failover. Also in `tests/store_contract/shared_nonces.rs`, `tests/store_contract/redis.rs`.
//! Promise (Permissions and identity): While an engine is out of space or shared nonces are lost, requests get 503, and
//! `/readyz` names the cause. Also in `tests/faults/disk.rs`, `src/records/nonce/windows.rs`.

use std::ops::RangeInclusive;

use super::postgres::{hang_beside_a_cache, outages_are_logged};
use crate::support::{
    Call, Caller, Postgres, Proxy, RedisServer, Upstream, has,
    legs::{APPLICATIONS, LOGIN, PASSWORD, REVOKE_TOKEN, authorization, exchanges, token_of},
    now,
    proxy::race,
    until,
    visitor::Visitor,
};

/// Two processes with one public origin in front of one API.
struct Replicas {
    api: Upstream,
    proxies: [Proxy; 2],
    caller: Caller,
}

impl Replicas {
    fn on(server: &Postgres) -> Self {
        Self::with(&in_postgres(server))
    }

    /// The store in PostgreSQL, and the nonces in a Redis.
    fn beside(server: &Postgres, redis: &RedisServer) -> Self {
        Self::with(&beside(server, redis))
    }

    fn with(store: &str) -> Self {
        let api = Upstream::start();
        let start = || {
            Proxy::with(
                &api,
                &format!(
                    "{store}\ncache.stale_if_error = '60s'\n\
                     service.base_url = 'http://api.test'\nservice.allow_http = true"
                ),
            )
        };
        let proxies = [start(), start()];
        let caller = proxies[0].somebody();
        let replicas = Self {
            api,
            proxies,
            caller,
        };
        // Both have cached the credentials, so that only nonces need the server during an outage.
        replicas.serve_again();
        replicas
    }

    fn call(&self) -> Call {
        Call::get("/pay?amount=1").of(&self.caller)
    }

    /// Every request is 503, and none reaches the API.
    fn are_unavailable(&self) {
        let before = self.api.count();
        for attempt in 0..3 {
            for proxy in &self.proxies {
                let response = proxy.send(self.call());
                assert_eq!(response.status, 503, "{attempt}: {response:?}");
                assert!(response.header("Retry-After").is_some());
            }
        }
        assert_eq!(self.api.count(), before);
    }

    /// The response says when the window is whole again: the window's length and a minute, for clocks that differ,
    /// after the second in which the loss was noticed.
    #[track_caller]
    fn wait_for_the_window(&self, proxy: &Proxy, noticed: RangeInclusive<u64>) {
        until("the response names the wait", || {
            let asked = now();
            let response = proxy.send(self.call());
            response.has_status(503);
            let wait: u64 = response.header("Retry-After").unwrap().parse().unwrap();
            let (first, last) = (noticed.start() + 361, noticed.end() + 361);
            (first - now()..=last - asked).contains(&wait)
        });
    }

    fn serve_again(&self) {
        until("requests pass again", || {
            let pass = |proxy: &Proxy| proxy.send(self.call()).status == 200;
            self.proxies.iter().all(pass)
        });
    }

    fn logged_outages(&self, at_least: usize) {
        for proxy in &self.proxies {
            outages_are_logged(proxy, at_least);
        }
    }
}

fn in_postgres(server: &Postgres) -> String {
    let url = server.database();
    format!("store.backend = 'postgres'\nstore.url = '{url}'")
}

fn beside(server: &Postgres, redis: &RedisServer) -> String {
    format!("{}\nnonce.url = '{}'", in_postgres(server), redis.url())
}

#[test]
fn nonces_in_redis_and_records_in_postgresql_fail_independently() {
    let server = Postgres::start();
    let redis = RedisServer::with(&[&["--appendonly", "yes"], &["--appendfsync", "always"]]);
    let replicas = Replicas::beside(&server, &redis);
    one_of_a_hundred_passes(&replicas);
    // A command sees the nonces that one replica has recorded.
    let proxy = &replicas.proxies[0];
    let request = String::from_utf8(proxy.wire(&replicas.call())).unwrap();
    let explain = || proxy.command_with(&["explain", "--request", "-"], &request);
    assert!(explain().stdout.contains("not used yet"), "{:?}", explain());
    let mut connection = replicas.proxies[1].connect();
    connection.send(request.as_bytes());
    connection.answer("GET").has_status(200);
    assert!(explain().stdout.contains("nonce_used: "), "{:?}", explain());

    redis.hang();
    replicas.are_unavailable();
    let ready = replicas.proxies[0].ask_admin("/readyz");
    ready.has_status(503);
    let cause = "redis of nonce.url cannot be reached since 20";
    assert!(ready.text().contains(cause), "{ready:?}");
    redis.go_on();
    replicas.serve_again();
    replicas.logged_outages(1);

    let user = replicas.proxies[0].user("someone");
    let unknown = replicas.proxies[0].token(&replicas.caller.consumer, &user);
    server.stop();
    // Cached credentials stay in use, and each request still passes once.
    one_of_a_hundred_passes(&replicas);
    let call = || Call::get("/").by(&replicas.caller.consumer).with(&unknown);
    for proxy in &replicas.proxies {
        let response = proxy.send(call());
        response.has_status(503);
        assert!(response.header("Retry-After").is_some());
    }
    let ready = replicas.proxies[1].ask_admin("/readyz");
    let cause = "postgres cannot be reached since 20";
    assert!(ready.text().contains(cause), "{ready:?}");
    server.start_again();
    until("the store is asked again", || {
        let pass = |proxy: &Proxy| proxy.send(call()).status == 200;
        replicas.proxies.iter().all(pass)
    });
    replicas.logged_outages(2);
}

#[test]
fn a_long_ttl_does_not_prolong_use_while_postgresql_hangs() {
    let server = Postgres::start();
    let redis = RedisServer::with(&[&["--appendonly", "yes"], &["--appendfsync", "always"]]);
    let api = Upstream::start();
    let config = beside(&server, &redis) + "\ncache.ttl = '1h'\ncache.stale_if_error = '2s'";
    let proxy = Proxy::with(&api, &config);
    let caller = proxy.somebody();
    let call = || proxy.send(Call::get("/").of(&caller));
    hang_beside_a_cache(&server, || call().status == 200);
    until("the token is no longer used", || call().status == 503);
    server.go_on();
    until("the token is used again", || call().status == 200);
}

#[test]
fn emptied_redis_for_nonces_is_503_until_the_window_has_passed() {
    let server = Postgres::start();
    let mut redis = RedisServer::start();
    let mut replicas = Replicas::beside(&server, &redis);
    let begun = now();
    redis.kill();
    redis.start_again();
    let before = replicas.api.count();
    for proxy in &replicas.proxies {
        until("the loss is noticed", || {
            proxy.send(replicas.call()).has_status(503);
            lost_lines(proxy) == 1
        });
        let ready = proxy.ask_admin("/readyz");
        assert!(ready.text().contains("nonces may be lost"), "{ready:?}");
        replicas.wait_for_the_window(proxy, begun..=now());
        assert_eq!(lost_lines(proxy), 1);
    }
    assert_eq!(replicas.api.count(), before);
    let check = replicas.proxies[0].command(&["check"]);
    has(
        &check.stderr,
        &["nonce.url: Redis has appendonly no: a restart loses used nonces"],
    );
    // An operator who knows that nothing can be replayed need not wait.
    let call = replicas.call();
    let [first, _] = &mut replicas.proxies;
    first.reconfigure("nonce.on_lost = 'accept'");
    first.signal(rustix::process::Signal::HUP);
    until("a reload waives the wait", || {
        let ready = first.ask_admin("/readyz").status == 200;
        first.send(call.clone()).status == 200 && ready
    });
}

/// One of several identical requests at both replicas passes. A nonce that was not recorded in time is 503: such a race
/// shows only that no two pass, and is repeated.
fn one_of_a_hundred_passes(replicas: &Replicas) {
    let mut whole = 0;
    until("five races without an outage", || {
        let before = replicas.api.count();
        let wire = replicas.proxies[0].wire(&replicas.call());
        let request = |number: usize| (&replicas.proxies[number % 2], wire.clone());
        let responses = race((0..100).map(request).collect());
        let with = |status| {
            responses
                .iter()
                .filter(move |response| response.status == status)
        };
        let passed = with(200).count();
        assert!(with(401).all(|response| response.problem().as_deref() == Some("nonce_used")));
        assert_eq!(passed + with(401).count() + with(503).count(), 100);
        assert_eq!(replicas.api.count(), before + passed);
        assert!(passed <= 1, "{passed}");
        if with(503).count() == 0 {
            assert_eq!(passed, 1);
            whole += 1;
        }
        whole == 5
    });
}

#[test]
fn requests_get_503_unforwarded_while_postgresql_hangs() {
    let server = Postgres::start();
    let replicas = Replicas::on(&server);
    one_of_a_hundred_passes(&replicas);
    server.hang();
    replicas.are_unavailable();
    let ready = replicas.proxies[0].ask_admin("/readyz");
    ready.has_status(503);
    has(&ready.text(), &["postgres cannot be reached since 20"]);
    server.go_on();
    replicas.serve_again();
    replicas.logged_outages(1);
}

#[test]
fn promoted_standby_is_503_until_lost_nonces_left_the_window() {
    let server = Postgres::start();
    let replicas = Replicas::on(&server);
    let begun = now();
    server.fail_over();
    let before = replicas.api.count();
    until("the failover is noticed", || {
        for proxy in &replicas.proxies {
            proxy.send(replicas.call()).has_status(503);
        }
        let mut proxies = replicas.proxies.iter();
        proxies.all(|proxy| lost_lines(proxy) == 1)
    });
    // The server is up again, and still nothing passes.
    let noticed = begun..=now();
    for proxy in &replicas.proxies {
        // A call that was under way when the server failed may report once more that it is unreachable.
        until("the window is known to be lost", || {
            let ready = proxy.ask_admin("/readyz");
            ready.has_status(503);
            let lost = "nonces may be lost: signed requests get 503 until 20";
            ready.text().contains(lost)
        });
        replicas.wait_for_the_window(proxy, noticed.clone());
        assert_eq!(lost_lines(proxy), 1);
    }
    assert_eq!(replicas.api.count(), before);
}

/// Lines at the level of errors that say that nonces may be lost.
fn lost_lines(proxy: &Proxy) -> usize {
    proxy.logged(&[" ERROR ", "nonces may be lost"])
}

/// Each step of the flow is answered by the other process: neither keeps state that the other needs.
fn flow_from_one_to_the_other(replicas: &Replicas) {
    let [one, other] = &replicas.proxies;
    let user = one.user("ada");
    let consumer = other.consumer("wanders");
    let request_token = one.request_token(&consumer, "oob");
    let mut visitor = Visitor::to(other);
    let login = visitor.open(&authorization(&request_token));
    visitor.moves_to(one);
    let consent = visitor.log_in(&login, &user);
    visitor.moves_to(other);
    let page = visitor.decide(&consent, "allow");
    let verifier = page.element("verifier").expect("a verifier");
    let token = token_of(&one.served(exchanges(&consumer, &request_token, &verifier)));
    let call = || Call::get("/mine").by(&consumer).with(&token);
    other.passes(call());
    one.passes(call());
    other.rejects(
        exchanges(&consumer, &request_token, &verifier),
        401,
        "token_used",
    );
    // Both share the session, and a token revoked at one is revoked at the other.
    visitor.moves_to(one);
    let applications = visitor.open(APPLICATIONS);
    applications.answer.has_status(200);
    one.passes(Call::post(REVOKE_TOKEN).by(&consumer).with(&token));
    until("the other knows it", || other.send(call()).status == 401);
}

#[test]
fn each_step_of_a_flow_may_be_at_another_process() {
    flow_from_one_to_the_other(&Replicas::on(&Postgres::start()));
}

/// A password that is changed at one process ends the other sessions at both.
fn a_new_password_counts_at_both_processes(replicas: &Replicas) {
    let [one, other] = &replicas.proxies;
    let user = one.user("eve");
    let mut browsers = [one, other].map(|proxy| {
        let mut visitor = Visitor::to(proxy);
        let page = visitor.open(LOGIN);
        visitor.log_in(&page, &user).answer.has_status(200);
        visitor
    });
    let [changing, elsewhere] = &mut browsers;
    let page = changing.open(PASSWORD);
    let filled = page
        .form_with("new_password")
        .set("current_password", &user.password)
        .set("new_password", "another one")
        .set("new_password_again", "another one");
    changing.submit(&page, &filled).answer.has_status(200);
    // At once: no process caches sessions.
    for proxy in [other, one] {
        for (visitor, is_open) in [(&mut *changing, true), (&mut *elsewhere, false)] {
            visitor.moves_to(proxy);
            let page = visitor.open(APPLICATIONS).answer;
            page.has_status(200);
            assert_eq!(page.text().contains("mode=logout"), is_open, "{page:?}");
        }
    }
}

#[test]
fn changed_password_ends_sessions_of_every_process() {
    a_new_password_counts_at_both_processes(&Replicas::on(&Postgres::start()));
}

/// Two processes allow as many wrong passwords together as one does alone.
fn password_guesses_count_at_both_processes(store: &str) {
    let replicas = Replicas::with(&format!("{store}\nlogin.max_failures = '4 per 15m'"));
    let [one, other] = &replicas.proxies;
    let (ada, bob) = (one.user("ada"), one.user("bob"));
    let mut visitor = Visitor::to(one);
    let page = visitor.open(LOGIN);
    let form = |name: &str, password: &str| {
        let form = page.form_with("password").set("username", name);
        form.set("password", password)
    };
    for proxy in [one, other, one, other] {
        visitor.moves_to(proxy);
        let failed = visitor.submit(&page, &form(&ada.name, "wrong")).answer;
        assert_eq!(failed.status, 403, "{failed:?}");
    }
    for proxy in [one, other] {
        visitor.moves_to(proxy);
        // Before it responds to a form, a process reads the failures that the others reported.
        let failed = visitor.submit(&page, &form("nobody", "wrong")).answer;
        assert_eq!(failed.status, 403, "{failed:?}");
        let paused = visitor.submit(&page, &form(&ada.name, &ada.password));
        assert_eq!(paused.answer.status, 429, "{paused:?}");
        let wait = paused.answer.header("Retry-After").expect("a time to wait");
        assert!((1..=30).contains(&wait.parse::<u32>().unwrap()), "{wait}");
    }
    let entered = visitor.submit(&page, &form(&bob.name, &bob.password));
    assert!(entered.answer.status < 400, "{entered:?}");
}

#[test]
fn guesses_at_two_processes_are_throttled_as_at_one() {
    password_guesses_count_at_both_processes(&in_postgres(&Postgres::start()));
}
