//! State that survives the end of the process.
//!
//! Promise (Replay): No restart, `kill -9` or jump of the clock loses a nonce; timestamps whose nonces may be missing get 503.
//! Also in `src/records/nonce/tests`.
//! Promise (Storage and operation): Only the owner can read the files of records, nonces and secrets that the program creates.
//! Also in `tests/store_contract/sqlite_file.rs`, `tests/commands/transfer.rs`.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;

use crate::support::{Call, Proxy, Reply, Scene, Upstream, now, until};

/// A public address that outlives a restart on another port.
const FIXED: &str = "service.base_url = 'https://api.test'";

#[test]
fn no_nonce_is_forgotten_over_a_restart_be_it_clean_or_a_kill() {
    let (api, mut proxy, caller) = Scene::with(FIXED).into_parts();
    for end in ["stop", "kill"] {
        let ahead = (now() + 100).to_string();
        let calls: Vec<Call> = (0..50).map(|_| Call::get("/pay").of(&caller)).collect();
        let mut wires: Vec<Vec<u8>> = calls.iter().map(|call| proxy.wire(call)).collect();
        // A consumer whose clock runs ahead has its nonces in the future.
        wires.push(
            proxy.wire(
                &Call::get("/pay")
                    .of(&caller)
                    .parameter("oauth_timestamp", &ahead),
            ),
        );
        let before = api.count();
        for wire in &wires {
            let mut connection = proxy.connect();
            connection.send(wire);
            connection.answer("GET").has_status(200);
        }
        assert_eq!(api.count() - before, wires.len());
        match end {
            "stop" => assert!(proxy.stop().success()),
            _ => proxy.kill(),
        }
        proxy.start();
        for wire in &wires {
            let mut connection = proxy.connect();
            connection.send(wire);
            connection.answer("GET").is(401, "nonce_used");
        }
        assert_eq!(api.count() - before, wires.len(), "after {end}");
        proxy.send(Call::get("/pay").of(&caller)).has_status(200);
    }
}

#[test]
fn an_old_copy_of_the_nonce_files_lets_no_request_pass_twice() {
    let (api, mut proxy, caller) = Scene::with(FIXED).into_parts();
    let directory = proxy.directory().to_owned();
    let nonce_files = || {
        let files = fs::read_dir(&directory).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        paths.filter(|path| path.to_string_lossy().contains(".nonces"))
    };
    for is_running in [false, true] {
        if !is_running {
            assert!(proxy.stop().success());
        }
        let copy: Vec<_> = nonce_files()
            .map(|path| (fs::read(&path).unwrap(), path))
            .collect();
        if !is_running {
            proxy.start();
        }
        let calls = [(); 3].map(|()| proxy.wire(&Call::get("/pay").of(&caller)));
        let send = |proxy: &Proxy, wire: &[u8]| {
            let mut connection = proxy.connect();
            connection.send(wire);
            connection.answer("GET")
        };
        for wire in &calls {
            send(&proxy, wire).has_status(200);
        }
        assert!(proxy.stop().success());
        nonce_files().for_each(|path| fs::remove_file(path).unwrap());
        copy.iter()
            .for_each(|(content, path)| fs::write(path, content).unwrap());
        let before = api.count();
        proxy.start_unready();
        for wire in &calls {
            send(&proxy, wire).has_status(503);
        }
        assert_eq!(api.count(), before);
        proxy.reconfigure("nonce.on_lost = 'accept'");
        proxy.signal(Signal::HUP);
        until("the reload waives the wait", || {
            proxy.send(Call::get("/pay").of(&caller)).status == 200
        });
        proxy.reconfigure("nonce.on_lost = 'refuse'");
    }
}

#[test]
fn a_lost_nonce_window_refuses_rather_than_forgets() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config(FIXED);
    let window = builder.directory().join("window.nonces");
    let mut proxy = builder
        .config(&format!("nonce.path = '{}'", window.display()))
        .start();
    let caller = proxy.somebody();
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
    assert!(window.exists());
    proxy.kill();
    fs::remove_file(&window).unwrap();
    proxy.start_unready();
    let ready = proxy.ask_admin("/readyz");
    ready.has_status(503);
    assert!(ready.text().contains("nonce.on_lost"), "{ready:?}");
    let answer = proxy.send(Call::get("/x").of(&caller));
    answer.has_status(503);
    assert!(answer.fields.has("retry-after"));
    assert_eq!(api.count(), 1);
    // A reload waives the wait, and a restart does not begin it again.
    proxy.reconfigure("nonce.on_lost = 'accept'");
    proxy.signal(Signal::HUP);
    let call = || Call::get("/x").of(&caller);
    until("the reload waives the wait", || {
        proxy.send(call()).status == 200
    });
    proxy.kill();
    proxy.reconfigure("nonce.on_lost = 'refuse'");
    proxy.start();
    proxy.send(call()).has_status(200);
}

#[test]
fn a_start_that_fails_or_is_killed_early_loses_no_nonces() {
    let api = Upstream::start();
    let mut builder = Proxy::in_front_of(&api).config(FIXED);
    // This error is found after everything else was opened.
    let missing = builder
        .directory()
        .join("missing.pem")
        .display()
        .to_string();
    builder.set("upstream.tls.ca", missing.into());
    builder.set("upstream.api_url", "https://127.0.0.1:1".into());
    let ended = builder.serve_fails();
    assert!(ended.stderr.contains("upstream.tls.ca"), "{ended:?}");
    builder.set("upstream.tls", toml::Table::new().into());
    builder.set("upstream.api_url", api.url().into());
    let mut proxy = builder.start();
    let caller = proxy.somebody();
    for _ in 0..3 {
        proxy.send(Call::get("/x").of(&caller)).has_status(200);
        proxy.kill();
        proxy.start();
    }
}

#[test]
fn a_second_serve_on_the_same_nonce_file_ends_with_exit_code_1() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let ended = proxy.command(&["serve"]);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("nonce"), "{ended:?}");
    // The first goes on.
    let caller = proxy.somebody();
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
}

#[test]
fn only_the_owner_can_open_files_that_the_program_makes() {
    let (_api, proxy, caller) = Scene::start().into_parts();
    proxy.send(Call::get("/x").of(&caller)).has_status(200);
    let mut seen = 0;
    for entry in fs::read_dir(proxy.directory()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == "config.toml" {
            continue;
        }
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
        seen += 1;
    }
    assert!(seen >= 2, "the store and the nonce window");
}
#[test]
fn requests_are_aborted_at_the_drain_deadline_with_exit_code_0() {
    let api = Upstream::replying(|_| Reply::silence());
    let mut proxy = Proxy::with(&api, "listen.drain = '1s'");
    let caller = proxy.somebody();
    let mut stuck = proxy.connect();
    stuck.send(&proxy.wire(&Call::get("/stuck").of(&caller)));
    api.wait_for(1);
    assert!(proxy.stop().success());
}
