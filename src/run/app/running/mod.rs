//! What runs beside the workers: upkeep, the watch over them, and the drain at the end.

pub(crate) mod drain;
pub(crate) mod upkeep;
pub(crate) mod watch;
