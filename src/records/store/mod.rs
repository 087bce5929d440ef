//! Persistent records, the [`Store`] trait, its engines, and the cache in front of it.

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
pub mod seal;
pub mod settings;
pub mod sql;
pub mod sqlite;
pub mod transfer;

pub use open::{Backend, OpenError, OpenProblem, Opening, Params, grant, open_store};
pub use port::{Result, StoreError};
#[cfg(any(test, fuzzing))]
pub use sql::tests;
pub use sql::{Consumers, Feed, Maintenance, Sessions, Store, Tokens, Users};
