//! The commands that run the proxy, ask the running process, and look after its store.

pub(super) mod admin_api;
pub mod check;
pub mod health;
pub(super) mod rekey;
pub mod serve;
pub(super) mod status;
pub(super) mod why;
