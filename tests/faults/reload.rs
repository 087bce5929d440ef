//! SIGHUP: everything changes without an effect on callers.

use std::process::Stdio;

use rustix::process::Signal;

use crate::support::has;
use crate::{
    faults::{
        load::{Load, Target},
        scaled,
    },
    support::{
        Call, Connection, PATIENCE, Proxy, Scene, Upstream, Visitor,
        program::{Log, program},
        tls::Certificate,
        until, within,
    },
};

/// A public address that outlives a restart on another port.
const FIXED: &str = "service.base_url = 'https://api.test'\nlog.access = false\ncache.ttl = '1h'";

/// The number of such lines in the log.
fn told(proxy: &Proxy, what: &str) -> usize {
    let lines = proxy.log().lines();
    lines.iter().filter(|line| line.contains(what)).count()
}

fn misses(proxy: &Proxy) -> f64 {
    ["consumer", "access_token"]
        .iter()
        .map(|cache| {
            let labels = format!("cache=\"{cache}\",result=\"miss\"");
            proxy.metric(&format!("countersign_cache_requests_total{{{labels}}}"))
        })
        .sum()
}

#[test]
fn a_reload_under_load_loses_no_request_and_no_nonce() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api)
        .config(FIXED)
        .config("[[operation]]\npath = '/account'\naccess = ['user']\n[operations]\nunlisted = 'consumer'")
        .start();
    let caller = proxy.somebody();
    // The cached records that the commands changed are dropped a little later; after a new start nothing has changed.
    assert!(proxy.stop().success());
    proxy.start();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    // A nonce, a session and a cached credential from before.
    let (_, before) = target.wire(Call::get("/before"));
    let sends = |wire: &[u8]| {
        let mut connection = Connection::to(target.address);
        connection.send(wire);
        connection.answer("GET")
    };
    sends(&before).has_status(200);
    let cookies = {
        let mut visitor = Visitor::to(&proxy);
        let page = visitor.open("/service.oauth?mode=login");
        visitor.log_in(&page, &caller.user);
        visitor.cookies
    };
    let cached = misses(&proxy);

    let load = Load::begin(&target, 64);
    let mut kept = proxy.connect();
    for round in 0..scaled(10, 100) {
        load.goes_on_for(20);
        let (reloaded, refused) = (
            told(&proxy, "configuration_reloaded"),
            told(&proxy, "keeping the current configuration"),
        );
        if round % 5 == 4 {
            // Broken in another way each time; the written file has more than one line.
            let good = std::fs::read_to_string(proxy.directory().join("config.toml")).unwrap();
            let (broken, named) = match round / 5 % 3 {
                0 => (format!("{good}\n[limits\n"), "config.toml"),
                1 => (good.replace("unlisted", "unlistd"), "unlistd"),
                _ => (
                    good.replace("'user'", "'usr'")
                        .replace("\"user\"", "\"usr\""),
                    "usr",
                ),
            };
            assert_ne!(good, broken);
            std::fs::write(proxy.directory().join("config.toml"), broken).unwrap();
            proxy.signal(Signal::HUP);
            until("the broken file is refused", || {
                told(&proxy, "keeping the current configuration") > refused
            });
            let line = proxy.log().lines().into_iter().rev();
            let line = line
                .filter(|line| line.contains("keeping the current configuration"))
                .find(|line| line.contains("config.toml") && line.contains(named));
            let line = line.unwrap_or_else(|| panic!("a line that names the file and {named}"));
            assert!(line.contains("ERROR"), "{line}");
            assert_eq!(told(&proxy, "configuration_reloaded"), reloaded);
        } else {
            // Visible settings: the idle time of the connections, and the access to operations.
            let access = if round % 2 == 0 { "nobody" } else { "consumer" };
            proxy.reconfigure(&format!(
                "[limits]\nidle_timeout = '{}s'\n[[operation]]\npath = '/account'\naccess = ['user']\n\
                 [[operation]]\npath = '/changing'\naccess = ['{}']",
                60 + round,
                if access == "nobody" { "user" } else { "consumer" }
            ));
            proxy.signal(Signal::HUP);
            until("the new file is taken up", || {
                told(&proxy, "configuration_reloaded") > reloaded
            });
            // A connection from before the first reload still works under the newest configuration.
            let (method, wire) = target.wire(Call::get("/changing"));
            kept.send(&wire);
            let expected = if access == "nobody" { 404 } else { 200 };
            kept.answer(&method).has_status(expected);
        }
    }
    load.goes_on_for(100);
    let tally = load.end();
    assert_eq!(tally.failures, [""; 0]);
    assert_eq!(
        (tally.told_to_close, tally.found_closed),
        (0, 0),
        "no connection was dropped"
    );

    sends(&before).is(401, "nonce_used");
    let cookies: Vec<String> = cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let account = Call::get("/account")
        .header("Sec-Fetch-Site", "same-origin")
        .header("Cookie", &cookies.join("; "));
    proxy.send(account).has_status(200);
    assert_eq!(misses(&proxy), cached, "the cache stays as it was");
}

