//! The settings of the audit records.

use std::time::Duration;

use crate::base::settings::{DAY, LONGEST, duration, section};

section! {
    /// Records of operators' changes.
    #[derive(Copy)]
    AuditSettings["audit"] {
        /// Time in the store, for the console and the admin API. The log has them too.
        #[serde(deserialize_with = "duration::<DAY, LONGEST, _>")] keep: Duration = "90d", restart;
    }
}
