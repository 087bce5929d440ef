//! The rights of callers: operations, permits, rates and path conventions.

pub mod access;
pub mod body_hash;
pub mod call;
pub mod conventions;
pub mod operations;
mod path;
pub mod permit;
pub mod rate_limit;
mod rejection;
pub mod settings;
pub mod sunset;

pub use self::{
    path::AmbiguousPath,
    rejection::{PolicyRejection, UnmetRule},
};
