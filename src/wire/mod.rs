//! Connections: callers' connections to this process, this process's connections to other hosts, origins, and the form
//! of an error response.

pub mod origin;
pub mod outbound;
pub mod problem;
pub mod server;
