//! Decides on calls to the API: forwards them, or answers another proxy that forwards them itself.
//!
//! A call is one value, [`Call`](crate::request::policy::call::Call), which goes through the steps of `decision` and
//! `proxy/forward.rs`.

pub mod authorize;
pub mod cors;
pub mod decision;
pub mod forward_auth;
pub mod launch;
pub mod live;
pub mod proxy;
pub mod record;
pub mod settings;