#[test]
fn reload_keeps_api_connections_unless_their_rules_change() {
    let certificate = Certificate::for_names(&["localhost"]);
    let over_tls = Upstream::over_tls(&certificate);
    for api in [Upstream::start(), over_tls] {
        let mut builder = Proxy::in_front_of(&api)
            .config("listen.workers = 1\nlog.access = false\noperations.unlisted = 'anonymous'");
        let (ca, _) = certificate.write(builder.directory());
        if api.url().starts_with("https") {
            builder = builder.config(&format!("upstream.tls.ca = '{}'", ca.display()));
        }
        let mut proxy = builder.start();
        let mut callers: Vec<Connection> = (0..4).map(|_| proxy.connect()).collect();
        let mut call = |proxy: &Proxy| {
            for number in 0..100 {
                let caller = &mut callers[number % 4];
                proxy.send_on(caller, Call::get("/x")).has_status(200);
            }
        };
        call(&proxy);
        // Another limit, and the same authority from a file that is written again.
        proxy.reload("limits.target_bytes = '8KiB'");
        certificate.write(proxy.directory());
        proxy.reload("limits.target_bytes = '9KiB'");
        call(&proxy);
        assert_eq!(api.connections(), 1);
        proxy.reload("upstream.max_idle = 7");
        call(&proxy);
        assert_eq!(api.connections(), 2);
    }
}

/// Reloads, and returns the audit record of it.
#[track_caller]
fn reload(proxy: &mut Proxy, text: &str) -> String {
    let records = |proxy: &Proxy| {
        let mut lines = proxy.log().lines();
        lines.retain(|line| line.contains("configuration_reloaded"));
        lines
    };
    let before = records(proxy).len();
    proxy.reconfigure(text);
    proxy.signal(Signal::HUP);
    within(PATIENCE, "the new file is taken up", || {
        records(proxy).into_iter().nth(before)
    })
}

#[test]
fn a_reload_names_settings_that_need_a_restart_each_time() {
    let (_api, mut proxy, caller) = Scene::with(FIXED).into_parts();
    let warnings = |proxy: &Proxy| told(proxy, "settings that changed but need a restart");
    // Twice: the running configuration still differs from the written one.
    for round in 1..=2 {
        let changed = "cache.ttl = '2h'\nlisten.workers = 3\nsignature.enforcement = 'observe'";
        let record = reload(&mut proxy, changed);
        for key in ["cache.ttl", "listen.workers"] {
            assert!(record.contains(key), "{record}");
        }
        assert!(!record.contains("signature"), "{record}");
        assert_eq!(warnings(&proxy), round);
    }
    // The settings that can change did change.
    proxy.passes(Call::get("/x").of(&caller).key("wrong"));
    let back = "cache.ttl = '1h'\nlisten.workers = 2\nsignature.enforcement = 'enforce'";
    let record = reload(&mut proxy, back);
    has(&record, &["not_applied=\"listen.workers\""]);
    // A wider window waits for its high-water mark, and the record says so.
    let record = reload(&mut proxy, "signature.timestamp_window = '1h'");
    has(&record, &["pending=\"signature.timestamp_window\""]);
    until("the wider window takes effect", || {
        told(&proxy, "takes effect") == 1
    });
    let record = reload(&mut proxy, "signature.timestamp_window = '10s'");
    assert!(!record.contains("pending"), "{record}");
    assert_eq!(told(&proxy, "takes effect"), 2);
}

