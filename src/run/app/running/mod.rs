//! What runs beside the workers: upkeep, the watch over them, and the drain at the end.

pub(in crate::run::app) mod drain;
pub(in crate::run::app) mod upkeep;
pub(in crate::run::app) mod watch;
