//! Persistent records: the [`Store`], its two engines, and the cache in front of it.

pub mod cached;
mod engine;
mod error;
mod external;
pub mod feed;
mod io_thread;
mod nonces;
mod open;
mod opening;
mod outage;
pub mod password_cost;
pub mod port;
pub mod postgres;
pub mod record;
pub mod redis;
pub mod seal;
pub mod settings;
mod sql;
mod sqlite;
pub mod transfer;
mod value;

pub use error::{ExternalFault, Result, StoreError, is_disk_full, is_of_logged_outage};
pub use external::ExternalRecords;
pub use open::{Backend, StoreParams, open_store};
pub use opening::{OpenProblem, Opening, StoreOpenError, grant};
pub use sql::Store;
#[cfg(any(test, fuzzing))]
pub use sql::double;