#[test]
fn a_reload_does_not_switch_tls_on() {
    let (_api, mut proxy, caller) = Scene::start().into_parts();
    let made = Certificate::for_names(&["localhost"]);
    let (certificate, key) = made.write(proxy.directory());
    let record = reload(
        &mut proxy,
        &format!(
            "[listen.tls]\ncertificate = '{}'\nkey = '{}'",
            certificate.display(),
            key.display()
        ),
    );
    assert!(record.contains("listen.tls.certificate"), "{record}");
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
}

#[test]
fn a_reload_changes_the_limit_of_connections() {
    let (_api, mut proxy, caller) = Scene::with(FIXED).into_parts();
    let call = Call::get("/x").of(&caller);
    for limit in ["connections", "connections_per_address"] {
        proxy.send(call.clone()).has_status(200);
        reload(&mut proxy, &format!("limits.{limit} = 1"));
        until("earlier connections are gone", || {
            proxy.metric("countersign_connections") == 0.0
        });
        let mut first = proxy.connect();
        proxy.send_on(&mut first, call.clone()).has_status(200);
        proxy.connect().answer("GET").has_status(503);
        drop(first);
        reload(&mut proxy, &format!("limits.{limit} = 100"));
        let mut open = [proxy.connect(), proxy.connect(), proxy.connect()];
        for connection in &mut open {
            proxy.send_on(connection, call.clone()).has_status(200);
        }
    }
}

#[test]
fn a_reload_asked_for_during_the_start_waits_for_its_end() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, FIXED);
    assert!(proxy.stop().success());
    let files = std::fs::read_dir(proxy.directory()).unwrap().flatten();
    let store = files
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "db"));
    // Another program locks the store, so the start is slow.
    let held = rusqlite::Connection::open(store.unwrap()).unwrap();
    held.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut serve = program()
        .arg("serve")
        .arg("--config")
        .arg(proxy.directory().join("config.toml"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = Log::read_from(serve.stderr.take().unwrap());
    let pid = rustix::process::Pid::from_child(&serve);
    until("the nonce window is open", || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", serve.id())).unwrap();
        let mut open = open
            .flatten()
            .filter_map(|fd| std::fs::read_link(fd.path()).ok());
        open.any(|path| path.display().to_string().ends_with(".nonces"))
    });
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    held.execute_batch("ROLLBACK").unwrap();
    log.wait_for("the reload", |line| {
        line.contains("configuration_reloaded").then_some(())
    });
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(serve.wait().unwrap().success());
}

#[test]
fn a_consumer_at_its_limit_stays_there_unless_the_limit_changes() {
    let config = "limits.requests_per_consumer = '2 per 1h'";
    let (_api, mut proxy, caller) = Scene::with(config).into_parts();
    let calls = |proxy: &Proxy| proxy.send(Call::get("/x").of(&caller)).status;
    assert_eq!(
        [calls(&proxy), calls(&proxy), calls(&proxy)],
        [200, 200, 429]
    );
    proxy.reload("service.realm = 'another'");
    assert_eq!(calls(&proxy), 429);
    proxy.reload("limits.requests_per_consumer = '3 per 1h'");
    assert_eq!(calls(&proxy), 200);
}
