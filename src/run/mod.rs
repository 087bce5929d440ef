//! What the operator wrote, and the process that runs it.

pub mod app;
pub mod config;
