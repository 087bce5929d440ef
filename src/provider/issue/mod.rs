//! The rules of issuing tokens: random values, accepted callbacks, granted permissions.

pub mod callback;
pub mod registration;
mod rejection;

pub use self::rejection::IssueRejection;
