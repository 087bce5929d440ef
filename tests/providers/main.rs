//! SDKs of well-known providers, unchanged, on the configurations of `deploy/providers`: the whole flow with login and
//! consent, a denial, and calls. Each process resolves its provider's host names to the program and trusts a CA of the test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a harness fails by panicking"
)]
#![expect(
    clippy::print_stderr,
    reason = "a failed test shows the log of the proxy and what an SDK printed"
)]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the harness is shared by path, speaks of itself as a library does, and has more than is used here"
)]

#[path = "../tls/authority.rs"]
mod authority;
#[path = "../support/mod.rs"]
mod support;

mod api;
mod files;
mod logins;
mod sdk;
mod shops;
mod stage;
mod tools;
mod wikis;
