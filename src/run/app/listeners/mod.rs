//! Addresses and sockets, and the workers that serve them.

pub mod api_loop;
pub(in crate::run::app) mod bound;
pub(in crate::run::app) mod descriptors;
pub mod sockets;
pub mod workers;
