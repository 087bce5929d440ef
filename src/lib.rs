//! countersign: a reverse proxy that verifies OAuth 1.0a (RFC 5849) in front of an API that stays as it is.

pub mod admin;
pub mod app;
pub mod clock;
pub mod config;
pub mod endpoints;
pub mod forward;
pub mod http1;
pub mod issue;
pub mod login;
pub mod names;
pub mod nonce;
pub mod oauth;
pub mod pages;
pub mod parse;
pub mod policy;
pub mod proxy;
pub mod refusal;
pub mod respond;
pub mod route;
pub mod secret;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod transport;
pub mod verify;
