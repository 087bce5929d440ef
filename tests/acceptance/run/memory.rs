//! The memory of an idle process.
//!
//! Promise (Storage and operation): A second after the start, what only the start used leaves memory, and a request that needs it again is answered as before.

#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{Call, Proxy, Scene, until};

/// The size of the program's code and how much of it is resident, in KiB.
fn code(proxy: &Proxy) -> (u64, u64) {
    let smaps = fs::read_to_string(format!("/proc/{}/smaps", proxy.pid())).unwrap();
    let program = smaps
        .lines()
        .skip_while(|line| !(line.contains(" r-xp ") && line.ends_with("/countersign")));
    let value = |name: &str| {
        let line = program.clone().find_map(|line| line.strip_prefix(name));
        let text = line.expect(&smaps).trim().trim_end_matches(" kB");
        text.parse::<u64>().unwrap()
    };
    (value("Size:"), value("Rss:"))
}

#[test]
fn code_of_the_start_leaves_memory_and_is_mapped_again_when_it_is_used() {
    let (_api, proxy, caller) = Scene::with("listen.workers = 2").into_parts();
    let mut rest = 0;
    // Nine tenths of an unoptimized program's code are resident after a start, and six are used at rest.
    until("a quarter of the code is not resident", || {
        let (size, resident) = code(&proxy);
        rest = resident;
        resident < size / 4 * 3
    });
    for _ in 0..10 {
        proxy.send(Call::get("/x").of(&caller)).has_status(200);
    }
    proxy.send(Call::get("/x")).is(401, "parameter_absent");
    proxy.ask_admin("/readyz").has_status(200);
    assert!(code(&proxy).1 > rest, "requests use code that was unmapped");
}
