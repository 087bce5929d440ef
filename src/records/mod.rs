//! What is kept: consumers, users, tokens and sessions in a store, the cache of credentials in front of it, and the nonces that
//! were used.

mod connection;
pub mod credentials;
pub mod nonce;
pub mod store;
pub mod values;
