//! The names and texts that people and other systems give, and how long they may be.

pub mod hexadecimal;
pub mod longest;
pub mod names;
