//! HTTP/2 on the public listener: the same calls under the same rules, and attacks on the connection itself.

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
#[path = "../support/mod.rs"]
mod support;

mod api;
mod calls;
mod client;
mod curl;
mod floods;
mod life;
mod rules;
mod upstream;
