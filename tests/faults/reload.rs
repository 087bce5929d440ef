//! SIGHUP: everything changes and nobody notices.

use rustix::process::Signal;

use crate::{
    load::{Load, Target},
    scaled,
    support::{Call, Connection, PATIENCE, Proxy, Upstream, Visitor, within},
};

/// A public address that outlives a restart on another port.
const FIXED: &str = "service.base_url = 'https://api.test'\nlog.access = false\ncache.ttl = '1h'";

/// How often the log says so.
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
fn under_load_no_request_is_lost_and_nothing_is_forgotten() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api)
        .config(FIXED)
        .config("[[operation]]\npath = '/account'\naccess = ['user']\n[operations]\nunlisted = 'consumer'")
        .start();
    let (consumer, user, token) = proxy.somebody();
    // What the commands changed is dropped from the cache a little later; after a new start nothing has changed.
    assert!(proxy.stop().success());
    proxy.start();
    let target = Target::of(&proxy, &consumer, &token);
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
        visitor.log_in(&page, &user);
        visitor.cookies
    };
    let cached = misses(&proxy);

    let load = Load::begin(&target, 64);
    let mut kept = proxy.connect();
    for round in 0..scaled(10, 100) {
        load.goes_on_for(20);
        let (reloaded, refused) = (
            told(&proxy, "configuration_reloaded"),
            told(&proxy, "the configuration stays as it was"),
        );
        if round % 5 == 4 {
            // Broken in another way each time; the file as it is written has more than one line.
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
            within(PATIENCE, "the broken file is refused", || {
                (told(&proxy, "the configuration stays as it was") > refused).then_some(())
            });
            let line = proxy.log().lines().into_iter().rev();
            let line = line
                .filter(|line| line.contains("the configuration stays as it was"))
                .find(|line| line.contains("config.toml") && line.contains(named));
            let line = line.unwrap_or_else(|| panic!("a line that names the file and {named}"));
            assert!(line.contains("ERROR"), "{line}");
            assert_eq!(told(&proxy, "configuration_reloaded"), reloaded);
        } else {
            // Something to see: the idle time of the connections, and who may call what.
            let access = if round % 2 == 0 { "nobody" } else { "consumer" };
            proxy.reconfigure(&format!(
                "[limits]\nidle_timeout = '{}s'\n[[operation]]\npath = '/account'\naccess = ['user']\n\
                 [[operation]]\npath = '/changing'\naccess = ['{}']",
                60 + round,
                if access == "nobody" { "user" } else { "consumer" }
            ));
            proxy.signal(Signal::HUP);
            within(PATIENCE, "the new file is taken up", || {
                (told(&proxy, "configuration_reloaded") > reloaded).then_some(())
            });
            // A connection from before the first reload lives under the newest.
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
