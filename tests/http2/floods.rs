//! Callers that flood the connection with frames (RFC 9113 section 10.5): each is ended at little cost.

use std::time::Duration;

use crate::{
    http2::client::{
        CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, End, HEADERS, PING,
        PRIORITY, PROTOCOL_ERROR, RST_STREAM, Raw, SETTINGS, WINDOW_UPDATE, block, frame, head,
    },
    support::{Call, PATIENCE, Proxy, Reply, Upstream, until, within},
};

fn signed_head(proxy: &Proxy) -> Vec<u8> {
    head(proxy, "GET", "/x", &[])
}

fn ends_calmly(proxy: &Proxy, what: &str, next: impl FnMut() -> Vec<u8>) {
    let end = Raw::to(proxy.address()).flood(PATIENCE, next);
    // A reset of the connection may overtake the GOAWAY while the flood still comes.
    assert!(
        [End::GoAway(ENHANCE_YOUR_CALM), End::Closed].contains(&end),
        "{what}: {end:?}"
    );
    proxy.send(Call::get("/")).has_status(401);
}

#[test]
fn floods_of_frames_that_ask_for_nothing_end_the_connection() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let open = frame(HEADERS, END_HEADERS, 1, &signed_head(&proxy));
    let many = |frame: Vec<u8>| move || frame.repeat(50);
    ends_calmly(
        &proxy,
        "PING, CVE-2019-9512",
        many(frame(PING, 0, 0, &[7; 8])),
    );
    ends_calmly(
        &proxy,
        "PING acknowledged",
        many(frame(PING, 1, 0, &[7; 8])),
    );
    ends_calmly(
        &proxy,
        "SETTINGS, CVE-2019-9515",
        many(frame(SETTINGS, 0, 0, &[])),
    );
    ends_calmly(
        &proxy,
        "SETTINGS of a size, CVE-2019-9515",
        many(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255])),
    );
    ends_calmly(
        &proxy,
        "PRIORITY, CVE-2019-9513",
        many(frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 16])),
    );
    ends_calmly(
        &proxy,
        "WINDOW_UPDATE by one",
        many(frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
    );
    ends_calmly(&proxy, "an unknown type", many(frame(0xee, 0, 0, &[])));
    let mut first = Some(open);
    ends_calmly(&proxy, "empty DATA, CVE-2019-9518", move || {
        let mut bytes = first.take().unwrap_or_default();
        bytes.extend(frame(DATA, 0, 1, &[]).repeat(50));
        bytes
    });
    api.saw_nothing();
}

#[test]
fn requests_broken_off_at_once_end_the_connection() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let head = signed_head(&proxy);
    let mut stream = 1;
    ends_calmly(&proxy, "rapid reset, CVE-2023-44487", || {
        let mut bytes = Vec::new();
        for _ in 0..20 {
            bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &head));
            bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
            stream += 2;
        }
        bytes
    });
    // Resets that a caller provokes from the server (CVE-2025-8671): a window update of zero is an error of the stream.
    let mut stream = 1;
    let end = Raw::to(proxy.address()).flood(PATIENCE, || {
        let mut bytes = Vec::new();
        for _ in 0..20 {
            bytes.extend(frame(HEADERS, END_HEADERS, stream, &head));
            bytes.extend(frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 0]));
            stream += 2;
        }
        bytes
    });
    assert!(
        [
            End::GoAway(ENHANCE_YOUR_CALM),
            End::GoAway(PROTOCOL_ERROR),
            End::Closed
        ]
        .contains(&end),
        "MadeYouReset, CVE-2025-8671: {end:?}"
    );
    proxy.send(Call::get("/")).has_status(401);
    api.saw_nothing();
}

#[test]
fn header_blocks_without_end_end_the_connection() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let mut first = Some(frame(HEADERS, 0, 1, &signed_head(&proxy)));
    ends_calmly(&proxy, "CONTINUATION, CVE-2024-27316", move || {
        let mut bytes = first.take().unwrap_or_default();
        bytes.extend(frame(CONTINUATION, 0, 1, &block(&[("x-y", "1")])).repeat(20));
        bytes
    });
    let mut first = Some(frame(HEADERS, 0, 1, &signed_head(&proxy)));
    ends_calmly(&proxy, "empty CONTINUATION, CVE-2019-9518", move || {
        let mut bytes = first.take().unwrap_or_default();
        bytes.extend(frame(CONTINUATION, 0, 1, &[]).repeat(20));
        bytes
    });
    api.saw_nothing();
}

