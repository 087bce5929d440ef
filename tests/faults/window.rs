//! `signature.timestamp_window` changed by a reload: no request passes twice, whatever happens to the nonce file next.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::{
    faults::clock::Clockwork,
    support::{now, until},
};

/// The narrow window.
const NARROW: u64 = 1;
/// The wide window, far beyond the reach of the high-water mark in the store.
const WIDE: u64 = 100;
/// A request of a consumer whose clock is this far ahead passes only in the wide window.
const AHEAD: i64 = 90;

impl Clockwork {
    /// Changes the window by a reload, and waits until the file is applied.
    #[track_caller]
    fn reload(&mut self, window: u64) {
        let reloaded = |clock: &Self| {
            let lines = clock.proxy.log().lines();
            let told = |line: &&String| line.contains("configuration_reloaded");
            lines.iter().filter(told).count()
        };
        let before = reloaded(self);
        self.proxy
            .reconfigure(&format!("signature.timestamp_window = '{window}s'"));
        self.proxy.signal(Signal::HUP);
        until("the new file is taken up", || reloaded(self) > before);
    }

    /// Waits until a request of a clock that is ahead passes.
    #[track_caller]
    fn comes_to_pass(&mut self, ahead: i64) {
        until("the wider window takes effect", || {
            self.call(ahead).status == 200
        });
    }

    /// Kills the proxy, loses the nonce file, and starts again.
    fn loses_its_nonces(&mut self) {
        self.proxy.kill();
        let files = std::fs::read_dir(self.proxy.directory()).unwrap().flatten();
        let window = files
            .map(|entry| entry.path())
            .find(|path| path.display().to_string().ends_with(".nonces"));
        std::fs::remove_file(window.expect("the file of nonce.path")).unwrap();
        self.proxy.start_unready();
    }

    /// Replays everything at times from `from` to `end` seconds from now, and at the timestamp of each request: for as
    /// long as the proxy needs to write its high-water mark after a jump, and without other requests in between, which
    /// would leave traces. At the end requests pass again.
    #[track_caller]
    fn nothing_passes_twice_from(&mut self, from: i64, end: i64) {
        let now = || now().cast_signed();
        let steps = (from..=end).step_by(20).map(|offset| now() + offset);
        let mut times: Vec<i64> = self.passed.iter().map(|wire| timestamp(wire)).collect();
        times.retain(|time| (from..=end).contains(&(time - now())));
        times.extend(steps);
        times.sort_unstable();
        times.dedup();
        for time in times {
            self.off_by(time - now());
            let until = Instant::now() + Duration::from_millis(1_600);
            while Instant::now() < until {
                self.nothing_passes_twice();
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        self.off_by(end);
        until("requests pass again", || self.call(end).status == 200);
    }
}

/// The `oauth_timestamp` of a request.
fn timestamp(wire: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(wire);
    let (_, value) = text.split_once("oauth_timestamp=\"").unwrap();
    value.split_once('"').unwrap().0.parse().unwrap()
}

#[test]
fn widened_window_admits_nothing_twice_after_kill_and_lost_file() {
    let mut clock = Clockwork::with_window(NARROW);
    clock.call(0).has_status(200);
    clock.reload(WIDE);
    clock.comes_to_pass(AHEAD);
    clock.loses_its_nonces();
    clock.call(0).has_status(503);
    let ready = clock.proxy.ask_admin("/readyz");
    ready.has_status(503);
    assert!(ready.text().contains("nonces of an earlier run are lost"));
    assert!(!clock.proxy.command(&["health", "--ready"]).status.success());
    clock.proxy.ask_admin("/healthz").has_status(200);
    clock.nothing_passes_twice_from(0, 300);
    until("ready again", || clock.proxy.is_ready());
}

#[test]
fn window_widened_twice_then_narrowed_admits_nothing_twice() {
    let mut clock = Clockwork::with_window(NARROW);
    clock.reload(WIDE / 2);
    clock.comes_to_pass(AHEAD / 2);
    clock.reload(WIDE);
    clock.comes_to_pass(AHEAD);
    clock.reload(NARROW);
    clock.call(AHEAD).is(401, "timestamp_refused");
    clock.nothing_passes_twice();
    clock.loses_its_nonces();
    clock.nothing_passes_twice_from(0, 300);
}

#[test]
fn window_narrowed_and_widened_in_one_run_admits_nothing_twice() {
    let mut clock = Clockwork::with_window(WIDE);
    clock.call(-AHEAD).has_status(200);
    clock.call(0).has_status(200);
    clock.call(AHEAD).has_status(200);
    clock.reload(NARROW);
    clock.call(-AHEAD).is(401, "timestamp_refused");
    clock.nothing_passes_twice();
    clock.reload(WIDE);
    clock.comes_to_pass(AHEAD);
    clock.nothing_passes_twice();
    // Timestamps that had left the narrow window stay rejected, used or not; the others are valid in the wide one.
    clock.call(-AHEAD).is(401, "timestamp_refused");
    clock.call(0).has_status(200);
    clock.proxy.kill();
    clock.proxy.start();
    clock.nothing_passes_twice();
    clock.call(-AHEAD).is(401, "timestamp_refused");
    clock.nothing_passes_twice_from(10, 250);
}

#[test]
fn window_widened_in_a_wait_for_nonces_admits_nothing_twice() {
    let mut clock = Clockwork::with_window(NARROW);
    clock.call(0).has_status(200);
    clock.call(NARROW.cast_signed()).has_status(200);
    clock.loses_its_nonces();
    clock.reload(WIDE);
    clock.call(0).has_status(503);
    clock.nothing_passes_twice_from(0, 300);
    clock.reload(NARROW);
    clock.reload(WIDE);
    clock.nothing_passes_twice();
}

#[test]
fn window_widened_with_a_wrong_clock_admits_nothing_twice() {
    for jump in [-3_600, 3_600] {
        let mut clock = Clockwork::with_window(NARROW);
        clock.call(0).has_status(200);
        clock.off_by(jump);
        clock.reload(WIDE);
        clock.comes_to_pass(jump + AHEAD);
        clock.off_by(0);
        clock.nothing_passes_twice();
        clock.off_by(jump);
        clock.loses_its_nonces();
        // The gap ends at the highest mark, whichever clock wrote it.
        let from = jump.max(0);
        clock.nothing_passes_twice_from(from, from + 300);
        clock.off_by(0);
        clock.nothing_passes_twice();
    }
}
