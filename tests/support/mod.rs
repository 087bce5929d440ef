//! The base of the acceptance tests. Nothing here uses the library: the program is watched from outside, over sockets
//! and files, by code that was written separately, so that one mistake cannot be in both.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "shared by path: not every crate of tests uses all of it, and it speaks of itself as a library does"
)]

pub mod application;
pub mod authority;
pub mod browser;
pub mod call;
pub mod gate;
pub mod http;
pub mod issuer;
pub mod legs;
pub mod names;
pub mod operator;
pub mod postgres;
pub mod program;
pub mod proxy;
pub mod redis;
pub mod signer;
pub mod silent;
pub mod text;
pub mod tls;
pub mod upstream;
pub mod visitor;

pub use application::Application;
pub use call::{Call, Placement};
pub use http::{Answer, Connection};
pub use operator::Operator;
pub use postgres::{Postgres, free_port};
pub use proxy::{Caller, Consumer, Proxy, Scene, Token, User};
pub use redis::RedisServer;
pub use text::{has, in_order, rows, words};
pub use upstream::{Reply, Upstream};
pub use visitor::Visitor;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, UNIX_EPOCH},
};

/// The longest that any one thing in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Seconds since 1970.
pub fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// A value that no other call in this process or a later one returns.
pub fn fresh(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{nanos:x}x{count}")
}

/// Waits until `done`.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    within(PATIENCE, what, || done().then_some(()));
}

/// Repeats `answer` until it has something, at most for `limit`.
#[track_caller]
pub fn within<T>(limit: Duration, what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = answer() {
            return value;
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file that `tests/run` installs or the repository has.
pub fn installed(path: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(path);
    assert!(
        path.exists(),
        "{} is missing; tests/run installs it",
        path.display()
    );
    path
}

/// The library of Debian's package `faketime` that sets the clock of a program.
pub fn faketime() -> PathBuf {
    let directories = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let found = directories
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists());
    found.expect("faketime is installed (tests/run does it)")
}
