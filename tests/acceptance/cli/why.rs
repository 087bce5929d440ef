//! `why`: the reasons of rejections, from the running process and from its log.
//!
//! Promise (Storage and operation): `why` gives the same reasons and advice from the running process and from its log.

use serde_json::Value;

use crate::support::{Call, Operator, Proxy, Upstream, free_port, has, now, operator::READ, until};

/// An address of the admin listener that a command finds in the configuration.
fn listen() -> String {
    format!("admin.listen = '127.0.0.1:{}'", free_port())
}

/// The reasons that `why --json` prints.
fn reasons(proxy: &Proxy, arguments: &[&str], input: &str) -> Vec<Value> {
    let arguments = [&["why"], arguments, &["--json"]].concat();
    let printed = proxy.command_with(&arguments, input).done().stdout;
    let lines = printed.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn running_process_and_its_log_give_the_same_reasons_and_advice() {
    for format in ["text", "json"] {
        let api = Upstream::start();
        let builder = Proxy::in_front_of(&api).with_console().config(&listen());
        let proxy = builder.config(&format!("log.format = '{format}'")).start();
        let caller = proxy.somebody();
        let (key, other) = (&*caller.consumer.key, proxy.consumer("other"));
        let unsigned = || Call::get("/x?a=1").of(&caller).signs_target("/x");
        for _ in 0..2 {
            proxy.rejects(unsigned(), 401, "signature_invalid");
        }
        let used = Call::get("/x").of(&caller).parameter("oauth_nonce", "n");
        let used = used.parameter("oauth_timestamp", &now().to_string());
        proxy.send(used.clone()).has_status(200);
        proxy.rejects(used, 401, "nonce_used");
        proxy.rejects(Call::get("/x").by(&other), 401, "token_rejected");
        until("all are counted", || reasons(&proxy, &[key], "").len() == 2);
        let asked = reasons(&proxy, &[key], "");
        let log = proxy.log().lines().join("\n");
        let mut read = reasons(&proxy, &[key, "-"], &log);
        // What the log does not have: the time at which the response ended may be that of the line or a second before.
        let timeless = |reasons: &[Value]| {
            let mut reasons = reasons.to_vec();
            for reason in &mut reasons {
                for name in ["first", "last"] {
                    assert!(reason[name].take().is_string());
                }
                reason["newest"]["time"].take();
                // The record has it, not the log.
                let contact = reason.as_object_mut().unwrap().remove("contact");
                assert_eq!(contact.unwrap_or_default(), Value::Null);
            }
            reasons
        };
        assert_eq!(timeless(&read), timeless(&asked), "{format}");
        let first = read.remove(0);
        assert_eq!(first["reason"], "query_unsigned");
        assert_eq!(
            (&first["count"], &first["proof"]["secrets"]),
            (&2.into(), &2.into())
        );
        proxy.run(&format!("consumer update {key} --contact ops@shop.example"));
        let text = proxy.command(&["why", key]).done().stdout;
        let advice = first["advice"].as_str().unwrap();
        has(
            &text,
            &[
                "2 calls: Query not signed (query_unsigned)",
                "GET unlisted, status 401",
                advice,
                "The contact of its developer: ops@shop.example",
            ],
        );
        assert!(!text.contains(&caller.consumer.secret), "{text}");
    }
}

#[test]
fn the_logs_of_replicas_may_be_read_one_after_the_other() {
    let proxy = Proxy::with(&Upstream::start(), "");
    let line = |second: u32, path: &str| {
        format!(
            "2026-01-31T12:00:0{second}.000000Z  INFO access: method=\"GET\" path=\"/x\" status=401 verdict=\"token_rejected\" \
             consumer=shop peer=192.0.2.{second} operation=\"GET {path}\" reason=\"token_rejected\" ms=1.0\n"
        )
    };
    let (one, two) = (
        [line(5, "/x"), line(6, "/last")],
        [line(1, "/first"), line(3, "/x")],
    );
    for logs in [[&one, &two], [&two, &one]] {
        let log = logs.map(|log| log.concat()).concat();
        let read = reasons(&proxy, &["shop", "-"], &log);
        assert_eq!(read.len(), 1, "{read:?}");
        let [first, last] = ["first", "last"].map(|name| read[0][name].as_str().unwrap());
        assert_eq!(
            [first, last],
            ["2026-01-31T12:00:01Z", "2026-01-31T12:00:06Z"]
        );
        assert_eq!(read[0]["newest"]["operation"], "GET /last");
        assert_eq!(read[0]["count"], 4);
    }
}

#[test]
fn what_cannot_be_known_is_said_with_the_way_to_know_it() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "");
    let fails = |arguments: &[&str], parts: &[&str]| {
        let ended = proxy.command(&[&["why"], arguments].concat());
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        has(&ended.stderr, parts);
    };
    fails(
        &["shop"],
        &["the admin API is off", "admin.token_file", "name the log"],
    );
    let log = proxy.directory().join("other.log");
    std::fs::write(&log, "nothing of ours\n").unwrap();
    let log = log.to_str().unwrap();
    fails(
        &["shop", log],
        &[log, "no line of a request", "log.access = true"],
    );
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).with_console();
    let proxy = builder.config(&listen()).start();
    let fails = |key: &str, parts: &[&str]| {
        let ended = proxy.command(&["why", key]);
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        has(&ended.stderr, parts);
        assert!(!ended.stderr.contains(READ), "{ended:?}");
    };
    fails(
        "absent",
        &["no consumer has the key absent", "consumer list"],
    );
    let shop = proxy.consumer("shop");
    let ended = proxy.command(&["why", &shop.key]).done();
    has(
        &ended.stdout,
        &[
            "No call that names",
            "since this process started",
            "countersign why KEY LOG",
        ],
    );
    // A call names a key that no consumer has.
    let made_up = crate::support::Consumer::new("made-up", "secret");
    proxy.rejects(Call::get("/x").by(&made_up), 401, "consumer_key_unknown");
    until("it is counted", || {
        proxy
            .command(&["why", "made-up"])
            .stdout
            .contains("1 call: ")
    });
    drop(Operator::at(&proxy));
    std::fs::write(proxy.directory().join("read.token"), "x".repeat(40)).unwrap();
    fails("nobody", &["does not accept the token", "reload it"]);
}
