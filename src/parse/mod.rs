//! From a request's bytes to what is to be proved about it.

pub mod origin;
pub mod signed;
pub mod target;
