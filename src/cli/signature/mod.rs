//! The commands that make a signature and that explain one.

pub mod explain;
pub mod sign;
