//! Connections that break off, idle, or are too many.
//!
//! Promise (HTTP): Callers that stall or flood cannot use up connections or requests; broken connections leak nothing. Also in
//! `src/wire/server/caller/connection_table.rs`, `src/wire/server/bounds.rs`, `tests/http2/unproved.rs`,
//! `tests/faults/descriptors.rs`, `src/wire/server/caller/unproved.rs`, `src/gateway/live/in_flight.rs`,
//! `tests/acceptance/records/postgres.rs`.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use socket2::{Domain, SockRef, Socket, Type};

use crate::{
    faults::{
        load::{Target, is_closed},
        process::{Process, allow_many_descriptors, connections_become},
        scaled,
    },
    support::{
        Call, Connection, PATIENCE, Proxy, Reply, Scene, Upstream, free_port,
        http::{get, try_open},
        tls::Certificate,
        until,
        upstream::After,
    },
};

/// Breaks off: every second time by a reset, like a crash or a firewall.
fn break_off(stream: TcpStream, number: usize) {
    if number.is_multiple_of(2) {
        SockRef::from(&stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
    drop(stream);
}

#[test]
fn connections_that_break_off_in_any_state_leak_nothing() {
    let large = vec![b'x'; 4 << 20];
    let api = Upstream::handling(move |exchange| {
        if exchange.seen.target == "/silent" {
            exchange.whole_body()?;
            exchange.peer_closed();
            return Ok(After::Close);
        }
        exchange.whole_body()?;
        if exchange.seen.target == "/large" {
            exchange.write(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                large.len()
            ))?;
            exchange.write(&large)?;
        } else {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        }
        Ok(After::Keep)
    });
    let proxy = Proxy::with(
        &api,
        "log.access = false\nlisten.workers = 2\nupstream.max_idle = 1",
    );
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let process = Process::of(&proxy);
    let call = |path: &str| target.wire(Call::get(path)).1;
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
    connections_become(&proxy, 0.0);
    // Each worker may keep one connection to the API.
    let before = process.descriptors() + 2;

    let begun = proxy.metric("countersign_connections");
    for number in 0..scaled(600, 5_000) {
        let mut stream = try_open(target.address).unwrap();
        let written = match number % 10 {
            0 => Vec::new(),
            1 => b"GET / HT".to_vec(),
            2 => {
                let wire = call("/x");
                wire[..wire.len() - 2].to_vec()
            }
            3 => {
                let (_, wire) = target.wire(Call::post("/x").json("{\"never\": \"whole\"}"));
                wire[..wire.len() - 3].to_vec()
            }
            4 => {
                let (_, wire) = target.wire(Call::post("/x").form("never=whole"));
                wire[..wire.len() - 3].to_vec()
            }
            5 => {
                let (_, wire) = target.wire(Call::post("/x").chunked(&[b"never", b"whole"]));
                wire[..wire.len() - 7].to_vec()
            }
            6 => call("/silent"),
            7 => call("/large"),
            8 => b"POST / HTTP/1.1\r\nHost: no-host\r\nContent-Length: 100000\r\n\r\n".to_vec(),
            _ => call("/x"),
        };
        stream.write_all(&written).unwrap();
        // Some wait for a part of the answer, most do not.
        if number % 10 == 7 && number % 3 == 0 {
            let mut byte = [0; 1];
            std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
        }
        break_off(stream, number / 10);
    }
    connections_become(&proxy, begun);
    process.falls_to(before);
    // And the proxy still accepts connections.
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
}

#[test]
fn connections_aborted_in_a_tls_handshake_leak_nothing() {
    let api = Upstream::start();
    let certificate = Certificate::for_names(&["localhost"]);
    let proxy = Proxy::in_front_of(&api)
        .at_https_localhost(&certificate)
        .config("log.access = false\nlimits = { handshake_timeout = '3s', head_timeout = '1s' }")
        .start();
    let process = Process::of(&proxy);
    connections_become(&proxy, 0.0);
    let before = process.descriptors();
    // The beginning of a ClientHello: a record of 512 bytes, of which only a part is sent.
    let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
    let mut silent = Vec::new();
    for number in 0..scaled(300, 2_000) {
        let mut stream = try_open(proxy.address()).unwrap();
        match number % 4 {
            0 => {}
            1 => stream.write_all(&hello).unwrap(),
            2 => stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap(),
            _ if number < 200 => {
                let name = "localhost";
                drop(Connection::over_tls(
                    proxy.address(),
                    name,
                    &certificate.certificate,
                ));
            }
            _ => {}
        }
        if number % 16 == 1 {
            silent.push(stream);
        } else {
            break_off(stream, number / 4);
        }
    }
    // Connections that stay silent are closed.
    for stream in silent {
        assert!(Connection::over(stream).is_closed());
    }
    connections_become(&proxy, 0.0);
    process.falls_to(before);
}

#[test]
fn idle_connections_cost_no_processor_time() {
    allow_many_descriptors();
    let count = scaled(1_500, 1_500);
    let (_api, proxy, caller) =
        Scene::with("log.access = false\nlimits.head_timeout = '10m'\nlimits.idle_timeout = '10m'")
            .into_parts();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let process = Process::of(&proxy);
    let mut connections = Vec::new();
    let add = |connections: &mut Vec<Connection>| {
        let mut connection = Connection::to(target.address);
        // Half of them have never said anything.
        if connections.len().is_multiple_of(2) {
            let (method, wire) = target.wire(Call::get("/x"));
            connection.send(&wire);
            connection.answer(&method).has_status(200);
        }
        connections.push(connection);
    };
    for _ in 0..100 {
        add(&mut connections);
    }
    let before = process.memory();
    for _ in 0..count {
        add(&mut connections);
    }
    connections_become(&proxy, connections.len() as f64);
    let each = process.memory().saturating_sub(before) / count;
    let ticks = process.ticks_within(Duration::from_secs(3));
    eprintln!("{count} idle connections: {each} bytes each, {ticks} ticks of 10 ms in 3 s");
    // hyper keeps a buffer of 8 KiB for each.
    assert!(each < 14 * 1024, "{each} bytes for an idle connection");
    assert!(ticks < 30, "{ticks} ticks of 10 ms in 3 s");
    // They are not merely dropped.
    for connection in connections.iter_mut().step_by(100) {
        let (method, wire) = target.wire(Call::get("/x"));
        connection.send(&wire);
        connection.answer(&method).has_status(200);
    }
    drop(connections);
    connections_become(&proxy, 0.0);
}

/// Connects from this address of this machine.
fn from(source: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(&SocketAddr::new(IpAddr::V4(source), 0).into())
        .unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn excess_connections_of_one_address_are_closed_others_are_not() {
    let (_api, proxy, caller) = Scene::with("limits.connections_per_address = 3").into_parts();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let (greedy, modest) = (Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3));
    let serves = |stream: &TcpStream| {
        let mut connection = Connection::over(stream.try_clone().unwrap());
        let (method, wire) = target.wire(Call::get("/x"));
        // A rejected connection may be closed before the request is written.
        let _ = connection.try_send(&wire);
        connection.try_answer(&method).ok().flatten()
    };
    for round in 0..3 {
        let kept: Vec<TcpStream> = (0..3).map(|_| from(greedy, target.address)).collect();
        for stream in &kept {
            serves(stream).expect("an answer").has_status(200);
        }
        for _ in 0..20 {
            let turned_away = from(greedy, target.address);
            let mut connection = Connection::over(turned_away);
            let answer = connection.answer("GET");
            answer.has_status(503);
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            assert_eq!(answer.header("connection"), Some("close"));
            assert!(connection.is_closed());
        }
        serves(&from(modest, target.address))
            .expect("an answer")
            .has_status(200);
        // The slots are free again, however the connections ended.
        for (number, stream) in kept.into_iter().enumerate() {
            assert!(!is_closed(&stream));
            break_off(stream, number + round);
        }
        connections_become(&proxy, 0.0);
    }
}

/// Opens this many connections from an address and sends a part of a head on each.
fn half_sent(source: Ipv4Addr, to: SocketAddr, count: usize, part: &[u8]) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = from(source, to);
        let _ = stream.write_all(part);
        stream
    };
    (0..count).map(open).collect()
}

