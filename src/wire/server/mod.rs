//! The side that callers connect to: listeners, TLS, and hyper's connections with their bounds and deadlines.

pub mod bounds;
pub mod buffered;
pub mod caller_stream;
pub mod connection;
pub mod connection_table;
pub mod deadline;
pub mod handler;
mod http1;
mod http2;
pub mod listener;
mod proxied;
pub mod rejection;
pub mod request;
pub mod response;
pub mod settings;
pub mod tls;
pub mod unproved;
