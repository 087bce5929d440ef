//! Memory that unauthenticated callers make the process use, measured from outside: forms and queries that are small on the wire
//! and large once they are read, in front of an API that never answers.

use std::{fmt::Write as _, time::Duration};

use crate::support::{Call, Connection, Proxy, Reply, Upstream, within};

/// The bound on memory: `limits.form_memory` by default is 64 MiB, of which one address gets a quarter. The rest is for
/// the connections, for each of which hyper reads up to 64 KiB ahead and buffers as much back (8 MiB for sixty), for
/// the forms that workers are reading, and for the memory that the allocator keeps, which depends on how busy the
/// machine is. Without any limit sixty of these forms take 300 MiB and more.
const BOUND_MIB: u64 = 64 + 8 + 40;

fn resident_mib(proxy: &Proxy) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib / 1024
}

/// A proxy in front of an API that reads everything and answers nothing, with an operation that is open to everybody.
fn in_front_of_silence() -> (Upstream, Proxy) {
    let api = Upstream::replying(|_| Reply::silence());
    let proxy = Proxy::with(
        &api,
        "listen.workers = 2\noperation = [{ path = '/open', access = ['anonymous'] }]",
    );
    (api, proxy)
}

/// Sends this many copies of a request and returns the growth of the process once its size is stable.
fn growth_mib(proxy: &Proxy, requests: usize, request: &[u8]) -> u64 {
    let before = resident_mib(proxy);
    let held: Vec<Connection> = (0..requests)
        .map(|_| {
            let mut connection = proxy.connect();
            // It may be refused and closed before all of it is sent.
            drop(connection.try_send(request));
            connection
        })
        .collect();
    let (mut last, mut equal) = (0, 0);
    let after = within(Duration::from_secs(60), "it stays as it is", || {
        let now = resident_mib(proxy);
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
        (equal == 100).then_some(now)
    });
    drop(held);
    after.saturating_sub(before)
}

fn form(proxy: &Proxy, body: &str) -> Vec<u8> {
    let head = format!(
        "POST /open HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        proxy.host(),
        body.len()
    );
    (head + body).into_bytes()
}

#[test]
fn sixty_forms_of_a_mebibyte_stay_within_the_memory_for_forms() {
    const MIB: usize = 1 << 20;
    let mut many_and_long = String::new();
    for number in 0..2_000 {
        let _ = write!(many_and_long, "{number}={}&", "@".repeat(510));
    }
    many_and_long.truncate(MIB);
    for (name, body) in [
        ("many fields", "a&".repeat(MIB / 2)),
        // Each byte becomes five once it is encoded twice.
        ("a value that grows", format!("a={}", "+".repeat(MIB - 2))),
        ("as many as allowed that grow", many_and_long),
        (
            "a credential that grows",
            format!("oauth_token={}", "+".repeat(MIB - 12)),
        ),
    ] {
        let (_api, proxy) = in_front_of_silence();
        let growth = growth_mib(&proxy, 60, &form(&proxy, &body));
        assert!(growth < BOUND_MIB, "{name}: {growth} MiB more");
    }
}

/// The parameters of query and header are kept in memory while a body is waited for.
#[test]
fn queries_of_requests_with_missing_forms_count_as_form_memory() {
    let (_api, proxy) = in_front_of_silence();
    let request = format!(
        "POST /open?{} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\na",
        "a&".repeat(8_000),
        proxy.host()
    );
    let growth = growth_mib(&proxy, 600, request.as_bytes());
    assert!(growth < BOUND_MIB, "{growth} MiB more");
}

/// The operator's logo over HTTP/1.1, to callers that do not read it.
#[test]
fn unread_logo_is_not_copied_for_each_caller() {
    let builder = Proxy::in_front_of(&Upstream::start());
    let logo = builder.directory().join("logo.svg");
    let picture = format!(
        "<svg xmlns='http://www.w3.org/2000/svg'>{}</svg>",
        " ".repeat(250_000)
    );
    std::fs::write(&logo, picture).unwrap();
    let proxy = builder
        .config(&format!("pages.logo = '{}'", logo.display()))
        .start();
    let login = proxy.send(Call::get("/service.oauth?mode=login").header("Accept", "text/html"));
    let page = login.has_status(200).text();
    let (_, rest) = page.split_once(&proxy.origin()).unwrap();
    let (path, _) = rest.split_once('"').unwrap();
    // Pipelined, so that the system's buffers are full long before the last one.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.host());
    let growth = growth_mib(&proxy, 100, request.repeat(40).as_bytes());
    assert!(growth < 24, "{growth} MiB more");
}
