//! Attacks on the lookup of records in an application: made-up keys, a slow or hostile application, and a race of revocation and
//! use.
//!
//! Promise (Permissions and identity): Invented keys and tokens flood neither the cache nor the application of
//! `store.lookup.url`. Also in `src/records/credentials/tests/mod.rs`.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    Application, Call, Consumer, Operator, Postgres, Proxy, Reply, Token, Upstream,
    application::{consumer_record, looked_up_at, token_record},
};

/// An application that counts the requests that run at once.
#[derive(Default)]
struct Load {
    running: AtomicUsize,
    most: AtomicUsize,
    all: AtomicUsize,
}

impl Load {
    /// Runs one request for `pause`.
    fn run(&self, pause: Duration) {
        let running = self.running.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(running, SeqCst);
        self.all.fetch_add(1, SeqCst);
        thread::sleep(pause);
        self.running.fetch_sub(1, SeqCst);
    }
}

/// An application that takes `pause` for each answer, and has the consumer `shop` with the token `t`.
fn slow(load: &Arc<Load>, pause: Duration) -> Upstream {
    let load = Arc::clone(load);
    Upstream::replying(move |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        load.run(pause);
        match (asked["consumer_key"].as_str(), asked["token"].as_str()) {
            (Some("shop"), None) => Reply::ok(consumer_record("shop", "secret").to_string()),
            (Some("shop"), Some("t")) => {
                Reply::ok(token_record("t", "ts", "shop", "7").to_string())
            }
            _ => Reply::status("404 Not Found"),
        }
    })
}

fn shop() -> (Consumer, Token) {
    (Consumer::new("shop", "secret"), Token::new("t", "ts"))
}

#[test]
fn made_up_keys_do_not_flood_the_application() {
    let load = Arc::<Load>::default();
    let (api, http) = (Upstream::start(), slow(&load, Duration::from_millis(5)));
    let builder = Proxy::in_front_of(&api).config("cache.ttl = '1s'\ncache.negative_ttl = '1h'");
    let url = format!("{}/internal/oauth", http.url());
    let proxy = looked_up_at(&url, builder).start();
    let (shop, token) = shop();
    let known = || proxy.send(Call::get("/a").by(&shop).with(&token)).status;
    assert_eq!(known(), 200);
    let (before, ends) = (load.all.load(SeqCst), AtomicBool::new(false));
    let served = thread::scope(|scope| {
        // Those whose records are in use do not notice.
        let in_use = scope.spawn(|| {
            let mut served = 0;
            while !ends.load(SeqCst) {
                assert_eq!(known(), 200);
                served += 1;
            }
            served
        });
        // Each of 32 attackers makes up 20 names of consumers and 20 of tokens, and repeats each of them.
        let attackers = Vec::from_iter((0..32).map(|attacker| {
            let (proxy, shop) = (&proxy, &shop);
            scope.spawn(move || {
                for number in 0..40 {
                    let name = format!("made-up-{attacker}-{number}");
                    let call = match number % 2 {
                        0 => Call::get("/a")
                            .by(&Consumer::new(name, "s"))
                            .with(&Token::new("t", "s")),
                        _ => Call::get("/a").by(shop).with(&Token::new(name, "s")),
                    };
                    for _ in 0..5 {
                        assert_eq!(proxy.send(call.clone()).status, 401);
                    }
                }
            })
        }));
        for attacker in attackers {
            attacker.join().unwrap();
        }
        ends.store(true, SeqCst);
        in_use.join().unwrap()
    });
    assert!(served > 0);
    // 6,400 calls: one request for each name, and a few that refresh the two records in use.
    let asked = load.all.load(SeqCst) - before;
    assert!((1_280..2 * 1_280).contains(&asked), "{asked}");
    let most = load.most.load(SeqCst);
    println!(
        "6,400 calls of attackers: {asked} requests, {most} at once; {served} calls of others meanwhile"
    );
    assert!(most <= 16, "{most} at once");
}

#[test]
fn callers_who_hang_up_leave_as_few_requests_as_others() {
    let load = Arc::<Load>::default();
    let (api, http) = (Upstream::start(), slow(&load, Duration::from_millis(300)));
    let builder = Proxy::in_front_of(&api).config("store.lookup.timeout = '2s'");
    let url = format!("{}/internal/oauth", http.url());
    let proxy = looked_up_at(&url, builder).start();
    for number in 0..200 {
        let consumer = Consumer::new(format!("made-up-{number}"), "s");
        let mut connection = proxy.connect();
        connection.send(&proxy.wire(&Call::get("/a").by(&consumer)));
        // Sent and gone.
        drop(connection);
    }
    let (shop, token) = shop();
    crate::support::until("a record of its own is read", || {
        proxy.send(Call::get("/a").by(&shop).with(&token)).status == 200
    });
    let most = load.most.load(SeqCst);
    assert!(most <= 16, "{most} at once");
}

