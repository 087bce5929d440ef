//! What may be done, decided beforehand by the operator and the user.

pub mod conventions;
pub mod operations;
pub mod permit;
pub mod rate;
mod rejection;

pub use self::rejection::Rejection;
