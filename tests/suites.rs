//! The suites in one program: one pool of threads runs them all, so that a suite that waits leaves the processor to another one,
//! and the harness in `tests/support` is compiled and linked once. A suite is a folder;
//! `cargo test --test suites attacks::host` runs one file of it.
//!
//! All tests share the process: none changes its environment or its directory, and its limit of descriptors only rises.

#![cfg(test)]

mod acceptance;
mod attacks;
mod commands;
mod faults;
mod http2;
mod providers;
mod store_contract;
mod support;
mod tls;
mod vectors;
