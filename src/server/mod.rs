//! The side that callers connect to.

pub mod connection;
pub mod held;
pub mod http2;
pub mod listener;
pub mod tls;
