//! No descriptors left.

use std::{net::TcpStream, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use crate::{
    faults::{
        load::{Target, is_closed},
        process::{Process, connections_become},
    },
    support::{Answer, Call, Connection, Proxy, Scene, Upstream, http::try_open, until},
};

fn call(target: &Target, stream: &TcpStream) -> Option<Answer> {
    let mut connection = Connection::over(stream.try_clone().ok()?);
    let (method, wire) = target.wire(Call::get("/x"));
    connection.try_send(&wire).ok()?;
    connection.try_answer(&method).ok()?
}

#[test]
fn idle_callers_cannot_take_the_descriptors_of_others() {
    let api = Upstream::start();
    // 100 less the 64 that are the program's own: 18 callers, each with a connection to the API.
    // All come from one address, which has a quarter unless it is a proxy's.
    let mut proxy = Proxy::in_front_of(&api)
        .config("listen.trusted_proxies = ['127.0.0.1']")
        .descriptors(100)
        .start();
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let told = proxy.log().lines().into_iter();
    let told = told.filter(|line| line.contains("limits.connections") && line.contains("18"));
    assert_eq!(told.count(), 1, "the operator is told");

    let mut connections: Vec<TcpStream> = Vec::new();
    let mut turned_away = 0;
    for _ in 0..200 {
        let stream = try_open(target.address).unwrap();
        if connections.len() < 18 {
            // Each worker accepts on its own: the first caller is accepted only once it is served.
            call(&target, &stream).expect("an answer").has_status(200);
            connections.push(stream);
        } else {
            let answer = Connection::over(stream).answer("GET");
            answer.has_status(503);
            turned_away += 1;
        }
    }
    assert_eq!(turned_away, 182);
    connections_become(&proxy, 18.0);
    // Every one of them is served, and so is the operator.
    for stream in &connections {
        call(&target, stream).expect("an answer").has_status(200);
    }
    proxy.ask_admin("/readyz").has_status(200);
    drop(connections);
    connections_become(&proxy, 0.0);
    let stream = try_open(target.address).unwrap();
    call(&target, &stream).expect("an answer").has_status(200);
    drop(stream);
    assert!(proxy.stop().success());
}

#[test]
fn start_with_too_few_descriptors_names_the_limit_and_the_need() {
    let api = Upstream::start();
    let config = "operations.unlisted = 'anonymous'\nlisten.workers = 3";
    let at = |limit| {
        let builder = Proxy::in_front_of(&api).config(config);
        builder.descriptors(limit)
    };
    let fails = |limit| {
        let ended = at(limit).serve_fails();
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        let mut lines = ended.stderr.lines();
        let line = lines.rfind(|line| line.starts_with("countersign: "));
        line.expect(&ended.stderr).to_owned()
    };
    let line = fails(20);
    assert!(line.contains("may have 20 descriptors"), "{line}");
    assert!(line.contains("(LimitNOFILE, ulimit -n)"), "{line}");
    assert!(!line.contains("chown"), "{line}");
    let (_, needed) = line.split_once("needs ").expect(&line);
    let needed = needed.split(' ').next().unwrap().parse().unwrap();
    let line = fails(needed - 1);
    assert!(line.contains(&format!("needs {needed} ")), "{line}");
    let proxy = at(needed).start();
    proxy.passes(Call::get("/x"));
    proxy.ask_admin("/readyz").has_status(200);
}

#[test]
fn descriptor_shortage_neither_spins_nor_exits_and_passes() {
    let (_api, mut proxy, caller) = Scene::start().into_parts();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    let process = Process::of(&proxy);
    let kept = try_open(target.address).unwrap();
    call(&target, &kept).expect("an answer").has_status(200);
    connections_become(&proxy, 1.0);

    // The system takes them away: the limit changes without the program's knowledge, as with a full file table.
    let few = (process.descriptors() + 4) as u64;
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = |current| {
        let limit = Rlimit {
            current: Some(current),
            maximum,
        };
        prlimit(Some(proxy.pid()), Resource::Nofile, limit).unwrap()
    };
    let before = limit(few);
    let waiting: Vec<TcpStream> = (0..100)
        .map(|_| try_open(target.address).unwrap())
        .collect();
    until("it is out of descriptors", || {
        let told = proxy.log().lines();
        told.iter().any(|line| line.contains("accepting pauses"))
    });
    let ticks = process.ticks_within(Duration::from_secs(3));
    eprintln!("out of descriptors: {ticks} ticks of 10 ms in 3 s");
    assert!(ticks < 60, "{ticks} ticks of 10 ms in 3 s");
    let lines = proxy.log().lines().into_iter();
    let lines = lines.filter(|line| line.contains("accepting pauses"));
    assert!(lines.count() <= 4, "each listener says so once");
    // An accepted caller is served: the connection to the API is there already.
    call(&target, &kept).expect("an answer").has_status(200);

    limit(before.current.unwrap());
    for stream in &waiting {
        assert!(!is_closed(stream), "who waited is not lost");
        call(&target, stream).expect("an answer").has_status(200);
    }
    drop(waiting);
    connections_become(&proxy, 1.0);
    call(&target, &kept).expect("an answer").has_status(200);
    drop(kept);
    assert!(proxy.stop().success());
}
