//! What operators do: the actions with their rules and audit records, the explanation of signatures, the admin API and
//! the console.

pub mod admin;
pub mod explain;
pub mod lookup;
pub mod manage;
pub mod reasons;
