//! The side that callers connect to: listeners, TLS, and hyper's connections with their bounds and deadlines.

pub mod bounds;
pub mod caller;
pub mod connection;
pub mod handler;
pub mod listener;
pub mod rejection;
pub mod request;
pub mod response;
pub mod settings;
pub mod tls;
