//! What is kept: consumers, users, tokens and sessions in a store with a cache in front of it, the nonces that were used,
//! and the last rejections.

pub mod nonce;
pub mod rejections;
pub mod store;
pub mod url;
