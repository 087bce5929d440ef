//! The log, the metrics, and what neither may hold.

#[cfg(test)]
mod kept;
pub mod lines;
pub mod log;
pub mod metrics;
pub mod redact;