#[test]
fn a_slow_application_delays_neither_local_nor_cached_records() {
    let load = Arc::<Load>::default();
    let slowness = Arc::new(Mutex::new(Duration::ZERO));
    let pause = Arc::clone(&slowness);
    let loaded = Arc::clone(&load);
    let http = Upstream::replying(move |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let pause = *pause.lock().unwrap();
        loaded.run(pause);
        match asked["consumer_key"] == "shop" && asked.get("token").is_none() {
            true => Reply::ok(consumer_record("shop", "secret").to_string()),
            false => Reply::status("404 Not Found"),
        }
    });
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config(
        "operations.unlisted = 'application'\ncache.ttl = '1h'\nstore.lookup.timeout = '500ms'",
    );
    let url = format!("{}/internal/oauth", http.url());
    let proxy = looked_up_at(&url, builder).start();
    let (own, shop) = (proxy.consumer("Own"), shop().0);
    let call = |consumer: &Consumer| proxy.send(Call::get("/a").by(consumer)).status;
    assert_eq!((call(&own), call(&shop)), (200, 200));
    *slowness.lock().unwrap() = Duration::from_secs(3);
    thread::scope(|scope| {
        let call = &call;
        let attackers = Vec::from_iter((0..24).map(|number| {
            scope.spawn(move || call(&Consumer::new(format!("made-up-{number}"), "s")))
        }));
        // Neither waits for the application: none of these would end before the attackers' calls.
        for _ in 0..20 {
            assert_eq!((call(&own), call(&shop)), (200, 200));
        }
        for attacker in attackers {
            assert_eq!(attacker.join().unwrap(), 503);
        }
    });
    *slowness.lock().unwrap() = Duration::ZERO;
}

#[test]
fn a_hostile_application_leads_nowhere_and_takes_no_memory() {
    let elsewhere = Upstream::start();
    let application = Application::with([consumer_record("shop", "secret")]);
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config(
        "cache.negative_ttl = '0s'\nstore.lookup.timeout = '2s'\noperations.unlisted = 'application'",
    );
    let proxy = application.looked_up_by(builder).start();
    let memory = || proxy.metric("process_resident_memory_bytes");
    let call = || proxy.send(Call::get("/a").by(&shop().0)).status;
    let huge = "x".repeat(32 << 20);
    let head = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(1 << 20));
    let before = memory();
    for reply in [
        Reply::status("307 Temporary Redirect").header("Location", elsewhere.url()),
        Reply::status("200 OK").header("Location", elsewhere.url()),
        Reply::ok(&huge),
        Reply::status("200 OK").chunked(&[&huge]),
        Reply::ok("").until_close(&huge),
        Reply::raw(head),
        Reply::ok(format!("{}1{}", "[".repeat(30_000), "]".repeat(30_000))),
        Reply::ok(json!({ "key": "shop", "secret": "\u{0}" , "enabled": "yes" }).to_string()),
        Reply::raw(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        ),
    ] {
        application.replies(reply);
        assert_eq!(call(), 503);
    }
    assert_eq!(elsewhere.count(), 0, "redirects are not followed");
    assert!(
        memory() - before < f64::from(16 << 20),
        "{} after {before}",
        memory()
    );
    application.replies(None);
    assert_eq!(call(), 200);
}

#[test]
fn no_call_passes_once_a_revocation_has_arrived() {
    let (api, server) = (Upstream::start(), Postgres::start());
    let application = Application::with([consumer_record("shop", "secret")]);
    let url = server.database();
    let replica = || {
        let builder = Proxy::in_front_of(&api).config(&format!(
            "store.backend = 'postgres'\nstore.url = '{url}'\ncache.ttl = '1h'\n\
             admin.token_file = 'admin.token'"
        ));
        let token = "shop:the-token-that-reports-012345678 lookup";
        std::fs::write(builder.directory().join("admin.token"), token).unwrap();
        application.looked_up_by(builder).start()
    };
    let replicas = [replica(), replica()];
    for round in 0..5 {
        let name = format!("t{round}");
        application.put(token_record(&name, "ts", "shop", "7"));
        let (consumer, token) = (shop().0, Token::new(&*name, "ts"));
        let (ends, passed) = (AtomicBool::new(false), AtomicUsize::new(0));
        let last = Mutex::new(Instant::now());
        let arrived = thread::scope(|scope| {
            for proxy in replicas.iter().chain(&replicas) {
                let (consumer, token, ends, passed, last) =
                    (&consumer, &token, &ends, &passed, &last);
                scope.spawn(move || {
                    while !ends.load(SeqCst) {
                        let response = proxy.send(Call::get("/a").by(consumer).with(token));
                        if response.status == 200 {
                            passed.fetch_add(1, SeqCst);
                            let mut last = last.lock().unwrap();
                            *last = (*last).max(Instant::now());
                        } else {
                            assert_eq!(response.status, 401, "{response:?}");
                        }
                    }
                });
            }
            crate::support::until("calls pass", || passed.load(SeqCst) > 20);
            application.remove(&name);
            let call = Call::post("/v1/lookup/forget")
                .json(&json!({ "token": name }).to_string())
                .header("Authorization", "Bearer the-token-that-reports-012345678");
            Operator::at(&replicas[round % 2])
                .send(call)
                .has_status(204);
            let arrived = Instant::now();
            // No call passes for as long as several reads of the feed take.
            crate::support::until("no call passes", || {
                last.lock().unwrap().elapsed() > Duration::from_millis(600)
            });
            ends.store(true, SeqCst);
            arrived
        });
        let late = last.lock().unwrap().saturating_duration_since(arrived);
        println!("round {round}: the last call passed {late:?} after the report");
        for proxy in &replicas {
            let call = Call::get("/a").by(&consumer).with(&token);
            assert_eq!(proxy.send(call).status, 401);
        }
    }
}
