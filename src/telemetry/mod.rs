//! The log, the metrics, the ids of requests, and the redaction of secrets.

pub mod audit;
pub mod calls;
pub mod causes;
pub mod charts;
pub mod conditions;
pub mod heartbeats;
pub mod lines;
pub mod log;
pub mod metrics;
mod queue;
pub mod redact;
pub mod request_id;
pub mod stopwatch;
#[cfg(test)]
pub(crate) mod tests;
pub mod traces;
