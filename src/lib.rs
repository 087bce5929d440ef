//! countersign: a reverse proxy that verifies OAuth 1.0a (RFC 5849) in front of an API that does not change.
//!
//! # The way of a request
//!
//! ```text
//! accept -> tls -> hyper -> route -> parse -> verify -> authorize -> forward -> hyper -> API
//! wire/server               request/                    gateway/     request/
//! ```
//!
//! `gateway/proxy/worker.rs` calls them in this order, and a call to the API is one value, `request::policy::call::Call`. Each
//! step needs what the step before has proved, so none can be left out: [`request::parse`] makes a `SignedRequest`,
//! [`request::verify`] turns it into `Verified`, [`request::policy`] into a `Permit`, and [`request::forward`] sends
//! nothing without a `Permit`. [`gateway::forward_auth`] takes the same steps, up to the `Permit`, for a request that
//! another proxy describes and forwards.
//!
//! # Wings, from the ground up: a module uses only its own wing and those before it in this table
//!
//! | wing | holds | is |
//! |---|---|---|
//! | `base` | clock, fields, languages, names, randomness, secrets, TLS files | the ground |
//! | `oauth` | base string, parameters, signatures, diagnosis | RFC 5849 as pure functions |
//! | `telemetry` | log, metrics, traces, audit, `calls` | what the process says about itself |
//! | `wire` | `server`, `outbound`, `url` | connections |
//! | `records` | `store`, `credentials`, `nonce` | what is kept |
//! | `request` | `route`, `parse`, `verify`, `policy`, `identity`, `forward`, `problem` | the steps of a request |
//! | `provider` | `issue`, `login`, `theme`, `respond`, `pages`, `endpoints` | the three-legged flow |
//! | `gateway` | `authorize`, `decision`, `proxy`, `forward_auth` | decides, forwards, answers other gateways |
//! | `operator` | `manage`, `lookup`, `explain`, `admin` | what operators do, and where their records are |
//! | `run` | `config`, `app` | what the operator wrote, and the process |
//! | `cli` | a file for each command | the command line |
//!
//! Files of one wing do not use each other in a circle. Each module has its own errors: a `Rejection` is the caller's
//! mistake, a `Fault` ours or the API's.
//!
//! `tests/layers.rs` holds the sources to this table.

pub mod base;
pub mod cli;
pub mod gateway;
pub mod oauth;
pub mod operator;
pub mod provider;
pub mod records;
pub mod request;
pub mod run;
pub mod telemetry;
#[cfg(test)]
#[path = "../tests/support/text.rs"]
mod text;
pub mod wire;
