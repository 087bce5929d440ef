//! TLS from outside, on both sides: what is spoken and refused, who is let in, what a reload changes, and what a cut
//! connection is taken for.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a harness fails by panicking"
)]
#![expect(
    clippy::print_stderr,
    reason = "a failed test shows the log of the proxy"
)]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the harness is shared by path, speaks of itself as a library does, and has more than is used here"
)]

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod authority;
mod caller;
mod certificates;
mod checking;
mod login;
mod peers;
mod reload;
mod resumption;
mod upstream;
mod versions;
mod wire;
