//! What a store takes and returns: records, their secrets, the trait of what is asked, and errors.

pub(in crate::records) mod error;
mod external;
pub(in crate::records) mod opening;
pub mod password_cost;
pub mod record;
pub mod seal;
pub mod transfer;
pub mod use_cases;
pub(in crate::records) mod value;

pub use error::{ExternalFault, Result, StoreError, is_disk_full, is_logged_outage};
pub use external::ExternalRecords;
pub use opening::{OpenProblem, Opening, StoreOpenError, grant};
