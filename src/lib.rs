//! countersign: a reverse proxy that verifies OAuth 1.0a (RFC 5849) in front of an API that does not change.
//!
//! # The way of a request
//!
//! ```text
//! accept -> tls -> hyper -> route -> parse -> verify -> authorize -> forward -> hyper -> API
//! server/   server/ server/ route.rs parse/  verify/   authorize.rs forward/
//!                                                      policy/
//! ```
//!
//! `proxy::Worker::pass` calls them in this order. Each step takes the value of the step before, so none can be left
//! out: [`parse`] makes a `SignedRequest`, [`verify`] turns it into `Verified`, [`policy`] into a `Permit`, and
//! [`forward`] sends nothing without a `Permit`. [`forward_auth`] takes the same steps, up to the `Permit`, for a request that
//! another proxy describes and forwards.
//!
//! # Layers: a module uses only its own layer and those below
//!
//! | layer | modules | what they are |
//! |---|---|---|
//! | 6 | `main` `cli` | arguments in, exit code out |
//! | 5 | `app` | the composition root: opens, runs, reloads and drains; knows every concrete type |
//! | 4 | `config` | what the operator wrote |
//! | 3 | `proxy` `forward_auth` `authorize` `endpoints` `pages` `admin` | what responds: the way of a request, decisions for another proxy, the decision on a call to the API, the token calls, what a browser sees, health, metrics, the admin API and the console |
//! | 2 | `route` `parse` `verify` `policy` `identity` `forward` `issue` `login` `manage` `explain` `respond` | the steps, what operators do, and the responses to rejections and faults |
//! | 1 | `server` `store` `nonce` `outbound` | the outside world: callers' connections, records and the cache in front of them, used nonces, connections to other hosts and our own requests to them |
//! | 0 | `oauth` `origin` `telemetry` `clock` `cold` `fields` `hashed` `language` `memory` `names` `peer` `problem` `secret` `tls` | RFC 5849 as pure functions, URLs and origins, logs and metrics, languages, certificates and keys, the ground |
//!
//! Modules of one layer do not use each other in a circle. Each module has its own errors: a `Rejection` is the caller's
//! act, a `Fault` ours or the API's.
//!
//! `tests/layers.rs` holds the sources to this table.

pub mod admin;
pub mod app;
pub mod authorize;
pub mod cli;
pub mod clock;
pub mod cold;
pub mod config;
pub mod endpoints;
pub mod explain;
pub mod fields;
pub mod forward;
pub mod forward_auth;
pub mod hashed;
pub mod identity;
pub mod issue;
pub mod language;
pub mod login;
pub mod manage;
pub mod memory;
pub mod names;
pub mod nonce;
pub mod oauth;
pub mod origin;
pub mod outbound;
pub mod pages;
pub mod parse;
pub mod peer;
pub mod policy;
pub mod problem;
pub mod proxy;
pub mod respond;
pub mod route;
pub mod secret;
pub mod server;
pub mod store;
pub mod telemetry;
#[cfg(test)]
#[path = "../tests/support/text.rs"]
mod text;
pub mod tls;
pub mod verify;