#[test]
fn a_header_block_that_unpacks_into_a_large_one_is_rejected() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    // A field of 4,000 bytes put into the table once (RFC 7541 section 6.2.1), then named 10,000 times by one byte each.
    let mut bomb = signed_head(&proxy);
    bomb.push(0x40);
    let field = block(&[("x-bomb", &"b".repeat(4_000))]);
    bomb.extend(&field[1..]);
    bomb.extend([0x80 | 62; 10_000]);
    let before = resident(&proxy);
    for _ in 0..20 {
        let mut raw = Raw::to(proxy.address());
        raw.frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb)
            .unwrap();
        // CVE-2016-6581: the head is over its bound long before it is unpacked.
        assert!(
            matches!(raw.end(), End::GoAway(code) if code != 0),
            "it is too much"
        );
    }
    let grown = resident(&proxy).saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
    api.saw_nothing();
}

#[test]
fn a_flood_of_streams_waits_for_its_turn() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "[limits]\nhttp2_streams = 5\nform_timeout = '60s'");
    let head = head(
        &proxy,
        "POST",
        "/x",
        &[
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "10"),
            ("authorization", "OAuth oauth_consumer_key=\"x\""),
        ],
    );
    let mut raw = Raw::to(proxy.address());
    let settings = raw.next_of(SETTINGS);
    assert!(
        settings
            .payload
            .chunks(6)
            .any(|setting| setting == [0, 3, 0, 0, 0, 5]),
        "SETTINGS_MAX_CONCURRENT_STREAMS is told: {settings:?}"
    );
    for stream in 0..6 {
        raw.frame(HEADERS, END_HEADERS, stream * 2 + 1, &head)
            .unwrap();
    }
    let reset = raw.next_of(RST_STREAM);
    assert_eq!(reset.stream, 11, "REFUSED_STREAM, RFC 9113 5.1.2");
    assert_eq!(reset.payload, [0, 0, 0, 7]);
}

/// CVE-2019-9517: responses of the API that are requested and not read. Each keeps its request under way until it is read,
/// and one address takes at most half as many anonymous calls as are left of three quarters.
#[test]
fn unread_responses_of_the_api_count_as_running_requests() {
    let api = Upstream::replying(|_| Reply::ok("seen"));
    let proxy = Proxy::with(
        &api,
        "limits = { body_timeout = '10m', concurrent_requests = 40 }\n\
        operation = [{ path = '/open', access = ['anonymous'] }]",
    );
    let mut raw = window_of(0, &proxy);
    let head = head(&proxy, "GET", "/open", &[]);
    for stream in 0..40 {
        raw.frame(HEADERS, END_HEADERS | END_STREAM, stream * 2 + 1, &head)
            .unwrap();
    }
    for _ in 0..40 {
        raw.next_of(HEADERS);
    }
    for _ in 0..5 {
        proxy.send(Call::get("/")).has_status(401);
    }
    assert_eq!(
        proxy.send(Call::get("/open")).status,
        503,
        "of the same address"
    );
    // A caller that reads them later gets them whole.
    raw.frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 64, 0]).unwrap();
    let answers = (0..40).map(|_| raw.next_of(DATA).payload);
    assert_eq!(answers.filter(|answer| answer == b"seen").count(), 10);
    until("they are no longer running", || {
        proxy.send(Call::get("/open")).status == 200
    });
}

/// A caller whose window for each response has this many bytes.
fn window_of(bytes: u32, proxy: &Proxy) -> Raw {
    let mut raw = Raw::to(proxy.address());
    let setting = [[0, 4].as_slice(), &bytes.to_be_bytes()].concat();
    raw.frame(SETTINGS, 0, 0, &setting).unwrap();
    // The window of the connection is as large as possible.
    let more = (0x7fff_ffff - 0xffff_u32).to_be_bytes();
    raw.frame(WINDOW_UPDATE, 0, 0, &more).unwrap();
    raw
}

/// Lets connections ask for `path` 6,000 times, and read nothing; returns the growth of the process in bytes.
fn growth_by_untaken(proxy: &Proxy, connections: u32, window: u32, path: &str) -> u64 {
    let head = head(proxy, "GET", path, &[("accept", "text/html")]);
    let before = resident(proxy);
    let held: Vec<Raw> = (0..connections)
        .map(|_| {
            let mut raw = window_of(window, proxy);
            let all: Vec<u8> = (0..6_000 / connections)
                .flat_map(|n| frame(HEADERS, END_HEADERS | END_STREAM, n * 2 + 1, &head))
                .collect();
            raw.bytes(&all).unwrap();
            raw
        })
        .collect();
    let (mut last, mut equal, mut peak) = (0, 0, 0);
    let after = within(PATIENCE, "it stays as it is", || {
        let now = resident(proxy);
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
        peak = peak.max(now);
        (equal == 50).then_some(peak)
    });
    drop(held);
    after.saturating_sub(before)
}

