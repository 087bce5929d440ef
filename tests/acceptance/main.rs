//! The program from outside: its binary, its sockets, its files. One crate for all of it, so that the harness in
//! `tests/support` is compiled once.

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

mod accessibility;
mod admin_api;
mod advice;
mod answers;
mod assertion;
mod bad_input;
mod bodies;
mod callbacks;
mod checking;
mod clients;
mod commands;
mod conditions;
mod confusion;
mod consent;
mod console;
mod credentials;
mod deviations;
mod early;
mod faults;
mod flow;
mod flow_paths;
mod forgery;
mod forward_auth;
mod forwarding;
mod full_pages;
mod harness;
mod header_login;
mod identity;
mod languages;
mod limits;
mod logs;
mod look;
mod lost;
mod moving;
mod negative_vectors;
mod new_password;
mod operating;
mod origins;
mod outside_login;
mod pages;
mod passwords;
mod permissions;
mod placement;
mod postgres;
mod receivers;
mod replay;
mod restarts;
mod sessions;
mod shared_nonces;
mod sunset;
mod token_calls;
mod upgrades;
