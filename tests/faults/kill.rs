//! `kill -9`: acknowledged results stay valid.
//!
//! Promise (Storage and operation): Acknowledged changes survive `kill -9` and a full disk; a crash leaves no core dump. Also
//! in `tests/faults/disk.rs`.

use std::{
    collections::HashSet,
    os::unix::process::ExitStatusExt as _,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::Scope,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};

use crate::{
    faults::{load::Target, scaled},
    support::{
        Answer, Call, Connection, Proxy, Token, Upstream, Visitor, fresh,
        http::try_open,
        legs::{asks, authorization, exchanges, query_value, token_of},
        until,
    },
};

/// A public address that outlives a restart on another port.
const FIXED: &str = "service.base_url = 'https://api.test'\nlog.access = false";

const CALLBACK: &str = "https://shop.test/back";

/// The results that a caller got an answer for.
#[derive(Default)]
struct Acknowledged {
    requests: Vec<(String, Vec<u8>)>,
    request_tokens: Vec<Token>,
    access_tokens: Vec<Token>,
}

/// Sends a request on a connection of its own; `None`: no complete answer came.
fn tries(target: &Target, method: &str, wire: &[u8]) -> Option<Answer> {
    let mut connection = Connection::over(try_open(target.address).ok()?);
    connection.try_send(wire).ok()?;
    connection.try_answer(method).ok()?
}

/// Repeats a step until it fails or the time is over.
fn repeat<'scope>(
    scope: &'scope Scope<'scope, '_>,
    over: &'scope AtomicBool,
    mut step: impl FnMut() -> bool + Send + 'scope,
) {
    scope.spawn(move || while !over.load(Ordering::SeqCst) && step() {});
}

/// It would contain keys, secrets and passwords.
#[test]
fn a_crash_leaves_no_core_dump() {
    let mut proxy = Proxy::in_front_of(&Upstream::start()).start();
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(Some(proxy.pid()), Resource::Core, unlimited).unwrap();
    proxy.signal(Signal::ABORT);
    assert!(!proxy.wait().core_dumped());
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/countersign.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    assert!(unit.lines().any(|line| line == "LimitCORE=0"), "{unit}");
}

#[track_caller]
fn no_order_came_twice(api: &Upstream) {
    let mut seen = HashSet::new();
    for request in api.requests() {
        if request.target.starts_with("/pay") {
            assert!(seen.insert(request.target.clone()), "twice: {request:?}");
        }
    }
}

/// An unpredictable number.
fn random() -> usize {
    let hash = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    usize::try_from(hash % 1_000_000).unwrap()
}