/// A window of nothing, of less than a response, and one that accepts everything while the connection accepts nothing.
const WINDOWS: [u32; 3] = [0, 1, 0x7fff_ffff];

#[test]
fn unread_responses_hold_little_memory() {
    const MIB: u64 = 1 << 20;
    for window in WINDOWS {
        let api = Upstream::replying(|_| Reply::ok(vec![b'x'; 60_000]));
        let builder = Proxy::in_front_of(&api);
        let logo = builder.directory().join("logo.svg");
        let picture = format!(
            "<svg xmlns='http://www.w3.org/2000/svg'>{}</svg>",
            " ".repeat(250_000)
        );
        std::fs::write(&logo, picture).unwrap();
        let proxy = builder
            .config(&format!(
                "pages.logo = '{}'\nlimits = {{ body_timeout = '10m', concurrent_requests = 1_000 }}\n\
                 operation = [{{ path = '/open', access = ['anonymous'] }}]",
                logo.display()
            ))
            .start();
        let login =
            proxy.send(Call::get("/service.oauth?mode=login").header("Accept", "text/html"));
        let page = login.has_status(200).text();
        let (_, rest) = page
            .split_once(&proxy.origin())
            .expect("the logo's address");
        let (logo, _) = rest.split_once('"').expect("its end");
        assert!(logo.ends_with(".svg"), "{logo}");
        // The memory of 6,000 streams themselves, and the bodies of those requests that are accepted.
        for (path, bound) in [
            (logo, 64),
            ("/service.oauth?mode=login", 48),
            ("/open", 110),
        ] {
            let growth = growth_by_untaken(&proxy, 60, window, path);
            assert!(
                growth < bound * MIB,
                "{path}, window {window}: {} MiB",
                growth / MIB
            );
        }
    }
}

/// The pages of a connection whose caller takes none of them wait in 256 KiB, however many streams it opens.
#[test]
fn unread_pages_are_bounded_by_the_connection() {
    const MIB: u64 = 1 << 20;
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "limits = { body_timeout = '10m', http2_streams = 1_000 }",
    );
    // A page of ours, and a page about a rejection.
    for path in ["/service.oauth?mode=login", "/x"] {
        for window in [0, 1] {
            let growth = growth_by_untaken(&proxy, 6, window, path);
            assert!(
                growth < 48 * MIB,
                "{path}, window {window}: {} MiB",
                growth / MIB
            );
        }
    }
    api.saw_nothing();
}

/// A caller that takes them gets them all, although they are more than wait at once.
#[test]
fn a_hundred_pages_at_once_arrive_complete() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "limits.body_timeout = '10m'");
    let login = head(
        &proxy,
        "GET",
        "/service.oauth?mode=login",
        &[("accept", "text/html")],
    );
    let mut raw = window_of(0, &proxy);
    let all: Vec<u8> = (0..100)
        .flat_map(|n| frame(HEADERS, END_HEADERS | END_STREAM, n * 2 + 1, &login))
        .collect();
    raw.bytes(&all).unwrap();
    // Some pages wait for the window, and the requests for the others wait for them.
    let waiting = raw.next_of(HEADERS);
    raw.frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]).unwrap();
    let (mut heads, mut bytes, mut ends) = (1, 0, 0);
    while ends < 100 {
        let next = raw.next().unwrap();
        match next.kind {
            HEADERS => {
                // The static table's `:status: 200`.
                assert_eq!(next.payload[0], waiting.payload[0], "{next:?}");
                heads += 1;
            }
            DATA => {
                bytes += next.payload.len();
                ends += usize::from(next.flags & END_STREAM);
            }
            _ => {}
        }
    }
    assert_eq!(heads, 100);
    assert!(bytes > 512 << 10, "{bytes}: more than wait at once");
}

#[test]
fn a_flooding_caller_costs_little() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let before = spent(&proxy);
    // It comes back at once each time its connection is ended.
    for _ in 0..100 {
        let ping = frame(PING, 0, 0, &[7; 8]).repeat(50);
        Raw::to(proxy.address()).flood(PATIENCE, || ping.clone());
    }
    let each = (spent(&proxy) - before) / 100;
    // Far above the usual cost, far below that of an endless flood.
    assert!(
        each < Duration::from_millis(50),
        "{each:?} of a core for a connection"
    );
}

/// Memory of the process, in bytes.
fn resident(proxy: &Proxy) -> u64 {
    let pid = proxy.pid().as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// Time that the process has been running on a core.
fn spent(proxy: &Proxy) -> Duration {
    let pid = proxy.pid().as_raw_nonzero();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let nanoseconds = tasks.map(|task| {
        let path = task.unwrap().path().join("schedstat");
        let text = std::fs::read_to_string(path).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanoseconds.sum())
}
