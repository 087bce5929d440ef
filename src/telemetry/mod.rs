//! What the process tells about itself: its log, its metrics, and what neither may hold.

#[cfg(test)]
mod kept;
pub mod lines;
pub mod log;
pub mod metrics;
pub mod redact;