#[test]
fn a_kill_at_random_loses_no_token_and_admits_no_request_twice() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, FIXED);
    let callbacks = format!("--callback {CALLBACK} --callback oob");
    let (consumer, user) = (proxy.consumer_with("Shop", &callbacks), proxy.user("alice"));
    let token = proxy.token(&consumer, &user);
    let mut slowest = Duration::ZERO;
    let mut all = Acknowledged::default();
    for _ in 0..scaled(3, 20) {
        let target = Target::of(&proxy, &consumer, &token);
        // The user has agreed to some, so that they can be exchanged when the process is killed.
        let agreed: Vec<(Token, String)> = {
            let mut visitor = Visitor::to(&proxy);
            let mut first = true;
            (0..scaled(20, 40))
                .map(|_| {
                    let token = proxy.request_token(&consumer, CALLBACK);
                    let mut page = visitor.open(&authorization(&token));
                    if std::mem::take(&mut first) {
                        page = visitor.log_in(&page, &user);
                    }
                    let redirect = visitor.decide(&page, "allow").redirect();
                    (token, query_value(&redirect, "oauth_verifier").unwrap())
                })
                .collect()
        };
        let acknowledged = Mutex::new(Acknowledged::default());
        let (count, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let pending = Mutex::new(agreed.iter());
        std::thread::scope(|scope| {
            let (acknowledged, count, over, target) = (&acknowledged, &count, &over, &target);
            let pending = &pending;
            let (proxy_ref, consumer) = (&proxy, &consumer);
            // The wires of token calls are signed for the public origin, like all others.
            let wire = move |call: &Call| proxy_ref.wire(call);
            for number in 0..8 {
                repeat(scope, over, move || {
                    let order = format!("/pay?order={}", fresh("o"));
                    let call = if number % 2 == 0 {
                        Call::get(&order)
                    } else {
                        Call::post(&order).json("{\"amount\": 1}")
                    };
                    let (method, wire) = target.wire(call);
                    let Some(answer) = tries(target, &method, &wire) else {
                        return false;
                    };
                    answer.has_status(200);
                    acknowledged.lock().unwrap().requests.push((method, wire));
                    count.fetch_add(1, Ordering::SeqCst);
                    true
                });
            }
            for _ in 0..2 {
                repeat(scope, over, move || {
                    let wire = wire(&asks(consumer, "oob"));
                    let Some(answer) = tries(target, "POST", &wire) else {
                        return false;
                    };
                    let mut all = acknowledged.lock().unwrap();
                    all.request_tokens.push(token_of(&answer));
                    all.requests.push(("POST".to_owned(), wire));
                    true
                });
                repeat(scope, over, move || {
                    let Some((token, verifier)) = pending.lock().unwrap().next() else {
                        return false;
                    };
                    let wire = wire(&exchanges(consumer, token, verifier));
                    let Some(answer) = tries(target, "POST", &wire) else {
                        return false;
                    };
                    let mut all = acknowledged.lock().unwrap();
                    all.access_tokens.push(token_of(&answer));
                    all.requests.push(("POST".to_owned(), wire));
                    true
                });
            }
            // At a random moment among the requests, in whatever state the callers are.
            let enough = 20 + random() % 200;
            until("requests are served", || {
                count.load(Ordering::SeqCst) >= enough
            });
            kill_process(proxy_ref.pid(), Signal::KILL).unwrap();
            over.store(true, Ordering::SeqCst);
        });
        proxy.kill();
        let one = acknowledged.into_inner().unwrap();
        let begun = Instant::now();
        proxy.start();
        slowest = slowest.max(begun.elapsed());

        let target = Target::of(&proxy, &consumer, &token);
        for (method, wire) in &one.requests {
            let answer = tries(&target, method, wire).expect("an answer");
            answer.has_status(401);
        }
        no_order_came_twice(&api);
        for token in &one.access_tokens {
            proxy.passes(Call::get("/x").by(&consumer).with(token));
        }
        for token in &one.request_tokens {
            // Known, and not decided yet.
            proxy.rejects(exchanges(&consumer, token, "0"), 401, "permission_unknown");
        }
        // An unacknowledged exchange took place or did not: each is exchanged once at most.
        for (token, verifier) in &agreed {
            let answer = proxy.send(exchanges(&consumer, token, verifier));
            assert!(
                answer.status == 200 || answer.problem().as_deref() == Some("token_used"),
                "{answer:?}"
            );
            proxy.rejects(exchanges(&consumer, token, verifier), 401, "token_used");
        }
        all.requests.extend(one.requests);
        all.request_tokens.extend(one.request_tokens);
        all.access_tokens.extend(one.access_tokens);
    }
    eprintln!(
        "kill -9: {} requests, {} request tokens and {} access tokens acknowledged; up again within {slowest:?}",
        all.requests.len(),
        all.request_tokens.len(),
        all.access_tokens.len()
    );
    // Results acknowledged long ago stay valid as well.
    let target = Target::of(&proxy, &consumer, &token);
    for (method, wire) in &all.requests {
        tries(&target, method, wire)
            .expect("an answer")
            .has_status(401);
    }
    no_order_came_twice(&api);
    for token in &all.access_tokens {
        proxy.passes(Call::get("/x").by(&consumer).with(token));
    }
}
