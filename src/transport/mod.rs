//! Byte streams to callers and to the API: TCP, TLS and Unix sockets, read into lent buffers, each wait with a deadline.

pub mod deadline;
pub mod http2;
pub mod input;
pub mod peer;
pub mod stream;
