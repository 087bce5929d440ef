//! The commands for consumers, users and access tokens.

pub mod consumer;
pub(super) mod lti_key_sign;
pub mod token;
pub mod user;
