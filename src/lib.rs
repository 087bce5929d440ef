//! countersign: a reverse proxy that verifies OAuth 1.0a (RFC 5849) in front of an API that stays as it is.
//!
//! # The way of a request
//!
//! ```text
//! accept -> tls -> hyper -> route -> parse -> verify -> authorize -> forward -> hyper -> API
//! server/   server/ server/ route.rs parse/  verify/   policy/      forward/
//! ```
//!
//! `proxy::Worker::pass` calls them in this order. Each step takes the value of the step before, so none can be left
//! out: [`parse`] makes a `SignedRequest`, [`verify`] turns it into `Verified`, [`policy`] into a `Permit`, and
//! [`forward`] takes nothing but a `Permit`.
//!
//! # Layers: a module uses only what stands below its line
//!
//! | modules | what they are |
//! |---|---|
//! | `cli` | arguments in, exit code out |
//! | `app` | the composition root: opens, runs, reloads and drains; knows every concrete type |
//! | `admin` | health and metrics |
//! | `proxy` | the way of a request |
//! | `endpoints` `forward` | what answers: the token calls, and the API behind |
//! | `policy` | what may be done, decided beforehand |
//! | `route` `verify` | who answers, and the proof of a signed request |
//! | `parse` | from a request's bytes to what is to be proved |
//! | `respond` | responses of our own |
//! | `server` | the side that callers connect to |
//! | `pages` `refusal` | what a browser sees, and why a request is not served |
//! | `issue` | what may be registered and given out |
//! | `config` `login` | what the operator wrote, and who is at the browser |
//! | `store` | what is kept, and the cache in front of it |
//! | `nonce` `oauth` `telemetry` | used nonces, RFC 5849 as pure functions, logs and metrics |
//! | `clock` `fields` `names` `peer` `secret` | the ground |
//! | `scan` | looking through bytes |
//!
//! `tests/layers.rs` holds the sources to this table.

pub mod admin;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod endpoints;
pub mod fields;
pub mod forward;
pub mod issue;
pub mod login;
pub mod names;
pub mod nonce;
pub mod oauth;
pub mod pages;
pub mod parse;
pub mod peer;
pub mod policy;
pub mod proxy;
pub mod refusal;
pub mod respond;
pub mod route;
pub mod scan;
pub mod secret;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod verify;
