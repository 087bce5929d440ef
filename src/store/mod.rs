//! Persistent records, the `Store` trait, its backends, and the cache in front of it.

pub mod cached;
pub mod feed;
mod nonces;
mod open;
pub mod port;
pub mod postgres;
pub mod record;
pub mod redis;
mod remote;
mod rows;
mod rules;
pub mod seal;
mod sql;
pub mod sqlite;
pub mod timed;
pub mod transfer;

pub use open::{Backend, OpenError, Opening, Params, open_store};
pub use port::{Store, StoreError, StoreFuture};
