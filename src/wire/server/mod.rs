//! The side that callers connect to: listeners, TLS, and hyper's connections with their bounds and deadlines.

pub mod buffered;
pub mod caller;
pub mod connection;
pub mod deadline;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
pub mod http2;
pub mod listener;
mod proxied;
pub mod rejection;
pub mod request;
pub mod response;
pub mod seats;
pub mod tls;
pub mod wire;
