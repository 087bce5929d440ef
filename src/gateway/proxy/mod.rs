//! Forwards calls to the API, and answers what is for this program itself.
//!
//! `worker.rs` has the steps of a request in their order.

mod forward;
mod service;
mod worker;

pub use self::{service::jwk_set, worker::Worker};
