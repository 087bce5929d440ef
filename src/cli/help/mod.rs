//! The help of commands: an example of each, and the message about wrong usage.

pub(super) mod examples;
pub mod usage;
