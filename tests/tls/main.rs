//! TLS from outside, on both sides: accepted and refused versions, the peers that may connect, the effect of a reload,
//! and the handling of a cut connection.

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
