//! Two processes on one Redis: what one changes the other knows, and an outage gives 503, never 401.

use std::time::{Duration, Instant};

use crate::support::{Answer, Call, Proxy, RedisServer, Upstream, proxy::Builder, within};

fn on(api: &Upstream, redis: &RedisServer) -> Builder {
    let mut builder = Proxy::in_front_of(api).config(
        "service.base_url = 'https://api.test'\nstore.backend = 'redis'\nnonce.scope = 'local'\n\
         nonce.on_lost = 'accept'",
    );
    builder.set("store.url", redis.url().into());
    builder
}

fn durable() -> RedisServer {
    RedisServer::with(&[&["--appendonly", "yes"], &["--appendfsync", "always"]])
}

/// How many lines of the log have this text.
fn logged(proxy: &Proxy, text: &str) -> usize {
    let lines = proxy.log().lines();
    lines.iter().filter(|line| line.contains(text)).count()
}

#[track_caller]
fn is_unavailable(answer: &Answer) {
    answer.has_status(503);
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
}

#[test]
fn what_one_process_changes_the_other_knows_within_a_second() {
    let (api, redis) = (Upstream::start(), durable());
    let proxies = [on(&api, &redis).start(), on(&api, &redis).start()];
    let (consumer, user, token) = proxies[0].somebody();
    let asks = |proxy: &Proxy| proxy.send(Call::get("/x").by(&consumer).with(&token));
    for proxy in &proxies {
        asks(proxy).has_status(200);
    }
    proxies[1]
        .command(&["token", "revoke", &token.token])
        .done();
    let since = Instant::now();
    for proxy in &proxies {
        within(Duration::from_secs(1), "the token is revoked", || {
            (asks(proxy).problem().as_deref() == Some("token_revoked")).then_some(())
        });
    }
    assert!(since.elapsed() < Duration::from_secs(1));
    let seen = api.count();
    let again = proxies[1].token(&consumer, &user);
    proxies[0]
        .send(Call::get("/x").by(&consumer).with(&again))
        .has_status(200);
    assert_eq!(api.count(), seen + 1);
}

#[test]
fn an_outage_gives_503_at_once_and_ends_with_the_engines_return() {
    let (api, mut redis) = (Upstream::start(), durable());
    let proxy = on(&api, &redis).start();
    let (consumer, user, cached) = proxy.somebody();
    let tokens: Vec<_> = (0..6).map(|_| proxy.token(&consumer, &user)).collect();
    let with = |token| proxy.send(Call::get("/x").by(&consumer).with(token));
    with(&cached).has_status(200);
    for (number, kills) in [(0, false), (1, true)] {
        if kills {
            redis.kill();
        } else {
            redis.hang();
        }
        for place in 0..2 {
            let start = Instant::now();
            is_unavailable(&with(&tokens[3 * number + place]));
            assert!(start.elapsed() < Duration::from_secs(1), "answered in time");
        }
        // What is cached is served on, for its nonce is recorded here.
        with(&cached).has_status(200);
        within(Duration::from_secs(2), "/readyz says so", || {
            (proxy.ask_admin("/readyz").status == 503).then_some(())
        });
        // Long enough for many attempts to reach Redis, and for every task to fail.
        std::thread::sleep(Duration::from_secs(2));
        if kills {
            redis.start_again();
        } else {
            redis.go_on();
        }
        within(Duration::from_secs(2), "the store answers again", || {
            (with(&tokens[3 * number + 2]).status == 200).then_some(())
        });
        assert_eq!(logged(&proxy, "the store cannot be reached"), number + 1);
        within(Duration::from_secs(1), "the end is logged", || {
            (logged(&proxy, "the store can be reached again") == number + 1).then_some(())
        });
    }
    proxy.ask_admin("/readyz").has_status(200);
}

#[test]
fn commands_name_what_is_wrong_with_the_store_and_change_nothing() {
    let (api, redis) = (Upstream::start(), RedisServer::start());
    let builder = on(&api, &redis);
    let checked = builder.run(&["check"], "");
    assert_eq!(checked.code(), Some(0), "{checked:?}");
    assert!(checked.stdout.contains("no store in it yet"), "{checked:?}");
    assert_eq!(redis.ask(&["dbsize"]), "0");

    builder
        .run(&["consumer", "add", "--name", "Shop"], "")
        .done();
    let checked = builder.run(&["check"], "").done();
    assert!(checked.stderr.contains("appendonly"), "{checked:?}");

    redis.ask(&["hset", "cs:{store}", "schema", "99"]);
    let before = redis.content();
    for command in [
        &["consumer", "add", "--name", "Other"][..],
        &["consumer", "list"],
        &["check"],
    ] {
        let ended = builder.run(command, "");
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        assert!(ended.stderr.contains("schema 99"), "{ended:?}");
    }
    let ended = builder.serve_fails();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("schema 99"), "{ended:?}");
    assert_eq!(redis.content(), before);

    let url = redis.url();
    drop(redis);
    let ended = builder.run(&["consumer", "list"], "");
    assert_eq!(ended.code(), Some(1));
    let place = url.strip_prefix("redis://").unwrap();
    assert!(ended.stderr.contains(place), "{ended:?}");
}
