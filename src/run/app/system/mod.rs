//! The service manager and the signals of the system.

pub(crate) mod manager;
pub(crate) mod signals;
