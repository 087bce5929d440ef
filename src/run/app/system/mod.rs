//! The service manager and the signals of the system.

pub(in crate::run::app) mod manager;
pub(in crate::run::app) mod signals;
