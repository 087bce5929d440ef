//! Decides on calls to the API: forwards them, or answers another proxy that forwards them itself.
//!
//! A call is one value, [`Call`](crate::request::policy::call::Call), which goes through the steps of `proxy/decision.rs` and
//! `proxy/forward.rs`.

pub mod authorize;
pub mod cors;
pub mod forward_auth;
pub mod launch;
pub mod proxy;
pub mod settings;
