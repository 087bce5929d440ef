//! From a request's bytes to what is to be proved about it.

pub mod head;
pub mod origin;
mod rejection;
pub mod signed;
pub mod target;

pub use self::rejection::Rejection;