#[test]
fn half_done_requests_block_no_probe_or_admin_listener() {
    let api = Upstream::start();
    let probe = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let builder = Proxy::in_front_of(&api).with_console();
    let proxy = builder
        .config(&format!("admin.probe_listen = '{probe}'"))
        .start();
    let host = "Host: 127.0.0.1\r\n";
    let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nto";
    let kinds = [
        ("a head", "GET".to_owned()),
        ("a form", format!("POST /login HTTP/1.1\r\n{host}{form}")),
        (
            "a body",
            format!("POST /v1/consumers HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n{{"),
        ),
        (
            "responses that it does not read",
            format!("GET /healthz HTTP/1.1\r\n{host}\r\n").repeat(200),
        ),
        (
            "the end",
            format!("GET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
        ),
    ];
    for listener in [proxy.admin(), probe] {
        for (what, part) in &kinds {
            for sources in [1, 16] {
                let half = (0..sources).flat_map(|number| {
                    let source = Ipv4Addr::new(127, 0, 0, 2 + number);
                    let count = 300 / usize::from(sources);
                    half_sent(source, listener, count, part.as_bytes())
                });
                let half = Vec::from_iter(half);
                for _ in 0..10 {
                    assert_eq!(get(listener, "/healthz").status, 200, "{what} {sources}");
                    assert_eq!(get(listener, "/readyz").status, 200, "{what} {sources}");
                }
                drop(half);
            }
        }
    }
    assert!(proxy.metric("countersign_connections_evicted_total") > 0.0);
}

#[test]
fn half_sent_heads_do_not_keep_callers_out() {
    let (_api, proxy, caller) = Scene::with("limits.connections = 40").into_parts();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    // A single address has at most half of the connections and one.
    let half = (2..6).flat_map(|last| {
        let source = Ipv4Addr::new(127, 0, 0, last);
        half_sent(source, target.address, 10, b"G")
    });
    let half = Vec::from_iter(half);
    connections_become(&proxy, 40.0);
    for _ in 0..30 {
        proxy.send(Call::get("/x").of(&caller)).has_status(200);
    }
    let closed = half.iter().filter(|stream| is_closed(stream)).count();
    assert!((1..40).contains(&closed), "{closed} were closed");
}

#[test]
fn connections_of_a_flood_replace_each_other_and_no_slow_caller() {
    let config = "limits.connections = 40\nlisten.workers = 1";
    let (_api, proxy, caller) = Scene::with(config).into_parts();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let (method, wire) = target.wire(Call::get("/x"));
    let (part, rest) = wire.split_at(20);
    let mut slow = from(Ipv4Addr::new(127, 0, 0, 3), target.address);
    slow.write_all(part).unwrap();
    connections_become(&proxy, 1.0);
    let source = Ipv4Addr::new(127, 0, 0, 2);
    // One address has half of the connections and one.
    let mut flood = half_sent(source, target.address, 20, b"G");
    connections_become(&proxy, 21.0);
    // One at a time: of several at once, those that have sent nothing yet would be refused.
    for evicted in 1..=100 {
        flood.extend(half_sent(source, target.address, 1, b"G"));
        until("it has replaced another one", || {
            proxy.metric("countersign_connections_evicted_total") == f64::from(evicted)
        });
    }
    let told = [
        "one address has its whole share",
        "listen.trusted_proxies",
        "address=127.0.0.2",
    ];
    assert_eq!(proxy.logged(&told), 1, "the operator is told once");
    slow.write_all(rest).unwrap();
    let mut slow = Connection::over(slow);
    slow.answer(&method).has_status(200);
    let open = flood.iter().filter(|stream| !is_closed(stream)).count();
    assert_eq!(open, 20);
}

#[test]
fn connections_over_the_limit_get_the_whole_503() {
    let api = Upstream::handling(|exchange| {
        exchange.peer_closed();
        Ok(After::Close)
    });
    let (_api, proxy, caller) = Scene::before(api, "limits.connections = 1").into_parts();
    let mut served = proxy.connect();
    served.send(&proxy.wire(&Call::get("/x").of(&caller)));
    until("it is served", || {
        proxy.metric("countersign_connections") == 1.0
    });
    let mut refused = try_open(proxy.address()).unwrap();
    refused.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n";
    refused.write_all(head.as_bytes()).unwrap();
    refused.peek(&mut [0]).unwrap();
    // Without a lingering close this resets the connection.
    for _ in 0..3 {
        refused.write_all(&[b'x'; 100_000]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut response = String::new();
    std::io::Read::read_to_string(&mut refused, &mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert_eq!(proxy.metric("countersign_connections_refused_total"), 1.0);
}

/// Longer than the idle time after which a connection releases its buffers. That is not visible from outside.
const SILENCE: Duration = Duration::from_millis(800);

#[test]
fn connections_that_were_silent_for_a_while_still_work() {
    let large = vec![b'x'; 6 << 20];
    let api = Upstream::replying(move |seen| match seen.target.as_str() {
        "/large" => Reply::ok(large.clone()),
        target => Reply::ok(target),
    });
    let certificate = Certificate::for_names(&["localhost"]);
    let limit = "limits.idle_timeout = '5s'";
    let builder = Proxy::in_front_of(&api).config(limit);
    let with_tls = builder.at_https_localhost(&certificate).start();
    let without = Proxy::with(&api, limit);
    for (proxy, is_secure) in [(with_tls, true), (without, false)] {
        let alice = proxy.somebody();
        let wire = |target: &str| proxy.wire(&Call::get(target).of(&alice));
        let mut caller = if is_secure {
            Connection::over_tls(proxy.address(), "localhost", &certificate.certificate)
        } else {
            proxy.connect()
        };
        let answered = |caller: &mut Connection, target: &str| {
            assert_eq!(caller.answer("GET").has_status(200).text(), target);
        };
        caller.send(&wire("/first"));
        answered(&mut caller, "/first");
        std::thread::sleep(SILENCE);
        // A head in two parts.
        let second = wire("/second");
        let (start, rest) = second.split_at(40);
        caller.send(start);
        std::thread::sleep(SILENCE);
        caller.send(rest);
        answered(&mut caller, "/second");
        std::thread::sleep(SILENCE);
        // The beginning of a head after the one before.
        let (third, fourth) = (wire("/third"), wire("/fourth"));
        let (start, rest) = fourth.split_at(20);
        caller.send(&[&third, start].concat());
        answered(&mut caller, "/third");
        std::thread::sleep(SILENCE);
        caller.send(rest);
        answered(&mut caller, "/fourth");
        // A response that is not read for a while.
        caller.send(&wire("/large"));
        std::thread::sleep(SILENCE);
        assert_eq!(caller.answer("GET").has_status(200).body.len(), 6 << 20);
        std::thread::sleep(SILENCE);
        caller.send(&wire("/last"));
        answered(&mut caller, "/last");
        assert!(caller.is_closed(), "it is idle for five seconds");
    }
}

#[test]
fn silent_connections_are_told_of_the_end() {
    let (_api, mut proxy, caller) = Scene::with("listen.drain = '1h'").into_parts();
    let mut silent = proxy.connect();
    proxy
        .send_on(&mut silent, Call::get("/").of(&caller))
        .has_status(200);
    std::thread::sleep(SILENCE);
    assert!(proxy.stop().success());
    assert!(silent.is_closed());
}
