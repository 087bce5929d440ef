//! The files that the configuration names, before they are used.

pub mod certificates;
pub mod inspect;
pub mod paths;
