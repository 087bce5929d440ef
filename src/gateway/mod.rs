//! Decides on calls to the API: forwards them, or answers another proxy that forwards them itself.

pub mod authorize;
pub mod forward_auth;
pub mod launch;
pub mod proxy;
pub mod settings;
