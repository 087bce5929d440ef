//! The rights of callers: operations, permits, rates and path conventions.

pub mod access;
pub mod body_hash;
pub mod call;
pub mod caller_rules;
pub mod conventions;
pub mod frame_ancestors;
pub mod operations;
mod path;
pub mod pattern;
pub mod permit;
pub mod rate;
mod readings;
mod rejection;
pub mod settings;
mod similar;
pub mod sunset;
mod trie;

pub use self::{
    path::AmbiguousPath,
    rejection::{PolicyRejection, UnmetRule},
};
