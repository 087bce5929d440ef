//! A store in memory, for tests and fuzz targets.

use std::sync::{Arc, mpsc};

use parking_lot::Mutex;

use super::{SqliteStore, Threads, Transactions};
use crate::records::store::sql::Extensions;

impl SqliteStore {
    /// A store in memory, which works on the thread of its caller and does not check references between records.
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    pub(in crate::records::store) fn in_memory() -> Self {
        let sql = rusqlite::Connection::open_in_memory().unwrap();
        sql.pragma_update(None, "foreign_keys", false).unwrap();
        sql.pragma_update(None, "ignore_check_constraints", true)
            .unwrap();
        let sql = Arc::new(tokio::sync::Mutex::new(Mutex::new(sql)));
        let threads = || Threads {
            transactions: Transactions::Here(Arc::clone(&sql)),
            ended: Mutex::new(mpsc::channel().1),
        };
        Self {
            readers: threads(),
            slow_reader: threads(),
            writer: threads(),
            extensions: Extensions::new(Arc::default(), None),
        }
    }
}
