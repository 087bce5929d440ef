//! The program's behaviour when its environment fails: signals under load, `kill -9`, no descriptors, no disk, a wrong
//! clock, callers and an API that are slow or gone. Each test watches the real process from outside.
//!
//! `cargo test` runs the short form. The long form, with the numbers that the promises name, is one command:
//! `tests/faults/run`.

mod load;
mod process;

mod api;
mod clock;
mod connections;
mod descriptors;
mod disk;
mod drain;
mod handover;
mod kill;
mod log;
mod logins;
mod names;
mod reload;
mod slow;
mod start;
mod streams;
mod window;

/// `long` where the long form is asked for, else `short`.
fn scaled(short: usize, long: usize) -> usize {
    match std::env::var("COUNTERSIGN_TEST_ROUNDS").as_deref() {
        Ok("full") => long,
        Ok(other) => panic!("COUNTERSIGN_TEST_ROUNDS is `full` or not set, not {other:?}"),
        Err(_) => short,
    }
}
