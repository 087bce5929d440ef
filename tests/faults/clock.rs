//! Clocks that jump, stay wrong, or are wrong from the start: no request passes twice, and right ones pass again.
//!
//! libfaketime moves the program's clock, by replacing calls to the C library; the clock for waits is left alone, as a
//! jump of the wall clock leaves it.
//!
//! Promise (Storage and operation): A clock that jumps or is wrong lets no request pass twice; several consumers together
//! disclose it. Also in `src/request/verify/skew.rs`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    faults::scaled,
    support::{
        Answer, Call, Caller, Connection, Consumer, PATIENCE, Proxy, Token, Upstream, faketime,
        now, until, within,
    },
};

/// The shortest window that the tests can wait for.
const WINDOW: u64 = 3;
const HOUR: i64 = 3_600;
const YEARS: i64 = 4 * 365 * 24 * HOUR;

/// A proxy whose clock can be set wrong.
pub(crate) struct Clockwork {
    pub(crate) proxy: Proxy,
    pub(crate) api: Upstream,
    offset: PathBuf,
    pub(crate) caller: Caller,
    /// Requests that passed.
    pub(crate) passed: Vec<Vec<u8>>,
}

impl Clockwork {
    fn start() -> Self {
        Self::with_window(WINDOW)
    }

    /// A proxy with a window of this many seconds.
    pub(crate) fn with_window(window: u64) -> Self {
        let api = Upstream::start();
        let builder = Proxy::in_front_of(&api);
        let offset = builder.directory().join("offset");
        set(&offset, 0);
        let proxy = builder
            .config(&format!(
                "service.base_url = 'https://api.test'\nsignature.timestamp_window = '{window}s'"
            ))
            .environment("LD_PRELOAD", &faketime().display().to_string())
            .environment("FAKETIME_TIMESTAMP_FILE", &offset.display().to_string())
            .environment("FAKETIME_NO_CACHE", "1")
            .environment("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .environment("NO_FAKE_STAT", "1")
            .start();
        let caller = proxy.somebody();
        Self {
            proxy,
            api,
            offset,
            caller,
            passed: Vec::new(),
        }
    }

    /// Sets the proxy's clock off by this many seconds.
    pub(crate) fn off_by(&self, seconds: i64) {
        set(&self.offset, seconds);
    }

    pub(crate) fn send(&self, wire: &[u8]) -> Answer {
        let mut connection: Connection = self.proxy.connect();
        connection.send(wire);
        connection.answer("GET")
    }

    /// A call of a consumer whose clock is off by this many seconds. A call that a busy machine delays may be late for
    /// the window: it is repeated.
    pub(crate) fn call(&mut self, seconds: i64) -> Answer {
        within(PATIENCE, "a call is answered within a second", || {
            let begun = now();
            let timestamp = begun.checked_add_signed(seconds).unwrap().to_string();
            let call = Call::get("/pay").of(&self.caller);
            let call = call.parameter("oauth_timestamp", &timestamp);
            let wire = self.proxy.wire(&call);
            let answer = self.send(&wire);
            let passed = answer.status == 200;
            self.passed.extend(passed.then_some(wire));
            (passed || now() <= begun + 1).then_some(answer)
        })
    }

    /// Sends requests that pass, of all the timestamps that a clock off by this much accepts. After a jump ahead
    /// requests are refused until the store records how far they are accepted now; this is short, and the only refusal.
    #[track_caller]
    pub(crate) fn passes(&mut self, seconds: i64) {
        for ahead in [-1, 0, 2] {
            let answer = within(PATIENCE, "requests pass", || {
                let answer = self.call(seconds + ahead);
                (answer.status != 503).then_some(answer)
            });
            answer.has_status(200);
        }
    }

    /// No request that passed passes again.
    #[track_caller]
    pub(crate) fn nothing_passes_twice(&self) {
        let before = self.api.count();
        for wire in &self.passed {
            let answer = self.send(wire);
            assert!(
                answer.status == 401 || answer.status == 503,
                "let through twice: {answer:?}"
            );
        }
        assert_eq!(self.api.count(), before);
    }

    /// Looks for a replay that passes, for as long as one could by the proxy's present clock.
    #[track_caller]
    fn nothing_passes_twice_for_a_window(&self) {
        let until = now() + 2 * WINDOW + 2;
        while now() < until {
            self.nothing_passes_twice();
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn set(file: &Path, seconds: i64) {
    // Atomically: the proxy may be reading it.
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn a_clock_that_jumps_and_is_corrected_admits_no_request_twice() {
    for &jump in &[HOUR, -HOUR, YEARS][..scaled(1, 3)] {
        let mut clock = Clockwork::start();
        clock.passes(0);
        clock.off_by(jump);
        clock.call(0).is(401, "timestamp_refused");
        clock.passes(jump);
        clock.nothing_passes_twice();
        clock.off_by(0);
        clock.call(jump).is(401, "timestamp_refused");
        clock.passes(0);
        clock.nothing_passes_twice_for_a_window();
        clock.passes(0);
        // And forward again.
        clock.off_by(jump);
        clock.nothing_passes_twice_for_a_window();
    }
}

#[test]
fn a_clock_that_jumps_between_two_runs_admits_no_request_twice() {
    for &jump in &[HOUR, -HOUR][..scaled(1, 2)] {
        let mut clock = Clockwork::start();
        clock.passes(0);
        clock.proxy.kill();
        clock.off_by(jump);
        clock.proxy.start();
        clock.nothing_passes_twice();
        clock.passes(jump);
        clock.off_by(0);
        clock.nothing_passes_twice();
        clock.passes(0);
        assert!(clock.proxy.stop().success());
        clock.proxy.start();
        clock.passes(0);
        clock.nothing_passes_twice_for_a_window();
        clock.off_by(jump);
        clock.nothing_passes_twice_for_a_window();
    }
}

#[test]
fn clock_wrong_for_longer_than_a_window_admits_nothing_twice() {
    let mut clock = Clockwork::start();
    clock.passes(0);
    clock.off_by(-HOUR);
    clock.passes(-HOUR);
    clock.nothing_passes_twice_for_a_window();
    clock.off_by(0);
    clock.nothing_passes_twice();
    until("the right time is accepted again", || {
        clock.call(0).status == 200
    });
    clock.passes(0);
    clock.off_by(-HOUR);
    clock.nothing_passes_twice_for_a_window();
}

#[test]
fn clock_ahead_for_longer_than_a_window_is_reported_corrected() {
    let mut clock = Clockwork::start();
    clock.off_by(YEARS);
    clock.passes(YEARS);
    clock.nothing_passes_twice_for_a_window();
    clock.off_by(0);
    // Nonces used then are dropped, so no timestamp before that can be told from a replay.
    until("the floor lies ahead", || {
        let lines = clock.proxy.log().lines();
        let told = |line: &String| line.contains("ERROR") && line.contains("nonce.on_lost");
        lines.iter().any(told)
    });
    clock.call(0).is(401, "timestamp_refused");
    let ready = clock.proxy.ask_admin("/readyz");
    ready.has_status(503);
    assert!(ready.text().contains("clock"), "{ready:?}");
    clock.nothing_passes_twice();
    // The fix that the log names.
    assert!(clock.proxy.stop().success());
    let files = std::fs::read_dir(clock.proxy.directory())
        .unwrap()
        .flatten();
    let window = files
        .map(|entry| entry.path())
        .find(|path| path.display().to_string().ends_with(".nonces"));
    std::fs::remove_file(window.expect("the file of nonce.path")).unwrap();
    clock.proxy.reconfigure("nonce.on_lost = 'accept'");
    clock.proxy.start();
    clock.passes(0);
    clock.nothing_passes_twice_for_a_window();
    // Once is enough: the high-water mark of that clock is still in the store.
    for _ in 0..2 {
        clock.proxy.kill();
        clock.proxy.reconfigure("nonce.on_lost = 'refuse'");
        clock.proxy.start();
        clock.passes(0);
        clock.nothing_passes_twice();
    }
}

#[test]
fn clock_that_differs_from_several_consumers_is_not_ready() {
    let clock = Clockwork::start();
    let proxy = &clock.proxy;
    let user = proxy.user("bob");
    let others = ["second", "third"].map(|name| {
        let consumer = proxy.consumer(name);
        let token = proxy.token(&consumer, &user);
        (consumer, token)
    });
    let send = |(consumer, token): &(Consumer, Token), secret: Option<&str>| {
        let call = Call::get("/x").by(consumer).with(token);
        proxy.send(match secret {
            Some(secret) => call.key(secret),
            None => call,
        })
    };
    let first = (clock.caller.consumer.clone(), clock.caller.token.clone());
    clock.off_by(HOUR);
    // One consumer, however often it calls, and others with invalid signatures.
    for _ in 0..3 {
        for (who, secret) in [
            (&first, None),
            (&others[0], Some("x")),
            (&others[1], Some("x")),
        ] {
            let answer = send(who, secret);
            answer.is(401, "timestamp_refused");
            assert!(answer.text().contains("your%20clock"), "{answer:?}");
        }
    }
    // Until the high-water mark of the new time is written, all are rejected.
    until("ready", || proxy.is_ready());
    for who in &others {
        send(who, None).is(401, "timestamp_refused");
    }
    let ready = proxy.ask_admin("/readyz");
    ready.has_status(503);
    assert!(ready.text().contains("not ready: clock since"), "{ready:?}");
    let answer = send(&first, None);
    answer.is(401, "timestamp_refused");
    assert!(!answer.text().contains("your%20clock"), "{answer:?}");
    clock.off_by(0);
    for who in [&first, &others[0], &others[1]] {
        until("the call passes", || send(who, None).status == 200);
    }
    proxy.ask_admin("/readyz").has_status(200);
    until("the beginning and the end are logged", || {
        proxy.logged(&["condition=\"clock\""]) == 2
    });
    assert!(proxy.logged(&["skew_seconds=-36"]) > 9);
    let behind = "countersign_clock_skew_seconds_bucket{le=\"-600\"}";
    assert!(proxy.metric(behind) > 9.0);
}
