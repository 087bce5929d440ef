//! Persistent records: the [`Store`] and its two engines.

mod engine;
mod open;
pub mod postgres;
pub mod settings;
mod sql;
mod sqlite;

pub use open::{Backend, StoreParams, open_store};
pub use sql::Store;
#[cfg(any(test, fuzzing))]
pub use sql::test_double;
