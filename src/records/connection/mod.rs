//! What the connections to PostgreSQL and Redis share: the thread that serves them, and the log of their outages.

pub(crate) mod io_thread;
pub(crate) mod outage;
