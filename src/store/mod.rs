//! What is kept: consumers, users, tokens, sessions; the port every backend implements and the cache in front of it.

pub mod cached;
pub mod port;
pub mod record;
pub mod seal;
pub mod sqlite;
pub mod timed;
pub mod transfer;

pub use port::{Store, StoreError, StoreFuture};
