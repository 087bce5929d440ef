//! What the connections to PostgreSQL and Redis share: the thread that serves them, and the log of their outages.

pub(in crate::records) mod io_thread;
pub(in crate::records) mod outage;
