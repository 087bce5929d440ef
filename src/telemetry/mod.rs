//! The log, the metrics, the ids of requests, and the redaction of secrets.

pub mod audit;
pub mod calls;
pub mod charts;
pub mod conditions;
pub mod heartbeats;
pub mod log;
pub mod metrics;
pub mod redact;
pub mod request_id;
pub mod stopwatch;
#[cfg(test)]
pub(crate) mod tests;
pub mod traces;
