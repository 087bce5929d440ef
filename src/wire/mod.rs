//! Connections: their byte streams, callers' connections to this process, this process's connections to other hosts,
//! URLs, and the form of an error response.

pub mod address;
pub mod body;
mod frames;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod outbound;
mod raw_target;
pub mod server;
pub mod stream;
pub mod url;
pub mod watched;
pub mod written_head;
