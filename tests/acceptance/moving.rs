//! Moving between stores: what one exports, another takes in, and callers do not notice.

use std::{process::Stdio, time::Duration};

use crate::support::{
    Call, Postgres, Proxy, RedisServer, Upstream, program, proxy::Builder, within,
};

/// A new store of each kind in turn.
fn stores<'a>(
    api: &'a Upstream,
    postgres: &'a Postgres,
    redis: &'a mut Vec<RedisServer>,
) -> Vec<(&'static str, Builder)> {
    redis.push(RedisServer::start());
    let on = |backend: &str, url: &str| {
        Proxy::in_front_of(api).config(&format!(
            "store.backend = '{backend}'\nstore.url = '{url}'\nnonce.scope = 'local'"
        ))
    };
    vec![
        ("sqlite", on("sqlite", "moved.db")),
        ("postgres", on("postgres", &postgres.database())),
        ("redis", on("redis", &redis.last().unwrap().url())),
    ]
}

#[test]
fn tokens_verify_in_every_store_to_which_they_are_moved() {
    let (api, postgres, mut redis) = (Upstream::start(), Postgres::start(), Vec::new());
    for (from, builder) in stores(&api, &postgres, &mut redis) {
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
        for (to, builder) in stores(&api, &postgres, &mut redis) {
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

#[test]
fn an_import_into_redis_that_was_killed_is_reported_until_it_is_completed() {
    let (api, redis) = (Upstream::start(), RedisServer::start());
    let url = redis.url();
    let builder = Proxy::in_front_of(&api).config(&format!(
        "store.backend = 'redis'\nstore.url = '{url}'\nnonce.scope = 'local'"
    ));
    let consumers = 20_000;
    let lines = (0..consumers).map(|number| format!("key{number},secret,name"));
    let text = ["key,secret,name".to_owned()].into_iter().chain(lines);
    let file = builder.directory().join("consumers.csv");
    std::fs::write(&file, text.collect::<Vec<_>>().join("\n")).unwrap();
    // This writes the configuration too.
    builder.run(&["check"], "").done();
    let import = ["import", "--json", "--csv", file.to_str().unwrap()];
    let mut killed = program::program()
        .args(import)
        .arg("--config")
        .arg(builder.config_path())
        .current_dir(builder.directory())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    within(Duration::from_secs(60), "a part is there", || {
        let here = redis.ask(&["zcard", "cs:1:{store}:consumers"]);
        here.parse::<u32>().ok().filter(|&here| here > 0)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let here: u32 = redis
        .ask(&["zcard", "cs:1:{store}:consumers"])
        .parse()
        .unwrap();
    assert!(here < consumers, "it was killed in the middle");

    let reported = "an import of 20000 records that began at ";
    let check = builder.run(&["check"], "").done();
    assert!(check.stderr.contains(reported), "{check:?}");
    let proxy = builder.start();
    let log = proxy.log().lines();
    let is_told = |line: &String| line.contains(" WARN ") && line.contains(reported);
    assert!(log.iter().any(is_told), "{log:#?}");
    let other = "key,secret,name\nother,secret,name\n";
    let other = proxy.command_with(&["import", "--csv", "-"], other).done();
    assert!(other.stderr.contains(reported), "{other:?}");
    let done = proxy.command(&import).done();
    assert!(!done.stderr.contains(reported), "{done:?}");
    assert_eq!(done.json()["unchanged"], here);
    assert_eq!(done.json()["added"], consumers - here);
    let check = proxy.command(&["check"]).done();
    assert!(!check.stderr.contains(reported), "{check:?}");
}
