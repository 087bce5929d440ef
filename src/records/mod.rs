//! What is kept: consumers, users, tokens and sessions in a store with a cache in front of it, and the nonces that were
//! used.

pub mod nonce;
pub mod store;
pub mod url;
