//! The side that callers connect to.

pub mod connection;
pub mod listener;
pub mod tls;
