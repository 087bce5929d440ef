//! The rules of issuing tokens: what is random, which callbacks are accepted, which permissions are granted.

pub mod callback;
pub mod permissions;
pub mod random;
pub mod registration;
mod rejection;

pub use self::rejection::Rejection;
